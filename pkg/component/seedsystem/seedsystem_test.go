package seedsystem

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func reservation(cpu string) corev1beta1.SeedSettingExcessCapacityReservationConfig {
	return corev1beta1.SeedSettingExcessCapacityReservationConfig{Resources: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("6Gi"),
	}}
}

func TestObjects(t *testing.T) {
	special := reservation("4")
	special.NodeSelector = map[string]string{"pool": "large"}
	special.Tolerations = []corev1.Toleration{{Key: "large", Operator: corev1.TolerationOpExists}}
	for name, values := range map[string]Values{
		"no-reservations": {},
		"one-zone":        {Zones: []string{"a"}, Reservations: []corev1beta1.SeedSettingExcessCapacityReservationConfig{reservation("2")}},
		"three-zones": {
			Zones:        []string{"a", "b", "c"},
			Reservations: []corev1beta1.SeedSettingExcessCapacityReservationConfig{reservation("2"), special},
		},
	} {
		t.Run(name, func(t *testing.T) {
			values.Namespace, values.PauseImage = "garden", "pause:v1"
			objects, err := Objects(values)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, objects)
		})
	}
}

func TestReservationOfNothing(t *testing.T) {
	_, err := Objects(Values{Reservations: []corev1beta1.SeedSettingExcessCapacityReservationConfig{{}}})
	if err == nil || !strings.Contains(err.Error(), "configs[0].resources must not be empty") {
		t.Errorf("got the error %v", err)
	}
}
