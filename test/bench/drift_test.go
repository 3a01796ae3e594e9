package main

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestChoose(t *testing.T) {
	keys := small.configMaps()
	chosen := choose(keys, 5, 1)
	if len(chosen) != 5 || !slices.Equal(chosen, choose(keys, 5, 1)) || slices.Equal(chosen, choose(keys, 5, 2)) {
		t.Errorf("got %s", chosen)
	}
	all := choose(keys, 1000, 1)
	slices.SortFunc(all, func(a, b types.NamespacedName) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	if len(slices.Compact(all)) != len(keys) {
		t.Errorf("not every ConfigMap once: %s", all)
	}
}

func configMapAt(name, version, revision string) runtime.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: version}, Data: map[string]string{revisionKey: revision},
	}
}

func TestAwaitRepairs(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "a", Name: name} }
	answered := time.Now().Add(-time.Second)
	watcher := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
	for _, event := range []runtime.Object{
		configMapAt("first", "5", "1"),        // before it was changed
		configMapAt("first", "10", "changed"), // the change itself
		configMapAt("first", "12", "1"),       // corrected
		configMapAt("second", "14", "1"),      // corrected before the response arrived
		configMapAt("third", "15", "1"),       // before it was changed
		configMapAt("other", "16", "1"),       // not changed
	} {
		watcher.Modify(event)
	}
	changes := make(chan drift, 3)
	changes <- drift{key("first"), 10, answered}
	changes <- drift{key("second"), 13, time.Now().Add(time.Hour)}
	changes <- drift{key("third"), 20, answered}

	times, err := awaitRepairs(t.Context(), watcher, changes, 3, "1", 50*time.Millisecond)
	slices.Sort(times)
	if err != nil || len(times) != 2 || times[0] != 0 || times[1] < time.Second {
		t.Errorf("got %s, %v, want 0s, over 1s, and no time for the third", times, err)
	}
}

func TestAwaitRepairsNamesABrokenWatch(t *testing.T) {
	watcher := watch.NewFake()
	watcher.Stop()
	if _, err := awaitRepairs(t.Context(), watcher, nil, 1, "1", time.Minute); err == nil {
		t.Error("got no error for a watch that ended")
	}
}

func TestDriftOf(t *testing.T) {
	result := driftOf(phase{}, []time.Duration{time.Second, 2 * time.Second}, 3, time.Minute)
	if result.P50Seconds == nil || *result.P50Seconds != 2 || result.P99Seconds != nil || result.PutBack != 2 {
		t.Errorf("got %+v", result)
	}
}
