package cli

import (
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestMigrateBack returns ManagedResources to gardener-resource-manager, which does not know the condition Ready.
func TestMigrateBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := managedResource(namespace, "shop")
	mr.Spec.Class = ptr.To("stopped") // no resource-manager of this class runs
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{}
	kit.Must(t, w.client.Create(t.Context(), mr))
	for _, conditionType := range resourcesv1alpha1.ConditionTypes() {
		said := resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionTrue, "Said", "It was said.")
		mr.Status.Conditions = resourcesv1alpha1.SetCondition(mr.Status.Conditions, conditionType, said, time.Now())
	}
	mr.Status.ObservedGeneration = mr.Generation
	kit.WriteStatus(t, w.client, mr)

	w.run("migrate", "--back", "-n", namespace).says(t, 2, "!specify the ManagedResources to hand back")
	w.run("migrate", "--back", "shop", "-n", namespace, "--from", "flux").says(t, 2, "!cannot be combined")
	w.run("migrate", "--back", "shop", "-n", namespace).says(t, 0, "managedresource "+namespace+"/shop: removed the condition Ready")
	kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr))
	var left []resourcesv1alpha1.ConditionType
	for _, condition := range mr.Status.Conditions {
		left = append(left, condition.Type)
	}
	want := slices.DeleteFunc(resourcesv1alpha1.ConditionTypes(), func(c resourcesv1alpha1.ConditionType) bool { return c == resourcesv1alpha1.Ready })
	if !slices.Equal(left, want) || mr.Status.ObservedGeneration != mr.Generation {
		t.Errorf("the remaining conditions are %v, want %v", left, want)
	}
	w.run("migrate", "--back", "shop", "-n", namespace).says(t, 0, "shop: does not have the condition Ready")
}
