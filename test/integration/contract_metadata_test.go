package integration

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestContractMarks(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.marked("one", "labels: {mine: x}"))
	f.reconcileOK("set")
	live := f.liveConfigMap("one")
	if want := map[string]string{"mine": "x", "resources.gardener.cloud/managed-by": f.namespace}; !maps.Equal(live.Labels, want) {
		t.Errorf("the labels are %v", live.Labels)
	}
	want := map[string]string{
		"resources.gardener.cloud/origin": f.namespace + "/set",
		"resources.gardener.cloud/description": "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n" +
			"Any modifications are discarded and the resource is returned to the original state.",
	}
	if !maps.Equal(live.Annotations, want) {
		t.Errorf("the annotations are %v", live.Annotations)
	}
}

// TestContractOriginNamesTheOwner applies over objects with various origins. Objects of another ManagedResource are
// left to it. All others are taken over.
func TestContractOriginNamesTheOwner(t *testing.T) {
	for origin, foreign := range map[string]bool{
		"NS/other":                false, // does not exist
		"no-slash":                false,
		"too/many/slashes":        false,
		"two:colons:NS/set":       false,
		"identity:NS/set":         false, // the same ManagedResource, moved
		"identity:elsewhere/else": true,  // not visible to this resource-manager
		"NS/standing":             true,
	} {
		t.Run(origin, func(t *testing.T) {
			f := newFixture(t)
			f.manage("standing", f.configMap("one", "of standing"))
			f.reconcileOK("standing")
			f.edit(f.configMap("one", ""), "somebody", func(object *unstructured.Unstructured) {
				object.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: f.here(origin)})
			})
			if origin != "NS/standing" {
				mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "standing"}}
				f.refresh(mr, func() { mr.Spec.KeepObjects = ptr.To(true) })
				f.delete(mr)
			}
			f.manage("set", f.configMap("one", "of set"))
			mr, _, _ := f.reconcile("set")
			value := f.liveConfigMap("one").Data["key"]
			if taken := value == "of set"; taken == foreign || taken != (applied(mr).Status == resourcesv1alpha1.ConditionTrue) {
				t.Errorf("the value is %q, ResourcesApplied %s: %s", value, applied(mr).Status, applied(mr).Message)
			}
		})
	}
}

// TestContractLabelsAndAnnotationsOfOthers changes and adds keys by hand, and removes keys from the manifest.
func TestContractLabelsAndAnnotationsOfOthers(t *testing.T) {
	for _, field := range []string{"labels", "annotations"} {
		for _, manager := range []string{"kubectl-edit", "some-controller"} {
			t.Run(field+" by "+manager, func(t *testing.T) {
				f := newFixture(t)
				f.manage("set", f.marked("one", field+": {leaves: \"1\", changed-leaves: \"1\", changed: \"1\", stays: \"1\"}"))
				f.reconcileOK("set")
				f.edit(f.configMap("one", ""), manager, func(object *unstructured.Unstructured) {
					for key, value := range map[string]string{"changed": "2", "changed-leaves": "2", "added": "2"} {
						must(t, unstructured.SetNestedField(object.Object, value, "metadata", field, key))
					}
				})
				f.secret("set", "objects.yaml", f.marked("one", field+": {changed: \"1\", stays: \"1\"}"))
				f.reconcileOK("set")
				got, _, _ := unstructured.NestedStringMap(f.object(f.configMap("one", "")).Object, "metadata", field)
				maps.DeleteFunc(got, func(key, _ string) bool { return strings.HasPrefix(key, "resources.gardener.cloud/") })
				if want := map[string]string{"changed": "1", "changed-leaves": "2", "stays": "1", "added": "2"}; !maps.Equal(got, want) {
					t.Errorf("%s are %v, want %v", field, got, want)
				}
			})
		}
	}
}

// TestContractForced checks which labels and annotations remain in addition to those of the manifest if the
// manifest's are forced.
func TestContractForced(t *testing.T) {
	f := newFixture(t)
	service := f.here("apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: NS, labels: {l: \"1\"}, annotations: {a: \"1\"}}\n" +
		"spec: {ports: [{port: 80}]}\n")
	mr := f.manage("set", service)
	f.change(mr, func() { mr.Spec.ForceOverwriteLabels, mr.Spec.ForceOverwriteAnnotations = ptr.To(true), ptr.To(true) })
	f.reconcileOK("set")
	f.edit(service, "somebody", func(object *unstructured.Unstructured) {
		object.SetLabels(map[string]string{"l": "2", "added": "2", resourcesv1alpha1.LabelManagedBy: f.namespace})
		annotations := object.GetAnnotations()
		annotations["a"], annotations["added"], annotations["loadbalancer.openstack.org/id"] = "2", "2", "kept"
		object.SetAnnotations(annotations)
	})
	f.reconcileOK("set")
	live := f.object(service)
	if want := map[string]string{"l": "1", resourcesv1alpha1.LabelManagedBy: f.namespace}; !maps.Equal(live.GetLabels(), want) {
		t.Errorf("the labels are %v, want %v", live.GetLabels(), want)
	}
	want := map[string]string{
		"a": "1", "loadbalancer.openstack.org/id": "kept", resourcesv1alpha1.AnnotationOrigin: f.namespace + "/set",
		resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.Description,
	}
	if !maps.Equal(live.GetAnnotations(), want) {
		t.Errorf("the annotations are %v, want %v", live.GetAnnotations(), want)
	}
}

