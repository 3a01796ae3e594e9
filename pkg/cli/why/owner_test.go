package why

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
)

// TestSplit checks which ManagedResources of a Shoot are explained, and which only wait for them.
func TestSplit(t *testing.T) {
	mr := func(name, class string, applied resourcesv1alpha1.ConditionStatus) resourcesv1alpha1.ManagedResource {
		item := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--one", Name: name, Generation: 1}}
		if class != "" {
			item.Spec.Class = ptr.To(class)
		}
		if applied != "" { // a resource-manager handles it
			item.Status.ObservedGeneration = 1
			for _, condition := range resourcesv1alpha1.ConditionTypes() {
				status := resourcesv1alpha1.ConditionTrue
				if condition == resourcesv1alpha1.ResourcesProgressing {
					status = resourcesv1alpha1.ConditionFalse
				}
				if condition == resourcesv1alpha1.ResourcesApplied {
					status = applied
				}
				item.Status.Conditions = append(item.Status.Conditions, resourcesv1alpha1.Condition{Type: condition, Status: status})
			}
		}
		return item
	}
	const applied, fails = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse
	etcd := mr("etcd-main", "seed", applied)
	for name, test := range map[string]struct {
		items           []resourcesv1alpha1.ManagedResource
		errors          []string
		causes, waiting []string
	}{
		"no resource-manager yet": {items: []resourcesv1alpha1.ManagedResource{mr("shoot-core-system", "", ""), mr("kube-apiserver", "seed", fails), etcd},
			causes: []string{"kube-apiserver"}, waiting: []string{"shoot--dev--one/shoot-core-system"}},
		"its resource-manager fails": {items: []resourcesv1alpha1.ManagedResource{mr("shoot-core-system", "", ""), mr(resourceManager, "seed", fails)},
			causes: []string{resourceManager}, waiting: []string{"shoot--dev--one/shoot-core-system"}},
		"its resource-manager works": {items: []resourcesv1alpha1.ManagedResource{mr("shoot-core-system", "", ""), mr(resourceManager, "seed", applied)},
			causes: []string{"shoot-core-system"}},
		"nothing else is wrong": {items: []resourcesv1alpha1.ManagedResource{mr("shoot-core-system", "", ""), etcd}, causes: []string{"shoot-core-system"}},
		"of the seed's resource-manager": {items: []resourcesv1alpha1.ManagedResource{mr("kube-scheduler", "seed", ""), mr("kube-apiserver", "seed", fails)},
			causes: []string{"kube-scheduler", "kube-apiserver"}},
		"named by an error": {items: []resourcesv1alpha1.ManagedResource{mr("a", "seed", fails), mr("b", "", "")}, errors: []string{"b"}, causes: []string{"b", "a"}},
	} {
		owner := &fleet.Owner{}
		for _, id := range test.errors {
			owner.LastErrors = append(owner.LastErrors, corev1beta1.LastError{TaskID: &id})
		}
		found, waiting := split(test.items, owner)
		var causes []string
		for i := range found {
			causes = append(causes, found[i].Name)
		}
		if !slices.Equal(causes, test.causes) || !slices.Equal(waiting, test.waiting) {
			t.Errorf("%s: causes %v, waiting %v", name, causes, waiting)
		}
	}
}
