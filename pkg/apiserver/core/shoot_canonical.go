package core

import (
	"slices"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// canonicalizeShoot sets the labels that are derived from a Shoot, and removes redundant deprecated fields.
func canonicalizeShoot(s shoot) {
	s.Labels = withSeedNames(s.Labels, s.Spec.SeedName, s.Status.SeedName)
	if slices.ContainsFunc(s.Spec.Provider.Workers, func(w gardencorev1beta1.Worker) bool { return w.ControlPlane != nil }) {
		s.Labels = withLabel(s.Labels, constants.LabelShootSelfHosted, "true")
	} else {
		delete(s.Labels, constants.LabelShootSelfHosted)
	}
	if autoscaler := s.Spec.Kubernetes.ClusterAutoscaler; autoscaler != nil {
		autoscaler.MaxEmptyBulkDelete = nil // defaulting has copied its value to maxScaleDownParallelism
	}
	if server := s.Spec.Kubernetes.KubeAPIServer; server != nil {
		if anonymous := server.EnableAnonymousAuthentication; anonymous != nil && !*anonymous {
			server.EnableAnonymousAuthentication = nil
		}
	}
	canonicalCloudProfile(s)
	if !anyAddon(s.Spec.Addons) {
		s.Spec.Addons = nil
	}
}

func anyAddon(addons *gardencorev1beta1.Addons) bool {
	if addons == nil {
		return false
	}
	return addons.KubernetesDashboard != nil && addons.KubernetesDashboard.Enabled || addons.NginxIngress != nil && addons.NginxIngress.Enabled
}
