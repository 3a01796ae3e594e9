package integration

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// labelsAt returns the labels at a path of fields. At a list, it follows the first item.
func labelsAt(object *unstructured.Unstructured, path string) map[string]string {
	var value any = object.Object
	for part := range strings.SplitSeq(path+".labels", ".") {
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		fields, _ := value.(map[string]any)
		value = fields[part]
	}
	fields, _ := value.(map[string]any)
	labels := map[string]string{}
	for key, value := range fields {
		labels[key], _ = value.(string)
	}
	return labels
}

const anyShape = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shapes.NS.example.org}
spec:
  group: NS.example.org
  scope: Namespaced
  names: {plural: shapes, kind: Shape}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
`

// TestContractInjectLabels checks which parts of an object get injected labels, and which must not.
func TestContractInjectLabels(t *testing.T) {
	const selector = "selector: {matchLabels: {app: x}}"
	shape := func(template string) string {
		return anyShape + "apiVersion: NS.example.org/v1\nkind: Shape\nmetadata: {name: x, namespace: NS}\nspec: {template: " + template + "}\n"
	}
	for name, test := range map[string]struct {
		manifest string
		labelled []string
		not      []string
	}{
		"ConfigMap": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: NS, labels: {injected: manifest}}\n", nil, nil},
		"Deployment": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: NS}\nspec: {" + selector + ", template: " +
			podTemplate + "}\n", []string{"spec.template.metadata"}, nil},
		"DaemonSet": {"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x, namespace: NS}\nspec: {" + selector + ", template: " +
			podTemplate + "}\n", []string{"spec.template.metadata"}, nil},
		"StatefulSet": {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x, namespace: NS}\nspec: {serviceName: x, " + selector +
			", template: " + podTemplate + ", volumeClaimTemplates: [" + claim + "]}\n",
			[]string{"spec.template.metadata", "spec.volumeClaimTemplates.metadata"}, nil},
		"Job": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: NS}\nspec: {template: " + jobTemplate + "}\n",
			[]string{"spec.template.metadata"}, nil},
		"CronJob": {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x, namespace: NS}\nspec: {schedule: \"0 0 1 1 *\", " +
			"jobTemplate: {spec: {template: " + jobTemplate + "}}}\n", []string{"spec.jobTemplate.spec.template.metadata"}, nil},
		"custom resource with a pod template": {shape(podTemplate), []string{"spec.template.metadata"}, nil},
		"custom resource with another map":    {shape("{engine: jinja}"), nil, []string{"spec.template.metadata"}},
		"custom resource with a text":         {shape("Hello"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			mr := f.manage("set", f.here(test.manifest))
			f.change(mr, func() {
				mr.Spec.InjectLabels = map[string]string{"injected": "yes", resourcesv1alpha1.LabelManagedBy: "somebody"}
			})
			f.reconcileOK("set")
			manifests := strings.Split(test.manifest, "---\n")
			live := f.object(manifests[len(manifests)-1])
			for _, path := range append([]string{"metadata"}, test.labelled...) {
				labels := labelsAt(live, path)
				if labels["injected"] != "yes" || labels[resourcesv1alpha1.LabelManagedBy] != f.namespace {
					t.Errorf("%s has the labels %v", path, labels)
				}
			}
			for _, path := range test.not {
				if labels := labelsAt(live, path); len(labels) > 0 {
					t.Errorf("%s has the labels %v", path, labels)
				}
			}
			f.wantQuiet("set")
			f.delete(mr)
		})
	}
}

// TestContractInjectLabelsChange changes the injected labels of existing objects. The templates of Jobs and the claim
// templates of StatefulSets are immutable. That must not block the rest.
func TestContractInjectLabelsChange(t *testing.T) {
	f := newFixture(t)
	job := f.here("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: NS}\nspec: {template: " + jobTemplate + "}\n")
	stateful := f.here("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x, namespace: NS}\nspec: {serviceName: x, " +
		"selector: {matchLabels: {app: x}}, template: " + podTemplate + ", volumeClaimTemplates: [" + claim + "]}\n")
	mr := f.manage("set", job, stateful)
	inject := func(labels map[string]string) {
		f.refresh(mr, func() { mr.Spec.InjectLabels = labels })
		f.reconcileOK("set")
	}
	for _, labels := range []map[string]string{{"a": "1"}, {"a": "2"}, {"a": "2", "b": "1"}} {
		inject(labels)
		for path, live := range map[string]*unstructured.Unstructured{"metadata": f.object(job), "spec.template.metadata": f.object(stateful)} {
			got := labelsAt(live, path)
			maps.DeleteFunc(got, func(key, _ string) bool { return key != "a" && key != "b" })
			if !maps.Equal(got, labels) {
				t.Errorf("injected %v: %s of the %s has %v", labels, path, live.GetKind(), got)
			}
		}
	}
	if got := labelsAt(f.object(job), "spec.template.metadata")["a"]; got != "1" {
		t.Errorf("the Job was recreated: its template has the label %q", got)
	}
}

// TestContractLabelLeavesJob: a label cannot be removed from the template of a Job either. The condition reports
// that, and the Job is not deleted.
func TestContractLabelLeavesJob(t *testing.T) {
	f := newFixture(t)
	job := f.here("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: NS}\nspec: {template: " + jobTemplate + "}\n")
	mr := f.manage("set", job, f.configMap("one", "1"))
	f.change(mr, func() { mr.Spec.InjectLabels = map[string]string{"a": "1"} })
	f.reconcileOK("set")
	uid := f.object(job).GetUID()
	f.refresh(mr, func() { mr.Spec.InjectLabels = nil })
	mr, result, err := f.reconcile("set")
	wantRetry(t, false, result, err)
	wantContains(t, applied(mr).Message, "v1/Job/"+f.namespace+"/x", "field is immutable")
	if _, stays := f.liveConfigMap("one").Labels["a"]; stays || f.object(job).GetUID() != uid {
		t.Error("the other object was not applied, or the Job was recreated")
	}
}

func TestContractInjectLabelsLeave(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"), f.web(""))
	f.change(mr, func() { mr.Spec.InjectLabels = map[string]string{"a": "1", "b": "1"} })
	f.reconcileOK("set")
	f.refresh(mr, func() { mr.Spec.InjectLabels = map[string]string{"b": "1"} })
	f.reconcileOK("set")
	for what, labels := range map[string]map[string]string{
		"ConfigMap": f.liveConfigMap("one").Labels, "Deployment": f.liveDeployment().Labels,
		"pod template": f.liveDeployment().Spec.Template.Labels,
	} {
		if _, stays := labels["a"]; stays || labels["b"] != "1" {
			t.Errorf("labels of the %s are %v", what, labels)
		}
	}
}

// TestContractManagedByLabelValue tests controllers.managedResource.managedByLabelValue.
func TestContractManagedByLabelValue(t *testing.T) {
	f := newFixture(t)
	f.reconciler.Options.ManagedBy = "somebody"
	f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	if got := f.liveConfigMap("one").Labels; !maps.Equal(got, map[string]string{resourcesv1alpha1.LabelManagedBy: "somebody"}) {
		t.Errorf("the labels are %v", got)
	}
	f.reconciler.Options.ManagedBy = "somebody-else"
	f.reconcileOK("set")
	if got := f.liveConfigMap("one").Labels; !maps.Equal(got, map[string]string{resourcesv1alpha1.LabelManagedBy: "somebody-else"}) {
		t.Errorf("after the value changed, the labels are %v", got)
	}
}
