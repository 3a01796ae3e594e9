package integration

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// The outcomes of a change.
const (
	putBack      = "put back"
	kept         = "kept"
	additionKept = "put back, addition kept"
	noEffect     = "no effect"
)

// driftClient is a client that changes objects.
type driftClient struct {
	title, manager string
	// applies is set for clients that use server-side apply with force.
	applies bool
	// controller is set if additions of the client are kept.
	controller bool
}

var driftClients = []driftClient{
	{"known controller", "kube-controller-manager", false, true},
	{"kubectl", "kubectl-edit", false, false},
	{"unknown client", "Mozilla", false, false},
	{"unknown client, apply", "some-tool", true, false},
}

// driftRow is a list, a map or a union, and its changes.
type driftRow struct {
	kind string
	// path is the path of the field. Numbers are list indices.
	path string
	// have is the value in the manifest, as YAML.
	have string
	// merge is how server-side apply treats the field.
	merge mergeKind
	// edits are the new values of the field, by change.
	edits map[string]string
	// alone is set if items added by others are invalid next to those of the manifest.
	alone bool
}

type mergeKind string

const (
	// ownedWhole is for fields that have one owner.
	ownedWhole mergeKind = "atomic"
	// ownedByKey is for maps, and for lists whose items each have an owner.
	ownedByKey mergeKind = "by key"
	// openByKey is ownedByKey with additions of any client kept.
	openByKey mergeKind = "by key, open"
)

const (
	changedKey     = "changed key"
	addedItem      = "added item"
	removedItem    = "removed item"
	switchedMember = "switched member"
)

var driftChanges = []string{changedKey, addedItem, removedItem, switchedMember}

// want returns the expected outcome of a change.
func (r driftRow) want(change string, by driftClient) string {
	if r.merge == openByKey || by.controller {
		switch {
		case r.merge == ownedWhole || r.alone || change == removedItem || change == switchedMember:
			return putBack
		case change == addedItem || by.applies: // an apply removes no fields of others
			return kept
		default:
			return additionKept
		}
	}
	return putBack
}

var updateDriftTable = flag.Bool("integration.update-drift", false, "write docs/drift.md instead of comparing it")

const driftDocument = "../../docs/drift.md"

// TestDriftTable applies every type of change, by every type of client, to every type of list, map and union in
// built-in kinds. The outcomes are the table of docs/drift.md.
func TestDriftTable(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	outcomes := map[string][]string{} // by row and change
	for _, by := range driftClients {
		t.Run(by.title, func(t *testing.T) {
			for name, outcome := range driftOf(t, by) {
				outcomes[name] = append(outcomes[name], outcome)
			}
		})
	}
	if t.Failed() {
		return
	}
	table := driftTable(outcomes)
	t.Log("\n" + table)
	compareDriftDocument(t, table)
}

// driftOf makes all changes as a client, each to a separate object, and returns the outcomes.
func driftOf(t *testing.T, by driftClient) map[string]string {
	t.Helper()
	f := newFixture(t)
	cases := driftCases(f)
	documents := make([]string, 0, len(cases))
	for _, c := range cases {
		documents = append(documents, c.manifest)
	}
	f.manage("set", documents...)
	f.reconcileOK("set")
	for i := range cases {
		cases[i].drift(f, by)
	}
	if mr, _, err := f.reconcile("set"); err != nil || applied(mr).Status != resourcesv1alpha1.ConditionTrue {
		t.Errorf("ResourcesApplied: %s (%v)", applied(mr).Message, err)
	}
	outcomes := map[string]string{}
	for _, c := range cases {
		outcome := c.outcome(f)
		outcomes[c.name()] = outcome
		if want := c.row.want(c.change, by); outcome != want && outcome != noEffect {
			t.Errorf("%s by %s: %s, want %s: %s\nbefore %v\nedited %v\nafter  %v", c.name(), by.manager, outcome, want, c.row.path,
				getAt(c.before.Object, c.row.path),
				getAt(c.edited.Object, c.row.path), getAt(f.object(c.manifest).Object, c.row.path))
		}
	}
	f.requests.writes()
	f.reconcileOnce("set")
	if writes := f.requests.writes(); len(writes) > 0 && !t.Failed() {
		t.Errorf("the next reconcile writes %v", writes)
	}
	return outcomes
}

// driftCase is one change of a separate object.
type driftCase struct {
	row            driftRow
	change         string
	manifest       string
	before, edited *unstructured.Unstructured
}

func driftCases(f *fixture) []driftCase {
	f.Helper()
	var cases []driftCase
	for i, row := range driftRows() {
		for _, change := range driftChanges {
			if row.edits[change] == "" {
				continue
			}
			base, found := driftBases[row.kind]
			if !found {
				f.Fatalf("no manifest of %s", row.kind)
			}
			name := fmt.Sprintf("d%d-%s", i, strings.Fields(change)[0])
			object := f.parse(strings.NewReplacer("NAME", name, "POD", driftPod).Replace(base))
			setAt(object.Object, row.path, row.have)
			body, err := yaml.Marshal(object.Object)
			must(f, err)
			cases = append(cases, driftCase{row: row, change: change, manifest: string(body)})
		}
	}
	return cases
}

func (c *driftCase) name() string {
	path := "`" + pathWithoutIndices(c.row.path) + "`"
	if c.row.alone {
		path += ", name used once"
	}
	return c.row.kind + " | " + path + " | " + string(c.row.merge) + " | " + c.change
}

