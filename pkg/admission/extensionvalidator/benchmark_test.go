package extensionvalidator

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// registered finds the same registration for each key, like an index.
type registered struct {
	admission.Reader[*gardencorev1beta1.ControllerRegistration]

	registration *gardencorev1beta1.ControllerRegistration
}

// By implements admission.Reader.
func (r registered) By(context.Context, admission.Index[*gardencorev1beta1.ControllerRegistration], string) ([]*gardencorev1beta1.ControllerRegistration, error) {
	return []*gardencorev1beta1.ControllerRegistration{r.registration}, nil
}

// BenchmarkPlugin measures the decision about a new Shoot. It does not depend on the number of Shoots.
func BenchmarkPlugin(b *testing.B) {
	registration := &gardencorev1beta1.ControllerRegistration{}
	for _, kind := range []string{"ControlPlane", "Infrastructure", "Worker", "Network", "OperatingSystemConfig"} {
		registration.Spec.Resources = append(registration.Spec.Resources, gardencorev1beta1.ControllerResource{Kind: kind, Type: "local"})
	}
	shoot, network := &gardencorev1beta1.Shoot{}, "local"
	shoot.Spec.Provider.Type, shoot.Spec.Networking = "local", &gardencorev1beta1.Networking{Type: &network}
	shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Machine: gardencorev1beta1.Machine{Image: &gardencorev1beta1.ShootMachineImage{Name: "local"}}}}
	garden := admissiontest.NewGarden([]runtime.Object{}, time.Now())
	garden.ControllerRegistrations = registered{registration: registration}
	request := &admission.Request{Operation: apiadmission.Create, Resource: gardencorev1beta1.Resource("shoots"), Object: shoot}
	for b.Loop() {
		if err := admission.Validate(b.Context(), Plugin.Rules, request, garden); err != nil {
			b.Fatal(err)
		}
	}
}
