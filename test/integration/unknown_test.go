package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const misspelt = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS, labels: {a.b: c}}
spec: {typo: 1, selector: {app.kubernetes.io/name: web}, ports: [{name: http, port: 80, protocol: TCP, targetport: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: NS}
spec: {serviceName: web, replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: x, imag: y}]}},
  volumeClaimTemplates: [{metadata: {name: data}, spec: {acessModes: [], accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
`

// TestUnknownFields applies objects without the fields that the API server does not know, and reports these fields as
// long as they exist.
func TestUnknownFields(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.here(misspelt), f.configMap("one", "1"))
	mr := f.reconcileOK("set")
	said := applied(mr).Message
	wantContains(t, said, "without fields that the API server does not know (2)", "/web: spec.ports[0].targetport, spec.typo",
		"spec.template.spec.containers[0].imag", "spec.volumeClaimTemplates[0].spec.acessModes")
	wantContains(t, f.event(), "Warning UnknownFields", "spec.typo")
	f.wantConfigMap("one", "1")
	service := &corev1.Service{}
	must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "web"}, service))
	if len(service.Spec.Ports) != 1 || service.Spec.Selector["app.kubernetes.io/name"] != "web" {
		t.Errorf("the Service is %+v", service.Spec)
	}

	again := f.reconcileOK("set")
	if applied(again).Message != said || again.ResourceVersion != mr.ResourceVersion {
		t.Errorf("the message changes to %s", applied(again).Message)
	}
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	f.reconcileUntil("set", "no field is reported", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return applied(mr).Message == "All resources are applied."
	})
}

// TestUnknownFieldsOfACustomResource: unknown fields are applied once the definition has them.
func TestUnknownFieldsOfACustomResource(t *testing.T) {
	f := newFixture(t)
	definition := f.here(gearDefinition) + f.here(gearVersion1("true"))
	gear := f.here("apiVersion: NS.example.org/v1\nkind: Gear\nmetadata: {name: x, namespace: NS}\nspec: {size: 1, colour: green}\n")
	f.defineGears(definition)
	f.manage("set", gear)
	wantContains(t, applied(f.reconcileOK("set")).Message, "spec.colour")
	f.edit(definition, "tester", func(definition *unstructured.Unstructured) {
		setAt(definition.Object, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.colour", "{type: string}")
	})
	f.reconcileUntil("set", "the field is applied", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return applied(mr).Message == "All resources are applied."
	})
	if colour, _, _ := unstructured.NestedString(f.object(gear).Object, "spec", "colour"); colour != "green" {
		t.Errorf("the colour is %q", colour)
	}
}

// TestUnknownFieldsAreRefused: objects with unknown fields are rejected if that is configured.
func TestUnknownFieldsAreRefused(t *testing.T) {
	f := newFixture(t)
	f.strict = true
	f.restart()
	f.manage("set", f.here(misspelt))
	mr, _, _ := f.reconcile("set")
	if condition := applied(mr); condition.Reason != resourcesv1alpha1.ReasonApplyFailed {
		t.Errorf("%+v", condition)
	}
	wantContains(t, applied(mr).Message, `unknown field "spec.typo"`, `unknown field "spec.ports[0].targetport"`)
}
