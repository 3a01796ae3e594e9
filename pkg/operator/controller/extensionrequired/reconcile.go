package extensionrequired

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/existingtypes"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extensionstatus"
)

// writer writes one condition of Extensions.
type writer struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	// decide returns the condition, or nil as long as it is not known.
	decide func(context.Context, *operatorv1alpha1.Extension) (*corev1beta1.Condition, error)
}

// Reconcile writes the condition of an Extension if it has changed.
func (w *writer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	extension := &operatorv1alpha1.Extension{}
	if err := w.client.Get(ctx, request.NamespacedName, extension); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	condition, err := w.decide(ctx, extension)
	if err != nil || condition == nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, extensionstatus.Write(ctx, w.client, w.live, extension, func(status *operatorv1alpha1.ExtensionStatus) {
		before := corev1beta1.FindCondition(status.Conditions, condition.Type)
		status.Conditions = corev1beta1.SetCondition(status.Conditions, corev1beta1.KeepTimes(before, *condition, w.clock.Now()))
	})
}

// runtime decides about the runtime cluster.
type runtime struct {
	client  client.Client
	objects *existingtypes.Watcher
}

func (r *runtime) decide(ctx context.Context, extension *operatorv1alpha1.Extension) (*corev1beta1.Condition, error) {
	gardens := &operatorv1alpha1.GardenList{}
	if err := r.client.List(ctx, gardens); err != nil {
		return nil, fmt.Errorf("list the Gardens: %w", err)
	}
	var garden *operatorv1alpha1.Garden
	if len(gardens.Items) > 0 {
		garden = &gardens.Items[0]
	}
	existing, known := r.objects.Existing(extension.Spec.Resources)
	if !known {
		return nil, nil // the watches wake the controller once all objects are known
	}
	condition := inRuntime(extension, garden, existing)
	return &condition, nil
}

// seeds decides about Seeds.
type seeds struct{ virtual client.Reader }

func (s *seeds) decide(ctx context.Context, extension *operatorv1alpha1.Extension) (*corev1beta1.Condition, error) {
	list := &corev1beta1.ControllerInstallationList{}
	if err := s.virtual.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list the ControllerInstallations of the garden: %w", err)
	}
	condition := inSeeds(extension, list.Items)
	return &condition, nil
}
