package docs

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health/expression"
)

// TestHealthChecksOfTheDocumentation applies the checks of health-checks.md to objects in the documented states.
func TestHealthChecksOfTheDocumentation(t *testing.T) {
	_, rest, _ := strings.Cut(pages(t)["health-checks.md"], "```yaml\n")
	block, _, closed := strings.Cut(rest, "```")
	var mr resourcesv1alpha1.ManagedResource
	if err := yaml.UnmarshalStrict([]byte(block), &mr); err != nil || !closed {
		t.Fatalf("health-checks.md has no ManagedResource: %v", err)
	}
	checks, err := expression.Compile(mr.Spec.HealthChecks)
	if err != nil {
		t.Fatal(err)
	}
	application := schema.GroupKind{Group: "argoproj.io", Kind: "Application"}
	certificate := schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}
	const noStatus = "has no status yet"
	for name, test := range map[string]struct {
		kind   schema.GroupKind
		status string // YAML, for generation 2
		want   expression.Verdict
	}{
		"new application":     {application, "{}", expression.Verdict{Unhealthy: noStatus, Progressing: noStatus}},
		"healthy application": {application, "{health: {status: Healthy}, sync: {status: Synced}, operationState: {phase: Succeeded}}", expression.Verdict{}},
		"application being synced": {application, "{health: {status: Healthy}, sync: {status: OutOfSync}, operationState: {phase: Running}}",
			expression.Verdict{Unhealthy: "Healthy, OutOfSync", Progressing: "Healthy, OutOfSync"}},
		"application that is not synced": {application, "{health: {status: Missing}, sync: {status: OutOfSync}}", expression.Verdict{Unhealthy: "Missing, OutOfSync"}},
		"degraded application":           {application, "{health: {status: Degraded}, sync: {status: Synced}}", expression.Verdict{Unhealthy: "Degraded, Synced"}},
		"failed application": {application, "{health: {status: Healthy}, sync: {status: OutOfSync}, operationState: {phase: Failed}}",
			expression.Verdict{Unhealthy: "Healthy, OutOfSync"}},
		"new certificate":    {certificate, "{}", expression.Verdict{Unhealthy: noStatus, Progressing: noStatus}},
		"issued certificate": {certificate, "{conditions: [{type: Ready, status: 'True', observedGeneration: 2, message: well}]}", expression.Verdict{}},
		"certificate of the last generation": {certificate, "{conditions: [{type: Ready, status: 'True', observedGeneration: 1, message: well}]}",
			expression.Verdict{Unhealthy: "Ready - well"}},
		"certificate being issued": {certificate, "{conditions: [{type: Ready, status: 'False', message: none}, {type: Issuing, status: 'True', message: soon}]}",
			expression.Verdict{Unhealthy: "Ready - none, Issuing - soon", Progressing: "Ready - none, Issuing - soon"}},
		"certificate being renewed": {certificate, "{conditions: [{type: Ready, status: 'True', observedGeneration: 2, message: well}, {type: Issuing, status: 'True', message: soon}]}",
			expression.Verdict{Progressing: "Ready - well, Issuing - soon"}},
		"certificate that cannot be issued": {certificate, "{conditions: [{type: Ready, status: 'False', message: none}, {type: Issuing, status: 'False', reason: Failed, message: denied}]}",
			expression.Verdict{Unhealthy: "Ready - none, Issuing - denied"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte("metadata: {generation: 2}\nstatus: "+test.status), &object); err != nil {
				t.Fatal(err)
			}
			if got := checks.For(test.kind).Evaluate(t.Context(), object); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
