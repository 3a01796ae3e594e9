// Package core has the kinds of the group core.gardener.cloud as the API server serves them.
package core

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/apiserver/domains"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

// Dependencies are the inputs of the kinds in addition to their own objects.
type Dependencies struct {
	// Now is the current time.
	Now func() time.Time
	// RotationInterval is the age of a Shoot's credentials after which clients get a warning.
	RotationInterval time.Duration
	// Kubeconfigs issues the kubeconfigs of Shoots.
	Kubeconfigs Kubeconfigs
	// Domains gives each domain to one Shoot. It is nil if Shoots are not compared with other objects.
	Domains *domains.Claims
}

// Kinds returns the kinds that are stored as v1beta1.
func Kinds(with Dependencies) []registry.Served {
	return []registry.Served{
		backupBuckets(), backupEntries(), cloudProfiles(with.Now), controllerInstallations(), controllerRegistrations(), exposureClasses(),
		internalSecrets(), namespacedCloudProfiles(with.Now), projects(), quotas(), secretBindings(), seeds(),
		shoots(with), shootStates(),
	}
}

// ControllerDeployments returns the kind that is stored as v1 and served in both versions.
func ControllerDeployments() registry.Served { return controllerDeployments() }

func resource(kind string) served.Resource {
	return served.Of(gardencorev1beta1.SchemeGroupVersion.WithKind(kind))
}

func differ(a, b any) bool { return !equality.Semantic.DeepEqual(a, b) }

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
