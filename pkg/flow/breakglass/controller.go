// Package breakglass applies the resource-manager of a cluster if it cannot apply itself.
//
// The resource-manager of a seed is a bundle like any other, and it applies itself. If it loses its permissions or does
// not start with its configuration, it cannot apply the revision that fixes this. A [Controller] in the process of the
// flow then applies the objects of that bundle by server-side apply. This is the only exception to the rule that flows
// write only Secrets and ManagedResources.
package breakglass

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// Reasons of Events.
//
// +events:on=ManagedResource of the seed's resource-manager
const (
	ReasonApplied     = "ResourceManagerApplied"     // Warning: the resource-manager did not work, and the flow applied its objects
	ReasonApplyFailed = "ResourceManagerApplyFailed" // Warning: the resource-manager does not work, and the flow could not apply its objects
)

// actionApply is the action of the Events.
const actionApply = "Apply"

const (
	// DefaultStaleAfter is much longer than the startup of a resource-manager and the clock skew between nodes.
	DefaultStaleAfter = 10 * time.Minute
	// retryAfter is the delay of a retry after an error.
	retryAfter = time.Minute
	// passTimeout limits the time of a pass.
	passTimeout = time.Minute
)

// Options identify the resource-manager.
type Options struct {
	// Namespace of the lease, the Deployment and the ManagedResource.
	Namespace string
	// Lease is the leader election lease of the resource-manager.
	Lease string
	// Deployment of the resource-manager.
	Deployment string
	// ManagedResource with the objects of the resource-manager, and the flow that emits it.
	ManagedResource, Flow string
	// FieldManager is the field manager of the flow.
	FieldManager string
	// StaleAfter is how long the lease may go without a renewal, and the minimum time between two attempts with the same
	// revision.
	StaleAfter time.Duration
	// Installs applies the objects at once if the Deployment does not exist, because no other program installs the resource-manager.
	Installs bool
}

// Controller watches one resource-manager. It sends no requests while the resource-manager renews its lease.
type Controller struct {
	options  Options
	cache    cache.Cache
	uncached client.Reader
	writer   client.Client
	recorder events.EventRecorder
	clock    clock.Clock
	log      logr.Logger
	wake     chan struct{}

	last attempt
}

// AddToManager adds a controller that runs on the leader of a manager. Its caches contain only the three objects. The
// scheme must know ManagedResources.
func AddToManager(mgr manager.Manager, options Options, recorder events.EventRecorder, clk clock.Clock) error {
	named := func(name string) cache.ByObject {
		return cache.ByObject{Namespaces: map[string]cache.Config{
			options.Namespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)},
		}}
	}
	watched, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}: named(options.Lease), &appsv1.Deployment{}: named(options.Deployment),
			&resourcesv1alpha1.ManagedResource{}: named(options.ManagedResource),
		},
	})
	if err != nil {
		return fmt.Errorf("create a cache of the resource-manager's lease, Deployment and ManagedResource: %w", err)
	}
	c := &Controller{
		options: options, cache: watched, uncached: mgr.GetAPIReader(), writer: mgr.GetClient(), recorder: recorder, clock: clk,
		log: mgr.GetLogger().WithName("break-glass"), wake: make(chan struct{}, 1),
	}
	return errors.Join(mgr.Add(watched), mgr.Add(c))
}

// Start checks the resource-manager until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	if !c.watch(ctx) {
		return nil
	}
	since := c.clock.Now()
	for {
		next := c.pass(ctx, since)
		if !c.wait(ctx, next) {
			return nil
		}
	}
}

// watch opens the watches and returns false if the context ended before. It retries because kinds can be defined after
// this process starts.
func (c *Controller) watch(ctx context.Context) bool {
	for {
		err := c.openWatches(ctx)
		if err == nil {
			return c.cache.WaitForCacheSync(ctx)
		}
		c.log.Error(err, "Cannot watch the resource-manager; trying again", "after", retryAfter)
		if !c.wait(ctx, c.clock.Now().Add(retryAfter)) {
			return false
		}
	}
}

