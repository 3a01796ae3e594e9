package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/cli/top"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

// fleetWorld is a separate garden. Its Seed is the cluster of the world.
type fleetWorld struct {
	*world
	t       *testing.T
	garden  client.Client
	gardens *garden.Garden
	// gardenConfig is the path of the garden's kubeconfig.
	gardenConfig string
	// technical is the namespace of the control plane.
	technical string
	shoot     *corev1beta1.Shoot
	seed      *corev1beta1.Seed
}

func newFleetWorld(t *testing.T) *fleetWorld {
	t.Helper()
	f := &fleetWorld{world: newWorld(t), t: t}
	server, err := garden.Binary()
	kit.Must(t, err)
	started, err := garden.Start(t.Context(), garden.Options{APIServer: server})
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.Must(t, started.KillAPIServer()) // a regular stop would wait for watches to end
		kit.Must(t, started.Stop())
	})
	f.gardens = started
	f.gardenConfig = filepath.Join(started.Dir(), "kubeconfig")
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, corev1beta1.AddToScheme(scheme))
	f.garden, err = client.New(started.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	f.technical = f.namespace(t)
	project, profile := &corev1beta1.Project{}, &corev1beta1.CloudProfile{}
	f.seed = &corev1beta1.Seed{}
	f.example("project", project)
	f.example("cloudprofile", profile)
	f.example("seed", f.seed)
	f.seed.Spec.Backup, f.seed.Spec.Taints, f.seed.Spec.Extensions, f.seed.Spec.Resources, f.seed.Spec.AccessRestrictions = nil, nil, nil, nil, nil
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev"}}, project, profile, f.seed} {
		kit.Must(t, f.garden.Create(t.Context(), object))
	}
	f.shoot = f.declare("one", f.seed.Name, profile)
	f.declare("two", "", profile)
	f.declare("three", f.seed.Name, profile)
	f.declare("four", "nowhere", profile)
	return f
}

func (f *fleetWorld) example(name string, into client.Object) {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(repository(f.t), "examples", "fleet", "core", name+".yaml"))
	kit.Must(f.t, err)
	first, _, _ := strings.Cut(string(text), "\n---\n")
	kit.Must(f.t, yaml.UnmarshalStrict([]byte(first), into))
}

func (f *fleetWorld) declare(name, seed string, profile *corev1beta1.CloudProfile) *corev1beta1.Shoot {
	f.t.Helper()
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: profile.Name}, Region: "local",
			Kubernetes: corev1beta1.Kubernetes{Version: profile.Spec.Kubernetes.Versions[0].Version}, Provider: corev1beta1.Provider{Type: "local"},
		},
	}
	if seed != "" {
		shoot.Spec.SeedName = &seed
	}
	kit.Must(f.t, f.garden.Create(f.t.Context(), shoot))
	return shoot
}

// reports writes the status of the Shoot like gardenlet.
func (f *fleetWorld) reports(state corev1beta1.LastOperationState, progress int32, description string, errs ...corev1beta1.LastError) {
	f.t.Helper()
	kit.Must(f.t, f.garden.Get(f.t.Context(), client.ObjectKeyFromObject(f.shoot), f.shoot))
	status, now := &f.shoot.Status, metav1.Now()
	status.TechnicalID, status.UID, status.SeedName, status.ObservedGeneration = f.technical, f.shoot.UID, &f.seed.Name, f.shoot.Generation
	status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: state, Progress: progress, Description: description, LastUpdateTime: now}
	status.LastErrors = errs
	status.Conditions = []corev1beta1.Condition{
		{Type: corev1beta1.ShootAPIServerAvailable, Status: corev1beta1.ConditionTrue, Reason: "HealthzRequestSucceeded", Message: "answers", LastTransitionTime: now, LastUpdateTime: now},
		{Type: corev1beta1.ShootControlPlaneHealthy, Status: corev1beta1.ConditionFalse, Reason: "DeploymentUnhealthy", Message: "server is not well", LastTransitionTime: now, LastUpdateTime: now},
	}
	kit.Must(f.t, f.garden.Status().Update(f.t.Context(), f.shoot))
}

