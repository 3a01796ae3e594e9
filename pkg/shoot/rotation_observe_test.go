package shoot

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
)

// TestRewriteReadsOnce checks that a rewrite reads from the API server of the seed before its first page, in the namespaces of
// the Shoot only, and not again before each page.
func TestRewriteReadsOnce(t *testing.T) {
	in := up(t)
	r, _ := failing(t, &in, "")
	plan := flow.Plan{Tasks: []flow.Task{{Name: "rewrite-secrets", Value: "key"}}}
	lists := 0
	seed, ok := r.seed.(client.WithWatch)
	if !ok {
		t.Fatalf("the client is a %T", r.seed)
	}
	r.uncached = interceptor.NewClient(seed, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var all client.ListOptions
			if all.ApplyOptions(options).Namespace == "" {
				t.Error("a list of all namespaces")
			}
			lists++
			return c.List(ctx, list, options...)
		},
	})
	for _, page := range []struct {
		next  string
		reads bool
	}{{"", true}, {"second", false}, {"third", false}} {
		r.rewrites.Keep(in.Owner.UID, rotation.Position{Task: plan.Tasks[0], Next: page.next})
		lists = 0
		if why, err := r.unsettled(t.Context(), in, flow.Result{Plan: plan}); err != nil || len(why) > 0 {
			t.Errorf("%v, %v", why, err)
		}
		if lists > 0 != page.reads {
			t.Errorf("page %q: %d lists", page.next, lists)
		}
	}
}
