package care

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/latest"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const (
	fieldManager = "gardenlet"
	// defaultPeriod is the default period of health checks of API servers. defaultWorkers is the default number of concurrent reconciles.
	defaultPeriod  = time.Minute
	defaultWorkers = 20
	// leastTimeout is the minimum timeout of a reconcile. A longer period is used instead.
	leastTimeout = 30 * time.Second
	// leastRetry is the first delay of retries.
	leastRetry = 50 * time.Millisecond
)

// Options are the options of the controller.
type Options struct {
	SeedName string
	// Namespace of gardenlet in the seed. It contains the ManagedResources with the namespaces of control planes.
	Namespace string
	// Required are the names of the ManagedResources that a control plane must have. Server is the one of the API server.
	Required []string
	Server   string
	// Objects reads the objects of extensions in the seed.
	Objects *extensionobjects.Objects
	Config  *gardenletv1alpha1.ShootCareController
	Clock   clock.PassiveClock
	// Healthz requests the health of a Shoot's API server. asked is false if the API server is not expected to answer.
	Healthz func(ctx context.Context, shoot *corev1beta1.Shoot) (asked bool, err error)
	// Access returns the access to a shoot cluster, or nil if its credentials do not exist.
	Access func(ctx context.Context, shoot *corev1beta1.Shoot) (*Access, error)
	// Authorities returns the expiry times of a control plane's certificate authorities, by the names of their Secrets.
	Authorities func(ctx context.Context, namespace string) (map[string]time.Time, error)
	// ObserveNodes gets the state of the nodes of a Shoot each time it is known.
	ObserveNodes func(shoot types.UID, nodes flow.Nodes)
}

// care writes the conditions and constraints of Shoots.
type care struct {
	garden     client.Client
	emitted    flow.IndexedReader
	extensions *extensions
	clusters   *clusters
	options    Options

	mu sync.Mutex
	// written are the Shoots as the API server of the garden returned them after the last write. The cache may be older.
	written latest.Store[*corev1beta1.Shoot]
	// owners are the Shoots, by the namespaces of their control planes.
	owners map[string]types.NamespacedName
}

// AddToManager adds the controller. The garden's cache contains the Shoots of the Seed. The cache of contains all
// ManagedResources of the seed.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, of cache.Cache, emitted flow.IndexedReader, options Options) error {
	c := &care{
		extensions: &extensions{objects: options.Objects, garden: garden.GetCache(), seedName: options.SeedName},
		garden:     garden.GetClient(), emitted: emitted, clusters: newClusters(), options: options,
		owners: map[string]types.NamespacedName{},
	}
	if err := mgr.Add(c.clusters); err != nil {
		return fmt.Errorf("add the watches of shoot clusters: %w", err)
	}
	workers := defaultWorkers
	if options.Config != nil {
		workers = ptr.Deref(options.Config.ConcurrentSyncs, workers)
	}
	return c.watch(mgr, garden, of, workers)
}

// watch adds the controller with watches of everything that conditions depend on, except the health of API servers.
func (c *care) watch(mgr manager.Manager, garden cluster.Cluster, of cache.Cache, workers int) error {
	byControlPlane := handler.EnqueueRequestsFromMapFunc(c.byControlPlane)
	// Failures do not delay health checks beyond their period.
	delays := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastRetry, c.period())
	built, err := watches.Controller{Name: "shoot-care", Reconciler: c, Workers: workers, RateLimiter: delays}.AddTo(mgr,
		watches.Self(garden.GetCache(), &corev1beta1.Shoot{}, operationChanged()),
		watches.Kind(of, &resourcesv1alpha1.ManagedResource{}, byControlPlane, componentChanged()),
		watches.Mapped(c.extensions.objects.Cache, &coordinationv1.Lease{}, c.all, revived(c.limits().Stale)),
		source.Channel(c.clusters.changes, &handler.EnqueueRequestForObject{}),
	)
	if err != nil {
		return err
	}
	for _, kind := range extensionobjects.Contributing() {
		if err := c.extensions.objects.Watch(mgr, built, kind, byControlPlane, reported()); err != nil {
			return err
		}
	}
	return backup.WatchWhenDefined(mgr, c.extensions.objects.Cache, built, etcdDefinition, etcdObject(), byControlPlane, backupChanged())
}

// byControlPlane maps an object of a control plane to its Shoot, if the Shoot has been reconciled before.
func (c *care) byControlPlane(_ context.Context, object client.Object) []reconcile.Request {
	name := extensionobjects.ControlPlaneOf(object)
	if name == c.options.Namespace {
		name = object.GetName() // the ManagedResource with the namespace
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner, known := c.owners[name]; known {
		return []reconcile.Request{{NamespacedName: owner}}
	}
	return nil
}

// all maps any object to all Shoots that have been reconciled before.
func (c *care) all(context.Context, client.Object) []reconcile.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var requests []reconcile.Request
	for owner := range maps.Values(c.owners) {
		requests = append(requests, reconcile.Request{NamespacedName: owner})
	}
	return requests
}