// emit delivers a ConfigMap into the namespace garden like a flow: with labels.
func (f *fleetWorld) emit(flow, name string, owner client.Object) {
	f.t.Helper()
	manifest := strings.NewReplacer("$NS", f.technical, "name: settings", "name: "+name).Replace(configMap)
	f.runCall(call{args: []string{"create", name, "-n", "garden", "-f", "-"}, in: manifest}).says(f.t, 0)
	mr := managedResource("garden", name)
	kit.Change(f.t, f.client, mr, func() {
		mr.Labels = map[string]string{"flow.resources.gardener.cloud/name": flow, "flow.resources.gardener.cloud/owner-uid": string(owner.GetUID())}
	})
	f.await(f.t, "garden", name, state.Ready)
}

// ofSeedClass creates a ManagedResource as if the resource-manager of a seed, which this test does not run, had applied it.
func (f *fleetWorld) ofSeedClass(name, object string) {
	f.t.Helper()
	mr := managedResource(f.technical, name)
	mr.Spec.Class, mr.Spec.SecretRefs = ptr.To("seed"), []resourcesv1alpha1.LocalObjectReference{{Name: "manifests"}}
	kit.Must(f.t, f.client.Create(f.t.Context(), mr))
	now := metav1.Now()
	for _, each := range []struct {
		kind   resourcesv1alpha1.ConditionType
		status resourcesv1alpha1.ConditionStatus
	}{
		{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue}, {resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue},
		{resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse},
	} {
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
			Type: each.kind, Status: each.status, Reason: "Test", Message: "for the test", LastTransitionTime: now, LastUpdateTime: now,
		})
	}
	mr.Status.ObservedGeneration = mr.Generation
	reference := resourcesv1alpha1.ObjectReference{}
	reference.APIVersion, reference.Kind, reference.Namespace, reference.Name = "v1", "ConfigMap", f.technical, object
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{reference}
	kit.Must(f.t, f.client.Status().Update(f.t.Context(), mr))
}

// of runs a command with the kubeconfig of the garden.
func (f *fleetWorld) of(args ...string) outcome {
	return f.run(append(args, "--garden-kubeconfig", f.gardenConfig)...)
}

// completes returns the completions of a shell for an argument.
func (f *fleetWorld) completes(command, begun string) outcome {
	return execute(call{args: []string{"__complete", command, "--kubeconfig", f.kubeconfig, "--garden-kubeconfig", f.gardenConfig, begun}})
}

// TestFleet shows a Shoot and a Seed of a garden in another cluster, and a Garden, from before the Shoot is scheduled until it is created.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := newFleetWorld(t)
	f.run("get", "shoot/garden-dev/one").says(t, 2, "!does not serve Shoots and Seeds (core.gardener.cloud/v1beta1)", "!--garden-kubeconfig or --garden-context")
	f.of("get", "shoot/garden-dev/ones").says(t, 2, "!Shoot garden-dev/ones not found in the garden", "!did you mean one?")
	f.of("get", "shoot/default/one").says(t, 2, "!namespace default has no Shoots")
	f.of("why", "seed/nothing").says(t, 2, "!Seed nothing not found in the garden")
	f.of("get", "shoot/one").says(t, 2, "!use shoot/NAMESPACE/NAME")
	f.of("get", "shoot/garden-dev/one", "-w").says(t, 2, "!kubectl mr top shoot/garden-dev/one")
	f.of("get", "shoot/garden-dev/two").says(t, 0, "Shoot garden-dev/two: no operation has begun", "!is not scheduled yet: spec.seedName is empty")
	f.of("why", "shoot/garden-dev/three").says(t, 0, "Shoot garden-dev/three on Seed "+f.seed.Name+": no operation has begun",
		"!has not begun to reconcile Shoot garden-dev/three", "!kubectl mr get seed/"+f.seed.Name)
	f.of("why", "shoot/garden-dev/four").says(t, 0, "!Seed nowhere, which Shoot garden-dev/four names, does not exist in the garden. Correct spec.seedName")
	f.of("top", "shoot/garden-dev/two").says(t, 2, "!top needs a terminal")
	f.completes("get", "sho").says(t, 0, "shoot/\n")
	f.completes("get", "shoot/").says(t, 0, "shoot/garden-dev/one\n", "shoot/garden-dev/two\n")
	f.completes("why", "seed/").says(t, 0, "seed/"+f.seed.Name+"\n")

	f.reports(corev1beta1.LastOperationStateError, 0, "This version does not support it")
	f.of("why", "shoot/garden-dev/one").says(t, 0, "Create Error", "!Shoot garden-dev/one has no ManagedResources. Correct the error above first.")
	f.reports(corev1beta1.LastOperationStateProcessing, 40, "kube-apiserver. Waiting: etcd")
	f.of("get", "shoot/garden-dev/one").says(t, 0, "!No ManagedResource of Shoot garden-dev/one is in the cluster", "!cluster of Seed "+f.seed.Name)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{{"shoot", f.showsShoot}, {"top", f.showsTop}, {"seed", f.showsSeed}, {"garden", f.showsGarden}, {"one cluster", f.inOneCluster}} {
		if !t.Run(step.name, func(t *testing.T) { f.t = t; step.run(t) }) {
			t.FailNow()
		}
	}
}

