package managedseedset

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	if text == "" {
		return nil
	}
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return into
}

func TestReplicaOf(t *testing.T) {
	t.Parallel()
	const (
		deleted    = `metadata: {name: set-7, generation: 1, deletionTimestamp: "2026-01-01T00:00:00Z"}`
		exists     = `metadata: {name: set-7, generation: 1}`
		registered = exists + "\nstatus: {observedGeneration: 1, conditions: [{type: SeedRegistered, status: \"True\"}]}"
	)
	shoot := func(meta, kind, state string) string {
		return meta + "\nstatus: {observedGeneration: 1, lastOperation: {type: " + kind + ", state: " + state + "}}"
	}
	seed := func(conditions string) string {
		return exists + "\nstatus: {observedGeneration: 1, conditions: [" + conditions + "]}"
	}
	const gardenlet, system, buckets = `{type: GardenletReady, status: "True"}`, `{type: SeedSystemComponentsHealthy, status: "True"}`, `{type: BackupBucketsReady, status: "True"}`
	for name, test := range map[string]struct {
		shoot, managed, seed string
		state                State
		ready                bool
	}{
		"a new Shoot":                        {exists, "", "", ShootReconciling, false},
		"a Shoot that is created":            {shoot(exists, "Create", "Processing"), "", "", ShootReconciling, false},
		"a Shoot with an error":              {shoot(exists, "Create", "Error"), "", "", ShootReconciling, false},
		"a failed Shoot":                     {shoot(exists, "Reconcile", "Failed"), "", "", ShootReconcileFailed, false},
		"a Shoot of an older generation":     {exists + "\nstatus: {lastOperation: {type: Reconcile, state: Failed}}", "", "", ShootReconciling, false},
		"a finished Shoot":                   {shoot(exists, "Create", "Succeeded"), "", "", ShootReconciled, false},
		"a restored Shoot":                   {shoot(exists, "Restore", "Succeeded"), "", "", ShootReconciled, false},
		"a Shoot that moves":                 {shoot(exists, "Migrate", "Succeeded"), "", "", ShootReconciling, false},
		"a Shoot that is deleted":            {shoot(deleted, "Reconcile", "Succeeded"), "", "", ShootDeleting, false},
		"a Shoot that failed before":         {shoot(deleted, "Reconcile", "Failed"), "", "", ShootDeleting, false},
		"a Shoot that cannot be deleted":     {shoot(deleted, "Delete", "Failed"), "", "", ShootDeleteFailed, false},
		"a new ManagedSeed":                  {shoot(exists, "Create", "Succeeded"), exists, "", ManagedSeedPreparing, false},
		"a ManagedSeed that is not observed": {exists, exists + "\nstatus: {conditions: [{type: SeedRegistered, status: \"True\"}]}", "", ManagedSeedPreparing, false},
		"a ManagedSeed that fails":           {exists, exists + "\nstatus: {observedGeneration: 1, conditions: [{type: SeedRegistered, status: \"False\"}]}", "", ManagedSeedPreparing, false},
		"a registered ManagedSeed":           {exists, registered, "", ManagedSeedRegistered, false},
		"its Shoot failed":                   {shoot(exists, "Reconcile", "Failed"), registered, "", ManagedSeedRegistered, false},
		"a ManagedSeed that is deleted":      {exists, deleted, "", ManagedSeedDeleting, false},
		"a Seed without conditions":          {exists, registered, seed(""), ManagedSeedRegistered, false},
		"a Seed without a gardenlet":         {exists, registered, seed(system), ManagedSeedRegistered, false},
		"a Seed without components":          {exists, registered, seed(gardenlet), ManagedSeedRegistered, false},
		"a ready Seed":                       {exists, registered, seed(gardenlet + "," + system), ManagedSeedRegistered, true},
		"a ready Seed with buckets":          {exists, registered, seed(gardenlet + "," + system + "," + buckets), ManagedSeedRegistered, true},
		"a Seed whose buckets fail":          {exists, registered, seed(gardenlet + "," + system + `,{type: BackupBucketsReady, status: "False"}`), ManagedSeedRegistered, false},
		"a Seed that is deleted":             {exists, registered, deleted + "\nstatus: {observedGeneration: 1, conditions: [" + gardenlet + "," + system + "]}", ManagedSeedRegistered, false},
	} {
		whole := read[gardencorev1beta1.Shoot](t, test.shoot)
		whole.Namespace = "garden"
		kept := whole.DeepCopy()
		kept.Generation, kept.Status = 0, gardencorev1beta1.ShootStatus{}
		keep(kept, whole)
		for _, one := range []*gardencorev1beta1.Shoot{whole, kept} {
			got := ReplicaOf(one, read[v1alpha1.ManagedSeed](t, test.managed), read[gardencorev1beta1.Seed](t, test.seed), false)
			if got.State != test.state || got.SeedReady != test.ready || got.Ordinal != 7 || got.Health != Progressing || got.Protected {
				t.Errorf("%s: %+v, want %d, %v", name, got, test.state, test.ready)
			}
		}
	}
}

