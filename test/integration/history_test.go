package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func (f *fixture) getObject(apiVersion, kind, name string) *unstructured.Unstructured {
	f.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, u))
	return u
}

func (f *fixture) createObject(manifest, manager string) *unstructured.Unstructured {
	f.Helper()
	u := &unstructured.Unstructured{}
	must(f, yaml.Unmarshal([]byte(manifest), &u.Object))
	must(f, f.client.Create(f.ctx, u, client.FieldOwner(manager)))
	return u
}

// An inventory written by gardener-resource-manager becomes empty.
func TestInventoryOfPredecessorIsCleared(t *testing.T) {
	f := newFixture(t)
	f.secret("set", "objects.yaml", "# nothing")
	mr := f.managedResource("set", "set")
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: "gone"}}
	mr.Status.SecretsDataChecksum = ptr.To("abc")
	must(t, f.client.Status().Update(f.ctx, mr, client.FieldOwner("gardener-resource-manager")))
	mr, _, err := f.reconcile("set")
	t.Log(err, mr.Status.Resources, applied(mr).Message)
	if len(mr.Status.Resources) > 0 {
		t.Errorf("the inventory still holds %v", mr.Status.Resources)
	}
	f.wantQuiet("set")
}

// A ManagedResource with a predecessor's inventory moves to another class.
func TestClassChangeOfPredecessorInventory(t *testing.T) {
	f := newFixture(t)
	f.secret("set", "objects.yaml", "# nothing")
	mr := f.managedResource("set", "set")
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: "x"}}
	must(t, f.client.Status().Update(f.ctx, mr, client.FieldOwner("gardener-resource-manager")))
	mr.Finalizers = []string{resourcesv1alpha1.Finalizer}
	mr.Spec.Class = ptr.To("other")
	must(t, f.client.Update(f.ctx, mr))
	got, result, err := f.reconcile("set")
	t.Log(result, err, got.Finalizers)
	if len(got.Status.Resources) > 0 {
		t.Errorf("the new class inherits the inventory %v", got.Status.Resources)
	}
}

