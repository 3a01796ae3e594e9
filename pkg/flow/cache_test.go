package flow

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestWhatIsCachedIsEnough checks that a plan is at rest with the reduced objects of the cache, too, and that the rest of the
// decision is the same.
func TestWhatIsCachedIsEnough(t *testing.T) {
	transforms := map[reflect.Type]func(any) (any, error){}
	for object, by := range CacheOptions(owner.Flow) {
		transforms[reflect.TypeOf(object)] = by.Transform
	}
	infrastructure := bundle("infrastructure", "1")
	infrastructure.Objects = append(infrastructure.Objects, extension("Infrastructure", "one"))
	infrastructure.Choices = map[string]string{"zone": "a"}
	plan := Plan{Bundles: []Bundle{infrastructure, bundle("app", "1", "infrastructure")}, Inputs: "i1"}
	live := emitted(t, plan)
	for key, mr := range live.ManagedResources {
		mr.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "someone"}}
		mr.Status.AppliedInputs = "digest"
		mr.Status.Resources[0].Annotations = map[string]string{"a": "b"}
		kept, err := transforms[reflect.TypeFor[*resourcesv1alpha1.ManagedResource]()](mr.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		live.ManagedResources[key], _ = kept.(*resourcesv1alpha1.ManagedResource)
	}
	app, network := live.ManagedResources[named("app")], live.ManagedResources[named("infrastructure")]
	if app.ManagedFields != nil || app.Status.AppliedInputs != "" || app.Status.Resources[0].Annotations != nil {
		t.Errorf("cached %+v", app)
	}
	if reflect.ValueOf(app.Labels).Pointer() != reflect.ValueOf(network.Labels).Pointer() {
		t.Error("the bundles of an owner do not share their labels")
	}
	if decision := decide(t, plan, live); len(decision.Steps) > 0 || notRolledOut(app) != "" || lastEmission(live.owned(owner)).digest != "i1" {
		t.Errorf("steps %q, %s", steps(decision), notRolledOut(app))
	}
	if value, known, err := live.Choice(owner, named("infrastructure"), "zone"); value != "a" || !known || err != nil {
		t.Errorf("the choice is %q, %t, %v", value, known, err)
	}
	less := Plan{Bundles: []Bundle{bundle("infrastructure", "1")}, Inputs: "i1"}
	if decision := decide(t, less, live); decision.Problems[named("infrastructure")] == "" {
		t.Error("an object of a protected kind may leave its bundle because the inventory was lost")
	}

	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "s", ResourceVersion: "1", Labels: owner.Labels(), Annotations: map[string]string{AnnotationOwner: owner.String(), "other": "x"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "someone"}},
	}}
	secret.Labels["other"] = "x"
	kept, err := transforms[reflect.TypeFor[*corev1.Secret]()](secret)
	if err != nil {
		t.Fatal(err)
	}
	metadata, ok := kept.(client.Object)
	if !ok || !owner.owns(metadata.GetLabels()) || metadata.GetAnnotations()[AnnotationOwner] != owner.String() || metadata.GetResourceVersion() != "1" ||
		len(metadata.GetLabels())+len(metadata.GetAnnotations()) != 3 || metadata.GetManagedFields() != nil {
		t.Errorf("cached %+v", kept)
	}
}
