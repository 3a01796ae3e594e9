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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
)

const (
	fieldManager = "gardenlet"
	// defaultPeriod is how often API servers are asked, and defaultWorkers how many Shoots are looked at at a time, if the configuration does not say.
	defaultPeriod  = time.Minute
	defaultWorkers = 20
	// leastTimeout is the least time that one look may take. It is the period if that is longer.
	leastTimeout = 30 * time.Second
	// leastRetry is how soon a look that failed is repeated first.
	leastRetry = 50 * time.Millisecond
)

// Options are those of the controller.
type Options struct {
	SeedName string
	// Namespace of gardenlet in the seed, which has the ManagedResources with the namespaces of control planes.
	Namespace string
	// Required are the names of the ManagedResources that a control plane has to have, and Server the one of the API server.
	Required []string
	Server   string
	// Objects are those of extensions in the seed.
	Objects *extensionobjects.Objects
	Config  *gardenletv1alpha1.ShootCareController
	Clock   clock.PassiveClock
	// Healthz asks the API server of a Shoot for its health. It does not ask one that is not expected to answer.
	Healthz func(ctx context.Context, shoot *corev1beta1.Shoot) (asked bool, err error)
	// Access returns how the cluster of a Shoot is reached; nil if its credentials do not exist.
	Access func(ctx context.Context, shoot *corev1beta1.Shoot) (*Access, error)
	// Authorities returns until when the certificate authorities of a control plane are valid, by the names of their Secrets.
	Authorities func(ctx context.Context, namespace string) (map[string]time.Time, error)
}

// care writes the conditions and constraints of Shoots.
type care struct {
	garden     client.Client
	emitted    flow.IndexedReader
	extensions *extensions
	clusters   *clusters
	options    Options

	mu sync.Mutex
	// written are the Shoots as the garden's API server answered to the last write. A cache may not show it yet.
	written map[types.NamespacedName]*corev1beta1.Shoot
	// owners are the Shoots by the namespaces of their control planes.
	owners map[string]types.NamespacedName
}

// AddToManager adds the controller. The caches are that of the garden, which has the Shoots of the Seed, and the one with all ManagedResources of the
// seed.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, of cache.Cache, emitted flow.IndexedReader, options Options) error {
	c := &care{
		extensions: &extensions{objects: options.Objects, garden: garden.GetCache(), seedName: options.SeedName},
		garden:     garden.GetClient(), emitted: emitted, clusters: newClusters(), options: options,
		written: map[types.NamespacedName]*corev1beta1.Shoot{}, owners: map[string]types.NamespacedName{},
	}
	if err := mgr.Add(c.clusters); err != nil {
		return fmt.Errorf("add what the conditions of Shoots are read from: %w", err)
	}
	workers := defaultWorkers
	if options.Config != nil {
		workers = ptr.Deref(options.Config.ConcurrentSyncs, workers)
	}
	built, err := controller.New("shoot-care", mgr, controller.Options{
		// Whatever fails, API servers are asked at their period.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastRetry, c.period()),
		Reconciler:  c, MaxConcurrentReconciles: workers, SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation, RecoverPanic: ptr.To(true),
	})
	if err != nil {
		return fmt.Errorf("add the controller of the conditions of Shoots: %w", err)
	}
	return c.watch(mgr, garden, of, built)
}

// watch adds the watches: all that is read is watched, but for the health of API servers.
func (c *care) watch(mgr manager.Manager, garden cluster.Cluster, of cache.Cache, built controller.Controller) error {
	byControlPlane := handler.EnqueueRequestsFromMapFunc(c.byControlPlane)
	for _, watched := range []source.Source{
		source.Kind[client.Object](garden.GetCache(), &corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, operationChanged()),
		source.Kind[client.Object](of, &resourcesv1alpha1.ManagedResource{}, byControlPlane, componentChanged()),
		source.Kind[client.Object](c.extensions.objects.Cache, &coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(c.all), revived(c.limits().Stale)),
		source.Channel(c.clusters.changes, &handler.EnqueueRequestForObject{}),
	} {
		if err := built.Watch(watched); err != nil {
			return fmt.Errorf("add a watch of the conditions of Shoots: %w", err)
		}
	}
	for _, kind := range extensionobjects.Contributing() {
		if err := c.extensions.objects.Watch(mgr, built, kind, byControlPlane, reported()); err != nil {
			return err
		}
	}
	return nil
}

