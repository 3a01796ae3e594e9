package care

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestExpectedControlPlane checks that the conditions of a Shoot are those of its control plane as soon as its wake-up has
// begun, although its status says that it hibernates until the wake-up has succeeded.
func TestExpectedControlPlane(t *testing.T) {
	for name, test := range map[string]struct {
		declared, was, begun, deleted bool
		want                          bool
	}{
		"runs":                           {false, false, true, false, false},
		"hibernates":                     {true, true, true, false, true},
		"falls asleep":                   {true, false, false, false, true},
		"wake-up declared":               {false, true, false, false, true},
		"wakes up":                       {false, true, true, false, false},
		"hibernates, and is deleted":     {true, true, true, true, false},
		"was hibernated, and is deleted": {false, true, false, true, false},
	} {
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(test.declared)}
		shoot.Status.IsHibernated, shoot.Status.ObservedGeneration = test.was, 1
		if test.begun {
			shoot.Status.ObservedGeneration = 2
		}
		if test.deleted {
			shoot.DeletionTimestamp = &metav1.Time{}
		}
		if got := hibernates(shoot); got != test.want {
			t.Errorf("%s: hibernated: %t", name, got)
		}
	}
}
