package shoot

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// keysOf returns the keys of the pools of a Shoot.
func keysOf(t *testing.T, shoot *corev1beta1.Shoot) []string {
	t.Helper()
	pools, err := Inputs{Shoot: shoot}.pools()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, pool := range pools {
		keys = append(keys, pool.Key())
	}
	return keys
}

// TestRotationWithWorkers follows a rotation that does not replace nodes at once: pools keep their keys until users request their rollout, and
// the rotation is prepared only when no pool waits.
func TestRotationWithWorkers(t *testing.T) {
	shoot := known(t, withWorkers).Shoot
	second := *shoot.Spec.Provider.Workers[0].DeepCopy()
	second.Name = "b"
	shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, second)
	before := keysOf(t, shoot)
	operate := func(operation string, at time.Time) []string {
		shoot.Annotations = map[string]string{constants.AnnotationGardenerOperation: operation}
		var left []string
		for range 2 { // a repeated call changes nothing
			shoot.Status.Credentials, left = operated(shoot, at)
		}
		return left
	}
	settle := func() { shoot.Status.Credentials, _ = advanced(shoot.Status.Credentials, nil, now) }
	authorities := func() *corev1beta1.CARotation { return shoot.Status.Credentials.Rotation.CertificateAuthorities }
	check := func(what string, phase corev1beta1.CredentialsRotationPhase, waiting int, replaced ...bool) {
		t.Helper()
		keys := keysOf(t, shoot)
		for i, want := range replaced {
			if (keys[i] != before[i]) != want {
				t.Errorf("%s: the key of pool %d has changed: %t", what, i, !want)
			}
		}
		if authorities().Phase != phase || len(authorities().PendingWorkersRollouts) != waiting {
			t.Errorf("%s: %+v", what, authorities())
		}
	}
	operate(constants.OperationRotateCAStartWithoutWorkersRollout, now)
	check("started", corev1beta1.RotationPreparingWithoutWorkersRollout, 2, false, false)
	settle()
	check("distributed", corev1beta1.RotationWaitingForWorkersRollout, 2, false, false)
	settle()
	check("nothing requested", corev1beta1.RotationWaitingForWorkersRollout, 2, false, false)
	if (Inputs{Shoot: shoot, Now: now}).moves() {
		t.Error("gardenlet works on a rotation that waits for the user")
	}
	if left := operate(constants.OperationRotateRolloutWorkers+"=a", now.Add(time.Minute)); len(left) > 0 {
		t.Errorf("the operations %v are left", left)
	}
	check("the first pool", corev1beta1.RotationWaitingForWorkersRollout, 1, true, false)
	settle()
	check("the first pool is rolled out", corev1beta1.RotationWaitingForWorkersRollout, 1, true, false)
	removed := shoot.DeepCopy()
	removed.Spec.Provider.Workers = removed.Spec.Provider.Workers[:1]
	if credentials, _ := operated(removed, now); credentials.Rotation.CertificateAuthorities.PendingWorkersRollouts != nil {
		t.Error("the rotation waits for a pool that was removed")
	}
	operate(constants.OperationRotateRolloutWorkers+"=b", now.Add(time.Hour))
	check("the second pool", corev1beta1.RotationWaitingForWorkersRollout, 0, true, true)
	unsettled, _ := advanced(shoot.Status.Credentials, []string{"Worker"}, now)
	if unsettled.Rotation.CertificateAuthorities.Phase != corev1beta1.RotationWaitingForWorkersRollout {
		t.Error("the rotation does not wait for the machines")
	}
	settle()
	check("prepared", corev1beta1.RotationPrepared, 0, true, true)
	if authorities().LastInitiationFinishedTime == nil {
		t.Error("the time of the end of the preparation is missing")
	}
}

