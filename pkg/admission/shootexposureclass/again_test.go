package shootexposureclass

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestAgain checks that a Shoot that a webhook changes gets the tolerations of its class once.
func TestAgain(t *testing.T) {
	t.Parallel()
	class, shoot := &gardencorev1beta1.ExposureClass{}, &gardencorev1beta1.Shoot{}
	class.Name, shoot.Spec.ExposureClassName = "internet", &class.Name
	class.Scheduling = &gardencorev1beta1.ExposureClassScheduling{Tolerations: []gardencorev1beta1.Toleration{{Key: "internet"}}}
	garden := admissiontest.NewGarden([]runtime.Object{class}, time.Now())
	for _, again := range []bool{false, true} {
		request := &admission.Request{
			Operation: apiadmission.Create, Resource: gardencorev1beta1.Resource("shoots"), Object: shoot, Again: again,
		}
		if err := admission.Admit(t.Context(), Plugin.Rules, request, garden); err != nil {
			t.Errorf("again %v: %v", again, err)
		}
		if !equality.Semantic.DeepEqual(shoot.Spec.Tolerations, class.Scheduling.Tolerations) {
			t.Errorf("again %v: tolerations %v", again, shoot.Spec.Tolerations)
		}
	}
}
