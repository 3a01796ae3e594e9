package controller

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Labelled restricts the cache of a kind to objects whose label gardener.cloud/role has one of the values.
func Labelled(roles ...string) cache.ByObject {
	required, err := labels.NewRequirement(constants.LabelGardenRole, selection.In, roles)
	if err != nil {
		return cache.ByObject{Label: labels.Nothing()} // unreachable: the roles are constants
	}
	return cache.ByObject{Label: labels.NewSelector().Add(*required)}
}
