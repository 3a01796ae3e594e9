package registrar

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
)

func TestDecide(t *testing.T) {
	created := operatorv1alpha1.Garden{}
	up := operatorv1alpha1.Garden{}
	up.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded}
	failing := *up.DeepCopy()
	failing.Status.LastOperation.State = corev1beta1.LastOperationStateError
	deleting := *up.DeepCopy()
	deleting.DeletionTimestamp = ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		gardens []operatorv1alpha1.Garden
		now     controller.When
		next    controller.When
		stop    bool
	}{
		"none":                   {nil, controller.Always, controller.Always, false},
		"created":                {[]operatorv1alpha1.Garden{created}, controller.Always, controller.WithGarden, false},
		"up":                     {[]operatorv1alpha1.Garden{up}, controller.Always, controller.WithVirtual, false},
		"fails later":            {[]operatorv1alpha1.Garden{failing}, controller.WithVirtual, controller.WithVirtual, false},
		"fails":                  {[]operatorv1alpha1.Garden{failing}, controller.WithGarden, controller.WithGarden, false},
		"deleted before it ran":  {[]operatorv1alpha1.Garden{deleting}, controller.Always, controller.WithGarden, false},
		"being deleted":          {[]operatorv1alpha1.Garden{deleting}, controller.WithVirtual, controller.WithVirtual, false},
		"gone":                   {nil, controller.WithVirtual, controller.WithVirtual, true},
		"gone before it was up":  {nil, controller.WithGarden, controller.WithGarden, true},
		"two, one of them is up": {[]operatorv1alpha1.Garden{created, up}, controller.WithGarden, controller.WithVirtual, false},
	} {
		if next, stop := decide(test.gardens, test.now); next != test.next || stop != test.stop {
			t.Errorf("%s: %v %t", name, next, stop)
		}
	}
}