func TestHealthAndProtection(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]Health{"healthy": Healthy, "progressing": Progressing, "unknown": HealthUnknown, "unhealthy": Unhealthy} {
		shoot := read[gardencorev1beta1.Shoot](t, "metadata: {name: a, labels: {shoot.gardener.cloud/status: "+label+"}}")
		if got := ReplicaOf(shoot, nil, nil, true); got.Health != want || got.Ordinal != -1 || !got.Hosts {
			t.Errorf("%s: %+v", label, got)
		}
	}
	const protects = "metadata: {name: a-1, annotations: {seedmanagement.gardener.cloud/protect-from-deletion: \"true\"}}"
	plain := read[gardencorev1beta1.Shoot](t, "metadata: {name: a-1}")
	if !ReplicaOf(read[gardencorev1beta1.Shoot](t, protects), nil, nil, false).Protected || !ReplicaOf(plain, read[v1alpha1.ManagedSeed](t, protects), nil, false).Protected {
		t.Error("the annotation does not protect a replica")
	}
	for name, want := range map[string]int{"a-0": 0, "a-12": 12, "a": -1, "12": -1, "a-b": -1, "a-": -1, "a--1": 1, "a-99999999999": -1} {
		if got := ordinalOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestStatusAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	set := &v1alpha1.ManagedSeedSet{}
	set.Generation, set.Status.NextReplicaNumber = 3, 2
	replicas := replicasOf(t, "0 registered; 4 registered unhealthy")
	status := statusAfter(set, replicas, Decision{Action: CreateShoot, Replica: "set-5", Reason: v1alpha1.ShootReconcilingReason}, now)
	if status.ObservedGeneration != 3 || status.Replicas != 3 || status.ReadyReplicas != 1 || status.NextReplicaNumber != 6 ||
		status.PendingReplica.Name != "set-5" || !status.PendingReplica.Since.Time.Equal(now) || status.PendingReplica.Retries != nil {
		t.Errorf("the status is %+v", status)
	}
	set.Status = status
	same := statusAfter(set, replicas, Decision{Replica: "set-5", Reason: v1alpha1.ShootReconcilingReason}, now.Add(time.Hour))
	if !same.PendingReplica.Since.Time.Equal(now) || same.Replicas != 2 || same.NextReplicaNumber != 6 {
		t.Errorf("the status after an hour is %+v", same)
	}
	retried := statusAfter(set, replicas, Decision{Action: RetryShoot, Replica: "set-5", Reason: v1alpha1.ShootReconcilingReason, Retries: 1}, now.Add(time.Hour))
	if retried.PendingReplica.Since.Time.Equal(now) || *retried.PendingReplica.Retries != 1 {
		t.Errorf("the status after a retry is %+v", retried.PendingReplica)
	}
	if done := statusAfter(set, replicas, Decision{}, now); done.PendingReplica != nil {
		t.Errorf("the set waits for %+v", done.PendingReplica)
	}
}

