package managedresource

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/trellis-k8s/trellis/pkg/fight"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// TestMetricsOfManagedResources checks that every object is counted in one state, in total and per ManagedResource, until the
// ManagedResource is deleted.
func TestMetricsOfManagedResources(t *testing.T) {
	registry, clock := prometheus.NewRegistry(), clocktesting.NewFakeClock(time.Unix(1e9, 0))
	metrics := NewMetrics(registry)
	if got := gathered(t, registry); len(got) > 0 {
		t.Errorf("before the first report: %v", got)
	}
	metrics.observe(live.NewView(live.Options{Clock: clock}), fight.New[object.Key](), clock)

	shop, base := types.NamespacedName{Namespace: "garden", Name: "shop"}, types.NamespacedName{Namespace: "garden", Name: "base"}
	manifest := &object.Manifest{}
	fight := activeFight()
	changes := []change{
		{action: actionApply, manifest: manifest},
		{action: actionSkip, manifest: manifest},
		{action: actionWait, manifest: manifest},
		{action: actionWait, manifest: manifest, fight: fight},
		{action: actionApply, manifest: manifest, fight: fight},
		{action: actionApply, manifest: manifest, err: fmt.Errorf("refused")},
		{action: actionWait},
	}
	metrics.concluded(shop, changes, tallyOf(nil, changes))
	metrics.settled(base, 10)
	metrics.corrected(shop, &changes[0], clock.Now())
	wanted := map[string]string{
		"resource_manager_objects applied": "13", "resource_manager_objects waiting": "2", "resource_manager_objects failed": "1",
		"resource_manager_objects deleting": "1", "resource_manager_inventory_largest_objects": "10",
		"resource_manager_managed_resource_objects garden/base applied": "10",
		"resource_manager_managed_resource_objects garden/shop applied": "3", "resource_manager_managed_resource_objects garden/shop waiting": "2",
		"resource_manager_managed_resource_objects garden/shop failed": "1", "resource_manager_managed_resource_objects garden/shop deleting": "1",
		"resource_manager_managed_resource_corrections_total garden/shop": "1",
	}
	got := gathered(t, registry)
	for name, value := range wanted {
		if got[name] != value {
			t.Errorf("%s is %q, want %s", name, got[name], value)
		}
	}

	metrics.forget(shop)
	for _, name := range slices.Sorted(maps.Keys(gathered(t, registry))) {
		if strings.Contains(name, "garden/shop") {
			t.Errorf("%s still exists after the ManagedResource was deleted", name)
		}
	}
	var none *Metrics
	none.concluded(shop, changes, tallyOf(nil, changes))
	none.corrected(shop, &changes[0], clock.Now())
	none.observe(nil, nil, nil)
	none.forget(shop)
}

// gathered returns the values of all gauges, and of counters per ManagedResource, by name and labels.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			name := family.GetName()
			for _, label := range one.GetLabel() {
				name += " " + label.GetValue()
			}
			if one.GetGauge() != nil {
				values[name] = fmt.Sprint(one.GetGauge().GetValue())
			} else if strings.Contains(name, "managed_resource_corrections") {
				values[name] = fmt.Sprint(one.GetCounter().GetValue())
			}
		}
	}
	return values
}
