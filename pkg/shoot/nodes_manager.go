package shoot

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/kubescheduler"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
)

// Limits of the time over which nodes spread the application of a new configuration (Gardener).
const (
	usualNodeDelay = 5 * time.Minute
	mostNodeDelay  = 30 * time.Minute
)

// managedNodes returns the settings of the shoot's resource-manager for nodes, nil for a Shoot without workers.
func (in Inputs) managedNodes() *resourcemanager.NodeSettings {
	if !in.hasWorkers() {
		return nil
	}
	settings := &resourcemanager.NodeSettings{
		ServerCertificate: in.secret(resourcemanager.SecretServer), Host: in.internalHost(), MaxDelay: in.nodeDelay(),
		Tolerations: resourcemanager.SystemTolerations(in.Shoot.Spec.Provider.Workers), NodeToleration: in.Config.NodeToleration,
		WithSelectors: in.authorizesWithSelectors(), WithoutTemplateKeys: !in.gate("MatchLabelKeysInPodTopologySpread", true),
	}
	if scheduler := in.Shoot.Spec.Kubernetes.KubeScheduler; scheduler != nil && ptr.Deref(scheduler.Profile, "") == corev1beta1.SchedulingProfileBinPacking {
		settings.Scheduler = kubescheduler.BinPacking
	}
	return settings
}

// nodeDelay returns the time over which nodes spread the application of a new configuration. An annotation of the Shoot can change it
// within limits.
func (in Inputs) nodeDelay() time.Duration {
	seconds, err := strconv.Atoi(in.Shoot.Annotations[constants.AnnotationShootCloudConfigExecutionMaxDelaySeconds])
	delay := time.Duration(seconds) * time.Second
	if err != nil || delay < 0 || delay > mostNodeDelay {
		return usualNodeDelay
	}
	return delay
}

// gate returns a feature gate of the API server of the Shoot.
func (in Inputs) gate(name string, usual bool) bool {
	if value, set := in.server().FeatureGates[name]; set {
		return value
	}
	return usual
}

// authorizesWithSelectors reports whether the API server sends the selectors of requests to authorizers. Kubernetes does by default since
// version 1.32, and always since 1.34.
func (in Inputs) authorizesWithSelectors() bool {
	parsed, err := version.ParseGeneric(in.Shoot.Spec.Kubernetes.Version)
	switch {
	case err != nil || parsed.LessThan(version.MustParseGeneric("1.32")):
		return false
	case parsed.AtLeast(version.MustParseGeneric("1.34")):
		return true
	}
	return in.gate("AuthorizeWithSelectors", true)
}

// unknownRegistration reports that the authority with which API servers verify webhooks has not been generated. Without workers, there are
// no webhooks.
func (in Inputs) unknownRegistration() string {
	if !in.hasWorkers() {
		return ""
	}
	return in.unknownSecrets()
}

// systemZones returns the zones of the nodes that may run system components, sorted.
func (in Inputs) systemZones() []string {
	var zones []string
	for _, worker := range in.Shoot.Spec.Provider.Workers {
		if worker.Maximum > 0 && (worker.SystemComponents == nil || worker.SystemComponents.Allow) {
			zones = append(zones, worker.Zones...)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}
