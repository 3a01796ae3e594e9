package installation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Required are the registrations that a Seed needs.
type Required struct {
	// Reasons why they are needed, by the name of the registration.
	Reasons map[string]string
	// Problems describe errors in objects of the garden. Nothing is uninstalled while there are any, because the intention is not known.
	Problems []string
}

// RequiredIn returns the registrations that a Seed needs. It is a pure function.
func RequiredIn(in Inputs) Required {
	r := Required{Reasons: map[string]string{}}
	needs := wantedIn(in)
	for _, id := range slices.Sorted(maps.Keys(needs)) {
		r.serve(in, id, needs[id])
	}
	shoots := len(in.shoots())
	for _, registration := range in.Registrations {
		switch policyOf(registration) {
		case corev1beta1.ControllerDeploymentPolicyAlways:
			if in.Seed.DeletionTimestamp == nil {
				r.require(registration.Name, "its policy is Always")
			}
		case corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots:
			if shoots > 0 {
				r.require(registration.Name, "its policy is AlwaysExceptNoShoots, and the Seed has Shoots")
			}
		}
		if installation := in.installationOf(registration.Name); installation != nil && isRequired(installation) == corev1beta1.ConditionTrue {
			r.require(registration.Name, "extension objects of its kinds and types exist in the Seed")
		}
	}
	r.restrict(in)
	return r
}

// serve requires the registrations that are responsible for a kind and type. One of them must be the primary one.
func (r *Required) serve(in Inputs, id ID, by string) {
	var primary, secondary []*corev1beta1.ControllerRegistration
	for _, registration := range in.Registrations {
		for _, resource := range registration.Spec.Resources {
			switch {
			case IDOf(resource.Kind, resource.Type) != id:
			case isPrimary(resource):
				primary = append(primary, registration)
			default:
				secondary = append(secondary, registration)
			}
		}
	}
	for _, registration := range secondary {
		r.require(registration.Name, by+" needs "+string(id))
	}
	if len(primary) == 0 {
		r.Problems = append(
			r.Problems, fmt.Sprintf("%s needs %s, and no ControllerRegistration is primarily responsible for it: create one", by, id),
		)
		return
	}
	if len(primary) > 1 {
		slices.SortFunc(primary, in.comparePrimaries)
		r.Problems = append(r.Problems, fmt.Sprintf(
			"several ControllerRegistrations are primarily responsible for %s, %s: only the first one is installed for it; "+
				"set primary: false in the others", id, strings.Join(namesOf(primary), ", ")))
	}
	r.require(primary[0].Name, by+" needs "+string(id))
}

// require adds a registration with the reason, unless it has one.
func (r *Required) require(name, reason string) {
	if r.Reasons[name] == "" {
		r.Reasons[name] = reason
	}
}

// comparePrimaries orders registrations for the same kind and type: installed ones first, those that are being deleted
// last, and older ones before newer ones.
func (in Inputs) comparePrimaries(a, b *corev1beta1.ControllerRegistration) int {
	rank := func(registration *corev1beta1.ControllerRegistration) int {
		switch {
		case in.installationOf(registration.Name) != nil:
			return 0
		case registration.DeletionTimestamp == nil:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// restrict removes registrations whose selector does not match the Seed.
func (r *Required) restrict(in Inputs) {
	for _, registration := range in.Registrations {
		deployment := registration.Spec.Deployment
		if deployment == nil || deployment.SeedSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(deployment.SeedSelector)
		if err != nil {
			r.Problems = append(r.Problems, fmt.Sprintf("spec.deployment.seedSelector of ControllerRegistration %s: %v", registration.Name, err))
			delete(r.Reasons, registration.Name)
			continue
		}
		if !selector.Matches(labels.Set(in.Seed.Labels)) {
			delete(r.Reasons, registration.Name)
		}
	}
}

// policyOf returns the deployment policy of a registration, or the default.
func policyOf(registration *corev1beta1.ControllerRegistration) corev1beta1.ControllerDeploymentPolicy {
	if deployment := registration.Spec.Deployment; deployment != nil && deployment.Policy != nil {
		return *deployment.Policy
	}
	return corev1beta1.ControllerDeploymentPolicyOnDemand
}

// namesOf returns the names of registrations.
func namesOf(registrations []*corev1beta1.ControllerRegistration) []string {
	names := make([]string, 0, len(registrations))
	for _, registration := range registrations {
		names = append(names, registration.Name)
	}
	return names
}
