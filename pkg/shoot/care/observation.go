// Package care keeps the conditions and constraints of Shoots: whether the API server answers, how the components of the control plane and of the
// cluster are, what extensions report, and what in the cluster would disturb hibernation or maintenance. All of it is computed from what is watched,
// in the seed and in the clusters of Shoots. Only API servers are asked for their health, each at its period.
package care

import (
	"slices"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Observation is what the conditions and constraints of a Shoot are computed from.
type Observation struct {
	Shoot *corev1beta1.Shoot
	// Hibernated is set if the Shoot hibernates or is to.
	Hibernated bool
	// Components are the ManagedResources of the control plane and of the cluster, those of extensions too, in the order of their names.
	Components []resourcesv1alpha1.ManagedResource
	// Required are the names of those that a control plane has to have.
	Required []string
	// Contributions are what extensions report.
	Contributions []Contribution
	// Asked is set if the API server was asked for its health, with the error, which is nil if it answered well.
	Asked bool
	Error error
	// Cluster is what the cluster has; nil if that is not known.
	Cluster *Cluster
	// Authorities are until when the certificate authorities of the control plane are valid, by the names of their Secrets.
	Authorities map[string]time.Time
	Limits      Limits
	Now         time.Time
}

// Limits are the times of the configuration.
type Limits struct {
	// Thresholds are how long a failed check shows as Progressing, by type.
	Thresholds map[corev1beta1.ConditionType]time.Duration
	// Rollout is how long a ManagedResource may be rolled out; 0 for no time.
	Rollout time.Duration
	// Stale is how old the last sign of life of an extension may be for its reports to count; 0 for any age.
	Stale time.Duration
}

// answers reports whether the API server answers.
func (o Observation) answers() bool { return o.Asked && o.Error == nil }

// countFor returns the ManagedResources that count for a condition: those with the label of the condition and, without that label, those with a
// class for the control plane and those without one for the cluster's own components.
func (o Observation) countFor(kind corev1beta1.ConditionType) []resourcesv1alpha1.ManagedResource {
	return slices.DeleteFunc(slices.Clone(o.Components), func(mr resourcesv1alpha1.ManagedResource) bool {
		of := corev1beta1.ConditionType(mr.Labels[constants.LabelConditionType])
		switch {
		case of != "":
		case mr.Spec.Class != nil && *mr.Spec.Class != "":
			of = corev1beta1.ShootControlPlaneHealthy
		default:
			of = corev1beta1.ShootSystemComponentsHealthy
		}
		return of != kind
	})
}