// showsShoot checks the output for the Shoot, its ManagedResources in the order in which they are created, and its error.
func (f *fleetWorld) showsShoot(t *testing.T) {
	t.Helper()
	f.emit("shoot", f.technical, f.shoot)
	f.ofSeedClass("kube-apiserver", f.technical)
	f.deliver(t, f.technical, "system", state.Failed, strings.Replace(configMap, "name: settings", "name: Settings", 1))
	f.runCall(call{args: []string{"create", "later", "-n", f.technical, "--depends-on", "system", "-f", "-"}, in: strings.ReplaceAll(configMap, "$NS", f.technical)}).says(t, 0)
	f.await(t, f.technical, "later", state.Waiting)
	f.of("get", "shoot/garden-dev/one").says(t, 0, "Shoot garden-dev/one on Seed "+f.seed.Name+": Create Processing, 40 %", "kube-apiserver. Waiting: etcd",
		"APIServerAvailable True", "ControlPlaneHealthy False", "DeploymentUnhealthy: server is not well", "NAMESPACE NAME",
		"garden "+f.technical, f.technical+" kube-apiserver seed Ready", f.technical+" system resources Failed")
	if out := f.of("get", "shoot/garden-dev/one", "--unhealthy").out; strings.Contains(out, "kube-apiserver seed") || !strings.Contains(out, "later") {
		t.Errorf("--unhealthy shows\n%s", out)
	}
	f.of("get", "shoot/garden-dev/one", "-o", "name").says(t, 0, "garden/"+f.technical+"\n", f.technical+"/system\n")
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(t, json.Unmarshal([]byte(f.of("get", "shoot/garden-dev/one", "-o", "json").out), &list))
	if len(list.Items) != 4 || list.Items[len(list.Items)-1].Name != "later" {
		t.Errorf("-o json contains %d ManagedResources", len(list.Items))
	}

	f.of("tree", "shoot/garden-dev/one").says(t, 0, "Shoot garden-dev/one Processing", "step 1", "ManagedResource "+f.technical+"/kube-apiserver Ready",
		"ConfigMap "+f.technical+"/"+f.technical+" Present", "step 2", "ManagedResource "+f.technical+"/later Waiting",
		"!the cluster with the objects is not read: name the cluster of the Shoot, or of the virtual garden, with --target-kubeconfig")
	var tree struct {
		fleet.Report
		ManagedResources []struct{ Name string }
	}
	kit.Must(t, yaml.Unmarshal([]byte(f.of("tree", "shoot/garden-dev/one", "-o", "yaml").out), &tree))
	if tree.TechnicalID != f.technical || tree.LastOperation == nil || tree.LastOperation.Progress != 40 || len(tree.ManagedResources) != 4 {
		t.Errorf("-o yaml of the tree is %+v", tree)
	}

	f.reports(corev1beta1.LastOperationStateError, 60, "No", corev1beta1.LastError{
		TaskID: ptr.To("system"), Description: "It is not valid.", Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem},
	})
	own := []string{"--target-kubeconfig", filepath.Join(f.controlPlane.Dir(), "kubeconfig")}
	f.of(append([]string{"why", "shoot/garden-dev/one"}, own...)...).says(t, 0, "Create Error, 60 %", "system: ERR_CONFIGURATION_PROBLEM: It is not valid.",
		"ManagedResource "+f.technical+"/system is Failed", "ConfigMap "+f.technical+"/Settings is Missing", "1 more wait for these: "+f.technical+"/later")
	var why struct {
		fleet.Report
		Waiting          []string
		ManagedResources []struct{ Name string }
	}
	kit.Must(t, json.Unmarshal([]byte(f.of(append([]string{"why", "shoot/garden-dev/one", "-o", "json"}, own...)...).out), &why))
	if len(why.LastErrors) != 1 || len(why.Waiting) != 1 || len(why.ManagedResources) != 1 || why.ManagedResources[0].Name != "system" {
		t.Errorf("-o json of why is %+v", why)
	}
}

