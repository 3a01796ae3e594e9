package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestMetricsOfOne checks that each ManagedResource has one status per condition until it is deleted.
func TestMetricsOfOne(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry)
	owner := types.NamespacedName{Namespace: "garden", Name: "shop"}
	check := func(wanted ...string) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, family := range families {
			if family.GetName() != "resource_manager_managed_resource_health" {
				continue
			}
			for _, one := range family.GetMetric() {
				text := ""
				for _, label := range one.GetLabel() {
					text += label.GetValue() + " "
				}
				got = append(got, text)
			}
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("got %q, want %q", got, wanted)
		}
	}
	const isTrue, isFalse = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse
	check()
	metrics.concluded(owner, isTrue, isFalse, time.Time{}, time.Unix(1, 0))
	check("ResourcesHealthy garden/shop True ", "ResourcesProgressing garden/shop False ")
	metrics.concluded(owner, isFalse, isFalse, time.Time{}, time.Unix(2, 0))
	check("ResourcesHealthy garden/shop False ", "ResourcesProgressing garden/shop False ")
	metrics.forget(owner)
	check()
}
