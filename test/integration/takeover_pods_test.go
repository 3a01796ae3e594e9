package integration

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
)

// predecessor is a tool that applied a Deployment before the resource-manager does.
type predecessor struct {
	name string
	// marks are the lines of metadata with which it marks objects. NS stands for the namespace.
	marks string
	apply func(f *fixture, manifest string)
	// sameMarks is set if its marks are ours, so that nothing has to change.
	sameMarks bool
}

var predecessors = []predecessor{
	{
		name: "gardener-resource-manager (update)",
		marks: `  annotations: {resources.gardener.cloud/origin: NS/set, resources.gardener.cloud/description: ` + strconv.Quote(resourcesv1alpha1.Description) + `}
  labels: {app: web, resources.gardener.cloud/managed-by: NS}
`,
		apply:     (*fixture).applyAsGardener,
		sameMarks: true,
	},
	{
		name:  "kubectl apply",
		apply: func(f *fixture, manifest string) { f.kubectl(manifest, "apply") },
	},
	{
		name:  "kubectl apply --server-side",
		apply: func(f *fixture, manifest string) { f.kubectl(manifest, "apply", "--server-side") },
	},
	{
		name: "Helm",
		marks: `  annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: NS}
  labels: {app: web, app.kubernetes.io/managed-by: Helm}
`,
		apply: func(f *fixture, manifest string) {
			must(f, f.client.Create(f.ctx, toObject(f, manifest, &appsv1.Deployment{}), client.FieldOwner("helm")))
		},
	},
	{
		name: "Flux",
		marks: `  labels: {app: web, kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: NS}
`,
		apply: func(f *fixture, manifest string) { f.serverSideApply(manifest, "kustomize-controller") },
	},
	{
		// Argo CD calls the code of kubectl apply.
		name: "Argo CD",
		marks: `  annotations: {argocd.argoproj.io/tracking-id: "web:apps/Deployment:NS/web"}
  labels: {app: web}
`,
		apply: func(f *fixture, manifest string) { f.kubectl(manifest, "apply", "--field-manager=argocd-controller") },
	},
	{
		name: "Argo CD (ServerSideApply=true)",
		marks: `  annotations: {argocd.argoproj.io/tracking-id: "web:apps/Deployment:NS/web"}
  labels: {app: web}
`,
		apply: func(f *fixture, manifest string) { f.serverSideApply(manifest, "argocd-controller") },
	},
}

// TestTakeOverLeavesPodsAlone lets the resource-manager take over a Deployment with running Pods, and only then
// removes a field that the predecessor had applied, too. With -v it prints the owners of fields before and after.
// Every resource-manager adds the managed-by label to Pod templates, but not to the template of an object that exists
// without it, because that would be a rollout.
func TestTakeOverLeavesPodsAlone(t *testing.T) {
	for _, p := range predecessors {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.manage("set", f.webTwice(obsolete))
			p.apply(f, p.marked(f, f.webTwice(obsolete)))
			before := f.settled()
			f.wantObsolete(before, true)

			f.reconcileOK("set")
			taken := f.settled()
			f.wantUntouched(before, taken, p.sameMarks)
			f.wantQuiet("set")

			f.secret("set", "objects.yaml", f.webTwice(""))
			f.reconcileOK("set")
			cleaned := f.settled()
			f.wantObsolete(cleaned, false)
			if cleaned.deployment.UID != before.deployment.UID {
				t.Error("the Deployment was recreated")
			}
			f.wantQuiet("set")
			t.Logf("%s, before → taken over → without OBSOLETE\n%s\n%s", p.name,
				workloads(before, taken, cleaned), ownership(t, before.deployment, taken.deployment, cleaned.deployment))
		})
	}
}

// webTwice is the Deployment with two replicas.
func (f *fixture) webTwice(extra string) string {
	return strings.Replace(f.web(extra), "spec:\n  selector", "spec:\n  replicas: 2\n  selector", 1)
}

func (p predecessor) marked(f *fixture, manifest string) string {
	if p.marks == "" {
		return manifest
	}
	return strings.Replace(manifest, "  labels: {app: web}\n", strings.ReplaceAll(p.marks, "NS", f.namespace), 1)
}

