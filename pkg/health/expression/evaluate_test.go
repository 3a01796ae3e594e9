package expression

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// objectOf returns a Widget with additional fields, as a client would read it.
func objectOf(tb testing.TB, fields string) map[string]any {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, generation: 2}\n" + fields))
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(data)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return object.Object
}

// theCheck compiles a single check.
func theCheck(tb testing.TB, check resourcesv1alpha1.HealthCheck) *Check {
	tb.Helper()
	return mustCompile(tb, check).For(schema.GroupKind{Group: check.Group, Kind: check.Kind})
}

func TestEvaluate(t *testing.T) {
	full := healthCheck("Widget", "status.phase == 'Failed'", "status.phase == 'Ready'", "status.phase in ['Starting', 'Late']", "status.message")
	silent := healthCheck("Widget", full.Failed, full.Healthy, full.Progressing, "")
	for name, test := range map[string]struct {
		check  resourcesv1alpha1.HealthCheck
		object string
		want   Verdict
	}{
		"healthy":                 {full, "status: {phase: Ready}", Verdict{}},
		"failed":                  {full, "status: {phase: Failed, message: broken}", Verdict{Unhealthy: "broken"}},
		"failed, no message":      {silent, "status: {phase: Failed}", Verdict{Unhealthy: "failed: status.phase == 'Failed'"}},
		"unhealthy":               {full, "status: {phase: Odd, message: odd}", Verdict{Unhealthy: "odd"}},
		"unhealthy, no message":   {silent, "status: {phase: Odd}", Verdict{Unhealthy: "not healthy: status.phase == 'Ready'"}},
		"progressing":             {full, "status: {phase: Late, message: soon}", Verdict{Unhealthy: "soon", Progressing: "soon"}},
		"progressing, no message": {silent, "status: {phase: Late}", Verdict{"not healthy: status.phase == 'Ready'", "status.phase in ['Starting', 'Late']", ""}},

		"progressing alone":            {healthCheck("Widget", "", "", "status.late", ""), "status: {late: true}", Verdict{Progressing: "status.late"}},
		"progressing alone, no longer": {healthCheck("Widget", "", "", "status.late", ""), "status: {late: false}", Verdict{}},
		"failed alone":                 {healthCheck("Widget", "status.bad", "", "", ""), "status: {bad: true}", Verdict{Unhealthy: "failed: status.bad"}},
		"failed alone, not":            {healthCheck("Widget", "status.bad", "", "", ""), "status: {bad: false}", Verdict{}},
		"failed hides the others":      {healthCheck("Widget", "true", "status.none", "true", ""), "status: {a: b}", Verdict{Unhealthy: "failed: true"}},

		"no status":                   {full, "", Verdict{Unhealthy: noStatus, Progressing: noStatus}},
		"no status by object":         {healthCheck("Widget", "", "object.status.ready", "", ""), "", Verdict{Unhealthy: noStatus, Progressing: noStatus}},
		"null status":                 {full, "status: null", Verdict{Unhealthy: noStatus, Progressing: noStatus}},
		"empty status":                {full, "status: {}", Verdict{Unhealthy: noStatus, Progressing: noStatus}},
		"no status, for progressing":  {healthCheck("Widget", "", "spec == {}", "status.late", ""), "", Verdict{Unhealthy: noStatus, Progressing: noStatus}},
		"no status, none needed":      {healthCheck("Widget", "", "metadata.generation == 2", "", ""), "", Verdict{}},
		"no status, asked for":        {healthCheck("Widget", "", "has(status.phase)", "", ""), "", Verdict{Unhealthy: "not healthy: has(status.phase)"}},
		"no status, optional":         {healthCheck("Widget", "", "object.?status.?phase.orValue('Ready') == 'Ready'", "", ""), "", Verdict{}},
		"no status, another mistake":  {healthCheck("Widget", "", "1 / size(status) == 1", "", ""), "", Verdict{Err: "healthy: division by zero"}},
		"status without the field":    {full, "status: {ready: true}", Verdict{Err: "failed: no such key: phase"}},
		"status that is no map":       {full, "status: 7", Verdict{Err: "failed: no such key: phase"}},
		"no spec, no metadata needed": {healthCheck("Widget", "", "size(spec) == 0 && size(status) == 0", "", ""), "", Verdict{}},

		"not a boolean":           {healthCheck("Widget", "", "status.phase", "", ""), "status: {phase: Ready}", Verdict{Err: "healthy: yields string, but must yield bool"}},
		"null":                    {healthCheck("Widget", "", "", "status.late", ""), "status: {late: null}", Verdict{Err: "progressing: yields null_type, but must yield bool"}},
		"types do not fit":        {healthCheck("Widget", "", "status.ready > 'a'", "", ""), "status: {ready: 1}", Verdict{Err: "healthy: no such overload"}},
		"error after a verdict":   {healthCheck("Widget", "", "false", "status.late", ""), "status: {a: b}", Verdict{Unhealthy: "not healthy: false", Err: "progressing: no such key: late"}},
		"int and double":          {healthCheck("Widget", "", "status.ready >= 1 && status.share < 1 && status.ready == 2.0", "", ""), "status: {ready: 2, share: 0.5}", Verdict{}},
		"Flux' expressions":       {healthCheck("Widget", "", "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True' && e.observedGeneration == metadata.generation)", "", ""), "status: {conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}", Verdict{}},
		"message of other type":   {healthCheck("Widget", "", "false", "", "status.code"), "status: {code: 7}", Verdict{Unhealthy: "not healthy: false (message: yields int, but must yield string)"}},
		"message fails":           {healthCheck("Widget", "true", "", "", "status.reason"), "status: {code: 7}", Verdict{Unhealthy: "failed: true (message: no such key: reason)"}},
		"message fails, both":     {healthCheck("Widget", "", "false", "true", "status.reason"), "", Verdict{Unhealthy: "not healthy: false (message: no such key: reason)", Progressing: "true (message: no such key: reason)"}},
		"message is empty":        {healthCheck("Widget", "true", "", "", "' \\n'"), "", Verdict{Unhealthy: "failed: true"}},
		"message of many lines":   {healthCheck("Widget", "true", "", "", "status.reason"), "status: {reason: \"\\n a\\r\\n\\tb\\n\"}", Verdict{Unhealthy: "a b"}},
		"expression of two lines": {healthCheck("Widget", "", "false ||\n  false", "", ""), "", Verdict{Unhealthy: "not healthy: false || false"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := objectOf(t, test.object)
			before, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if got := theCheck(t, test.check).Evaluate(t.Context(), object); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if after, err := json.Marshal(object); err != nil || string(after) != string(before) {
				t.Errorf("the object was changed to %s, %v", after, err)
			}
		})
	}
}

