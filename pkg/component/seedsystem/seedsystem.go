// Package seedsystem contains the prerequisites of all other components of a seed: the PriorityClasses of seeds and
// control planes, the policies that protect control planes and confine their namespaces, and the Pods that reserve capacity
// for new ones.
package seedsystem

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// ImagePause is the name of the image of the reservation Pods.
const ImagePause = "pause"

// reservationName is the name of the first reservation Deployment.
const reservationName = "reserve-excess-capacity"

// Values are the inputs of the component.
type Values struct {
	// Namespace of the Deployments: garden.
	Namespace string
	// Reservations are the reserved capacities: settings.excessCapacityReservation.configs of the Seed, or none if that is
	// disabled.
	Reservations []corev1beta1.SeedSettingExcessCapacityReservationConfig
	// Zones of the seed. Each reservation has one Pod per zone if there are several zones, two Pods otherwise.
	Zones []string
	// PauseImage is the reference of the image named by ImagePause.
	PauseImage string
}

// priorityClasses are the PriorityClasses for components of seeds (from 600) and of control planes.
// gardener-system-critical is part of the gardenlet chart.
var priorityClasses = []struct {
	name        string
	value       int32
	description string
}{
	{constants.PriorityClassSystem900, 999998900, seedComponents},
	{constants.PriorityClassSystem800, 999998800, seedComponents},
	{constants.PriorityClassSystem700, 999998700, seedComponents},
	{constants.PriorityClassSystem600, 999998600, seedComponents},
	{constants.PriorityClassSystem500, 999998500, controlPlanes},
	{constants.PriorityClassSystem400, 999998400, controlPlanes},
	{constants.PriorityClassSystem300, 999998300, controlPlanes},
	{constants.PriorityClassSystem200, 999998200, controlPlanes},
	{constants.PriorityClassSystem100, 999998100, controlPlanes},
	{constants.PriorityClassReserveExcessCapacity, -5, "For Pods that reserve capacity. All others replace them."},
}

const (
	seedComponents = "For components of the seed."
	controlPlanes  = "For components of the control planes of shoots."
)

// Objects returns the objects of the component. It returns an error for a reservation without resources.
func Objects(values Values) ([]client.Object, error) {
	var objects []client.Object
	for _, class := range priorityClasses {
		objects = append(objects, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: class.name}, Value: class.value, Description: class.description,
		})
	}
	objects = append(objects, protection(values.Namespace)...)
	objects = append(objects, controlPlanePolicies()...)
	for i, reservation := range values.Reservations {
		if len(reservation.Resources) == 0 {
			return nil, fmt.Errorf("settings.excessCapacityReservation.configs[%d].resources must not be empty", i)
		}
		deployment, err := reserve(values, nameOf(i), reservation)
		if err != nil {
			return nil, err
		}
		objects = append(objects, deployment)
	}
	return objects, nil
}

func nameOf(i int) string {
	if i == 0 {
		return reservationName
	}
	return fmt.Sprintf("%s-%d", reservationName, i)
}

func reserve(values Values, name string, reservation corev1beta1.SeedSettingExcessCapacityReservationConfig) (*appsv1.Deployment, error) {
	replicas := int32(2)
	if len(values.Zones) > 1 {
		replicas = int32(len(values.Zones)) //nolint:gosec // there are few zones
	}
	deployment, err := parts.Workload{
		Namespace: values.Namespace, Name: name, Selector: map[string]string{"app": "kubernetes", "role": name},
		Replicas: replicas, PriorityClass: constants.PriorityClassReserveExcessCapacity,
		Container: corev1.Container{
			Name: "pause-container", Image: values.PauseImage,
			Resources: corev1.ResourceRequirements{Requests: reservation.Resources, Limits: reservation.Resources},
		},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	spec := &deployment.Spec.Template.Spec
	spec.NodeSelector, spec.Tolerations = reservation.NodeSelector, reservation.Tolerations
	spec.TerminationGracePeriodSeconds = ptr.To[int64](5) // makes room quickly
	return deployment, nil
}
