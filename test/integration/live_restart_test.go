package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestLiveRestartReadsNothing restarts the resource-manager when nothing has changed. It only lists, watches and
// discovers. It reads no object, in particular no Secret, and writes nothing.
func TestLiveRestartReadsNothing(t *testing.T) {
	f := newFixture(t)
	p := f.newProxy()
	start := func() *process {
		return f.startIn([]string{f.namespace}, onlyEvents, environment("KUBECONFIG="+p.kubeconfig))
	}
	first := start()
	kinds := driftKinds()
	documents := []string{f.here(strings.ReplaceAll(twins, "GROUP", "NS.example.org"))}
	for _, kind := range kinds {
		documents = append(documents, f.here(kind.named("x")))
	}
	const sets = 5
	f.manage("set-0", documents...)
	for i := 1; i < sets; i++ {
		f.manage(fmt.Sprintf("set-%d", i), f.configMap(fmt.Sprintf("map-%d", i), "1"), f.here(kinds["Secret"].named(fmt.Sprintf("secret-%d", i))))
	}
	settled := `resource_manager_objects{state="applied"}`
	all := float64(len(documents) + (sets-1)*2)
	for i := range sets {
		f.eventuallySucceeded(fmt.Sprintf("set-%d", i))
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		f.eventually(kind+" is observed", func() bool {
			object := f.object(kinds[kind].named("x"))
			return at(object, "status", "observedGeneration") == object.GetGeneration()
		})
	}
	f.eventually("all is applied", func() bool { return first.metric(settled) == all })
	first.Stop()

	p.forget()
	second := start()
	f.eventually("everything was reconciled", func() bool { return second.metric(settled) == all })
	for _, question := range p.single() {
		if question.method != http.MethodGet || slices.ContainsFunc([]string{"x", "set", "map", "secret"}, func(name string) bool {
			last := question.path[strings.LastIndex(question.path, "/")+1:]
			return last == name || strings.HasPrefix(last, name+"-")
		}) {
			t.Errorf("unexpected request: %s", question)
		}
	}
	asked := len(p.single())
	f.putBack(f.here(kinds["Role"].named("x")))
	if asked == 0 || len(p.single()) == asked {
		t.Error("the proxy does not see the requests")
	}
	second.Stop()
}
