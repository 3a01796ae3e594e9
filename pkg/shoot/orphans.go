package shoot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Reasons of Events about control planes without a Shoot.
//
// +events:on=Seed
const (
	eventOrphaned = "ControlPlaneOrphaned" // Warning: the Seed has a control plane whose Shoot the garden does not have; nothing deletes it
)

// orphanedAfter is how long ManagedResources of a Shoot that the garden does not have for this Seed must exist. A cache may show them a moment
// longer than the Shoot.
const orphanedAfter = time.Minute

var orphanedMetric = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
	Namespace: "shoot", Name: "orphaned_control_planes", Help: "Control planes in the seed whose Shoots the garden does not have for it.",
})

// orphans are control planes without a Shoot. gardenlet lists them, and deletes none: the garden may have been restored from a backup that
// is older than the Shoot. Its zero value has none.
type orphans struct {
	mu sync.Mutex
	// since are the times at which they were first seen, and reported those that were reported.
	since    map[types.NamespacedName]time.Time
	reported map[types.NamespacedName]bool
}

// see notes whether a control plane without a Shoot exists now. It returns whether it is to be reported, and after how long to look again, 0
// for never.
func (o *orphans) see(shoot types.NamespacedName, exists bool, now time.Time) (report bool, again time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { orphanedMetric.Set(float64(len(o.reported))) }()
	if !exists {
		delete(o.since, shoot)
		delete(o.reported, shoot)
		return false, 0
	}
	if o.since == nil {
		o.since, o.reported = map[types.NamespacedName]time.Time{}, map[types.NamespacedName]bool{}
	}
	first, seen := o.since[shoot]
	if !seen {
		first = now
		o.since[shoot] = first
	}
	if age := now.Sub(first); age < orphanedAfter {
		return false, orphanedAfter - age
	}
	report, o.reported[shoot] = !o.reported[shoot], true
	return report, 0
}

// withoutShoot releases what gardenlet keeps for a Shoot that the garden does not have for this Seed, and reports its control plane if it
// still exists.
func (r *reconciler) withoutShoot(ctx context.Context, shoot types.NamespacedName) (reconcile.Result, error) {
	r.release(shoot)
	namespaces, err := r.namespacesOf(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	report, again := r.orphans.see(shoot, len(namespaces) > 0, r.options.Clock.Now())
	if !report {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	seed := &corev1beta1.Seed{}
	if err := r.garden.Get(ctx, client.ObjectKey{Name: r.options.SeedName}, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %s: %w", r.options.SeedName, err)
	}
	log.FromContext(ctx).Info("The Seed has a control plane whose Shoot the garden does not have", "shoot", shoot.String(), "namespaces", namespaces)
	r.events.Eventf(seed, nil, corev1.EventTypeWarning, eventOrphaned, actionReconcile, "The control plane of Shoot %s is in the namespaces %v of the seed "+
		"cluster, but the garden does not have this Shoot for the Seed. It keeps running: see docs/garden-restore.md", shoot, namespaces)
	return reconcile.Result{}, nil
}

// namespacesOf returns the namespaces with ManagedResources that were emitted for a Shoot by its name.
func (r *reconciler) namespacesOf(ctx context.Context, shoot types.NamespacedName) ([]string, error) {
	var list resourcesv1alpha1.ManagedResourceList
	if err := r.emitter.Reader.List(ctx, &list, client.MatchingLabels{flow.LabelFlow: FlowName}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ManagedResources of Shoots: %w", err)
	}
	namespaces := map[string]bool{}
	for i := range list.Items {
		mr := &list.Items[i]
		if mr.Namespace != r.options.Namespace && mr.DeletionTimestamp == nil && mr.Annotations[flow.AnnotationOwner] == shoot.String() {
			namespaces[mr.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(namespaces)), nil
}
