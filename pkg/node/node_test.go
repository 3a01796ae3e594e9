package node

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReduce(t *testing.T) {
	now := metav1.NewTime(time.Unix(1, 0))
	kept := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"l": "1"}, CreationTimestamp: now, DeletionTimestamp: &now,
			Annotations: map[string]string{AnnotationReconciliationDelay: "5s"},
		},
		Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{{Key: "t", Value: "v", Effect: corev1.TaintEffectNoExecute, TimeAdded: &now}}, Unschedulable: true,
		},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
		},
	}
	full := kept.DeepCopy()
	full.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	full.Spec.PodCIDR = "10.0.0.0/24"
	full.Status.Images = []corev1.ContainerImage{{Names: []string{"image"}}}
	full.Status.Conditions[0].Message = "kubelet is posting ready status"
	full.Status.Conditions = append(full.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure})
	reduced, err := Reduce(full)
	if err != nil || !reflect.DeepEqual(reduced, &kept) {
		t.Errorf("got %+v, %v, want %+v", reduced, err, kept)
	}
	if len(full.Status.Images) != 1 {
		t.Error("the original was changed")
	}
	if plain, err := Reduce(&corev1.Node{}); err != nil || !reflect.DeepEqual(plain, &corev1.Node{}) {
		t.Errorf("got %+v, %v for an empty Node", plain, err)
	}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if same, err := Reduce(other); err != nil || same != any(other) {
		t.Errorf("got %+v, %v for a Pod", same, err)
	}
}