// limits returns the configured limits.
func (c *care) limits() Limits {
	limits := Limits{Thresholds: map[corev1beta1.ConditionType]time.Duration{}}
	config := c.options.Config
	if config == nil {
		return limits
	}
	for _, threshold := range config.ConditionThresholds {
		limits.Thresholds[corev1beta1.ConditionType(threshold.Type)] = threshold.Duration.Duration
	}
	if rollout := config.ManagedResourceProgressingThreshold; rollout != nil {
		limits.Rollout = rollout.Duration
	}
	if stale := config.StaleExtensionHealthChecks; stale != nil && stale.Enabled && stale.Threshold != nil {
		limits.Stale = stale.Threshold.Duration
	}
	return limits
}

// period returns how often a Shoot is checked without a change.
func (c *care) period() time.Duration {
	if c.options.Config != nil && c.options.Config.SyncPeriod != nil {
		return c.options.Config.SyncPeriod.Duration
	}
	return defaultPeriod
}

// Reconcile writes the conditions and constraints of a Shoot if they have changed, deletes stale Pods in its cluster and
// remediates its webhooks.
func (c *care) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, max(c.period(), leastTimeout))
	defer cancel()
	shoot := &corev1beta1.Shoot{}
	if err := c.garden.Get(ctx, request.NamespacedName, shoot); err != nil {
		if client.IgnoreNotFound(err) == nil {
			c.forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot = c.written.Newest(shoot)
	if ptr.Deref(shoot.Status.SeedName, "") != c.options.SeedName || shoot.Status.TechnicalID == "" {
		c.forget(request.NamespacedName)
		return reconcile.Result{}, nil // the watch reports when the flow has set both
	}
	observation, connection, err := c.observe(ctx, shoot)
	if errors.Is(err, extensionobjects.ErrNotSynced) {
		return reconcile.Result{RequeueAfter: extensionobjects.SyncedAgain}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if nodes, known := observation.rollout(); known {
		c.options.ObserveNodes(shoot.UID, nodes)
	}
	conditions, next := observation.Conditions()
	constraints, later := observation.Constraints()
	wait := c.period()
	if next = requeue.Earlier(next, later); !next.IsZero() {
		wait = min(wait, max(next.Sub(observation.Now), time.Millisecond))
	}
	if err := c.write(ctx, shoot, conditions, constraints, observation.updatesInPlace()); err != nil {
		return reconcile.Result{}, err
	}
	again, err := c.act(ctx, observation, connection)
	if again > 0 {
		wait = min(wait, again)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// act deletes stale Pods and remediates webhooks, if the cluster is known and its API server answers. It returns the time
// until the next action, or 0.
func (c *care) act(ctx context.Context, observation Observation, connection *connection) (time.Duration, error) {
	if connection == nil || observation.Cluster == nil || !observation.answers() {
		return 0, nil
	}
	again, err := connection.deletePods(ctx, observation.Now)
	if c.options.Config == nil || !ptr.Deref(c.options.Config.WebhookRemediatorEnabled, false) {
		return again, err
	}
	wait, failed := connection.remediate(ctx, observation.Cluster, c.period(), observation.Now)
	if again == 0 || wait > 0 && wait < again {
		again = wait
	}
	return again, errors.Join(err, failed)
}

// write writes conditions, constraints and pending updates if they have changed. It only sends the changed ones. The API server merges
// conditions by type.
func (c *care) write(
	ctx context.Context, shoot *corev1beta1.Shoot, conditions, constraints []corev1beta1.Condition, updates *corev1beta1.InPlaceUpdatesStatus,
) error {
	status := shoot.Status.DeepCopy()
	status.Conditions, status.Constraints, status.InPlaceUpdates = conditions, constraints, updates
	if equality.Semantic.DeepEqual(*status, shoot.Status) {
		return nil
	}
	before := latest.StatusPatch(shoot.DeepCopy())
	shoot.Status = *status
	if err := c.garden.Status().Patch(ctx, shoot, before, client.FieldOwner(fieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the conditions of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err))
	}
	c.written.Remember(shoot)
	return nil
}

// remember records which Shoot a control plane belongs to.
func (c *care) remember(shoot *corev1beta1.Shoot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owners[shoot.Status.TechnicalID] = client.ObjectKeyFromObject(shoot)
}

// forget stops the watches of a Shoot that was deleted or has left the Seed, and removes it from memory.
func (c *care) forget(name types.NamespacedName) {
	c.clusters.close(name)
	c.written.Forget(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.owners, func(_ string, owner types.NamespacedName) bool { return owner == name })
}
