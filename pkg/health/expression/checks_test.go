package expression

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func healthCheck(kind, failed, healthy, progressing, message string) resourcesv1alpha1.HealthCheck {
	return resourcesv1alpha1.HealthCheck{Group: "example.com", Kind: kind, Failed: failed, Healthy: healthy, Progressing: progressing, Message: message}
}

func mustCompile(tb testing.TB, checks ...resourcesv1alpha1.HealthCheck) *Checks {
	tb.Helper()
	compiled, err := Compile(checks)
	if err != nil {
		tb.Fatal(err)
	}
	return compiled
}

// badExpressions are expressions for the field healthy and the expected errors.
var badExpressions = map[string][]string{
	"":                               {"healthChecks[0]: at least one of healthy, progressing and failed is needed"},
	"status.":                        {"line 1, column 8: Syntax error: no viable alternative at input '.'"},
	"x == 1 &&\n  y":                 {"line 1, column 1: undeclared reference to 'x'", "line 2, column 3: undeclared reference to 'y'"},
	"a || b || c || d":               {"line 1, column 1: undeclared reference to 'a'", "line 1, column 6: undeclared reference to 'b'", "line 1, column 11: undeclared reference to 'c'"},
	"now() > status.x":               {"line 1, column 4: undeclared reference to 'now'"},
	"1":                              {"yields int, but must yield bool"},
	"'true'":                         {"yields string, but must yield bool"},
	"status.?ready":                  {"yields optional_type(dyn), but must yield bool"},
	"bool":                           {"yields type(bool), but must yield bool"},
	"'a'.matches('[')":               {"line 1, column 13: invalid matches argument"},
	"duration('1 day') > status.age": {"line 1, column 10: invalid duration argument"},
	strings.Repeat("(", 3000):        {"expression recursion limit exceeded: 250"},
	"'" + strings.Repeat("ä", 4089) + "' != ''": {"has 4097 characters, at most 4096 are allowed"},
}

func TestCompileRefusesExpressions(t *testing.T) {
	for text, want := range badExpressions {
		compiled, err := Compile([]resourcesv1alpha1.HealthCheck{healthCheck("A", "", text, "", "")})
		if compiled != nil || err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		if text != "" {
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], "healthChecks[0].healthy: ")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q:\n%q, want\n%q", text, got, want)
		}
	}
}

func TestCompileReportsEverything(t *testing.T) {
	_, err := Compile([]resourcesv1alpha1.HealthCheck{
		healthCheck("A", "status.failed", "", "", ""),
		healthCheck("B", "1", "2", "3", "4"),
		healthCheck("A", "", "", "", "'a'"),
		{Healthy: "true"},
		{Kind: "Secret", Healthy: "true"},
		{Group: "example.com", Kind: "Secret", Healthy: "true"},
	})
	want := []string{
		"healthChecks[1].failed: yields int, but must yield bool",
		"healthChecks[1].healthy: yields int, but must yield bool",
		"healthChecks[1].progressing: yields int, but must yield bool",
		"healthChecks[1].message: yields int, but must yield string",
		"healthChecks[2]: healthChecks[0] is for the kind A.example.com already",
		"healthChecks[2]: at least one of healthy, progressing and failed is needed",
		"healthChecks[3].kind: must not be empty",
		"healthChecks[4].kind: must not be Secret: the data of Secrets is never read",
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got:\n%v\nwant:\n%s", err, strings.Join(want, "\n"))
	}
}

// TestCompileAcceptsExpressions compiles every feature that the documentation names, and the expressions that Flux uses.
func TestCompileAcceptsExpressions(t *testing.T) {
	for _, text := range []string{
		"status.ready",
		"object.kind == 'A' && metadata.generation == status.observedGeneration && spec.paused != true",
		"object.?status.?phase.orValue('') == 'Ready'",
		"status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
		"status.conditions.exists(e, e.type == 'Ready' && e.observedGeneration == metadata.generation)",
		"has(status.conditions) && status.readyReplicas >= 1.0",
		"status.phase.lowerAscii() in ['ready', 'done'] && status.images.distinct().size() == 1",
		"sets.contains(status.zones, spec.zones)",
		"timestamp(status.notAfter) - timestamp(status.notBefore) > duration('24h')",
		"'" + strings.Repeat("ä", 4088) + "' != ''",
	} {
		mustCompile(t, healthCheck("A", text, text, text, ""))
	}
	for _, message := range []string{"status.message", "'%s: %d'.format([status.reason, size(status.pods)])", "has(status.message) ? status.message : 'waiting'"} {
		mustCompile(t, healthCheck("A", "", "true", "", message))
	}
}

func TestForAndKinds(t *testing.T) {
	checks := mustCompile(t,
		resourcesv1alpha1.HealthCheck{Group: "b.example.com", Kind: "A", Healthy: "true"},
		resourcesv1alpha1.HealthCheck{Group: "a.example.com", Kind: "C", Healthy: "true"},
		resourcesv1alpha1.HealthCheck{Kind: "Pod", Healthy: "true"},
		resourcesv1alpha1.HealthCheck{Group: "a.example.com", Kind: "B", Healthy: "true"})
	kinds := checks.Kinds()
	want := []schema.GroupKind{{Kind: "Pod"}, {Group: "a.example.com", Kind: "B"}, {Group: "a.example.com", Kind: "C"}, {Group: "b.example.com", Kind: "A"}}
	if !slices.Equal(kinds, want) {
		t.Errorf("kinds %v, want %v", kinds, want)
	}
	for _, kind := range kinds {
		if checks.For(kind) == nil {
			t.Errorf("no check for %v", kind)
		}
	}
	if checks.For(schema.GroupKind{Group: "b.example.com", Kind: "B"}) != nil {
		t.Error("got a check for a kind without one")
	}
	for name, none := range map[string]*Checks{"nil": nil, "zero": {}, "of nothing": mustCompile(t)} {
		if none.For(schema.GroupKind{Kind: "Pod"}) != nil || len(none.Kinds()) > 0 {
			t.Errorf("%s has a check", name)
		}
	}
}