// drift makes the change.
func (c *driftCase) drift(f *fixture, by driftClient) {
	f.Helper()
	c.before = f.object(c.manifest)
	edited := c.before.DeepCopy()
	if by.applies {
		edited = f.parse(c.manifest)
		setAt(edited.Object, c.row.path, c.row.edits[c.change])
		body, err := json.Marshal(edited.Object)
		must(f, err)
		err = f.client.Patch(f.ctx, edited, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(by.manager), client.ForceOwnership)
		if err != nil { // for example, because the union has two members then
			edited = c.before.DeepCopy()
		}
	} else {
		setAt(edited.Object, c.row.path, c.row.edits[c.change])
		keepMarks(c.before, edited, c.row.path)
		if err := f.client.Patch(f.ctx, edited, client.MergeFrom(c.before), client.FieldOwner(by.manager)); err != nil {
			f.Fatalf("%s: %v", c.name(), err)
		}
	}
	c.edited = edited
}

// field returns the part of an object that is compared.
func (c *driftCase) field(object *unstructured.Unstructured) any {
	first, _, _ := strings.Cut(c.row.path, ".")
	if first == "metadata" {
		return getAt(essential(object), c.row.path)
	}
	return object.Object[first]
}

// outcome returns the outcome of the change.
func (c *driftCase) outcome(f *fixture) string {
	f.Helper()
	after := f.object(c.manifest)
	before, edited, now := c.field(c.before), c.field(c.edited), c.field(after)
	if after.GetUID() != c.before.GetUID() {
		return "recreated"
	}
	switch {
	case reflect.DeepEqual(before, edited):
		return noEffect
	case reflect.DeepEqual(now, before):
		return putBack
	case reflect.DeepEqual(now, edited):
		return kept
	case contains(getAt(after.Object, c.row.path), getAt(c.before.Object, c.row.path)):
		return additionKept
	}
	return "something else"
}

// contains reports whether a list or map has all items of another one.
func contains(whole, part any) bool {
	switch part := part.(type) {
	case []any:
		items, _ := whole.([]any)
		return !slices.ContainsFunc(part, func(wanted any) bool {
			return !slices.ContainsFunc(items, func(item any) bool { return reflect.DeepEqual(item, wanted) })
		})
	case map[string]any:
		items, _ := whole.(map[string]any)
		for key, value := range part {
			if !reflect.DeepEqual(items[key], value) {
				return false
			}
		}
		return true
	}
	return false
}

// setAt sets the field at a path to a value given as YAML.
func setAt(object map[string]any, path, text string) {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	parts := strings.Split(path, ".")
	var current any = object
	for _, part := range parts[:len(parts)-1] {
		if index, err := strconv.Atoi(part); err == nil {
			current = current.([]any)[index] //nolint:errcheck // a wrong path of the table panics
			continue
		}
		parent := current.(map[string]any) //nolint:errcheck // a wrong path of the table panics
		if parent[part] == nil {
			parent[part] = map[string]any{}
		}
		current = parent[part]
	}
	last := parts[len(parts)-1]
	if parent := current.(map[string]any); value != nil { //nolint:errcheck // a wrong path of the table panics
		parent[last] = integers(value)
	} else {
		delete(parent, last)
	}
}

// keepMarks copies the marks of the resource-manager into an edited map of labels or annotations.
func keepMarks(before, edited *unstructured.Unstructured, path string) {
	marks, _ := getAt(before.Object, path).(map[string]any)
	target, _ := getAt(edited.Object, path).(map[string]any)
	for key, value := range marks {
		if strings.HasPrefix(key, "resources.gardener.cloud/") {
			target[key] = value
		}
	}
}

// integers returns a value in the form that the API server returns: numbers are integers.
func integers(value any) any {
	switch value := value.(type) {
	case float64:
		return int64(value)
	case []any:
		for i := range value {
			value[i] = integers(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = integers(value[key])
		}
	}
	return value
}

func getAt(object any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch parent := object.(type) {
		case map[string]any:
			object = parent[part]
		case []any:
			index, err := strconv.Atoi(part)
			if err != nil || index >= len(parent) {
				return nil
			}
			object = parent[index]
		}
	}
	return object
}

func pathWithoutIndices(path string) string {
	parts := slices.DeleteFunc(strings.Split(path, "."), func(part string) bool {
		_, err := strconv.Atoi(part)
		return err == nil
	})
	return strings.Join(parts, ".")
}

// driftTable returns the outcomes as a Markdown table.
func driftTable(outcomes map[string][]string) string {
	lines := []string{"| kind | field | owned | change |", "|---|---|---|---|"}
	for _, by := range driftClients {
		lines[0] += " " + by.title + " |"
		lines[1] += "---|"
	}
	for _, row := range driftRows() {
		for _, change := range driftChanges {
			if row.edits[change] == "" {
				continue
			}
			c := driftCase{row: row, change: change}
			lines = append(lines, "| "+c.name()+" | "+strings.Join(outcomes[c.name()], " | ")+" |")
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func compareDriftDocument(t *testing.T, table string) {
	t.Helper()
	const begin, end = "<!-- table: written by TestDriftTable -->\n", "<!-- end of table -->\n"
	document, err := os.ReadFile(driftDocument)
	must(t, err)
	before, rest, found := strings.Cut(string(document), begin)
	written, after, ends := strings.Cut(rest, end)
	switch {
	case !found || !ends:
		t.Fatalf("%s has no markers for the table", driftDocument)
	case *updateDriftTable:
		must(t, os.WriteFile(driftDocument, []byte(before+begin+"\n"+table+"\n"+end+after), 0o644))
	case strings.TrimSpace(written) != strings.TrimSpace(table):
		t.Errorf("the table in %s is out of date: run go test ./test/integration -run TestDriftTable -integration.update-drift", driftDocument)
	}
}
