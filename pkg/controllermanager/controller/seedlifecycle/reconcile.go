package seedlifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reasons of Events.
//
// +events:on=Seed
const (
	reasonMass = "ManyGardenletsSilent" // Warning: the Leases of more than 30 % of all gardenlets are old at once, so the garden is probably the cause, and no condition is changed
)

// reconciler reports silent gardenlets.
type reconciler struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	// monitor is how long a Lease may be old, shoots how long GardenletReady is Unknown before the conditions of Shoots are.
	monitor, shoots time.Duration

	mu   sync.Mutex
	seen map[string]Observation
}

// Reconcile looks at the Lease of one Seed, and comes back when it could be too old.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.client.Get(ctx, request.NamespacedName, seed); err != nil {
		r.forget(request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if len(seed.Status.Conditions) == 0 {
		return reconcile.Result{}, nil // its gardenlet has not come yet
	}
	now := r.clock.Now()
	for _, reader := range []client.Reader{r.client, r.live} { // the cache may be old: only the API server knows
		observed, err := r.look(ctx, reader, seed.Name, now)
		if err != nil {
			return reconcile.Result{}, err
		}
		if until := observed.Since.Add(r.monitor); now.Before(until) {
			return requeue.At(until, now), nil
		}
	}
	next, err := r.report(ctx, seed, now)
	return requeue.At(next, now), err
}

func (r *reconciler) forget(seed string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, seed)
}

// look reads the Lease of a Seed and returns what is known about it.
func (r *reconciler) look(ctx context.Context, reader client.Reader, seed string, now time.Time) (Observation, error) {
	lease := &coordinationv1.Lease{}
	if err := client.IgnoreNotFound(reader.Get(ctx, client.ObjectKey{Namespace: constants.SystemSeedLeaseNamespace, Name: seed}, lease)); err != nil {
		return Observation{}, fmt.Errorf("read the Lease of Seed %s: %w", seed, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[seed] = r.seen[seed].Observe(renewedAt(lease), now)
	return r.seen[seed], nil
}

// report writes what follows from a silent gardenlet, and returns the time of the next look.
func (r *reconciler) report(ctx context.Context, seed *corev1beta1.Seed, now time.Time) (next time.Time, err error) {
	since := now
	if before := corev1beta1.FindCondition(seed.Status.Conditions, corev1beta1.SeedGardenletReady); isUnknown(seed.Status.Conditions, corev1beta1.SeedGardenletReady) {
		since = before.LastTransitionTime.Time
	} else {
		mass, err := r.mass(ctx, now)
		if err != nil {
			return time.Time{}, err
		}
		if mass {
			log.FromContext(ctx).Info("Many gardenlets seem to be silent at once; leaving their conditions unchanged", "seed", seed.Name)
			r.recorder.Eventf(seed, nil, corev1.EventTypeWarning, reasonMass, "Monitor", "Many gardenlets seem to be silent at once: check the garden.")
			return now.Add(r.monitor), nil
		}
		if err := controller.WriteSeedCondition(ctx, r.client, seed.Name, SeedUnknown(seed, now)); err != nil {
			return time.Time{}, err
		}
	}
	err = r.renew(ctx, seed, now)
	if until := since.Add(r.shoots); now.Before(until) {
		return until, err
	}
	return now.Add(r.shoots), errors.Join(err, r.reportShoots(ctx, seed.Name, now))
}

// mass reports whether many gardenlets are silent at once: those that are not reported yet, and may soon be.
func (r *reconciler) mass(ctx context.Context, now time.Time) (bool, error) {
	var seeds corev1beta1.SeedList
	if err := r.client.List(ctx, &seeds, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the Seeds: %w", err)
	}
	silent := 0
	for i := range seeds.Items {
		if isUnknown(seeds.Items[i].Status.Conditions, corev1beta1.SeedGardenletReady) {
			continue
		}
		observed, err := r.look(ctx, r.client, seeds.Items[i].Name, now)
		if err != nil {
			return false, err
		}
		if now.Sub(observed.Since) > r.monitor/2 {
			silent++
		}
	}
	return Mass(silent, len(seeds.Items)), nil
}

// renew makes the gardenlet of the parent Seed bootstrap this one again if its client certificate has expired.
func (r *reconciler) renew(ctx context.Context, seed *corev1beta1.Seed, now time.Time) error {
	if !expired(seed, now) {
		return nil
	}
	managed := &seedmanagementv1alpha1.ManagedSeed{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.Name}, managed)
	if err != nil || managed.Annotations[constants.AnnotationGardenerOperation] != "" {
		return client.IgnoreNotFound(err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": managed.UID, "annotations": map[string]string{constants.AnnotationGardenerOperation: constants.OperationReconcile},
	}})
	if err != nil {
		return fmt.Errorf("encode the annotation of ManagedSeed %s: %w", seed.Name, err)
	}
	if err := client.IgnoreNotFound(r.client.Patch(ctx, managed, client.RawPatch(types.MergePatchType, patch), controller.FieldManager)); err != nil {
		return fmt.Errorf("reconcile ManagedSeed %s, because the certificate of its gardenlet has expired: %w", seed.Name, err)
	}
	return nil
}

// reportShoots makes the conditions of the Shoots of a Seed Unknown.
func (r *reconciler) reportShoots(ctx context.Context, seed string, now time.Time) error {
	var shoots corev1beta1.ShootList
	if err := r.client.List(ctx, &shoots); err != nil {
		return fmt.Errorf("list the Shoots of Seed %s: %w", seed, err)
	}
	var errs []error
	for i := range shoots.Items {
		if cached := &shoots.Items[i]; ptr.Deref(cached.Status.SeedName, "") == seed && ShootUnknown(cached, now) {
			errs = append(errs, r.reportShoot(ctx, client.ObjectKeyFromObject(cached), now))
		}
	}
	return errors.Join(errs...)
}

func (r *reconciler) reportShoot(ctx context.Context, key client.ObjectKey, now time.Time) error {
	shoot := &corev1beta1.Shoot{}
	if err := r.live.Get(ctx, key, shoot); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := shoot.DeepCopy()
	if !ShootUnknown(shoot, now) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.client.Status().Patch(ctx, shoot, patch, controller.FieldManager)); err != nil {
		return fmt.Errorf("write the conditions of Shoot %s: %w", key, err)
	}
	return nil
}
