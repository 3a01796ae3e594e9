package integration

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// routesDefinition defines a kind whose schema server-side apply rejects: the items of a set are objects.
const routesDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.NS.example.org}
spec:
  group: NS.example.org
  scope: Namespaced
  names: {plural: gears, singular: gear, kind: Gear, listKind: GearList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              mode: {type: string, default: auto}
              size: {type: integer}
              routes: {type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic, properties: {cidr: {type: string}}}}
`

// TestSchemaWithoutServerSideApply sends an object by updates, because its schema does not support server-side apply.
func TestSchemaWithoutServerSideApply(t *testing.T) {
	f := newFixture(t)
	f.defineGears(f.here(routesDefinition))
	gear := func(spec string) string {
		return f.here("apiVersion: NS.example.org/v1\nkind: Gear\nmetadata: {name: x, namespace: NS}\nspec: " + spec + "\n")
	}
	both := gear("{size: 1, routes: [{cidr: 192.0.2.0/24}, {cidr: 198.51.100.0/24}]}")
	f.manage("set", both)
	mr := f.reconcileOK("set")
	wantContains(t, applied(mr).Message, "Gear/"+f.namespace+"/x", "does not support server-side apply")
	f.wantNoWrites("set")

	f.patch(both, "some-tool", `{"metadata":{"labels":{"theirs":"x"}},"spec":{"size":7}}`)
	f.reconcileOK("set")
	live := f.object(both)
	if at(live, "spec", "size") != int64(1) || live.GetLabels()["theirs"] != "x" {
		t.Errorf("after an edit, the object is %v", live.Object)
	}
	f.wantNoWrites("set")

	one := gear("{routes: [{cidr: 192.0.2.0/24}]}")
	f.secret("set", "objects.yaml", one)
	f.reconcileOK("set")
	live = f.object(one)
	if routes, _, _ := unstructured.NestedSlice(live.Object, "spec", "routes"); len(routes) != 1 || at(live, "spec", "size") != nil {
		t.Errorf("after a removal, the object is %v", live.Object)
	}
	f.wantNoWrites("set")
	f.restart()
	f.wantNoWrites("set")
}

// wantNoWrites checks that a reconcile without news writes nothing.
func (f *fixture) wantNoWrites(name string) {
	f.Helper()
	f.reconcileOK(name)
	f.requests.writes()
	f.reconcileOK(name)
	if writes := f.requests.writes(); len(writes) > 0 {
		f.Errorf("a reconcile without news writes %v", writes)
	}
}

// TestFieldThatChangedItsType changes a field of a definition from a list to a map. The live object then does not fit
// the schema.
func TestFieldThatChangedItsType(t *testing.T) {
	f := newFixture(t)
	definition := f.here(gearDefinition) + "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: " +
		"{type: object, properties: {teeth: {type: array, items: {type: string}}}}}}}}\n"
	gear := func(teeth string) string {
		return f.here("apiVersion: NS.example.org/v1\nkind: Gear\nmetadata: {name: x, namespace: NS}\nspec: {teeth: " + teeth + "}\n")
	}
	f.defineGears(definition)
	f.manage("set", gear("[a, b]"))
	f.reconcileOK("set")
	f.edit(definition, "tester", func(definition *unstructured.Unstructured) {
		setAt(definition.Object, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.teeth", "{type: object, additionalProperties: {type: string}}")
	})
	f.secret("set", "objects.yaml", gear("{a: b}"))
	f.reconcileUntil("set", "the new form is applied", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return applied(mr).Status == resourcesv1alpha1.ConditionTrue
	})
	if teeth := fmt.Sprint(at(f.object(gear("{}")), "spec", "teeth")); teeth != "map[a:b]" {
		t.Errorf("the field is %s", teeth)
	}
	f.wantNoWrites("set")
	f.secret("set", "objects.yaml", gear("{c: d}"))
	f.reconcileOK("set")
	if teeth := fmt.Sprint(at(f.object(gear("{}")), "spec", "teeth")); teeth != "map[c:d]" {
		t.Errorf("after a removal, the field is %s", teeth)
	}
}

// TestVersionThatIsRemoved removes a version of a kind in which other clients have written an object and its status.
func TestVersionThatIsRemoved(t *testing.T) {
	for name, write := range map[string]func(f *fixture, old *unstructured.Unstructured) error{
		"object": func(f *fixture, old *unstructured.Unstructured) error {
			return f.client.Patch(f.ctx, old, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`)), client.FieldOwner("old-operator"))
		},
		"status": func(f *fixture, old *unstructured.Unstructured) error {
			return f.client.Status().Patch(f.ctx, old, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Up"}}`)), client.FieldOwner("old-operator"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			version := func(name, storage string) string {
				return "  - {name: " + name + ", served: true, storage: " + storage + ", subresources: {status: {}}, schema: {openAPIV3Schema: " +
					"{type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
			}
			definition := f.here(gearDefinition) + version("v1", "false") + version("v2", "true")
			gear := func(version, size string) string {
				return f.here("apiVersion: NS.example.org/" + version + "\nkind: Gear\nmetadata: {name: x, namespace: NS}\nspec: {size: " + size + ", x: 1}\n")
			}
			f.defineGears(definition)
			f.manage("set", gear("v2", "1"))
			f.reconcileOK("set")
			must(t, write(f, f.parse(gear("v1", "1"))))
			f.edit(definition, "tester", func(live *unstructured.Unstructured) {
				live.Object["spec"] = f.parse(gearDefinition + version("v2", "true")).Object["spec"]
			})
			f.eventually("the version is removed", func() bool {
				old := f.parse(gear("v1", "1"))
				return f.client.Get(f.ctx, client.ObjectKeyFromObject(old), old) != nil
			})
			f.secret("set", "objects.yaml", strings.Replace(gear("v2", "2"), ", x: 1", "", 1))
			f.reconcileUntil("set", "the change is applied", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Status == resourcesv1alpha1.ConditionTrue
			})
			live := f.object(gear("v2", "2"))
			if at(live, "spec", "size") != int64(2) || at(live, "spec", "x") != nil {
				t.Errorf("the object is %v", live.Object)
			}
			if name == "object" && live.GetAnnotations()["x"] != "y" || name == "status" && at(live, "status", "phase") != "Up" {
				t.Errorf("what the other client wrote is lost: %v", live.Object)
			}
			f.wantNoWrites("set")
		})
	}
}

