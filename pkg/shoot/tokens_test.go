package shoot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestLockedOut checks which reports of ManagedResources make gardenlet review the token of the shoot's resource-manager.
func TestLockedOut(t *testing.T) {
	in := up(t)
	for name, test := range map[string]struct {
		message string
		change  func(*resourcesv1alpha1.ManagedResource)
		want    bool
	}{
		"applied":      {"All resources are applied.", nil, false},
		"unauthorized": {"ServiceAccount kube-system/a: Unauthorized", nil, true},
		"no rights":    {`secrets "a" is forbidden: User "system:serviceaccount:kube-system:gardener-resource-manager" cannot get resource "secrets"`, nil, true},
		"no rights of an identity": {
			`secrets "a" is forbidden: User "system:serviceaccount:kube-system:deployer" cannot get resource "secrets"`, nil, false,
		},
		"in the seed":   {"Unauthorized", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To(classSeed) }, false},
		"being deleted": {"Unauthorized", func(mr *resourcesv1alpha1.ManagedResource) { mr.DeletionTimestamp = &metav1.Time{Time: now} }, false},
		"elsewhere":     {"Unauthorized", func(mr *resourcesv1alpha1.ManagedResource) { mr.Namespace = "garden" }, false},
	} {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: bundleSystem}}
		mr.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: "False", Message: test.message}}
		if test.change != nil {
			test.change(mr)
		}
		live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{{Namespace: mr.Namespace, Name: mr.Name}: mr}}
		if got := in.lockedOut(flow.Result{Live: live}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
