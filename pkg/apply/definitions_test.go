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

// serving is a cluster that serves kinds from a point of time on.
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

// TestAwaitServed: a kind that is never served costs a second, however many there are, and a kind that is served costs little more than it
// takes until it is.
func TestAwaitServed(t *testing.T) {
	for name, test := range map[string]struct {
		// after is when the kinds are served; those that are not in it never are.
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
					t.Errorf("not served are %v, want %v", unserved, test.unserved)
				}
				if waited := time.Since(begun); waited > test.most {
					t.Errorf("waits %s, want at most %s", waited, test.most)
				}
			})
		})
	}
}
