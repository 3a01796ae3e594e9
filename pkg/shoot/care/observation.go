// Package care maintains the conditions and constraints of Shoots: the availability of the API server, the health of the
// components of the control plane and the cluster, the reports of extensions, and objects in the cluster that may
// interfere with hibernation or maintenance. They are computed from watched objects in the seed and in shoot clusters.
// Only the health of API servers is polled.
package care

import (
	"slices"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Observation contains the inputs from which the conditions and constraints of a Shoot are computed.
type Observation struct {
	Shoot *corev1beta1.Shoot
	// Hibernated is set if the control plane of the Shoot is not expected to run.
	Hibernated bool
	// Components are the ManagedResources of the control plane and the cluster, including those of extensions, sorted by name.
	Components []resourcesv1alpha1.ManagedResource
	// Required are the names of the ManagedResources that a control plane must have.
	Required []string
	// Contributions are the reports of extensions.
	Contributions []Contribution
	// Asked is set if the health of the API server was requested. Error is the result, or nil if it is healthy.
	Asked bool
	Error error
	// Cluster contains the relevant objects of the cluster, or is nil if they are not known.
	Cluster *Cluster
	// UpdatedInPlace are the hashes that the Worker reports for pools whose machines are all updated in place, nil if it reports none.
	UpdatedInPlace map[string]string
	// Backup is the state of the backups of the main etcd, or nil if it is not known.
	Backup *Backup
	// Authorities are the expiry times of the certificate authorities of the control plane, by the names of their Secrets.
	Authorities map[string]time.Time
	Limits      Limits
	Now         time.Time
}

// Limits are the configured durations.
type Limits struct {
	// Thresholds are how long a failed check is reported as Progressing, by type.
	Thresholds map[corev1beta1.ConditionType]time.Duration
	// Rollout is how long the rollout of a ManagedResource may take. 0 disables the limit.
	Rollout time.Duration
	// Stale is the maximum age of the heartbeat of an extension whose reports are valid. 0 disables the limit.
	Stale time.Duration
}

// answers reports whether the API server answers.
func (o Observation) answers() bool { return o.Asked && o.Error == nil }

// countFor returns the ManagedResources that contribute to a condition. Their label names the condition. Without the
// label, those with a class belong to the control plane, and those without a class to the system components.
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