// TestContractReferences checks that the references of an object are exactly those of its manifest.
func TestContractReferences(t *testing.T) {
	const prefix = "reference.resources.gardener.cloud/"
	f := newFixture(t)
	f.manage("set", f.marked("one", "annotations: {"+prefix+"configmap-1: a, "+prefix+"secret-2: b}"))
	f.reconcileOK("set")
	for _, manager := range []string{"kubectl-edit", "some-controller"} {
		f.edit(f.configMap("one", ""), manager, func(object *unstructured.Unstructured) {
			annotations := object.GetAnnotations()
			annotations[prefix+"configmap-3"], annotations[prefix+"secret-2"] = "c", "changed"
			object.SetAnnotations(annotations)
		})
		f.secret("set", "objects.yaml", f.marked("one", "annotations: {"+prefix+"secret-2: b}"))
		f.reconcileOK("set")
		got := f.liveConfigMap("one").Annotations
		maps.DeleteFunc(got, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
		if want := map[string]string{prefix + "secret-2": "b"}; !maps.Equal(got, want) {
			t.Errorf("after %s, the references are %v, want %v", manager, got, want)
		}
	}
}

// TestContractOwnersAndFinalizersOfOthers checks that those of the manifest are set, and that those that others added
// stay.
func TestContractOwnersAndFinalizersOfOthers(t *testing.T) {
	for _, manager := range []string{"some-controller", "kubectl-edit"} {
		t.Run(manager, func(t *testing.T) {
			f := newFixture(t)
			owner, other := f.createObject(f.configMap("owner", ""), "somebody"), f.createObject(f.configMap("other", ""), "somebody")
			manifest := func(label string) string {
				return f.marked("one", fmt.Sprintf("labels: {l: %s}\n  finalizers: [example.org/ours]\n  ownerReferences: "+
					"[{apiVersion: v1, kind: ConfigMap, name: owner, uid: %s}]", label, owner.GetUID()))
			}
			f.manage("set", manifest("old"))
			f.reconcileOK("set")
			live := f.liveConfigMap("one")
			if len(live.OwnerReferences) != 1 || len(live.Finalizers) != 1 {
				t.Errorf("created with owners %v, finalizers %v", live.OwnerReferences, live.Finalizers)
			}
			f.edit(f.configMap("one", ""), manager, func(object *unstructured.Unstructured) {
				object.SetFinalizers(append(object.GetFinalizers(), "example.org/theirs"))
				object.SetOwnerReferences(append(object.GetOwnerReferences(),
					metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: other.GetUID()}))
			})
			f.secret("set", "objects.yaml", manifest("new"))
			f.reconcileOK("set")
			live = f.liveConfigMap("one")
			if len(live.OwnerReferences) != 2 || len(live.Finalizers) != 2 || live.Labels["l"] != "new" {
				t.Errorf("updated with owners %v, finalizers %v, labels %v", live.OwnerReferences, live.Finalizers, live.Labels)
			}
		})
	}
}

// TestContractFinalizersOfTheManifest: finalizers are handled like any other field.
func TestContractFinalizersOfTheManifest(t *testing.T) {
	f := newFixture(t)
	want := func(when, finalizers string) {
		if got := fmt.Sprint(f.liveConfigMap("one").Finalizers); got != finalizers {
			t.Errorf("%s, the finalizers are %s, want %s", when, got, finalizers)
		}
	}
	f.manage("set", f.marked("one", "finalizers: [example.org/ours]"))
	f.reconcileOK("set")
	want("created", "[example.org/ours]")
	f.edit(f.configMap("one", ""), "some-controller", func(object *unstructured.Unstructured) { object.SetFinalizers(nil) })
	f.reconcileOK("set")
	want("removed by hand", "[example.org/ours]")
	f.secret("set", "objects.yaml", f.marked("one", "finalizers: [example.org/ours, example.org/new]"))
	f.reconcileOK("set")
	want("added to the manifest", "[example.org/ours example.org/new]")
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	f.reconcileOK("set")
	want("removed from the manifest", "[]")
}
