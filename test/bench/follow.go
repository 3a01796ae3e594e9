package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// reportInterval is how often progress is reported.
const reportInterval = 5 * time.Second

// watchFrom watches the objects of a list's kind, starting at the version of the list.
func (u *user) watchFrom(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	start := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
		return u.client.Watch(ctx, list, append(options, &client.ListOptions{Raw: &raw})...)
	}}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), start)
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", list, err)
	}
	return watcher, nil
}

// eventError returns the error in a watch event, or the end of the watch as an error.
func eventError(event watch.Event, open bool) error {
	if !open {
		return errors.New("a watch ended")
	}
	if event.Type == watch.Error {
		return fmt.Errorf("a watch failed: %w", apierrors.FromObject(event.Object))
	}
	return nil
}

// follower follows the progress of the ManagedResources of a workload.
type follower struct {
	watcher watch.Interface
	total   int
	// pending are the ManagedResources that have not reached the goal.
	pending map[types.NamespacedName]bool
	// checksums are the checksums before the phase.
	checksums map[types.NamespacedName]string
}

// follow starts to follow a workload. It must be called before further writes.
func (u *user) follow(ctx context.Context, w workload) (*follower, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	selector := client.MatchingLabels{labelSet: w.set}
	if err := u.client.List(ctx, list, selector); err != nil {
		return nil, fmt.Errorf("list ManagedResources: %w", err)
	}
	watcher, err := u.watchFrom(ctx, list, selector)
	if err != nil {
		return nil, err
	}
	f := &follower{watcher: watcher, total: w.resources, pending: map[types.NamespacedName]bool{},
		checksums: map[types.NamespacedName]string{}}
	for i := range w.resources {
		f.pending[w.key(i)] = true
	}
	for i := range list.Items {
		f.checksums[client.ObjectKeyFromObject(&list.Items[i])] = checksumOf(&list.Items[i])
	}
	return f, nil
}

func checksumOf(mr *resourcesv1alpha1.ManagedResource) string {
	if mr.Status.SecretsDataChecksum == nil {
		return ""
	}
	return *mr.Status.SecretsDataChecksum
}

// goal reports whether an event shows that a ManagedResource has reached the goal.
type goal func(f *follower, event watch.EventType, mr *resourcesv1alpha1.ManagedResource) bool

// applied is reached when new manifests are applied.
func applied(f *follower, _ watch.EventType, mr *resourcesv1alpha1.ManagedResource) bool {
	if checksum := checksumOf(mr); checksum == "" || checksum == f.checksums[client.ObjectKeyFromObject(mr)] {
		return false
	}
	for _, condition := range mr.Status.Conditions {
		if condition.Type == resourcesv1alpha1.ResourcesApplied {
			return condition.Status == resourcesv1alpha1.ConditionTrue && mr.Status.ObservedGeneration == mr.Generation
		}
	}
	return false
}

// gone is reached when the ManagedResource no longer exists.
func gone(_ *follower, event watch.EventType, _ *resourcesv1alpha1.ManagedResource) bool {
	return event == watch.Deleted
}

// await returns when every ManagedResource has reached the goal. It periodically calls report with the number of
// those that have.
func (f *follower) await(ctx context.Context, reached goal, report func(done int) error) error {
	defer f.watcher.Stop()
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	for len(f.pending) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d ManagedResources did not reach the goal, for example %s: %w",
				len(f.pending), f.total, f.anyPending(), context.Cause(ctx))
		case <-ticker.C:
			if err := report(f.total - len(f.pending)); err != nil {
				return err
			}
		case event, open := <-f.watcher.ResultChan():
			if err := eventError(event, open); err != nil {
				return err
			}
			if mr, ok := event.Object.(*resourcesv1alpha1.ManagedResource); ok && reached(f, event.Type, mr) {
				delete(f.pending, client.ObjectKeyFromObject(mr))
			}
		}
	}
	return nil
}

func (f *follower) anyPending() string {
	for key := range f.pending {
		return key.String()
	}
	return ""
}
