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

// Required are the registrations that a Seed needs, and why.
type Required struct {
	// Reasons by the name of the registration.
	Reasons map[string]string
	// Problems say what the garden declares wrong. As long as there is one, nothing is uninstalled: what was meant is not known.
	Problems []string
}

// RequiredIn returns the registrations that a Seed needs. It is pure.
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

// serve requires the registrations that are responsible for a kind and type. One of them is the primary one.
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
		r.Problems = append(r.Problems, fmt.Sprintf("%s needs %s, and no ControllerRegistration is primarily responsible for it: create one", by, id))
		return
	}
	if len(primary) > 1 {
		slices.SortFunc(primary, in.comparePrimaries)
		r.Problems = append(r.Problems, fmt.Sprintf("several ControllerRegistrations are primarily responsible for %s, %s: only the first one is installed for it; "+
			"set primary: false in the others", id, strings.Join(namesOf(primary), ", ")))
	}
	r.require(primary[0].Name, by+" needs "+string(id))
}

func (r *Required) require(name, reason string) {
	if r.Reasons[name] == "" {
		r.Reasons[name] = reason
	}
}

// comparePrimaries orders registrations for the same kind and type: one that is installed stays, one that is being deleted comes last, and
// the older one comes first.
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

// restrict removes the registrations whose selector does not select the Seed.
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

func policyOf(registration *corev1beta1.ControllerRegistration) corev1beta1.ControllerDeploymentPolicy {
	if deployment := registration.Spec.Deployment; deployment != nil && deployment.Policy != nil {
		return *deployment.Policy
	}
	return corev1beta1.ControllerDeploymentPolicyOnDemand
}

func namesOf(registrations []*corev1beta1.ControllerRegistration) []string {
	names := make([]string, 0, len(registrations))
	for _, registration := range registrations {
		names = append(names, registration.Name)
	}
	return names
}
