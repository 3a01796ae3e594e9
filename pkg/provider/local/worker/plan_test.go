package worker

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

// newInputs returns the inputs for a Shoot with one pool of one machine.
func newInputs(t *testing.T, simulated bool) inputs {
	t.Helper()
	pool := Pool{
		WorkerPool: extensionsv1alpha1.WorkerPool{
			Name: "pool", Minimum: 1, Maximum: 2, MaxSurge: intstr.FromInt32(1), MachineType: "small", Zones: []string{"a"},
			MachineImage: extensionsv1alpha1.MachineImage{Name: "linux", Version: "1.0.0"}, NodeAgentSecretName: ptr.To("agent"),
			Labels: map[string]string{"tier": "web"}, Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}},
		},
		Config: &providerlocalv1alpha1.WorkerConfig{Resources: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		}},
		Image: "registry.example.org/machine:1.0.0", UserData: []byte("#!/bin/sh\nhostname <<MACHINE_NAME>>\necho <<BOOTSTRAP_TOKEN>>\n"),
	}
	all, err := deployments("shoot--dev--blue", "local", []Pool{pool})
	if err != nil {
		t.Fatal(err)
	}
	options := local.Machines{Simulated: simulated, Namespace: "extension-provider-local", Environment: []corev1.EnvVar{{Name: "REGISTRY", Value: "registry.example.org"}}}
	mint := func() (bootstrapToken, error) { return bootstrapToken{"abcdef", "0123456789abcdef"}, nil }
	return inputs{namespace: "shoot--dev--blue", options: options, deployments: all, now: now, mint: mint}
}

func TestPlan(t *testing.T) {
	for name, simulated := range map[string]bool{"machine": false, "simulated": true} {
		in := newInputs(t, simulated)
		out, err := in.decide()
		if err != nil {
			t.Fatal(err)
		}
		golden.CheckPlan(t, name, out.Plan, nil)
		if len(out.Waiting) != 1 || !strings.Contains(out.Waiting[0], "0 of 1 machines are ready") {
			t.Errorf("%s: waits for %v", name, out.Waiting)
		}
	}
}

// TestPlanOfMachines checks that existing machines are unchanged, that machines of deleted deployments are deleted, and that
// machines without a ManagedResource get one.
func TestPlanOfMachines(t *testing.T) {
	in := newInputs(t, true)
	d := in.deployments[0]
	name := machineName(d.Name, d.Class, 0)
	present := Machine{Name: name, Deployment: d.Name, Class: d.Class, Ready: true, WasReady: true, HasNode: true, Created: now}
	for _, test := range []struct {
		name             string
		machines         []Machine
		bundles, deleted int
		drained, orphans int
	}{
		{name: "at rest", machines: []Machine{present}},
		{name: "of a pool that is gone", machines: []Machine{present, {Name: "x", Deployment: "gone", Ready: true, HasNode: true}}, drained: 1},
		{name: "of a pool that is gone, and empty", machines: []Machine{present, {Name: "x", Deployment: "gone", Draining: now, Drained: true}}, deleted: 1},
		{name: "without a ManagedResource", machines: []Machine{func() Machine { m := present; m.Orphaned = true; return m }()}, bundles: 1},
		{name: "without a ManagedResource, to be deleted", machines: []Machine{present, {Name: "x", Deployment: d.Name, Class: "old", Orphaned: true}}, orphans: 1},
	} {
		in.machines = test.machines
		out, err := in.decide()
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Plan.Bundles) != test.bundles || len(out.Plan.Tombstones) != test.deleted || len(out.Drain) != test.drained || len(out.Orphans) != test.orphans {
			t.Errorf("%s: %+v", test.name, out)
		}
		if err := out.Plan.Validate(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestReport checks that the time of the list of deployments changes with the list, and when gardenlet requests an operation.
func TestReport(t *testing.T) {
	in := newInputs(t, true)
	in.machines = []Machine{
		{Name: "b", Deployment: "d", Class: "c", Pool: "pool", Ready: true, Address: "10.0.0.2", ImageVersion: "1.0.0"},
		{Name: "a", Deployment: "d", Class: "c", Pool: "pool", Deleting: true},
	}
	worker := &extensionsv1alpha1.Worker{}
	images := []providerlocalv1alpha1.WorkerMachineImage{{Name: "linux", Version: "1.0.0", Image: "image"}}
	report := func(at time.Time) *metav1.Time {
		in.now = at
		if err := in.report(worker, images); err != nil {
			t.Fatal(err)
		}
		return worker.Status.MachineDeploymentsLastUpdateTime
	}
	first := report(now)
	golden.CheckPlan(t, "status", flow.Plan{}, worker.Status)
	if again := report(now.Add(time.Minute)); !again.Equal(first) {
		t.Errorf("the time has changed from %s to %s", first, again)
	}
	worker.Annotations = map[string]string{constants.AnnotationGardenerTimestamp: now.Add(90 * time.Second).Format(time.RFC3339Nano)}
	if asked := report(now.Add(2 * time.Minute)); asked.Equal(first) {
		t.Error("the time has not changed although gardenlet has requested an operation")
	}
	before := worker.Status.MachineDeploymentsLastUpdateTime
	in.deployments[0].Most++
	if changed := report(now.Add(3 * time.Minute)); changed.Equal(before) {
		t.Error("the time has not changed although the list has changed")
	}
}

func TestMachineOfPod(t *testing.T) {
	in := newInputs(t, false)
	pod := in.deployments[0].pod("m", &corev1.Secret{}, in.options)
	started := metav1.NewTime(now)
	pod.CreationTimestamp, pod.Status.StartTime, pod.Status.PodIP = started, &started, "10.0.0.1"
	with := func(status corev1.ConditionStatus, after time.Duration, phase corev1.PodPhase) Phase {
		pod.Status.Phase = phase
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(after))}}
		return machineOfPod(pod).Phase()
	}
	for _, test := range []struct{ got, want Phase }{
		{machineOfPod(pod).Phase(), PhasePending},
		{with(corev1.ConditionFalse, time.Second, corev1.PodPending), PhasePending},
		{with(corev1.ConditionTrue, time.Minute, corev1.PodRunning), PhaseRunning},
		{with(corev1.ConditionFalse, time.Minute, corev1.PodRunning), PhaseUnhealthy},
		{with(corev1.ConditionFalse, time.Second, corev1.PodFailed), PhaseUnhealthy},
	} {
		if test.got != test.want {
			t.Errorf("the phase is %s, want %s", test.got, test.want)
		}
	}
	if m := machineOfPod(pod); m.Name != "m" || m.Class != in.deployments[0].Class || m.Pool != "pool" || m.Address != "10.0.0.1" || m.ImageVersion != "1.0.0" || m.HasNode {
		t.Errorf("the machine is %+v", m)
	}
}

