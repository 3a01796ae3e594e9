package seed

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	seedflow "github.com/trellis-k8s/trellis/pkg/seed"
	"github.com/trellis-k8s/trellis/test/kit"
)

// rendered compares the bundles rendered from the Seed and from the observed inputs of its flow with the emitted
// ones.
func (w *world) rendered(name string) {
	w.Helper()
	given := flow.RenderInputs{Declaration: w.untyped(w.get(name)), Version: "v1", Now: time.Now()}
	add := func(list client.ObjectList, c client.Client, options ...client.ListOption) {
		kit.Must(w, c.List(w.Context(), list, options...))
		kit.Must(w, meta.EachListItem(list, func(object runtime.Object) error {
			given.Others = append(given.Others, w.untyped(object))
			return nil
		}))
	}
	add(&corev1beta1.ControllerRegistrationList{}, w.garden)
	add(&corev1beta1.ControllerInstallationList{}, w.garden)
	add(&corev1.ConfigMapList{}, w.garden, client.InNamespace(constants.GardenNamespace))
	add(&discoveryv1.EndpointSliceList{}, w.seed, client.InNamespace("default"))
	add(&corev1.SecretList{}, w.seed, client.MatchingLabels{constants.LabelSecretsManagerIdentity: "gardenlet"})
	renderer := seedflow.Renderer()
	owner, plan, err := renderer.Plan(given)
	kit.Must(w, err)
	all, held, err := flow.RenderPlan(owner, plan, flow.Rules{Scheme: renderer.Scheme, Version: "v1"})
	kit.Must(w, err)
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(w, w.seed.List(w.Context(), &list))
	if len(held) > 0 || len(all) != len(list.Items) {
		w.Errorf("%d bundles are rendered, %d are emitted, and these are held: %v", len(all), len(list.Items), held)
	}
	for _, each := range all {
		mr := &resourcesv1alpha1.ManagedResource{}
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKeyFromObject(each.ManagedResource), mr))
		if got, want := each.ManagedResource.Annotations[flow.AnnotationDigest], mr.Annotations[flow.AnnotationDigest]; got != want {
			w.Errorf("%s is rendered with the digest %s, and emitted with %s", each.Bundle.Key, got, want)
		}
	}
}

func (w *world) untyped(object runtime.Object) *unstructured.Unstructured {
	w.Helper()
	kind, err := apiutil.GVKForObject(object, w.scheme)
	kit.Must(w, err)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	kit.Must(w, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u
}
