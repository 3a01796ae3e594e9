package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// errStop ends Follow without an error.
var errStop = errors.New("stop")

// Stop returns the error with which a callback ends Follow.
func Stop() error { return errStop }

// retryWatch is the delay before a watch that ended is restarted.
const retryWatch = time.Second

// Follow calls changed for each chosen ManagedResource, and again for each of its changes, until changed returns an
// error or
// the context is canceled. The latter is not an error. Unless they were chosen by name, Follow includes
// ManagedResources that
// are created later and match the choice.
func (c *Console) Follow(ctx context.Context, chosen []resourcesv1alpha1.ManagedResource, byName bool, choice Choice,
	changed func(mr *resourcesv1alpha1.ManagedResource, gone bool) error,
) error {
	f := &follower{console: c, choice: choice, changed: changed, seen: map[types.NamespacedName]string{}}
	for i := range chosen {
		if byName {
			f.named = append(f.named, state.NameOf(&chosen[i]))
		}
		if err := f.report(&chosen[i], false); err != nil {
			return unlessStopped(err)
		}
	}
	for ctx.Err() == nil {
		err := f.watch(ctx)
		if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && ctx.Err() == nil {
			return unlessStopped(err)
		}
		select {
		case <-ctx.Done():
		case <-c.Clock.After(retryWatch):
		}
	}
	return nil
}

func unlessStopped(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

type follower struct {
	console *Console
	choice  Choice
	// named are the ManagedResources that were chosen by name. It is nil if all that match the choice are followed.
	named   []types.NamespacedName
	changed func(*resourcesv1alpha1.ManagedResource, bool) error
	// seen are the reported resourceVersions.
	seen map[types.NamespacedName]string
}

func (f *follower) report(mr *resourcesv1alpha1.ManagedResource, gone bool) error {
	name := state.NameOf(mr)
	if f.named != nil && !slices.Contains(f.named, name) || !f.choice.Includes(mr) || !gone && f.seen[name] == mr.ResourceVersion {
		return nil
	}
	if f.seen[name] = mr.ResourceVersion; gone {
		delete(f.seen, name)
	}
	return f.changed(mr, gone)
}

// watch watches until the watch ends. It starts with the current state, because changes may have been missed between
// two watches.
func (f *follower) watch(ctx context.Context) error {
	source, err := f.console.Source()
	if err != nil {
		return err
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	watcher, err := source.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}, options...)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	if err := f.reportDeleted(ctx, source, options); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watcher.ResultChan():
			if !open {
				return nil
			}
			if err := f.take(event); err != nil {
				return err
			}
		}
	}
}

// reportDeleted reports ManagedResources that were reported before and no longer exist. The running watch reports later
// deletions.
func (f *follower) reportDeleted(ctx context.Context, source *Source, options []client.ListOption) error {
	items, err := source.ListManagedResources(ctx, func(int) {}, options...)
	if err != nil {
		return err
	}
	there := make(map[types.NamespacedName]bool, len(items))
	for i := range items {
		there[state.NameOf(&items[i])] = true
	}
	for name := range f.seen {
		if there[name] {
			continue
		}
		gone := &resourcesv1alpha1.ManagedResource{}
		gone.Namespace, gone.Name = name.Namespace, name.Name
		delete(f.seen, name)
		if err := f.changed(gone, true); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) options() ([]client.ListOption, error) {
	if f.named == nil {
		namespace, err := f.console.Namespace()
		if err != nil {
			return nil, err
		}
		return f.choice.Options(namespace)
	}
	// Watch one namespace if all are in it, or else all namespaces.
	namespace := f.named[0].Namespace
	for _, name := range f.named {
		if name.Namespace != namespace {
			return nil, nil
		}
	}
	options := []client.ListOption{client.InNamespace(namespace)}
	if len(f.named) == 1 {
		options = append(options, client.MatchingFields{"metadata.name": f.named[0].Name})
	}
	return options, nil
}

func (f *follower) take(event watch.Event) error {
	switch event.Type {
	case watch.Error:
		return apierrors.FromObject(event.Object)
	case watch.Bookmark:
		return nil
	}
	mr, is := event.Object.(*resourcesv1alpha1.ManagedResource)
	if !is {
		return fmt.Errorf("watch ManagedResources: received a %T", event.Object)
	}
	return f.report(mr, event.Type == watch.Deleted)
}