// showsTop checks that the operation continues above the list, which follows both namespaces.
func (f *fleetWorld) showsTop(t *testing.T) {
	t.Helper()
	name, _, err := fleet.Parse("shoot/garden-dev/one")
	kit.Must(t, err)
	run := f.startTop(t.Context(), t, top.Options{Of: &name}, nil, "--garden-kubeconfig", f.gardenConfig)
	run.shows("ManagedResources of Shoot garden-dev/one at ", "Create Error, 60 %", "1 Failed", "garden "+f.technical[:4], "kube-apiserver")
	f.reports(corev1beta1.LastOperationStateSucceeded, 100, "Shoot cluster creation finished")
	run.shows("Create Succeeded, 100 %")
	f.forget(t, f.technical, "later", "system")
	run.shows("2 Ready", "1 of 2")
	run.press("q")
	kit.Must(t, run.ends())
	f.of("why", "shoot/garden-dev/one").says(t, 0, "Create Succeeded, 100 %", "!All ManagedResources of Shoot garden-dev/one are ready or suspended (2).")
}

func (f *fleetWorld) showsSeed(t *testing.T) {
	t.Helper()
	f.of("get", "seed/"+f.seed.Name).says(t, 0, "Seed "+f.seed.Name+": no operation has begun", "!No ManagedResource of Seed "+f.seed.Name+" is in the cluster")
	f.emit("seed", f.technical+"-seed", f.seed)
	f.of("get", "seed/"+f.seed.Name).says(t, 0, "garden "+f.technical+"-seed Ready")
	f.of("tree", "seed/"+f.seed.Name, "--target-kubeconfig", f.gardenConfig).says(t, 0, "ConfigMap "+f.technical+"/"+f.technical+"-seed Present") // in the seed, regardless of the flag
	f.of("why", "seed/"+f.seed.Name).says(t, 0, "!All ManagedResources of Seed "+f.seed.Name+" are ready or suspended (1).")
}

// inOneCluster checks that no flag is needed for a garden that is its own seed.
func (f *fleetWorld) inOneCluster(t *testing.T) {
	t.Helper()
	here := func() outcome {
		return execute(call{args: []string{"get", "shoot/garden-dev/one", "--kubeconfig", f.gardenConfig, "--cache-dir", t.TempDir()}})
	}
	here().says(t, 2, "!does not serve ManagedResources")
	_, err := envtest.InstallCRDs(f.gardens.Config(), envtest.CRDInstallOptions{Paths: []string{"../../config/crd"}, ErrorIfPathMissing: true})
	kit.Must(t, err)
	here().says(t, 0, "Shoot garden-dev/one on Seed "+f.seed.Name, "!No ManagedResource of Shoot garden-dev/one")
}
