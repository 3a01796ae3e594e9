package fieldowner

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func entryOf(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{},
	}
	entry.FieldsV1.SetRawBytes([]byte(fields))
	return entry
}

const (
	apply  = metav1.ManagedFieldsOperationApply
	update = metav1.ManagedFieldsOperationUpdate
)

// fieldsByManager returns the fields of each manager as JSON values.
func fieldsByManager(t *testing.T, entries []metav1.ManagedFieldsEntry) map[string]any {
	t.Helper()
	result := map[string]any{}
	for _, entry := range entries {
		var fields any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		result[entry.Manager+string(entry.Operation)+entry.Subresource] = fields
	}
	return result
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// origin is the origin annotation among the fields of a manager.
const origin = `"f:metadata":{"f:annotations":{"f:resources.gardener.cloud/origin":{}}}`

func TestTakeOver(t *testing.T) {
	ours := entryOf("resource-manager", apply, "", `{"f:data":{"f:a":{}}}`)
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    map[string]string // nil if nothing changes
	}{
		"nobody else":          {entries: []metav1.ManagedFieldsEntry{ours}},
		"not ours yet":         {entries: []metav1.ManagedFieldsEntry{entryOf("helm", update, "", `{"f:data":{"f:b":{}}}`)}},
		"a controller":         {entries: []metav1.ManagedFieldsEntry{ours, entryOf("cainjector", update, "", `{"f:data":{"f:b":{}}}`)}},
		"a configured one":     {entries: []metav1.ManagedFieldsEntry{ours, entryOf("shop-operator", update, "", `{"f:data":{"f:b":{}}}`)}},
		"our own otherwise":    {entries: []metav1.ManagedFieldsEntry{ours, entryOf("resource-manager", update, "", `{"f:data":{"f:b":{}}}`)}},
		"a cloud's":            {entries: []metav1.ManagedFieldsEntry{ours, entryOf("aws-cloud-controller-manager", update, "", `{"f:data":{"f:b":{}}}`)}},
		"a client":             {entries: []metav1.ManagedFieldsEntry{ours, entryOf("Mozilla", update, "", `{"f:data":{"f:b":{}}}`)}, want: map[string]string{"resource-managerApply": `{"f:data":{"f:a":{},"f:b":{}}}`}},
		"a client's apply":     {entries: []metav1.ManagedFieldsEntry{ours, entryOf("tool", apply, "", `{"f:data":{"f:a":{},"f:b":{}}}`)}, want: map[string]string{"resource-managerApply": `{"f:data":{"f:a":{},"f:b":{}}}`, "toolApply": `{"f:data":{"f:a":{}}}`}},
		"in common":            {entries: []metav1.ManagedFieldsEntry{ours, entryOf("tool", apply, "", `{"f:data":{"f:a":{}}}`)}},
		"a bundle":             {entries: []metav1.ManagedFieldsEntry{ours, entryOf("pilot-discovery", update, "", `{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:clientConfig":{"f:caBundle":{}}}}}`)}},
		"a bundle and more":    {entries: []metav1.ManagedFieldsEntry{ours, entryOf("Mozilla", update, "", `{"f:webhooks":{"k:{\"name\":\"a\"}":{".":{},"f:clientConfig":{"f:caBundle":{}}}}}`)}, want: map[string]string{"resource-managerApply": `{"f:data":{"f:a":{}},"f:webhooks":{"k:{\"name\":\"a\"}":{".":{},"f:clientConfig":{"f:caBundle":{}}}}}`}},
		"a port with a node's": {entries: []metav1.ManagedFieldsEntry{ours, entryOf("Mozilla", update, "", `{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:nodePort":{}}}}}`)}, want: map[string]string{"resource-managerApply": `{"f:data":{"f:a":{}},"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:nodePort":{}}}}}`}},
		"a renamed predecessor": {entries: []metav1.ManagedFieldsEntry{entryOf("resource-manager", apply, "", `{`+origin+`}`), entryOf("old-manager", update, "", `{`+origin[:len(origin)-1]+`,"f:labels":{"f:x":{}}}}`)},
			want: map[string]string{"resource-managerApply": `{` + origin[:len(origin)-1] + `,"f:labels":{"f:x":{}}}}`}},
		"who changed the origin": {entries: []metav1.ManagedFieldsEntry{ours, entryOf("Mozilla", update, "", `{`+origin[:len(origin)-1]+`,"f:labels":{"f:x":{}}}}`)}},
		"a subresource":          {entries: []metav1.ManagedFieldsEntry{ours, entryOf("kubectl", update, "scale", `{"f:spec":{"f:replicas":{}}}`)}},
		"labels by hand":         {entries: []metav1.ManagedFieldsEntry{ours, entryOf("kubectl-edit", update, "", `{"f:metadata":{"f:labels":{"f:x":{}}}}`)}},
		"scaled by hand":         {entries: []metav1.ManagedFieldsEntry{ours, entryOf("kubectl-edit", update, "", `{"f:spec":{"f:replicas":{}}}`)}},
		"a restart": {entries: []metav1.ManagedFieldsEntry{ours, entryOf("kubectl-rollout", update, "",
			`{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`)}},
		"only kept fields":    {entries: []metav1.ManagedFieldsEntry{ours, entryOf("helm", update, "", `{"f:spec":{"f:ports":{"k:{\"port\":80}":{"f:nodePort":{}}}}}`)}},
		"asked to be kept":    {entries: []metav1.ManagedFieldsEntry{ours, entryOf("helm", update, "", `{"f:asked":{"f:x":{}}}`)}},
		"added by hand":       {entries: []metav1.ManagedFieldsEntry{ours, entryOf("kubectl-patch", update, "", `{"f:data":{"f:b":{}}}`)}, want: map[string]string{"resource-managerApply": `{"f:data":{"f:a":{},"f:b":{}}}`}},
		"a predecessor":       {entries: []metav1.ManagedFieldsEntry{entryOf("helm", update, "", `{"f:metadata":{"f:labels":{"f:x":{}}}}`), ours}, want: map[string]string{"resource-managerApply": `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:x":{}}}}`}},
		"part of it is kept":  {entries: []metav1.ManagedFieldsEntry{ours, entryOf("kubectl-edit", update, "", `{"f:data":{"f:b":{}},"f:metadata":{"f:labels":{"f:x":{}}}}`)}, want: map[string]string{"resource-managerApply": `{"f:data":{"f:a":{},"f:b":{}}}`, "kubectl-editUpdate": `{"f:metadata":{"f:labels":{"f:x":{}}}}`}},
		"another one's apply": {entries: []metav1.ManagedFieldsEntry{entryOf("kustomize-controller", apply, "", `{"f:data":{"f:a":{},"f:b":{}}}`), ours}, want: map[string]string{"resource-managerApply": `{"f:data":{"f:a":{},"f:b":{}}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed, err := TakeOver(test.entries, DefaultPolicy("shop-*"), []Pattern{{"asked"}})
			if err != nil || changed != (test.want != nil) {
				t.Fatalf("changed: %v (%v), want %v", changed, err, test.want != nil)
			}
			if !changed {
				return
			}
			want := map[string]any{}
			for manager, fields := range test.want {
				want[manager] = parse(t, fields)
			}
			if fields := fieldsByManager(t, got); !reflect.DeepEqual(fields, want) {
				t.Errorf("got %v, want %v", fields, want)
			}
			if _, again, _ := TakeOver(got, DefaultPolicy("shop-*"), []Pattern{{"asked"}}); again {
				t.Error("the second call changes something")
			}
		})
	}
}

func TestTakeOverCandidatesOnceOwned(t *testing.T) {
	for name, test := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  string // empty for nothing
	}{
		"a predecessor": {entryOf("helm", update, "", `{"f:data":{"f:b":{}}}`), `{"f:data":{"f:b":{}}}`},
		"a controller":  {entryOf("cainjector", update, "", `{"f:data":{"f:b":{}}}`), ""},
		"a client":      {entryOf("Mozilla", update, "", `{"f:data":{"f:b":{}}}`), `{"f:data":{"f:b":{}}}`},
		"a label":       {entryOf("kubectl-create", update, "", `{"f:metadata":{"f:labels":{"f:x":{}}}}`), ""},
	} {
		entries := []metav1.ManagedFieldsEntry{test.entry}
		if now, err := TakeOverCandidates(entries, DefaultPolicy(), nil); now != nil || err != nil {
			t.Errorf("%s: before the first apply, %v (%v) can be taken over", name, now, err)
		}
		var got string
		later, err := TakeOverCandidatesOnceOwned(entries, DefaultPolicy(), nil)
		if later != nil {
			text, _ := later.ToJSON()
			got = string(text)
		}
		if err != nil || got != test.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, test.want)
		}
	}
}

func TestBeyond(t *testing.T) {
	for fields, want := range map[string]bool{
		`{"f:data":{".":{},"f:token":{}}}`:              false,
		`{"f:data":{".":{},"f:token":{},"f:other":{}}}`: true,
		`{"f:data":{"f:other":{}}}`:                     true,
	} {
		set := &fieldpath.Set{}
		if err := set.FromJSON(strings.NewReader(fields)); err != nil {
			t.Fatal(err)
		}
		if got := Beyond(set, []Pattern{{"data", "token"}}); got != want {
			t.Errorf("%s: %v", fields, got)
		}
	}
}

func TestMigrateVersions(t *testing.T) {
	inVersion := func(version string, entry metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
		entry.APIVersion = version
		return entry
	}
	entries := []metav1.ManagedFieldsEntry{
		inVersion("v1", entryOf("resource-manager", apply, "", `{"f:data":{"f:a":{}}}`)),
		inVersion("v1", entryOf("tool", update, "", `{"f:data":{"f:b":{}}}`)), inVersion("v2", entryOf("tool", update, "", `{"f:data":{"f:c":{}}}`)),
		inVersion("v1", entryOf("tool", update, "status", `{"f:status":{}}`)),
	}
	got, changed, err := MigrateVersions(entries, "v2")
	want := map[string]any{
		"resource-managerApply": parse(t, `{"f:data":{"f:a":{}}}`), "toolUpdate": parse(t, `{"f:data":{"f:b":{},"f:c":{}}}`),
		"toolUpdatestatus": parse(t, `{"f:status":{}}`),
	}
	if fields := fieldsByManager(t, got); err != nil || !changed || len(got) != 3 || !reflect.DeepEqual(fields, want) {
		t.Errorf("got %v (%v, %v), want %v", fields, changed, err, want)
	}
	for _, entry := range got {
		if entry.APIVersion != "v2" {
			t.Errorf("%s has the version %s", entry.Manager, entry.APIVersion)
		}
	}
	if _, again, err := MigrateVersions(got, "v2"); again || err != nil || entries[0].APIVersion != "v1" {
		t.Errorf("the second call: %v, %v; the input is %v", again, err, entries[0])
	}
}

func TestFormerApplier(t *testing.T) {
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"renamed":              {[]metav1.ManagedFieldsEntry{entryOf("old-manager", update, "", `{`+origin+`}`)}, "old-manager"},
		"known":                {[]metav1.ManagedFieldsEntry{entryOf("gardener-resource-manager", update, "", `{`+origin+`}`)}, ""},
		"never for another":    {[]metav1.ManagedFieldsEntry{entryOf("Mozilla", update, "", `{"f:data":{"f:b":{}}}`)}, ""},
		"ours since":           {[]metav1.ManagedFieldsEntry{entryOf("old-manager", update, "", `{`+origin+`}`), entryOf("resource-manager", apply, "", `{}`)}, ""},
		"deeper in the object": {[]metav1.ManagedFieldsEntry{entryOf("Mozilla", update, "", `{"f:spec":{`+origin+`}}`)}, ""},
	} {
		if got := DefaultPolicy().FormerApplier(test.entries); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestRelinquish(t *testing.T) {
	entries := []metav1.ManagedFieldsEntry{entryOf("resource-manager", apply, "", `{"f:spec":{"f:replicas":{},"f:paused":{}}}`)}
	got, changed, err := Relinquish(entries, []Pattern{Replicas()})
	if err != nil || !changed {
		t.Fatalf("changed: %v, %v", changed, err)
	}
	want := map[string]any{
		"resource-managerApply": parse(t, `{"f:spec":{"f:paused":{}}}`),
		Preserver + "Update":    parse(t, `{"f:spec":{"f:replicas":{}}}`),
	}
	if fields := fieldsByManager(t, got); !reflect.DeepEqual(fields, want) {
		t.Errorf("got %v, want %v", fields, want)
	}
	if _, again, _ := Relinquish(got, []Pattern{Replicas()}); again {
		t.Error("the second call changes something")
	}
	if fields := fieldsByManager(t, entries); !reflect.DeepEqual(fields["resource-managerApply"], any(parse(t, `{"f:spec":{"f:replicas":{},"f:paused":{}}}`))) {
		t.Error("the input was changed")
	}
}

func TestPatternsStripAndFind(t *testing.T) {
	obj := parse(t, `{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"1"}}},{"name":"b"}]}}`)
	pattern := Pattern{"spec", "containers", "*", "resources", "limits", "cpu"}
	if !pattern.Has(obj) || (Pattern{"spec", "replicas"}).Has(obj) {
		t.Error("fields are not found as expected")
	}
	pattern.Strip(obj)
	want := parse(t, `{"spec":{"containers":[{"name":"a","resources":{"limits":{"memory":"1"}}},{"name":"b"}]}}`)
	if !reflect.DeepEqual(obj, want) {
		t.Errorf("got %v, want %v", obj, want)
	}
}

func TestExistingFieldsAreStrippedByKey(t *testing.T) {
	entries := []metav1.ManagedFieldsEntry{
		entryOf("somebody", update, "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:resources":{"f:limits":{"f:cpu":{}}}}}}}}}`),
		entryOf("kubelet", update, "status", `{"f:status":{}}`),
	}
	existing, err := Existing(entries, ComputeResources())
	if err != nil {
		t.Fatal(err)
	}
	obj := parse(t, `{"spec":{"template":{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1"}}},{"name":"b","resources":{"limits":{"cpu":"2"}}}]}}}}`)
	StripPaths(obj, existing)
	want := parse(t, `{"spec":{"template":{"spec":{"containers":[{"name":"a","resources":{"limits":{}}},{"name":"b","resources":{"limits":{"cpu":"2"}}}]}}}}`)
	if !reflect.DeepEqual(obj, want) {
		t.Errorf("got %v, want %v", obj, want)
	}
}

