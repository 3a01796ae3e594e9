package apiserver

import (
	"context"
	"io"
	"strings"
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// storageOfTest is a storage with one Seed.
type storageOfTest struct {
	source

	seed      *gardencorev1beta1.Seed
	namespace string
	options   *metainternalversion.ListOptions
}

func (s *storageOfTest) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	s.namespace, s.options = request.NamespaceValue(ctx), options
	return &gardencorev1beta1.SeedList{Items: []gardencorev1beta1.Seed{*s.seed}}, nil
}

func (s *storageOfTest) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	s.namespace, s.options = request.NamespaceValue(ctx), options
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
	events.Add(sharedOfTest{s.seed})
	events.Modify(s.seed.DeepCopy())
	return events, nil
}

// sharedOfTest is an object that several watches share.
type sharedOfTest struct{ *gardencorev1beta1.Seed }

func (s sharedOfTest) CacheEncode(runtime.Identifier, func(runtime.Object, io.Writer) error, io.Writer) error {
	return nil
}
func (s sharedOfTest) GetObject() runtime.Object { return s.DeepCopy() }

// TestListWatch checks that informers get copies of the objects of a storage, those that they select, and an error if there is no storage.
func TestListWatch(t *testing.T) {
	t.Parallel()
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"a": "b"}}}
	storage, resource := &storageOfTest{seed: seed}, gardencorev1beta1.Resource("seeds")
	only := client.ListOptions{Namespace: "garden", LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"})}
	lists := storages{resource: storage}.listWatch(resource, only)
	initial := true
	raw := metav1.ListOptions{ResourceVersion: "7", SendInitialEvents: &initial, AllowWatchBookmarks: true}
	selected := func() {
		t.Helper()
		got := storage.options
		if storage.namespace != "garden" || got.LabelSelector.String() != "a=b" || got.ResourceVersion != "7" || !*got.SendInitialEvents || !got.AllowWatchBookmarks {
			t.Errorf("namespace %q, options %+v", storage.namespace, got)
		}
	}

	list, err := lists.ListWithContext(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	selected()
	list.(*gardencorev1beta1.SeedList).Items[0].Labels["a"] = "c"

	storage.options = nil
	events, err := lists.WatchWithContext(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	selected()
	for _, kind := range []watch.EventType{watch.Added, watch.Modified} {
		event := <-events.ResultChan()
		received, is := event.Object.(*gardencorev1beta1.Seed)
		if !is || event.Type != kind {
			t.Fatalf("event %s with a %T, want %s with a Seed", event.Type, event.Object, kind)
		}
		received.Labels["a"] = "d"
	}
	if seed.Labels["a"] != "b" {
		t.Error("an informer changed the object of the storage")
	}

	missing := storages{}.listWatch(resource, only)
	for what, read := range map[string]func() error{
		"list":  func() error { _, err := missing.ListWithContext(t.Context(), raw); return err },
		"watch": func() error { _, err := missing.WatchWithContext(t.Context(), raw); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "seeds.core.gardener.cloud") {
			t.Errorf("%s without a storage: %v", what, err)
		}
	}
}