// TestEvents checks that each decision has an Event.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		decision Decision
		want     string
		warning  bool
	}{
		{Decision{Blocked: "why"}, "ReconcileError", true},
		{Decision{Action: CreateShoot, Reason: v1alpha1.ShootReconcilingReason}, "CreatingShoot", false},
		{Decision{Action: DeleteShoot, Reason: v1alpha1.ShootDeletingReason}, "DeletingShoot", false},
		{Decision{Action: CreateManagedSeed, Reason: v1alpha1.ManagedSeedPreparingReason}, "CreatingManagedSeed", false},
		{Decision{Action: DeleteManagedSeed, Reason: v1alpha1.ManagedSeedDeletingReason}, "DeletingManagedSeed", false},
		{Decision{Action: RetryShoot, Reason: v1alpha1.ShootReconcilingReason}, "RetryingShootReconciliation", false},
		{Decision{Action: RetryShoot, Reason: v1alpha1.ShootDeletingReason}, "RetryingShootDeletion", false},
		{Decision{Reason: v1alpha1.ShootReconcileFailedReason}, "NotRetryingShootReconciliation", true},
		{Decision{Reason: v1alpha1.ShootDeleteFailedReason}, "NotRetryingShootDeletion", true},
		{Decision{Reason: v1alpha1.ShootReconcilingReason}, "WaitingForShootReconciled", false},
		{Decision{Reason: v1alpha1.ShootDeletingReason}, "WaitingForShootDeleted", false},
		{Decision{Reason: v1alpha1.ShootNotHealthyReason}, "WaitingForShootHealthy", false},
		{Decision{Reason: v1alpha1.ManagedSeedPreparingReason}, "WaitingForManagedSeedRegistered", false},
		{Decision{Reason: v1alpha1.ManagedSeedDeletingReason}, "WaitingForManagedSeedDeleted", false},
		{Decision{Reason: v1alpha1.SeedNotReadyReason}, "WaitingForSeedReady", false},
	} {
		if got := eventOf(test.decision); got.reason != test.want || got.warning != test.warning || got.note == "" {
			t.Errorf("%+v: %+v, want %s", test.decision, got, test.want)
		}
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	set := &v1alpha1.ManagedSeedSet{}
	set.Namespace, set.Name, set.UID = "garden", "set", "1"
	set.Spec.ShootTemplate.Metadata.Labels = map[string]string{"a": "b"}
	set.Spec.ShootTemplate.Spec.DNS = &gardencorev1beta1.DNS{Domain: ptr.To("replica-name.example.org")}
	set.Spec.Template.Metadata.Annotations = map[string]string{"c": "d"}
	set.Spec.Template.Spec.Gardenlet.Config = runtime.RawExtension{Raw: []byte(`{"seedConfig":{"spec":{"ingress":{"domain":"ingress.replica-name.example.org"}}}}`)}
	before := set.DeepCopy()
	shoot := newShoot(set, "set-3")
	managed, err := newManagedSeed(set, "set-3")
	if err != nil {
		t.Fatal(err)
	}
	if *shoot.Spec.DNS.Domain != "set-3.example.org" || shoot.Name != "set-3" || shoot.Namespace != "garden" || shoot.Labels["a"] != "b" || !*shoot.OwnerReferences[0].Controller {
		t.Errorf("the Shoot is %+v", shoot)
	}
	if text := string(managed.Spec.Gardenlet.Config.Raw); text != `{"seedConfig":{"spec":{"ingress":{"domain":"ingress.set-3.example.org"}}}}` ||
		managed.Spec.Shoot.Name != "set-3" || managed.Annotations["c"] != "d" || managed.OwnerReferences[0].UID != "1" {
		t.Errorf("the ManagedSeed is %+v", managed)
	}
	if *set.Spec.ShootTemplate.Spec.DNS.Domain != *before.Spec.ShootTemplate.Spec.DNS.Domain || string(set.Spec.Template.Spec.Gardenlet.Config.Raw) != string(before.Spec.Template.Spec.Gardenlet.Config.Raw) {
		t.Error("the set has changed")
	}
	for _, config := range []string{`[]`, `{"seedConfig":{"spec":{"ingress":"x"}}}`} {
		set.Spec.Template.Spec.Gardenlet.Config.Raw = []byte(config)
		if _, err := newManagedSeed(set, "set-3"); err == nil {
			t.Errorf("%s is accepted", config)
		}
	}
}