// TestRotationDoesNotWaitForUnchangedConfigurations checks that a rotation goes on although the plan leaves the bundle of node agents out, as
// long as it is applied and is that of the current OperatingSystemConfigs.
func TestRotationDoesNotWaitForUnchangedConfigurations(t *testing.T) {
	in := known(t, withWorkers)
	key, other := in.key(bundleNodeAgent), in.key(bundleSystem)
	for name, test := range map[string]struct {
		known   bool
		applied resourcesv1alpha1.ConditionStatus
		gone    bool
	}{
		"current and applied":     {true, resourcesv1alpha1.ConditionTrue, true},
		"current and not applied": {true, resourcesv1alpha1.ConditionFalse, false},
		"not current":             {false, resourcesv1alpha1.ConditionTrue, false},
	} {
		in.ConfigsKnown = test.known
		agents := &resourcesv1alpha1.ManagedResource{}
		agents.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: test.applied}}
		live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: agents, other: {}}}
		left := in.withoutUnchanged(live).ManagedResources
		if (left[key] == nil) != test.gone || left[other] == nil || live.ManagedResources[key] == nil {
			t.Errorf("%s: %d ManagedResources are left", name, len(left))
		}
	}
	in.ConfigsKnown = true
	plan, err := Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == key }) {
		t.Error("the plan contains the bundle although it is current")
	}
}

// TestRotationReplacesNodes checks that the usual start of a rotation changes the keys of all pools, and that a Shoot without workers waits
// for none.
func TestRotationReplacesNodes(t *testing.T) {
	shoot := known(t, withWorkers).Shoot
	before := keysOf(t, shoot)
	shoot.Annotations = map[string]string{constants.AnnotationGardenerOperation: constants.OperationRotateCAStart}
	shoot.Status.Credentials, _ = operated(shoot, now)
	if slices.Equal(before, keysOf(t, shoot)) {
		t.Error("nodes are not replaced")
	}
	none := known(t).Shoot
	none.Annotations = map[string]string{constants.AnnotationGardenerOperation: constants.OperationRotateCAStartWithoutWorkersRollout + ";" + constants.OperationRotateSSHKeypair}
	credentials, _ := operated(none, now)
	if of := credentials.Rotation; of.CertificateAuthorities.Phase != corev1beta1.RotationPreparing || of.SSHKeypair != nil {
		t.Errorf("without workers: %+v", of)
	}
}

// TestRotationOfSSHKeys checks that a rotation makes one new key pair, that nodes accept the previous one, too, and that it ends when nodes have
// both.
func TestRotationOfSSHKeys(t *testing.T) {
	in := known(t, withWorkers)
	in.Shoot.Annotations = map[string]string{constants.AnnotationGardenerOperation: constants.OperationRotateSSHKeypair}
	var left []string
	for i := range 3 {
		in.Shoot.Status.Credentials, left = operated(in.Shoot, now.Add(time.Duration(i)*time.Minute))
	}
	of := in.Shoot.Status.Credentials.Rotation.SSHKeypair
	if len(left) > 0 || of == nil || !of.LastInitiationTime.Time.Equal(now) {
		t.Fatalf("%+v, left %v", of, left)
	}
	if rotation := in.rotations()[constants.SecretNameSSHKeyPair]; !rotation.Initiated.Equal(now) {
		t.Errorf("%+v", rotation)
	}
	item := in.Secrets[constants.SecretNameSSHKeyPair]
	item.Current.Data = secrets.Material{secrets.KeyRSAPublic: []byte("new\n")}
	item.Old = &secrets.Secret{Data: secrets.Material{secrets.KeyRSAPublic: []byte("old\n")}}
	in.Secrets[constants.SecretNameSSHKeyPair] = item
	if keys := in.sshKeys(); keys != "new\nold" {
		t.Errorf("nodes accept %q", keys)
	}
	if credentials, moved := advanced(in.Shoot.Status.Credentials, []string{"osc"}, now); moved || credentials.Rotation.SSHKeypair.LastCompletionTime != nil {
		t.Error("the rotation ends before nodes have the key")
	}
	later := now.Add(time.Hour)
	in.Shoot.Status.Credentials, _ = advanced(in.Shoot.Status.Credentials, nil, later)
	if of := in.Shoot.Status.Credentials.Rotation.SSHKeypair; !rotation.TimeOf(of.LastCompletionTime).Equal(later) {
		t.Errorf("%+v", of)
	}
	in.Shoot.Status.Credentials, _ = operated(in.Shoot, later.Add(time.Hour))
	if of := in.Shoot.Status.Credentials.Rotation.SSHKeypair; !rotation.TimeOf(of.LastInitiationTime).Equal(later.Add(time.Hour)) {
		t.Errorf("the next rotation does not begin: %+v", of)
	}
}