// TestInjectedFieldThatBecomesInvalid removes the conversion webhook of a definition to which an injector had added a
// CA bundle.
func TestInjectedFieldThatBecomesInvalid(t *testing.T) {
	f := newFixture(t)
	conversion := "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: x, namespace: NS, path: /convert}}}}\n"
	definition := func(conversion string) string {
		return f.here(strings.Replace(gearDefinition, "  versions:", conversion+"  versions:", 1) + gearVersion1("true"))
	}
	caBundle := base64.StdEncoding.EncodeToString(shared.Get(t).Config().CAData)
	for _, injector := range []string{"cainjector", "some-injector"} {
		f.manage(injector, definition(conversion))
		f.reconcileUntil(injector, "the definition is applied", func(mr *resourcesv1alpha1.ManagedResource) bool {
			return applied(mr).Status == resourcesv1alpha1.ConditionTrue
		})
		f.patch(definition(""), injector, `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"`+caBundle+`"}}}}}`)
		f.reconcileOK(injector)
		if at(f.object(definition("")), "spec", "conversion", "webhook", "clientConfig", "caBundle") == nil {
			t.Errorf("the CA bundle of %s is removed although it is valid", injector)
		}
		f.secret(injector, "objects.yaml", definition(""))
		mr := f.reconcileOK(injector)
		if got := at(f.object(definition("")), "spec", "conversion", "strategy"); got != "None" {
			t.Errorf("%s: the strategy is %v", injector, got)
		}
		f.delete(mr)
	}
}
