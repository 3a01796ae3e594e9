package care

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// classed returns a ManagedResource of class seed in namespace garden with labels, which fails if broken is set.
func classed(name string, labels map[string]string, broken bool) *resourcesv1alpha1.ManagedResource {
	mr := component(name)
	mr.Labels, mr.Spec.Class = labels, ptr.To("seed")
	if broken {
		mr.Generation++
	}
	return &mr
}

// conditionWith returns the condition of a Seed whose cluster has a healthy component and another ManagedResource.
func conditionWith(t *testing.T, other *resourcesv1alpha1.ManagedResource) *corev1beta1.Condition {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(seed).WithObjects(seed).Build()
	own := classed("vpa", map[string]string{flow.LabelFlow: "seed"}, false)
	c := &conditions{
		garden: garden, seed: fake.NewClientBuilder().WithScheme(scheme).WithObjects(own, other).Build(),
		options: Options{SeedName: "local", Clock: testingclock.NewFakePassiveClock(now)},
	}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "local"}}); err != nil {
		t.Fatal(err)
	}
	if err := garden.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
		t.Fatal(err)
	}
	return corev1beta1.FindCondition(seed.Status.Conditions, corev1beta1.SeedSystemComponentsHealthy)
}

// TestOnlyOwnComponentsCount checks which ManagedResources in namespace garden decide on the health of the Seed, and that
// changes of others do not even trigger the computation.
func TestOnlyOwnComponentsCount(t *testing.T) {
	component := map[string]string{constants.LabelGardenRole: constants.RoleSeedSystemComponent}
	of := func(name string, more map[string]string) map[string]string {
		labels := map[string]string{flow.LabelFlow: name}
		for key, value := range more {
			labels[key] = value
		}
		return labels
	}
	for name, test := range map[string]struct {
		labels map[string]string
		counts bool
	}{
		"another component of the Seed":      {of("seed", component), true},
		"of an operator, without a flow":     {nil, true},
		"an extension that the Seed needs":   {of("controllerinstallation", component), true},
		"an extension that a Shoot needs":    {of("controllerinstallation", nil), false},
		"the namespace of a Shoot":           {of("shoot", nil), false},
		"network policies of a namespace":    {of("network-policies", component), false},
		"the bucket of backups":              {of("backupbucket", nil), false},
		"the backups of a Shoot":             {of("backupentry", nil), false},
		"objects of an extension's own flow": {of("infrastructure", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := classed("other", test.labels, false), classed("other", test.labels, true)
			got := conditionWith(t, after)
			if (got.Status != corev1beta1.ConditionTrue) != test.counts {
				t.Errorf("the condition is %s: %s", got.Status, got.Message)
			}
			type changed = event.TypedUpdateEvent[*resourcesv1alpha1.ManagedResource]
			if componentChanged().Update(changed{ObjectOld: before, ObjectNew: after}) != test.counts {
				t.Errorf("a change triggers the computation: %t", !test.counts)
			}
		})
	}
}
