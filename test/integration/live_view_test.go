package integration

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// newView starts a separate view and returns the number of changes that it has reported.
func (f *fixture) newView(namespaces ...string) (*live.View, *atomic.Int64) {
	f.Helper()
	config := rest.CopyConfig(shared.Get(f).Config())
	httpClient, err := rest.HTTPClientFor(config)
	must(f, err)
	objects, err := target.NewObjects(config, httpClient)
	must(f, err)
	view := live.NewView(live.Options{
		Objects: objects, Policy: fieldowner.DefaultPolicy(), ManagedBy: f.namespace, Namespaces: namespaces, Clock: clock.RealClock{},
	})
	told := &atomic.Int64{}
	view.Listen(func(object.Key) { told.Add(1) })
	ctx, cancel := context.WithCancel(f.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = view.Start(ctx)
	}()
	f.Cleanup(func() {
		cancel()
		<-ended
	})
	return view, told
}

// TestLiveViewConcurrently makes many users use, read and write the same kinds while objects change, for the race
// detector. At the end, the view watches exactly the used kinds and shows the current state.
func TestLiveViewConcurrently(t *testing.T) {
	const users, rounds = 8, 25
	f := newFixture(t)
	view, told := f.newView(f.namespace)
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"),
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "nowhere.example.org", Version: "v1", Kind: "Missing"},
	}
	refs := make([]object.Ref, users)
	for i := range refs {
		refs[i] = object.Ref{GroupVersionKind: kinds[0], Namespace: f.namespace, Name: fmt.Sprintf("map-%d", i)}
	}
	user := types.NamespacedName{Name: "first"}
	view.Use(user, kinds[:1])
	view.Read(f.ctx, refs) // the first list can override states noted before it
	var group sync.WaitGroup
	for i, ref := range refs {
		user := types.NamespacedName{Name: ref.Name}
		group.Go(func() {
			for round := range rounds {
				view.Use(user, kinds[:1+(i+round)%len(kinds)])
				if err := f.touch(ref.Name, round); err != nil {
					t.Error(err)
					return
				}
				fresh := view.Fetch(f.ctx, refs[i:i+1])[ref.Key()]
				view.RecordWrite(ref, fresh.Observation)
				if shown := view.Read(f.ctx, refs)[ref.Key()]; shown.Presence != live.Present || shown.Observation.UID != fresh.Observation.UID {
					t.Errorf("after its version %s was noted, %s is %v", fresh.Observation.ResourceVersion, ref, shown)
				}
				view.Watches(ref)
				view.Counts()
			}
			view.Use(user, kinds[:1])
		})
	}
	group.Wait()
	view.Use(user, nil)
	for _, ref := range refs {
		f.eventually(ref.Name+" is shown in its current state", func() bool {
			return view.Read(f.ctx, refs)[ref.Key()].Observation.ResourceVersion == f.liveConfigMap(ref.Name).ResourceVersion && view.Watches(ref)
		})
	}
	counts := view.Counts()
	if !maps.Equal(counts.Watches, map[string]int{"watching": 1}) || counts.Objects[kinds[0].GroupKind()] != users {
		t.Errorf("the counts at the end are %+v", counts)
	}
	if told.Load() == 0 {
		t.Error("the listener is not notified of changes")
	}
	for _, ref := range refs {
		view.Use(types.NamespacedName{Name: ref.Name}, nil)
	}
	if counts := view.Counts(); len(counts.Watches) > 0 {
		t.Errorf("the counts without users are %+v", counts)
	}
}

// touch creates or changes a labelled ConfigMap.
func (f *fixture) touch(name string, round int) error {
	configMap := &corev1.ConfigMap{}
	configMap.Namespace, configMap.Name = f.namespace, name
	configMap.Labels = map[string]string{"resources.gardener.cloud/managed-by": f.namespace, "round": fmt.Sprint(round)}
	if round == 0 {
		return f.client.Create(f.ctx, configMap)
	}
	return f.client.Update(f.ctx, configMap)
}
