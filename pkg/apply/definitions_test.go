package apply

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// serving is a fake cluster. It serves each kind from a given time.
type serving struct {
	Cluster
	from map[string]time.Time
}

func (s serving) Discover(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if from, ever := s.from[gvk.Kind]; ever && !time.Now().Before(from) {
		return &meta.RESTMapping{}, nil
	}
	return nil, errors.New("not served")
}

// TestAwaitServed checks that kinds that are never served delay the call by one second in total, and that a kind that becomes
// served delays it only slightly longer than that takes.
func TestAwaitServed(t *testing.T) {
	for name, test := range map[string]struct {
		// after is how long it takes until each kind is served. Kinds that are missing here are never served.
		after    map[string]time.Duration
		kinds    []string
		unserved []string
		most     time.Duration
	}{
		"no kind":          {},
		"served already":   {map[string]time.Duration{"A": 0}, []string{"A"}, nil, 0},
		"served soon":      {map[string]time.Duration{"A": 300 * time.Millisecond}, []string{"A"}, nil, 350 * time.Millisecond},
		"served one never": {map[string]time.Duration{"A": 300 * time.Millisecond}, []string{"B", "A", "C"}, []string{"B", "C"}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, cluster := time.Now(), serving{from: map[string]time.Time{}}
				for kind, after := range test.after {
					cluster.from[kind] = begun.Add(after)
				}
				var gvks []schema.GroupVersionKind
				for _, kind := range test.kinds {
					gvks = append(gvks, schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind})
				}
				var unserved []string
				for gk := range NewEngineFor(cluster, Settings{Policy: fieldowner.DefaultPolicy()}, clock.RealClock{}).AwaitServed(t.Context(), gvks) {
					unserved = append(unserved, gk.Kind)
				}
				slices.Sort(unserved)
				if !slices.Equal(unserved, test.unserved) {
					t.Errorf("the unserved kinds are %v, want %v", unserved, test.unserved)
				}
				if waited := time.Since(begun); waited > test.most {
					t.Errorf("waited %s, want at most %s", waited, test.most)
				}
			})
		})
	}
}
