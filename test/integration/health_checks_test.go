package integration

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestAPIServerValidatesHealthChecks checks the rules for spec.healthChecks that the API server can validate without
// compiling them.
func TestAPIServerValidatesHealthChecks(t *testing.T) {
	f := newFixture(t)
	mr := f.managedResource("checked")
	good := resourcesv1alpha1.HealthCheck{Group: "example.com", Kind: "Widget", Failed: strings.Repeat("ä", 4096)}
	mr.Spec.HealthChecks = slices.Repeat([]resourcesv1alpha1.HealthCheck{good}, 50)
	must(t, f.client.Update(f.ctx, mr))

	for want, bad := range map[string]resourcesv1alpha1.HealthCheck{
		"spec.healthChecks[0].kind: Invalid value":                  {Healthy: "true"},
		"spec.healthChecks[0].kind: Too long":                       {Kind: strings.Repeat("a", 64), Healthy: "true"},
		"spec.healthChecks[0].message: Too long":                    {Kind: "Widget", Healthy: "true", Message: strings.Repeat("a", 4097)},
		"at least one of healthy, progressing and failed is needed": {Kind: "Widget", Message: "'a'"},
	} {
		mr.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{bad}
		err := f.client.Update(f.ctx, mr)
		if !apierrors.IsInvalid(err) {
			t.Fatalf("%+v: %v", bad, err)
		}
		wantContains(t, err.Error(), want)
	}
	mr.Spec.HealthChecks = slices.Repeat([]resourcesv1alpha1.HealthCheck{good}, 51)
	err := f.client.Update(f.ctx, mr)
	if !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
	wantContains(t, err.Error(), "spec.healthChecks: Too many")
}