// TestNodesLeft checks that the configuration of an old key stays while a node has it, and while the nodes are not known.
func TestNodesLeft(t *testing.T) {
	in := upWithWorkers(t)
	old := strings.TrimPrefix(in.operatingSystemRows()[0].name, prefixOperatingSystem)
	otherImage(&in)
	reporting(&in)
	for name, test := range map[string]struct {
		left  Left
		stays bool
	}{
		"no node":          {Left{Keys: map[string]bool{old: false}}, false},
		"a node":           {Left{Keys: map[string]bool{old: true}}, true},
		"of another key":   {Left{Keys: map[string]bool{"other": true}}, false},
		"unknown":          {Left{Unknown: "the API server does not answer"}, true},
		"nothing observed": {Left{}, false},
	} {
		in.Machines.Left = test.left
		plan := planOf(t, in)
		removed := false
		for _, tombstone := range plan.Tombstones {
			removed = removed || tombstone.Name == prefixOperatingSystem+old
		}
		if removed == test.stays || (in.looksAgain() > 0) != test.stays {
			t.Errorf("%s: removed %t, looks again after %s", name, removed, in.looksAgain())
		}
	}
	if keys := in.oldKeys(); !slices.Equal(keys, []string{old}) {
		t.Errorf("the old keys are %v", keys)
	}
}

// TestNetworks checks which network of nodes is written into the specification, and what the status reports.
func TestNetworks(t *testing.T) {
	chosen, declared := "10.5.0.0/16", "10.1.0.0/16"
	in := known(t, withWorkers, reporting)
	in.Machines.Infrastructure.NodesCIDR, in.Machines.Infrastructure.EgressCIDRs = &chosen, []string{"203.0.113.7/32"}
	if got := in.chosenNodes(); got != chosen {
		t.Errorf("the specification gets %q", got)
	}
	if got := in.networks(); !slices.Equal(got.Nodes, []string{chosen}) || !slices.Equal(got.EgressCIDRs, []string{"203.0.113.7/32"}) || len(got.Pods) != 1 || len(got.Services) != 1 {
		t.Errorf("%+v", got)
	}
	in.Shoot.Spec.Networking.Nodes = &declared
	if got, status := in.chosenNodes(), in.networks(); got != "" || !slices.Equal(status.Nodes, []string{declared}) {
		t.Errorf("a declared network: %q, %+v", got, status)
	}
	in.Machines.Infrastructure, in.Shoot.Status.Networking = nil, &corev1beta1.NetworkingStatus{Nodes: []string{declared}}
	if got := in.networks(); !slices.Equal(got.Nodes, []string{declared}) || in.chosenNodes() != "" {
		t.Errorf("while the infrastructure is not known: %+v", got)
	}
	none := known(t)
	if none.networks() != nil || none.chosenNodes() != "" {
		t.Error("a Shoot without workers has networks of nodes")
	}
}

// TestNodeDelay checks the limits of the annotation.
func TestNodeDelay(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 5 * time.Minute, "600": 10 * time.Minute, "1800": 30 * time.Minute, "1801": 5 * time.Minute, "-1": 5 * time.Minute, "x": 5 * time.Minute, "0": 0,
	} {
		in := known(t, withWorkers)
		in.Shoot.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{constants.AnnotationShootCloudConfigExecutionMaxDelaySeconds: value}}
		if got := in.managedNodes().MaxDelay; got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