func (c *Controller) openWatches(ctx context.Context) error {
	wake := func(any) {
		select {
		case c.wake <- struct{}{}:
		default: // a pass is already due
		}
	}
	// Renewals of the lease trigger no pass: they only postpone the next one.
	if _, err := c.cache.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watch Lease %s: %w", c.options.Lease, err)
	}
	for _, object := range []client.Object{&appsv1.Deployment{}, &resourcesv1alpha1.ManagedResource{}} {
		informer, err := c.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch a %T in namespace %s: %w", object, c.options.Namespace, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: wake, UpdateFunc: func(_, object any) { wake(object) }, DeleteFunc: wake,
		}); err != nil {
			return fmt.Errorf("watch a %T in namespace %s: %w", object, c.options.Namespace, err)
		}
	}
	return nil
}

// wait blocks until the given time or until a watch reports a change; a zero time waits only for the watch. It returns
// false when the context has ended.
func (c *Controller) wait(ctx context.Context, next time.Time) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := c.clock.NewTimer(next.Sub(c.clock.Now()))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-c.wake:
	}
	return true
}

// pass checks the resource-manager, applies its objects if necessary, and returns when to check again.
func (c *Controller) pass(ctx context.Context, since time.Time) time.Time {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	if why, next, _ := c.check(ctx, c.cache, since); why == "" {
		return next
	}
	// A cache whose watch is interrupted shows an outdated lease.
	why, next, mr := c.check(ctx, c.uncached, since)
	if why == "" {
		return next
	}
	return c.breakGlass(ctx, mr, why)
}

// check decides from the objects that a reader returns. It also returns the ManagedResource.
func (c *Controller) check(ctx context.Context, reader client.Reader, since time.Time,
) (why string, next time.Time, mr *resourcesv1alpha1.ManagedResource) {
	seen, err := c.observe(ctx, reader)
	if err != nil {
		c.log.Error(err, "Cannot read the state of the resource-manager; trying again", "after", retryAfter)
		return "", c.clock.Now().Add(retryAfter), nil
	}
	why, next = c.decide(seen, since, c.clock.Now())
	return why, next, seen.mr
}

// breakGlass applies the objects, emits an Event, and returns when to check again.
func (c *Controller) breakGlass(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, why string) time.Time {
	changes, err := c.apply(ctx, mr)
	wait := c.options.StaleAfter
	if err != nil {
		wait = min(wait, retryAfter)
		c.log.Error(err, "Cannot apply the objects of the resource-manager", "because", why)
		c.recorder.Eventf(mr, nil, corev1.EventTypeWarning, ReasonApplyFailed, actionApply, "%s",
			shortened(fmt.Sprintf("%s. Its objects cannot be applied: %v", why, err)))
	} else {
		c.log.Info("Applied the objects of the resource-manager", "because", why, "objects", summary(changes))
		c.recorder.Eventf(mr, nil, corev1.EventTypeWarning, ReasonApplied, actionApply, "%s. The flow has applied its %d objects: %s", why, len(changes.Entries), summary(changes))
	}
	c.last = attempt{revision: revisionOf(mr), next: c.clock.Now().Add(wait)}
	return c.last.next
}

func (c *Controller) observe(ctx context.Context, reader client.Reader) (observed, error) {
	seen := observed{mr: &resourcesv1alpha1.ManagedResource{}, lease: &coordinationv1.Lease{}, deployment: &appsv1.Deployment{}}
	var errs []error
	get := func(name string, object client.Object) (exists bool) {
		err := reader.Get(ctx, client.ObjectKey{Namespace: c.options.Namespace, Name: name}, object)
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("read %T %s/%s: %w", object, c.options.Namespace, name, err))
		}
		return !apierrors.IsNotFound(err)
	}
	if !get(c.options.ManagedResource, seen.mr) {
		seen.mr = nil
	}
	if !get(c.options.Lease, seen.lease) {
		seen.lease = nil
	}
	if !get(c.options.Deployment, seen.deployment) {
		seen.deployment = nil
	}
	return seen, errors.Join(errs...)
}
