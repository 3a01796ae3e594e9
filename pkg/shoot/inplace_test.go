package shoot

import (
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestRotatesInPlace checks which rotations wait for machines that are updated in place: those of credentials that nodes have, while they are
// being prepared.
func TestRotatesInPlace(t *testing.T) {
	const preparing, prepared = corev1beta1.RotationPreparing, corev1beta1.RotationPrepared
	for name, test := range map[string]struct {
		shoot    *corev1beta1.Shoot
		strategy corev1beta1.MachineUpdateStrategy
		want     bool
	}{
		"authorities":           {rotating(preparing, "", ""), corev1beta1.ManualInPlaceUpdate, true},
		"account key":           {rotating("", preparing, ""), corev1beta1.AutoInPlaceUpdate, true},
		"encryption key":        {rotating("", "", preparing), corev1beta1.ManualInPlaceUpdate, false},
		"prepared":              {rotating(prepared, prepared, ""), corev1beta1.ManualInPlaceUpdate, false},
		"none":                  {rotating("", "", ""), corev1beta1.ManualInPlaceUpdate, false},
		"machines are replaced": {rotating(preparing, "", ""), corev1beta1.AutoRollingUpdate, false},
	} {
		test.shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a", UpdateStrategy: ptr.To(test.strategy)}}
		if got := (Inputs{Shoot: test.shoot}).rotatesInPlace(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
