package integration

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// gearVersion2 is the second version of a kind. It has a field with a default that the first version lacks.
const (
	gearDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.NS.example.org}
spec:
  group: NS.example.org
  scope: Namespaced
  names: {plural: gears, singular: gear, kind: Gear, listKind: GearList}
  versions:
`
	gearVersion2 = "  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}," +
		" teeth: {type: integer, default: 7}}}}}}}\n"
)

// gearVersion1 returns the first version. It can be the stored version.
func gearVersion1(stored string) string {
	return "  - {name: v1, served: true, storage: " + stored + ", schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}\n"
}

// defineGears creates the kind and waits until it is served.
func (f *fixture) defineGears(definition string) {
	f.Helper()
	f.createObject(definition, "tester")
	f.eventually("the kind is served", func() bool {
		probe := &unstructured.UnstructuredList{}
		probe.SetGroupVersionKind(f.parse("apiVersion: NS.example.org/v1\nkind: Gear\nmetadata: {name: x}\n").GroupVersionKind())
		return f.client.List(f.ctx, probe) == nil
	})
}

// TestVersionWithNewFields adds a version with defaulted fields to a kind. Field ownership is recorded in the
// previous version, which cannot express the object.
func TestVersionWithNewFields(t *testing.T) {
	for _, test := range []struct{ name, before, after string }{
		{"our version moves", "v1", "v2"},
		{"our version stays", "v1", "v1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			definition := f.here(gearDefinition + gearVersion1("true"))
			gear := func(version, size string) string {
				return f.here("apiVersion: NS.example.org/" + version + "\nkind: Gear\nmetadata: {name: x, namespace: NS}\nspec: {size: " + size + "}\n")
			}
			f.defineGears(definition)
			f.manage("set", gear(test.before, "1"))
			f.reconcileOK("set")
			f.patch(gear("v1", "1"), "some-tool", `{"metadata":{"labels":{"theirs":"x"}}}`)
			f.edit(definition, "tester", func(live *unstructured.Unstructured) {
				live.Object["spec"] = f.parse(gearDefinition + gearVersion1("false") + gearVersion2).Object["spec"]
			})
			kit.Eventually(f, "a client that writes the new version gets its default", func() string {
				probe := f.parse(gear("v2", "1"))
				label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"written":"`+time.Now().Format("150405.000")+`"}}}`))
				if err := f.client.Patch(f.ctx, probe, label, client.FieldOwner("some-tool")); err != nil {
					return err.Error()
				}
				if teeth, _, _ := unstructured.NestedInt64(probe.Object, "spec", "teeth"); teeth != 7 {
					return fmt.Sprint(probe.Object["spec"])
				}
				return ""
			})
			f.secret("set", "objects.yaml", gear(test.after, "2"))
			mr, _, err := f.reconcile("set")
			if condition := applied(mr); err != nil || condition.Status != resourcesv1alpha1.ConditionTrue {
				t.Fatalf("%+v, %v", condition, err)
			}
			f.requests.writes()
			f.reconcileOK("set")
			if writes := f.requests.writes(); len(writes) > 0 {
				t.Errorf("the next reconcile writes %v", writes)
			}
			after := f.object(gear("v2", "1"))
			if size, _, _ := unstructured.NestedInt64(after.Object, "spec", "size"); size != 2 || after.GetLabels()["theirs"] != "x" {
				t.Errorf("the object is %v", after.Object)
			}
		})
	}
}
