package managedresource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
)

// cached is a client whose cache contains the given ManagedResources.
type cached struct {
	client.Client
	items []resourcesv1alpha1.ManagedResource
}

func (c cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	all, ok := list.(*resourcesv1alpha1.ManagedResourceList)
	if !ok {
		return fmt.Errorf("a %T was requested", list)
	}
	all.Items = c.items
	return nil
}

func TestPruneDelay(t *testing.T) {
	named := func(name types.NamespacedName, change func(*resourcesv1alpha1.ManagedResource)) resourcesv1alpha1.ManagedResource {
		mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		if change != nil {
			change(&mr)
		}
		return mr
	}
	self, class := named(shop, nil), "another"
	for name, test := range map[string]struct {
		others  []resourcesv1alpha1.ManagedResource
		claimed bool
		want    time.Duration
	}{
		"the only one": {want: loneDelay},
		"another one":  {others: []resourcesv1alpha1.ManagedResource{named(bank, nil)}, want: 2 * time.Second},
		"another one that the cache has not seen": {claimed: true, want: 2 * time.Second},
		"another one that is being deleted": {others: []resourcesv1alpha1.ManagedResource{named(bank, func(mr *resourcesv1alpha1.ManagedResource) {
			mr.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		})}, want: loneDelay},
		"one of another class": {others: []resourcesv1alpha1.ManagedResource{named(bank, func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Spec.Class = &class
		})}, want: loneDelay},
	} {
		claims := ownership.NewClaims()
		claims.Set(shop, []object.Key{{Kind: "ConfigMap", Name: "one"}})
		if test.claimed {
			claims.Set(bank, []object.Key{{Kind: "ConfigMap", Name: "two"}})
		}
		p := &pass{
			Reconciler: &Reconciler{
				Source: cached{items: append(test.others, self)}, claims: claims,
				Options: Options{Class: resourcesv1alpha1.DefaultClass, PruneDelay: 2 * time.Second},
			},
			self: resourcesv1alpha1.Origin{Owner: shop},
		}
		if got := p.pruneDelay(t.Context()); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestAwaitsEndOf(t *testing.T) {
	for _, test := range []struct {
		later, earlier step
		want           bool
	}{
		{step{0, apply.WaveDefinitions}, step{0, apply.WaveNamespaces}, false},
		{step{0, apply.WaveDefinitions}, step{1, apply.WaveNamespaces}, true},
		{step{0, apply.WaveNamespaces}, step{1, apply.WaveDefinitions}, true},
		{step{0, apply.WaveNamespaces}, step{0, apply.WaveConfiguration}, true},
		{step{0, apply.WaveDefinitions}, step{0, apply.WaveCustomResources}, true},
	} {
		if got := test.later.awaitsEndOf(test.earlier); got != test.want {
			t.Errorf("%v is deleted after %v: %t", test.later, test.earlier, got)
		}
	}
}

// TestOrderOfDeletion checks that the Namespace is deleted first: it takes five seconds, while ten large
// CustomResourceDefinitions occupy the API server for only a second.
func TestOrderOfDeletion(t *testing.T) {
	want := []step{
		{1, apply.WaveNamespaces},
		{1, apply.WaveDefinitions},
		{0, apply.WaveAdmission},
		{0, apply.WaveCustomResources},
		{0, apply.WaveWorkloads},
		{0, apply.WaveConfiguration},
		{0, apply.WaveNamespaces},
		{0, apply.WaveDefinitions},
		{-1, apply.WaveConfiguration},
	}
	for range 100 {
		got := slices.Clone(want)
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		if slices.SortFunc(got, compareForDeletion); !slices.Equal(got, want) {
			t.Fatalf("the steps are deleted in the order %v, want %v", got, want)
		}
	}
}