// byControlPlane leads from what belongs to a control plane to its Shoot. One that has not been looked at is soon.
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

// all leads to all Shoots that have been looked at.
func (c *care) all(context.Context, client.Object) []reconcile.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var requests []reconcile.Request
	for owner := range maps.Values(c.owners) {
		requests = append(requests, reconcile.Request{NamespacedName: owner})
	}
	return requests
}

// limits returns the times of the configuration.
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

// period is how often a Shoot is looked at though nothing was seen to change.
func (c *care) period() time.Duration {
	if c.options.Config != nil && c.options.Config.SyncPeriod != nil {
		return c.options.Config.SyncPeriod.Duration
	}
	return defaultPeriod
}

// Reconcile looks at a Shoot, writes its conditions and constraints if they have changed, and acts on what disturbs its cluster.
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
	shoot = c.newest(shoot)
	if ptr.Deref(shoot.Status.SeedName, "") != c.options.SeedName || shoot.Status.TechnicalID == "" {
		c.forget(request.NamespacedName)
		return reconcile.Result{}, nil // the flow writes both, and the watch shows that
	}
	observation, connection, err := c.observe(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	conditions, next := observation.Conditions()
	constraints, later := observation.Constraints()
	wait := c.period()
	if next = requeue.Earlier(next, later); !next.IsZero() {
		wait = min(wait, max(next.Sub(observation.Now), time.Millisecond))
	}
	if err := c.write(ctx, shoot, conditions, constraints); err != nil {
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

// act changes what disturbs the cluster, if it is known and its API server answers. It returns after how long to look again; 0 for not at all.
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

// write writes conditions and constraints, if they have changed. Each writer of conditions sends its own ones: they are merged by type.
func (c *care) write(ctx context.Context, shoot *corev1beta1.Shoot, conditions, constraints []corev1beta1.Condition) error {
	if equality.Semantic.DeepEqual(conditions, shoot.Status.Conditions) && equality.Semantic.DeepEqual(constraints, shoot.Status.Constraints) {
		return nil
	}
	before := client.StrategicMergeFrom(shoot.DeepCopy())
	shoot.Status.Conditions, shoot.Status.Constraints = conditions, constraints
	if err := c.garden.Status().Patch(ctx, shoot, before, client.FieldOwner(fieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the conditions of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[client.ObjectKeyFromObject(shoot)] = shoot.DeepCopy()
	return nil
}

// newest returns the Shoot that was written last if it is newer than one from a cache.
func (c *care) newest(cached *corev1beta1.Shoot) *corev1beta1.Shoot {
	name := client.ObjectKeyFromObject(cached)
	c.mu.Lock()
	defer c.mu.Unlock()
	written := c.written[name]
	if written == nil {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion)
	if err != nil || order >= 0 || written.UID != cached.UID {
		delete(c.written, name)
		return cached
	}
	return written.DeepCopy()
}

// remember notes whose control plane is in a namespace.
func (c *care) remember(shoot *corev1beta1.Shoot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owners[shoot.Status.TechnicalID] = client.ObjectKeyFromObject(shoot)
}

// forget frees what is kept of a Shoot that is gone, or whose control plane is on another Seed.
func (c *care) forget(name types.NamespacedName) {
	c.clusters.close(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, name)
	maps.DeleteFunc(c.owners, func(_ string, owner types.NamespacedName) bool { return owner == name })
}