func TestMachineOfNode(t *testing.T) {
	in := newInputs(t, true)
	node := in.deployments[0].node("m")
	if m := machineOfNode(node); m.Phase() != PhasePending || !m.HasNode {
		t.Errorf("a new node is %+v", m)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "m"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.3"}}
	if m := machineOfNode(node); m.Phase() != PhaseRunning || m.Address != "10.0.0.3" {
		t.Errorf("a node that is ready is %+v", m)
	}
	node.Annotations[AnnotationDraining] = now.Format(time.RFC3339)
	if m := machineOfNode(node); m.Phase() != PhaseDraining || !m.Draining.Equal(now) {
		t.Errorf("a node that is drained is %+v", m)
	}
}

func TestMerge(t *testing.T) {
	brought := func(name string) resourcesv1alpha1.ManagedResource {
		mr := resourcesv1alpha1.ManagedResource{}
		mr.Labels = Deployment{Name: "d", Class: "c"}.labels(name)
		return mr
	}
	going := brought("going")
	going.DeletionTimestamp = &metav1.Time{Time: now}
	machines := merge([]resourcesv1alpha1.ManagedResource{brought("new"), brought("runs"), going},
		[]Machine{{Name: "runs", Ready: true}, {Name: "going", Ready: true}, {Name: "left", Ready: true}})
	got := map[string]string{}
	for _, m := range machines {
		got[m.Name] = string(m.Phase())
		if m.Orphaned {
			got[m.Name] += " alone"
		}
	}
	for name, want := range map[string]string{"new": "Pending", "runs": "Running", "going": "Terminating", "left": "Running alone"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if len(machines) != 4 {
		t.Errorf("got %d machines, want 4", len(machines))
	}
}

func TestFindImage(t *testing.T) {
	profile := &providerlocalv1alpha1.CloudProfileConfig{MachineImages: []providerlocalv1alpha1.MachineImages{
		{Name: "linux", Versions: []providerlocalv1alpha1.MachineImageVersion{{Version: "2", Image: "new"}}},
	}}
	before := &providerlocalv1alpha1.WorkerStatus{MachineImages: []providerlocalv1alpha1.WorkerMachineImage{{Name: "linux", Version: "1", Image: "old"}}}
	for version, want := range map[string]string{"2": "new", "1": "old", "3": ""} {
		image, known := findImage(profile, before, extensionsv1alpha1.MachineImage{Name: "linux", Version: version})
		if image.Image != want || known != (want != "") {
			t.Errorf("version %s: %+v, %t", version, image, known)
		}
	}
}

func TestFinding(t *testing.T) {
	worker := &extensionsv1alpha1.Worker{}
	worker.Status.MachineDeployments = []extensionsv1alpha1.MachineDeployment{{Name: "d", Minimum: 2}}
	ready, pending, sick := Machine{Name: "a", Ready: true}, Machine{Name: "b"}, Machine{Name: "c", WasReady: true}
	for _, test := range []struct {
		machines      []Machine
		status, words string
	}{
		{[]Machine{ready, ready}, "True", ""},
		{[]Machine{ready}, "Progressing", "1 of 2 machines are ready"},
		{[]Machine{ready, ready, pending}, "Progressing", "not ready yet: b"},
		{[]Machine{ready, pending, sick}, "False", "no longer ready: c"},
	} {
		if got := findingOf(worker, test.machines); string(got.Status) != test.status || !strings.Contains(got.Message, test.words) {
			t.Errorf("%v: %+v", test.machines, got)
		}
	}
}

func TestWorkerConfigIsStrict(t *testing.T) {
	pool := extensionsv1alpha1.WorkerPool{Name: "p", ProviderConfig: &runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"WorkerConfig","resource":{}}`),
	}}
	if _, err := workerConfig(pool, nil); err == nil || !strings.Contains(err.Error(), `unknown field "resource"`) {
		t.Errorf("for an unknown field: %v", err)
	}
}
