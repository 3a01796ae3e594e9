package shoot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// nextVersion is the version that a Shoot is updated to.
const nextVersion = "1.37.2"

// TestVersionUpdate updates the version of Kubernetes while new API servers cannot start. kube-controller-manager keeps
// its version until all API servers are rolled out. Only the affected bundles are written.
func TestVersionUpdate(t *testing.T) {
	w := newWorld(t)
	w.offerVersions()
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	toGarden, toSeed, stop := w.gardenlet()
	defer func() { stop(); w.forget() }()
	w.declare()
	w.startServer()
	w.startManager()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	quiet(t, toGarden, toSeed)

	w.cordon()
	toSeed.Forget()
	shoot := w.get()
	kit.Change(t, w.garden, shoot, func() { shoot.Spec.Kubernetes.Version = nextVersion })
	w.awaitImage("kube-apiserver", nextVersion)
	kit.EventuallyWithin(t, 4*kit.WaitTimeout, "kube-controller-manager waits for the API servers", func() string {
		mr := &resourcesv1alpha1.ManagedResource{}
		kit.Must(t, w.seed.Get(t.Context(), client.ObjectKey{Namespace: technical, Name: "kube-controller-manager"}, mr))
		applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
		if mr.Generation < 2 || applied.Reason != resourcesv1alpha1.ReasonDependencyNotReady {
			return fmt.Sprintf("generation %d, %+v", mr.Generation, applied)
		}
		return ""
	})
	if image := w.image("kube-controller-manager"); image != imageOf("kube-controller-manager", version) {
		t.Errorf("kube-controller-manager runs %s while API servers of the previous version are running", image)
	}
	w.uncordon(t.Context())
	w.awaitImage("kube-controller-manager", nextVersion)
	w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
	quiet(t, toGarden, toSeed)
	w.checkWrites(writes(toSeed), "kube-apiserver", "kube-controller-manager", "shoot-core-system")
}

// checkWrites checks that each of these bundles and the Cluster, which contains the Shoot, was written once. Each is a
// Secret and a ManagedResource.
func (w *world) checkWrites(sent []string, bundles ...string) {
	w.Helper()
	const of = "PATCH /apis/resources.gardener.cloud/v1alpha1/namespaces/"
	want := []string{"POST /api/v1/namespaces/garden/secrets", of + "garden/managedresources/" + technical}
	for _, name := range bundles {
		want = append(want, "POST /api/v1/namespaces/"+technical+"/secrets", of+technical+"/managedresources/"+name)
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(sent)); !slices.Equal(got, want) {
		w.Errorf("gardenlet wrote to the seed\n%q, want\n%q", got, want)
	}
}

// offerVersions adds two versions with images to the CloudProfile.
func (w *world) offerVersions() {
	w.Helper()
	profile := &corev1beta1.CloudProfile{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Name: "local"}, profile))
	kit.Change(w, w.garden, profile, func() {
		profile.Spec.Kubernetes.Versions = []corev1beta1.ExpirableVersion{{Version: nextVersion}, {Version: version}}
	})
	file := filepath.Join(w.TempDir(), "images.yaml")
	kit.Must(w, os.WriteFile(file, []byte(`images:
- {name: resource-manager, repository: registry.example.org/resource-manager, tag: v1}
- {name: kube-apiserver, repository: registry.example.org/kube-apiserver}
- {name: kube-controller-manager, repository: registry.example.org/kube-controller-manager}
`), 0o600))
	w.Setenv("IMAGEVECTOR_OVERWRITE", file)
}

func imageOf(name, version string) string { return "registry.example.org/" + name + ":v" + version }

// image returns the image of a Deployment of the control plane.
func (w *world) image(name string) string {
	w.Helper()
	deployment := &appsv1.Deployment{}
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: name}, deployment))
	return deployment.Spec.Template.Spec.Containers[0].Image
}

func (w *world) awaitImage(name, version string) {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "Deployment "+name+" has the version "+version, func() string {
		if image := w.image(name); image != imageOf(name, version) {
			return image + "\n" + w.bundles()
		}
		return ""
	})
}

// cordon makes the nodes of the seed unschedulable until the end of the test, or the next call of uncordon. It returns the nodes.
func (w *world) cordon() []corev1.Node {
	w.Helper()
	w.Cleanup(func() { w.uncordon(context.WithoutCancel(w.Context())) })
	return w.schedulable(w.Context(), false)
}

// uncordon makes the nodes of the seed schedulable.
func (w *world) uncordon(ctx context.Context) {
	w.Helper()
	w.schedulable(ctx, true)
}

func (w *world) schedulable(ctx context.Context, schedulable bool) []corev1.Node {
	w.Helper()
	var nodes corev1.NodeList
	kit.Must(w, w.seed.List(ctx, &nodes))
	for i := range nodes.Items {
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, !schedulable)
		kit.Must(w, w.seed.Patch(ctx, &nodes.Items[i], client.RawPatch(types.MergePatchType, patch)))
	}
	return nodes.Items
}

// forget removes the Shoot from the garden. What it has in the seed is deleted with the test.
func (w *world) forget() {
	shoot := w.get()
	if shoot == nil {
		return
	}
	kit.Change(w, w.garden, shoot, func() {
		shoot.Finalizers, shoot.Annotations = nil, map[string]string{constants.AnnotationConfirmationDeletion: "true"}
	})
	kit.Must(w, client.IgnoreNotFound(w.garden.Delete(w.Context(), shoot)))
}
