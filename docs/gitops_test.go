package docs

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// argoSettings returns the data of Argo CD's ConfigMap in gitops.md.
func argoSettings(t *testing.T) map[string]string {
	t.Helper()
	_, rest, found := strings.Cut(pages(t)["gitops.md"], "```yaml\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("gitops.md has no YAML block")
	}
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.UnmarshalStrict([]byte(block), &configMap); err != nil {
		t.Fatal(err)
	}
	return configMap.Data
}

// argoHealth runs a health check as Argo CD does, with the same interpreter and libraries (its util/lua).
func argoHealth(t *testing.T, script string, obj map[string]any) (health, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	state.SetContext(t.Context())
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	state.SetGlobal("obj", luaValue(state, obj))
	if err := state.DoString(script); err != nil {
		t.Fatalf("the health check fails: %v", err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the health check returns a %s", state.Get(-1).Type())
	}
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))
}

// luaValue converts a JSON value to a Lua value.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaValue(state, item))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, luaValue(state, item))
		}
		return table
	}
	return lua.LNil
}

// TestToolsUnderstandManagedResources evaluates ManagedResources in every state with Argo CD's health check of
// gitops.md, and with kstatus, which Flux uses to determine readiness.
func TestToolsUnderstandManagedResources(t *testing.T) {
	script := argoSettings(t)["resource.customizations.health.resources.gardener.cloud_ManagedResource"]
	for name, test := range map[string]struct {
		status  string // YAML, for generation 2
		deleted bool
		argo    string
		message string
		flux    status.Status
	}{
		// With the CustomResourceDefinition of another resource-manager, which has no default for the status.
		"no status at all":                     {"", false, "Progressing", "Waiting", status.CurrentStatus},
		"no status as the API server shows it": {"{observedGeneration: -1}", false, "Progressing", "Waiting", status.InProgressStatus},
		"conditions of others alone": {"{observedGeneration: -1, conditions: [{type: ResourcesHealthy, status: Unknown, reason: x, message: x}]}",
			false, "Progressing", "Waiting", status.InProgressStatus},
		"progressing": {"{observedGeneration: 2, conditions: [{type: ResourcesApplied, status: Progressing, reason: ApplyProgressing, message: soon}, " +
			"{type: Ready, status: Unknown, reason: ApplyProgressing, message: soon}]}", false, "Progressing", "soon", status.InProgressStatus},
		"applied, without a word on health": {"{observedGeneration: 2, conditions: [{type: ResourcesApplied, status: 'True', reason: ApplySucceeded, message: done}, " +
			"{type: Ready, status: 'True', reason: ApplySucceeded, message: done}]}", false, "Healthy", "done", status.CurrentStatus},
		"healthy": {"{observedGeneration: 2, conditions: [{type: Ready, status: 'True', reason: ApplySucceeded, message: done}, " +
			"{type: ResourcesHealthy, status: 'True', reason: ResourcesHealthy, message: well}]}", false, "Healthy", "done", status.CurrentStatus},
		"failed": {"{observedGeneration: 2, conditions: [{type: Ready, status: 'False', reason: ApplyFailed, message: wrong}]}",
			false, "Degraded", "wrong", status.InProgressStatus},
		"failed before the last change": {"{observedGeneration: 1, conditions: [{type: Ready, status: 'False', reason: ApplyFailed, message: wrong}]}",
			false, "Progressing", "Waiting", status.InProgressStatus},
		"applied before the last change": {"{observedGeneration: 1, conditions: [{type: Ready, status: 'True', reason: ApplySucceeded, message: done}]}",
			false, "Progressing", "Waiting", status.InProgressStatus},
		"ignored": {"{observedGeneration: 2, conditions: [{type: Ready, status: 'True', reason: ManagedResourceIgnored, message: ignored}]}",
			false, "Suspended", "ignored", status.CurrentStatus},
		"ignored since before the last change": {"{observedGeneration: 1, conditions: [{type: Ready, status: 'True', reason: ManagedResourceIgnored, message: ignored}]}",
			false, "Suspended", "ignored", status.InProgressStatus},
		"deleting": {"{observedGeneration: 2, conditions: [{type: Ready, status: Unknown, reason: DeletionPending, message: going}]}",
			true, "Progressing", "going", status.TerminatingStatus},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			text := "apiVersion: resources.gardener.cloud/v1alpha1\nkind: ManagedResource\n" +
				"metadata: {name: x, namespace: y, generation: 2}\nspec: {secretRefs: []}\nstatus: " + test.status + "\n"
			asJSON, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := obj.UnmarshalJSON(asJSON); err != nil {
				t.Fatal(err)
			}
			if test.deleted {
				obj.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
			}
			health, message := argoHealth(t, script, obj.Object)
			if health != test.argo || !strings.Contains(message, test.message) {
				t.Errorf("Argo CD: %s, %q, want %s, %q", health, message, test.argo, test.message)
			}
			result, err := status.Compute(obj)
			if err != nil || result.Status != test.flux {
				t.Errorf("Flux: %+v, %v, want %s", result, err, test.flux)
			}
		})
	}
}

// TestArgoIgnoresWhatTheResourceManagerWrites checks that the other setting is valid.
func TestArgoIgnoresWhatTheResourceManagerWrites(t *testing.T) {
	var ignored struct {
		JSONPointers []string `json:"jsonPointers"`
	}
	text := argoSettings(t)["resource.customizations.ignoreDifferences.resources.gardener.cloud_ManagedResource"]
	if err := yaml.UnmarshalStrict([]byte(text), &ignored); err != nil {
		t.Fatal(err)
	}
	if strings.Join(ignored.JSONPointers, " ") != "/metadata/finalizers /metadata/annotations/gardener.cloud~1operation" {
		t.Errorf("ignores %v", ignored.JSONPointers)
	}
}
