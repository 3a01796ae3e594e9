package shootquota

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Reasons of Events.
//
// +events:on=Shoot
const (
	reasonExpired = "LifetimeExpired" // Normal: the lifetime that Quotas allow has passed, and the cluster is deleted
	reasonHeld    = "ExpirationHeld"  // Warning: the lifetime has passed, but too many clusters would be deleted at once
)

// action is the action of these Events.
const action = "DeleteExpiredShoot"

// reconciler deletes Shoots at the end of their lifetime.
type reconciler struct {
	client     client.Client
	live       client.Reader
	recorder   events.EventRecorder
	clock      clock.PassiveClock
	checkClock controller.ClockCheck
	period     time.Duration
}

// Reconcile writes the end of a Shoot to its annotation, and deletes it when that has passed.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := r.clock.Now()
	decision, err := r.decide(ctx, r.client, shoot, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if decision.Annotation != nil {
		if err := r.annotate(ctx, shoot, constants.AnnotationShootExpirationTimestamp, *decision.Annotation); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, nil // the change of the Shoot comes back
	}
	if decision.Delete {
		return reconcile.Result{RequeueAfter: r.period}, r.delete(ctx, shoot, now)
	}
	if decision.Expires.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(decision.Expires.Sub(now), time.Millisecond), r.period)}, nil
}

// decide reads the Quotas of a Shoot, and decides.
func (r *reconciler) decide(ctx context.Context, reader client.Reader, shoot *corev1beta1.Shoot, now time.Time) (Decision, error) {
	if shoot.DeletionTimestamp != nil {
		return Decision{}, nil
	}
	quotas, err := quotasOf(ctx, reader, shoot)
	if err != nil {
		return Decision{}, fmt.Errorf("read the Quotas of Shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return Decide(shoot, Lifetime(quotas), now), nil
}

// quotasOf returns the Quotas that the credentials of a Shoot name. A binding or a Quota that does not exist is an error: otherwise, a Shoot
// would lose its end because of a cache that is behind.
func quotasOf(ctx context.Context, reader client.Reader, shoot *corev1beta1.Shoot) ([]*corev1beta1.Quota, error) {
	var named []corev1.ObjectReference
	switch {
	case ptr.Deref(shoot.Spec.CredentialsBindingName, "") != "":
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName}, binding); err != nil {
			return nil, err
		}
		named = binding.Quotas
	case ptr.Deref(shoot.Spec.SecretBindingName, "") != "":
		binding := &corev1beta1.SecretBinding{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.SecretBindingName}, binding); err != nil {
			return nil, err
		}
		named = binding.Quotas
	}
	quotas := make([]*corev1beta1.Quota, 0, len(named))
	for _, ref := range named {
		quota := &corev1beta1.Quota{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: cmp.Or(ref.Namespace, shoot.Namespace), Name: ref.Name}, quota); err != nil {
			return nil, err
		}
		quotas = append(quotas, quota)
	}
	return quotas, nil
}

// delete deletes a Shoot whose end has passed, as the API server knows it, unless too many Shoots end at once.
func (r *reconciler) delete(ctx context.Context, cached *corev1beta1.Shoot, now time.Time) error {
	key := client.ObjectKeyFromObject(cached)
	shoot := &corev1beta1.Shoot{}
	if err := r.live.Get(ctx, key, shoot); err != nil {
		return client.IgnoreNotFound(err)
	}
	decision, err := r.decide(ctx, r.live, shoot, now)
	if err != nil || !decision.Delete {
		return err
	}
	if err := r.checkClock(ctx, now); err != nil {
		return fmt.Errorf("delete Shoot %s, whose lifetime has passed: %w", key, err)
	}
	confirmed := shoot.Annotations[constants.AnnotationConfirmationDeletion] == "true"
	if !confirmed {
		var all corev1beta1.ShootList
		if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the Shoots with a lifetime: %w", err)
		}
		if ended, count, mass := Mass(all.Items, now); mass {
			r.recorder.Eventf(shoot, nil, corev1.EventTypeWarning, reasonHeld, action,
				"The lifetime of the cluster has passed, but it is not deleted: %d of %d clusters with a lifetime would be. Check the Quotas. "+
					"To delete this cluster, annotate the Shoot with %s=true.", ended, count, constants.AnnotationConfirmationDeletion)
			return nil
		}
		if err := r.annotate(ctx, shoot, constants.AnnotationConfirmationDeletion, "true"); err != nil {
			return err
		}
	}
	r.recorder.Eventf(shoot, nil, corev1.EventTypeNormal, reasonExpired, action,
		"The cluster is deleted, because its lifetime ended at %s.", decision.Expires.UTC().Format(time.RFC3339))
	if err := client.IgnoreNotFound(r.client.Delete(ctx, shoot, client.Preconditions{UID: &shoot.UID})); err != nil {
		return fmt.Errorf("delete Shoot %s, whose lifetime has passed: %w", key, err)
	}
	return nil
}

// annotate writes an annotation of a Shoot, or removes it if the value is empty. With the resourceVersion, the API server refuses a decision from
// an outdated cache.
func (r *reconciler) annotate(ctx context.Context, shoot *corev1beta1.Shoot, name, value string) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": shoot.UID, "resourceVersion": shoot.ResourceVersion, "annotations": map[string]*string{name: nonEmpty(value)},
	}})
	if err != nil {
		return fmt.Errorf("encode an annotation of Shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	target := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	err = r.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, data), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the annotation %s of Shoot %s: %w", name, client.ObjectKeyFromObject(shoot), err)
	}
	return nil
}

func nonEmpty(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}