// applyAsGardener creates the state that gardener-resource-manager leaves: the object, and an inventory without
// digests.
func (f *fixture) applyAsGardener(manifest string) {
	f.Helper()
	owner := client.FieldOwner("gardener-resource-manager")
	deployment := toObject(f, manifest, &appsv1.Deployment{})
	deployment.Spec.Template.Labels[resourcesv1alpha1.LabelManagedBy] = f.namespace
	must(f, f.client.Create(f.ctx, deployment, owner))
	mr := &resourcesv1alpha1.ManagedResource{}
	must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "set"}, mr))
	mr.Finalizers = []string{resourcesv1alpha1.Finalizer}
	must(f, f.client.Update(f.ctx, mr, owner))
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: f.namespace, Name: "web", Labels: map[string]string{"app": "web"},
	}}
	must(f, f.client.Status().Update(f.ctx, mr, owner))
}

// kubectl passes a manifest to the real kubectl.
func (f *fixture) kubectl(manifest string, args ...string) {
	f.Helper()
	root, err := controlplane.RepositoryRoot()
	must(f, err)
	path := filepath.Join(root, "bin", "kubectl")
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		path = filepath.Join(assets, "kubectl")
	}
	command := exec.CommandContext(f.ctx, path, append(args, "-f", "-",
		"--kubeconfig", filepath.Join(shared.Get(f).Dir(), "kubeconfig"), "--cache-dir", f.TempDir())...)
	command.Stdin = strings.NewReader(manifest)
	output, err := command.CombinedOutput()
	if err != nil {
		f.Fatalf("kubectl %v: %v\n%s", args, err, output)
	}
	f.Logf("kubectl %s: %s", strings.Join(args, " "), bytes.TrimSpace(output))
}

// workload is a Deployment and the objects that its controllers created.
type workload struct {
	deployment  *appsv1.Deployment
	replicaSets []string
	pods        []corev1.Pod
}

// settled waits until the controllers have processed the Deployment, and exactly its Pods exist and are ready.
func (f *fixture) settled() workload {
	f.Helper()
	var w workload
	f.eventually("the Deployment has exactly the Pods that it wants", func() bool {
		w = workload{deployment: f.liveDeployment()}
		want, status := *w.deployment.Spec.Replicas, w.deployment.Status
		if status.ObservedGeneration != w.deployment.Generation || status.Replicas != want ||
			status.UpdatedReplicas != want || status.AvailableReplicas != want {
			return false
		}
		replicaSets, pods := &appsv1.ReplicaSetList{}, &corev1.PodList{}
		must(f, f.client.List(f.ctx, replicaSets, client.InNamespace(f.namespace)))
		must(f, f.client.List(f.ctx, pods, client.InNamespace(f.namespace)))
		for _, replicaSet := range replicaSets.Items {
			w.replicaSets = append(w.replicaSets, replicaSet.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
		}
		w.pods = pods.Items
		return len(w.pods) == int(want)
	})
	return w
}

// describePods describes everything about the Pods that a restart or a replacement would change.
func (w workload) describePods() []string {
	var lines []string
	for _, pod := range w.pods {
		container := pod.Status.ContainerStatuses[0]
		lines = append(lines, fmt.Sprintf("%s UID %s restarts %d running since %s", pod.Name, pod.UID, container.RestartCount,
			container.State.Running.StartedAt.UTC().Format("15:04:05")))
	}
	slices.Sort(lines)
	return lines
}

// wantUntouched compares a workload before and after a take-over.
func (f *fixture) wantUntouched(before, after workload, sameGeneration bool) {
	f.Helper()
	was, is := before.deployment, after.deployment
	if was.UID != is.UID || !equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		f.Errorf("the Deployment was recreated or changed: UID %s → %s\n%s", was.UID, is.UID, diff.Diff(was.Spec, is.Spec))
	}
	// Kubernetes increments a Deployment's generation if its annotations change, and our marks are annotations.
	if sameGeneration && was.Generation != is.Generation {
		f.Errorf("its generation is %d, was %d", is.Generation, was.Generation)
	}
	if len(before.replicaSets) != 1 || !slices.Equal(before.replicaSets, after.replicaSets) {
		f.Errorf("a rollout began: pod-template-hash %v → %v", before.replicaSets, after.replicaSets)
	}
	if was, is := before.describePods(), after.describePods(); !slices.Equal(was, is) {
		f.Errorf("its Pods were %q, are %q", was, is)
	}
	for _, pod := range after.pods {
		if restarts := pod.Status.ContainerStatuses[0].RestartCount; restarts != 0 {
			f.Errorf("Pod %s was restarted %d times", pod.Name, restarts)
		}
	}
}