func TestEvaluateWithoutObject(t *testing.T) {
	check := theCheck(t, healthCheck("Widget", "", "object.kind == 'Widget'", "", ""))
	for _, object := range []map[string]any{nil, {}, {"metadata": 7, "spec": []any{nil}}} {
		if got := check.Evaluate(t.Context(), object); got != (Verdict{Unhealthy: noStatus, Progressing: noStatus}) {
			t.Errorf("%v: %+v", object, got)
		}
	}
}

func TestTextsAreShort(t *testing.T) {
	for name, check := range map[string]resourcesv1alpha1.HealthCheck{
		"message":                      healthCheck("Widget", "", "false", "true", "status.text"),
		"expression":                   healthCheck("Widget", "", "'"+strings.Repeat("ä", 300)+"' == ''", "'"+strings.Repeat("ä", 300)+"' != ''", ""),
		"error of message":             healthCheck("Widget", "", "false", "true", "{'a': 'b'}[status.text]"),
		"expression, error of message": healthCheck("Widget", "", "'"+strings.Repeat("ä", 300)+"' == ''", "'"+strings.Repeat("ä", 300)+"' != ''", "status.none"),
	} {
		got := theCheck(t, check).Evaluate(t.Context(), objectOf(t, "status: {text: "+strings.Repeat("ä", 300)+"}"))
		for _, text := range []string{got.Unhealthy, got.Progressing} {
			if len(text) > 256 || len(text) < 100 || !utf8.ValidString(text) || !strings.Contains(text, " …") {
				t.Errorf("%s: %d bytes: %q", name, len(text), text)
			}
		}
		if wantError := strings.HasSuffix(name, "error of message"); strings.HasSuffix(got.Unhealthy, ")") != wantError || got.Err != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	check := theCheck(t, healthCheck("Widget", "", "{'a': true}[status.text]", "", ""))
	got := check.Evaluate(t.Context(), objectOf(t, "status: {text: "+strings.Repeat("ä", 300)+"}"))
	if len(got.Err) > 256 || !strings.HasPrefix(got.Err, "healthy: no such key: ä") || !strings.HasSuffix(got.Err, "ä …") {
		t.Errorf("%d bytes: %q", len(got.Err), got.Err)
	}
}

// bigObject returns an object with a list of the given length.
func bigObject(items int) map[string]any {
	list := make([]any, items)
	for i := range list {
		list[i] = int64(i)
	}
	return map[string]any{"spec": map[string]any{"items": list}, "status": map[string]any{"ready": true}}
}

func TestEvaluateStopsWhatRunsTooLong(t *testing.T) {
	for _, text := range []string{
		"spec.items.all(a, spec.items.all(b, a + b >= 0))",
		"spec.items.map(a, spec.items.filter(b, b > a)).size() > 0",
		"lists.range(10000).all(a, lists.range(10000).all(b, a + b >= 0))",
		"spec.items.exists(a, spec.items.exists(b, spec.items.exists(c, a + b + c < 0)))",
	} {
		check := theCheck(t, healthCheck("Widget", "", text, "", ""))
		if got := check.Evaluate(t.Context(), bigObject(5000)); got.Unhealthy != "" || !strings.HasPrefix(got.Err, "healthy: runs too long: it ") {
			t.Errorf("%s: %+v", text, got)
		}
	}
	check := theCheck(t, healthCheck("Widget", "", "false", "", "spec.items.all(a, spec.items.all(b, a + b >= 0)) ? 'a' : 'b'"))
	if got := check.Evaluate(t.Context(), bigObject(5000)); !strings.HasPrefix(got.Unhealthy, "not healthy: false (message: runs too long: it ") {
		t.Errorf("message: %+v", got)
	}
	check = theCheck(t, healthCheck("Widget", "", "lists.range(10001).size() > 0", "", ""))
	if got := check.Evaluate(t.Context(), bigObject(0)); got.Err != "healthy: lists.range: size 10001 exceeds maximum allowed (10000)" {
		t.Errorf("lists.range: %+v", got)
	}
}

func TestEvaluateIsInterrupted(t *testing.T) {
	check := theCheck(t, healthCheck("Widget", "", "spec.items.all(a, a >= 0)", "", ""))
	if got := check.Evaluate(t.Context(), bigObject(200)); got != (Verdict{}) {
		t.Errorf("before the limit: %+v", got)
	}
	late, cancel := context.WithTimeoutCause(t.Context(), 0, errTimeLimit)
	defer cancel()
	if got := check.Evaluate(late, bigObject(200)); got.Err != "healthy: runs too long: it takes longer than 100ms" {
		t.Errorf("after the limit: %+v", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := check.Evaluate(ended, bigObject(200)); got.Err != "healthy: operation interrupted: context canceled" {
		t.Errorf("ended: %+v", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	check := theCheck(t, healthCheck("Widget", "status.phase == 'Failed'", "status.phase.matches('^R')", "", "'phase %s'.format([status.phase])"))
	object := objectOf(t, "status: {phase: Odd}")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if got := check.Evaluate(t.Context(), object); got.Unhealthy != "phase Odd" {
					t.Errorf("%+v", got)
				}
				if _, err := Compile([]resourcesv1alpha1.HealthCheck{healthCheck("Widget", "", "status.phase == 'Ready'", "", "")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if !reflect.DeepEqual(object, objectOf(t, "status: {phase: Odd}")) {
		t.Errorf("the object was changed: %v", object)
	}
}

// FuzzCompile searches for expressions that make Compile or Evaluate panic, and checks the results.
func FuzzCompile(f *testing.F) {
	for text := range badExpressions {
		f.Add(text)
	}
	for _, text := range []string{
		"status.ready", "object.?status.?phase.orValue('') == 'Ready'", "spec.items.map(a, [a, a]).flatten().sort().distinct() == []",
		"status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')", "'%s %d'.format([status.phase, 1])", "[1, 2][?3].hasValue()",
		"timestamp(status.since) < timestamp('2026-01-01T00:00:00Z')", "sets.contains([1], status.conditions)", "{'a': 1u}.a == 1.0", "b'a' + b'\\xff' == dyn(null)",
		"optional.of(spec).optMap(s, s.items).orValue([]).size() == 3", "'a'.matches(status.phase)", "type(status) == map",
	} {
		f.Add(text)
	}
	const theObject = "spec: {items: [1, 2, 3]}\nstatus: {phase: Ready, ready: true, conditions: [{type: Ready, status: 'True'}]}"
	object := objectOf(f, theObject)
	before := objectOf(f, theObject)
	f.Fuzz(func(t *testing.T, text string) {
		for _, check := range []resourcesv1alpha1.HealthCheck{healthCheck("Widget", "", text, "", ""), healthCheck("Widget", "true", "", "", text)} {
			compiled, err := Compile([]resourcesv1alpha1.HealthCheck{check})
			if (err == nil) != (compiled != nil) {
				t.Fatalf("%v and %v", compiled, err)
			}
			if err != nil {
				if !strings.HasPrefix(err.Error(), "healthChecks[0]") {
					t.Fatalf("the error does not name the field: %v", err)
				}
				continue
			}
			widgets := compiled.For(schema.GroupKind{Group: "example.com", Kind: "Widget"})
			verdict := widgets.Evaluate(t.Context(), object)
			if !reflect.DeepEqual(object, before) {
				t.Fatalf("the object was changed: %v", object)
			}
			if again := widgets.Evaluate(t.Context(), object); again != verdict && again.Err == "" && verdict.Err == "" {
				t.Fatalf("%+v, and then %+v", verdict, again)
			}
			for _, text := range []string{verdict.Unhealthy, verdict.Progressing, verdict.Err} {
				if len(text) > 256 || strings.Contains(text, "\n") {
					t.Fatalf("%d bytes: %q", len(text), text)
				}
			}
		}
	})
}

// BenchmarkEvaluate measures a check similar to those in the documentation.
func BenchmarkEvaluate(b *testing.B) {
	check := theCheck(b, healthCheck("Widget", "status.conditions.exists(c, c.type == 'Stalled' && c.status == 'True')",
		"metadata.generation == status.observedGeneration && status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
		"status.phase == 'Starting'", "status.message"))
	object := objectOf(b, "status: {phase: Ready, observedGeneration: 2, conditions: [{type: Synced, status: 'True'}, {type: Ready, status: 'True'}]}")
	b.ReportAllocs()
	for b.Loop() {
		if got := check.Evaluate(b.Context(), object); got != (Verdict{}) {
			b.Fatal(got)
		}
	}
}
