package flow

import (
	"context"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestObserveUncached checks that only the namespaces of the owner are listed, and that the result shows where it comes from.
func TestObserveUncached(t *testing.T) {
	var listed []string
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testScheme()).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var all client.ListOptions
			listed = append(listed, all.ApplyOptions(options).Namespace)
			return c.List(ctx, list, options...)
		},
	})
	emitter := &Emitter{Reader: reader, Uncached: reader, Writer: reader, FieldManager: "x", Rules: rules()}
	plan := Plan{Bundles: []Bundle{bundle("a", "1")}}
	if _, err := emitter.Emit(t.Context(), owner, plan); err != nil {
		t.Fatal(err)
	}
	applyAll(t, reader)
	listed = nil
	live, err := ObserveUncached(t.Context(), reader, owner, plan, "garden", named("a").Namespace)
	if err != nil || !live.Uncached || live.ManagedResources[named("a")] == nil || len(live.Secrets) == 0 {
		t.Errorf("%+v, %v", live, err)
	}
	slices.Sort(listed)
	if want := []string{"garden", named("a").Namespace}; !slices.Equal(slices.Compact(listed), slices.Compact(want)) {
		t.Errorf("listed are %q", listed)
	}
	cached, err := Observe(t.Context(), reader, owner, plan)
	if err != nil || cached.Uncached {
		t.Errorf("%+v, %v", cached, err)
	}
	unsettled, err := Unsettled(owner, plan, cached, rules())
	differences, errDifferences := Differences(owner, plan, cached, rules())
	if err != nil || errDifferences != nil || len(unsettled) != len(differences)+1 {
		t.Errorf("unsettled %q, differences %q, %v, %v", unsettled, differences, err, errDifferences)
	}
}