// wantObsolete checks whether the obsolete field is in the Deployment and in each of its Pods.
func (f *fixture) wantObsolete(w workload, want bool) {
	f.Helper()
	specs := []corev1.PodSpec{w.deployment.Spec.Template.Spec}
	for _, pod := range w.pods {
		specs = append(specs, pod.Spec)
	}
	for _, spec := range specs {
		if env := spec.Containers[0].Env; (len(env) > 0) != want {
			f.Errorf("the environment is %v, want OBSOLETE in it: %v", env, want)
		}
	}
}

// workloads prints the states of a workload.
func workloads(states ...workload) string {
	var text strings.Builder
	for _, w := range states {
		fmt.Fprintf(&text, "Deployment UID %s generation %d, pod-template-hash %s\n", w.deployment.UID, w.deployment.Generation,
			strings.Join(w.replicaSets, ", "))
		for _, pod := range w.describePods() {
			fmt.Fprintf(&text, "  Pod %s\n", pod)
		}
	}
	return text.String()
}

// ownership prints how many fields each manager owns in each state of an object. Then it prints which fields got
// their first owner (+) or lost their last one (-) from one state to the next. A field without an owner was removed
// or has its default.
func ownership(tb testing.TB, states ...metav1.Object) string {
	tb.Helper()
	var owners []string
	fields := make([]map[string]*fieldpath.Set, len(states))
	for i, obj := range states {
		fields[i] = fieldsByOwner(tb, obj)
		owners = append(owners, slices.Collect(maps.Keys(fields[i]))...)
	}
	slices.Sort(owners)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "managedFields of\toperation\tsubresource\tfields")
	for _, owner := range slices.Compact(owners) {
		fmt.Fprintf(table, "%s\t%s\n", owner, counts(fields, owner))
	}
	must(tb, table.Flush())
	for i := 1; i < len(states); i++ {
		was, is := union(fields[i-1]), union(fields[i])
		fmt.Fprintf(&text, "from state %d to %d:\n", i, i+1)
		for path := range is.Difference(was).All() {
			fmt.Fprintf(&text, "  + %s\n", path)
		}
		for path := range was.Difference(is).All() {
			fmt.Fprintf(&text, "  - %s\n", path)
		}
	}
	return text.String()
}

// counts prints how many fields an owner has in each state. If it has a single field in the last state, it prints
// that field.
func counts(states []map[string]*fieldpath.Set, owner string) string {
	numbers, only := make([]string, len(states)), ""
	for i, fields := range states {
		numbers[i], only = "none", ""
		if set := fields[owner]; set != nil {
			numbers[i] = strconv.Itoa(set.Size())
			if set.Size() == 1 {
				only = " (" + set.String() + ")"
			}
		}
	}
	return strings.Join(numbers, " → ") + only
}

// fieldsByOwner returns the leaf fields by manager, operation and subresource.
func fieldsByOwner(tb testing.TB, obj metav1.Object) map[string]*fieldpath.Set {
	tb.Helper()
	result := map[string]*fieldpath.Set{}
	for _, entry := range obj.GetManagedFields() {
		set := &fieldpath.Set{}
		must(tb, set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())))
		result[entry.Manager+"\t"+string(entry.Operation)+"\t"+entry.Subresource] = set.Leaves()
	}
	return result
}

func union(fields map[string]*fieldpath.Set) *fieldpath.Set {
	all := &fieldpath.Set{}
	for _, set := range fields {
		all = all.Union(set)
	}
	return all.Leaves()
}
