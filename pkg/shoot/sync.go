package shoot

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
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

// withoutOperation returns the plan of a Shoot that is not reconciled because it has failed or is ignored: only the Cluster, from
// which extensions learn this. All other bundles keep their revision. It is also emitted if the Shoot is invalid.
func withoutOperation(in Inputs) (flow.Plan, error) {
	plan, err := Plan(in)
	if err != nil || in.Registrations == nil || in.NamespaceExists && in.secret(constants.SecretNameGenericTokenKubeconfig) == "" {
		return flow.Plan{}, err // a part of the Cluster is not known
	}
	reduced := flow.Plan{Inputs: plan.Inputs, AtOnce: true, Deleting: true}
	if !in.Deleting {
		plan = flow.Plan{}
		in.add(&plan, in.contents()[0])
	}
	for _, bundle := range plan.Bundles {
		if bundle.Key == in.key(bundleNamespace) {
			reduced.Bundles = append(reduced.Bundles, bundle)
		}
	}
	return reduced, nil
}

// tellExtensions emits only the Cluster of a Shoot that is not reconciled, and generates no Secrets. An error does not change the last operation: it is
// retried.
func (r *reconciler) tellExtensions(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) reconcile.Result {
	err := func() error {
		in, err := r.observeWith(ctx, shoot, seed, r.existingSecrets)
		if err != nil {
			return err
		}
		plan, err := withoutOperation(in)
		if err != nil {
			return fmt.Errorf("plan the Cluster: %w", err)
		}
		_, err = r.emitter.Emit(ctx, in.Owner, plan)
		return err
	}()
	if err != nil {
		log.FromContext(ctx).Error(err, "Extensions do not know yet that the Shoot is not reconciled")
		return reconcile.Result{RequeueAfter: seedAgain}
	}
	return reconcile.Result{}
}
