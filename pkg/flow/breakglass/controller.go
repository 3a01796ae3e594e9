// Package breakglass applies the resource-manager of a cluster when that one cannot do so itself.
//
// The resource-manager of a seed is a bundle like any other, which it applies itself. If it loses its own rights, or takes a configuration
// with which it does not start, it cannot apply the revision that corrects this. A [Controller] in the process of the flow then applies
// the objects of that bundle, by server-side apply. This is the one exception to the rule that flows write nothing but Secrets and
// ManagedResources.
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
	// DefaultStaleAfter is much longer than a resource-manager needs to start, and than clocks of nodes differ.
	DefaultStaleAfter = 10 * time.Minute
	// retryAfter is when to try again after an error.
	retryAfter = time.Minute
	// passTimeout limits the time of a pass.
	passTimeout = time.Minute
)

// Options name the resource-manager.
type Options struct {
	// Namespace of the lease, the Deployment and the ManagedResource.
	Namespace string
	// Lease is that of the resource-manager's leader.
	Lease string
	// Deployment of the resource-manager.
	Deployment string
	// ManagedResource with the objects of the resource-manager, and the flow that emits it.
	ManagedResource, Flow string
	// FieldManager is that of the flow.
	FieldManager string
	// StaleAfter is how long the lease may go without a renewal, and the least time between two attempts with the same revision.
	StaleAfter time.Duration
}

// Controller watches one resource-manager. It sends no request while that one renews its lease.
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

// AddToManager adds a controller to a manager, whose leader runs it, with caches of the three objects alone. The scheme has to know
// ManagedResources.
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

// Start looks at the resource-manager until the context ends.
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

// watch opens the watches, and reports whether it could before the context ended. Kinds may be defined later than this process starts.
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
		default: // a pass is due already
		}
	}
	// Renewals of the lease need no pass: they only move the time of the next one.
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

// wait returns at a time, or when a watch shows a change; zero stands for the latter alone. It returns false when the context has ended.
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

// pass looks at the resource-manager, applies its objects if it has to, and returns when to look again.
func (c *Controller) pass(ctx context.Context, since time.Time) time.Time {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	if why, next, _ := c.look(ctx, c.cache, since); why == "" {
		return next
	}
	// A cache whose watch is interrupted shows a lease that is too old.
	why, next, mr := c.look(ctx, c.uncached, since)
	if why == "" {
		return next
	}
	return c.breakGlass(ctx, mr, why)
}

// look returns what is decided by what a reader shows, with the ManagedResource.
func (c *Controller) look(ctx context.Context, reader client.Reader, since time.Time) (why string, next time.Time, mr *resourcesv1alpha1.ManagedResource) {
	seen, err := c.observe(ctx, reader)
	if err != nil {
		c.log.Error(err, "Cannot read the state of the resource-manager; trying again", "after", retryAfter)
		return "", c.clock.Now().Add(retryAfter), nil
	}
	why, next = c.decide(seen, since, c.clock.Now())
	return why, next, seen.mr
}

// breakGlass applies the objects, reports it, and returns when to look again.
func (c *Controller) breakGlass(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, why string) time.Time {
	count, err := c.apply(ctx, mr)
	wait := c.options.StaleAfter
	if err != nil {
		wait = min(wait, retryAfter)
		c.log.Error(err, "Cannot apply the objects of the resource-manager", "because", why)
		c.recorder.Eventf(mr, nil, corev1.EventTypeWarning, ReasonApplyFailed, actionApply, "%s", shortened(fmt.Sprintf("%s. Its objects cannot be applied: %v", why, err)))
	} else {
		c.log.Info("Applied the objects of the resource-manager", "because", why, "objects", count)
		c.recorder.Eventf(mr, nil, corev1.EventTypeWarning, ReasonApplied, actionApply, "%s. The flow has applied its %d objects", why, count)
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
