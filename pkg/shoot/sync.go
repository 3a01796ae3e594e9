package shoot

import (
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// overwritable reports whether annotations of a Shoot may change when it is reconciled: only in namespace garden, unless
// gardenlet's configuration allows it everywhere.
func overwritable(shoot *corev1beta1.Shoot, config *gardenletv1alpha1.ShootController) bool {
	return shoot.Namespace == constants.GardenNamespace || config != nil && ptr.Deref(config.RespectSyncPeriodOverwrite, false)
}

// syncPeriod returns how long after a reconcile a Shoot is reconciled again without a change. An annotation can make the
// configured period longer, but not shorter.
func syncPeriod(shoot *corev1beta1.Shoot, config gardenletv1alpha1.ShootController) time.Duration {
	period := defaultSyncAfter
	if config.SyncPeriod != nil {
		period = config.SyncPeriod.Duration
	}
	if overwritable(shoot, &config) {
		if wanted, err := time.ParseDuration(shoot.Annotations[constants.AnnotationShootSyncPeriod]); err == nil {
			return max(period, wanted)
		}
	}
	return period
}