// FuzzTakeOver checks, for any fields of two managers, that no field becomes unowned, that other managers keep their fields,
// and that a second call changes nothing.
func FuzzTakeOver(f *testing.F) {
	f.Add([]byte(`{"f:data":{"f:a":{}}}`), []byte(`{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{}}}}}`), true)
	f.Add([]byte(`{"f:a":{},"f:a":{"f:b":{}}}`), []byte(`{"f:metadata":{"f:labels":{".":{},"f:x":{}},"f:finalizers":{"v:\"x\"":{}}}}`), false)
	f.Fuzz(func(t *testing.T, ours, theirs []byte, people bool) {
		manager := "helm"
		if people {
			manager = "kubectl-edit"
		}
		entries := []metav1.ManagedFieldsEntry{
			entryOf("resource-manager", apply, "", string(ours)), entryOf(manager, update, "", string(theirs)),
			entryOf("cainjector", update, "", string(theirs)), entryOf(manager, update, "status", string(theirs)),
		}
		before := entriesText(entries)
		got, changed, err := TakeOver(entries, DefaultPolicy(), nil)
		if entriesText(entries) != before {
			t.Fatal("the input was changed")
		}
		if err != nil || !changed {
			return
		}
		for _, kept := range entries[2:] {
			if !slices.ContainsFunc(got, func(entry metav1.ManagedFieldsEntry) bool { return reflect.DeepEqual(entry, kept) }) {
				t.Errorf("%s (%s) lost its fields", kept.Manager, kept.Subresource)
			}
		}
		if had, has := unionOf(t, entries[:2]), unionOf(t, got); !had.Difference(has).Empty() {
			t.Errorf("%s no longer has an owner", had.Difference(has))
		}
		if _, again, err := TakeOver(got, DefaultPolicy(), nil); again || err != nil {
			t.Errorf("the second call: %v, %v", again, err)
		}
	})
}

func entriesText(entries []metav1.ManagedFieldsEntry) string {
	var text strings.Builder
	for _, entry := range entries {
		text.WriteString(entry.Manager + entry.Subresource + string(entry.FieldsV1.GetRawBytes()))
	}
	return text.String()
}

func unionOf(t *testing.T, entries []metav1.ManagedFieldsEntry) *fieldpath.Set {
	t.Helper()
	union := &fieldpath.Set{}
	for _, entry := range entries {
		fields, err := fieldsOf(entry)
		if err != nil {
			t.Fatal(err)
		}
		union = union.Union(fields)
	}
	return union
}