// Field managers before the first apply.
func TestBeforeFirstApply(t *testing.T) {
	for name, m := range map[string]string{
		"PersistentVolumeClaim": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x, namespace: NS}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
		"Job":                   "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: NS}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}",
		"Service":               "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: NS}\nspec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}",
		"ServiceAccount":        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x, namespace: NS}",
	} {
		for _, manager := range []string{"gardener-resource-manager", "kubectl-client-side-apply", "cleared"} {
			t.Run(name+"/"+manager, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				m := strings.ReplaceAll(m, "NS", f.namespace)
				u := f.createObject(m, manager)
				if name == "PersistentVolumeClaim" {
					must(t, f.client.Patch(f.ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"volumeName":"pv-x"}}`)), client.FieldOwner("kube-controller-manager")))
				}
				f.eventuallyTakenIn(u)
				u = f.getObject(u.GetAPIVersion(), name, "x")
				if manager == "cleared" {
					must(t, f.client.Patch(f.ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
				}
				before, _ := json.Marshal(u.Object["spec"])
				f.manage("set", m)
				mr, _, err := f.reconcile("set")
				if err != nil || applied(mr).Status != "True" {
					t.Errorf("%v %s", err, applied(mr).Message)
				}
				after, _ := json.Marshal(f.getObject(u.GetAPIVersion(), name, "x").Object["spec"])
				if string(before) != string(after) {
					t.Errorf("spec before %s\nafter %s", before, after)
				}
				f.wantQuiet("set")
			})
		}
	}
}

// A predecessor's Job without a mark, with the label that gardener-resource-manager sets.
func TestJobTakeOver(t *testing.T) {
	for _, manager := range []string{"gardener-resource-manager", "kubectl-client-side-apply", "cleared"} {
		t.Run(manager, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			m := fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: %[1]s}\nspec: {template: {metadata: {labels: {resources.gardener.cloud/managed-by: %[1]s}}, spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}", f.namespace)
			u := f.createObject(m, manager)
			if manager == "cleared" {
				must(t, f.client.Patch(f.ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
			}
			f.manage("set", m)
			mr, _, err := f.reconcile("set")
			if err != nil || applied(mr).Status != "True" {
				t.Errorf("%v %.600s", err, applied(mr).Message)
			}
			f.wantQuiet("set")
		})
	}
}

// More take-overs.
func TestTakeOverMore(t *testing.T) {
	for name, m := range map[string]string{
		"Namespace":                "apiVersion: v1\nkind: Namespace\nmetadata: {name: zzt-NS}",
		"Deployment":               "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: NS}\nspec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x, resources.gardener.cloud/managed-by: NS}}, spec: {containers: [{name: c, image: c}]}}}",
		"CustomResourceDefinition": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: bars.NS.example.org}\nspec: {group: NS.example.org, scope: Namespaced, names: {plural: bars, kind: Bar}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}",
	} {
		for _, manager := range []string{"gardener-resource-manager", "kubectl-create", "cleared"} {
			t.Run(name+"/"+manager, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				m := strings.ReplaceAll(m, "NS", f.namespace)
				u := f.createObject(m, manager)
				f.eventuallyTakenIn(u)
				if manager == "cleared" {
					must(t, f.client.Patch(f.ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
				}
				must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(u), u))
				before, _ := json.Marshal([]any{u.Object["spec"], u.Object["status"], u.GetLabels(), u.GetAnnotations(), u.GetFinalizers()})
				mr := f.manage("set", m)
				got, _, err := f.reconcile("set")
				if err != nil || applied(got).Status != "True" {
					t.Errorf("%v %.300s", err, applied(got).Message)
				}
				must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(u), u))
				after, _ := json.Marshal([]any{u.Object["spec"], u.Object["status"], u.GetLabels(), u.GetAnnotations(), u.GetFinalizers()})
				t.Logf("before %.700s", before)
				t.Logf("after  %.900s", after)
				f.eventuallyTakenIn(u)
				f.wantQuiet("set")
				f.delete(mr)
			})
		}
	}
}

// A port with an explicit nodePort is removed from a Service that was taken over.
func TestServicePortLeaves(t *testing.T) {
	for _, manager := range []string{"gardener-resource-manager", "kubectl-client-side-apply", ""} {
		t.Run(manager, func(t *testing.T) {
			f := newFixture(t)
			m := func(more string) string {
				return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: %s}\nspec:\n  type: NodePort\n  ports:\n  - {name: a, port: 80}\n%s", f.namespace, more)
			}
			extra := "  - {name: b, port: 81, nodePort: 30043}\n"
			if manager != "" {
				f.createObject(m(extra), manager)
			}
			mr := f.manage("set", m(extra))
			f.reconcileOK("set")
			f.secret("set", "objects.yaml", m(""))
			got, _, err := f.reconcile("set")
			t.Log(err, applied(got).Status, applied(got).Message)
			ports, _, _ := unstructured.NestedSlice(f.getObject("v1", "Service", "x").Object, "spec", "ports")
			if len(ports) != 1 {
				t.Errorf("the removed port still exists: %v", ports)
			}
			f.delete(mr)
		})
	}
}

// A container is removed from a Deployment with preserve-resources.
func TestPreserveResourcesContainerLeaves(t *testing.T) {
	f := newFixture(t)
	d := func(a, extra string) string {
		return strings.Replace(f.web("        resources: {limits: {cpu: \"1\"}}\n"+extra), "metadata:\n", "metadata:\n  annotations: {resources.gardener.cloud/preserve-resources: \"true\", a: "+a+"}\n", 1)
	}
	sidecar := "      - name: sidecar\n        image: s\n        resources: {limits: {cpu: \"1\"}}\n"
	f.manage("set", d("one", sidecar))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", d("two", sidecar))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", d("three", ""))
	mr, _, err := f.reconcile("set")
	t.Log(err, applied(mr).Status, applied(mr).Message)
	if c := f.liveDeployment().Spec.Template.Spec.Containers; len(c) != 1 {
		t.Errorf("the removed container still exists: %d", len(c))
	}
}

// A field can be removed after its drift rule was removed.
func TestPreserverKeepsPermanently(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1")+"  other: \"1\"\n")
	f.reconcileOK("set")
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr))
	f.change(mr, func() {
		mr.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{Ignore: []resourcesv1alpha1.IgnoreRule{{Paths: []string{"/data/other"}}}}
	})
	f.reconcileOK("set")
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr))
	f.change(mr, func() { mr.Spec.DriftDetection = nil })
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	f.reconcileOK("set")
	if data := f.liveConfigMap("one").Data; len(data) != 1 {
		t.Errorf("the removed field still exists: %v; managers %v", data, managers(f.liveConfigMap("one")))
	}
}

func TestPreserveResourcesKeepsPermanently(t *testing.T) {
	f := newFixture(t)
	d := func(annotation, resources string) string {
		return strings.Replace(f.web("        resources: "+resources+"\n"), "metadata:\n", "metadata:\n  annotations: {"+annotation+"}\n", 1)
	}
	f.manage("set", d("resources.gardener.cloud/preserve-resources: \"true\"", "{limits: {cpu: \"1\"}, requests: {cpu: \"1\"}}"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", d("resources.gardener.cloud/preserve-resources: \"true\", a: b", "{limits: {cpu: \"1\"}, requests: {cpu: \"1\"}}"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", d("a: b", "{limits: {cpu: \"1\"}, requests: {cpu: \"1\"}}"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", d("a: b", "{requests: {cpu: \"1\"}}"))
	f.reconcileOK("set")
	if l := f.liveDeployment().Spec.Template.Spec.Containers[0].Resources.Limits; len(l) > 0 {
		t.Errorf("the removed limit still exists: %v %v", l, managers(f.liveDeployment()))
	}
}
