package validation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhooks/deletionprotection"
	"github.com/trellis-k8s/trellis/test/kit"
)

// denial is the denial message of gardener-resource-manager.
const denial = `must have a "confirmation.gardener.cloud/deletion" annotation to delete`

// deletionDenied is the API server's prefix of the message of a denied deletion of a custom resource.
const deletionDenied = `admission webhook "cr-deletion-protection.resources.gardener.cloud" denied the request: `

func (f *fixture) annotate(object client.Object, value string) {
	f.Helper()
	object.SetAnnotations(map[string]string{deletionprotection.AnnotationConfirmation: value})
	kit.Must(f, f.client.Update(f.Context(), object))
}

// TestDeletionOfCustomResources checks that an object of each kind can be deleted only after it is confirmed. Bastions are not protected.
func TestDeletionOfCustomResources(t *testing.T) {
	f := newFixture(t)
	f.eachKind(func(kind, spec string) {
		object := f.object(kind, "object", spec)
		f.create(object)
		if kind != "Bastion" {
			f.wantRefused(f.client.Delete(f.Context(), object), http.StatusForbidden, deletionDenied+denial)
			f.wantRefused(f.client.Delete(f.Context(), object, client.DryRunAll), http.StatusForbidden, deletionDenied+denial)
			f.annotate(object, "true")
		}
		kit.Must(f, f.client.Delete(f.Context(), object))
	})
	if sent := f.requests.All(); len(sent) > 0 {
		f.Errorf("the webhook sent requests: %v", sent)
	}
}

// TestValuesOfTheConfirmation checks that the values that Go parses as true confirm, and that the current object counts.
func TestValuesOfTheConfirmation(t *testing.T) {
	f := newFixture(t)
	object := f.object("Extension", "object", validSpecs["Extension"])
	f.create(object)
	for _, value := range []string{"", "false", "0", "F", "yes", "tRUE", " true", "true "} {
		f.annotate(object, value)
		f.wantRefused(f.client.Delete(f.Context(), object), http.StatusForbidden, denial)
	}
	for _, value := range []string{"1", "t", "T", "true", "TRUE", "True"} {
		f.annotate(object, value)
		if err := f.client.Delete(f.Context(), object, client.DryRunAll); err != nil {
			f.Errorf("%q: %v", value, err)
		}
	}
	f.annotate(object, "false")
	f.wantRefused(f.client.Delete(f.Context(), object), http.StatusForbidden, denial)
}

// TestDeletionTwice checks that an object that is being deleted can be deleted again, whether or not it is still confirmed.
func TestDeletionTwice(t *testing.T) {
	f := newFixture(t)
	object := f.object("Worker", "object", validSpecs["Worker"])
	object.SetFinalizers([]string{"example.com/a"})
	f.create(object)
	f.annotate(object, "true")
	kit.Must(f, f.client.Delete(f.Context(), object))
	object = f.read("Worker", "object")
	f.annotate(object, "false")
	kit.Must(f, f.client.Delete(f.Context(), object))
	object.SetFinalizers(nil)
	kit.Must(f, f.client.Update(f.Context(), object))
}

// TestDeletionOfDefinitions checks that definitions with the label must be confirmed, and others need not.
func TestDeletionOfDefinitions(t *testing.T) {
	f := newFixture(t)
	for i, test := range []struct {
		label string
		free  bool
	}{{"", true}, {"false", true}, {"True", true}, {"true", false}} {
		group := fmt.Sprintf("g%d.%s.example.com", i, f.namespace)
		object := definition(group, "v1", "Thing", "things", apiextensionsv1.NamespaceScoped)
		object.Labels = map[string]string{testLabel: f.namespace}
		if test.label != "" {
			object.Labels[deletionprotection.LabelDeletionProtected] = test.label
		}
		f.create(object)
		err := f.client.Delete(f.Context(), object)
		if test.free {
			if err != nil {
				f.Errorf("with the label %q: %v", test.label, err)
			}
			continue
		}
		f.wantRefused(err, http.StatusForbidden, `admission webhook "crd-deletion-protection.resources.gardener.cloud" denied the request: `+denial)
		kit.Eventually(f, "the definition is annotated", func() string { // retries, because the API server changes it too
			kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(object), object))
			object.Annotations = map[string]string{deletionprotection.AnnotationConfirmation: "true"}
			return kit.TextOf(f.client.Update(f.Context(), object))
		})
		kit.Must(f, f.client.Delete(f.Context(), object))
	}
}

// protectedObjects creates objects. Those named in confirmed are confirmed.
func (f *fixture) protectedObjects(kind string, names []string, confirmed ...string) {
	f.Helper()
	for _, name := range names {
		object := f.object(kind, name, validSpecs[kind])
		labels := object.GetLabels()
		labels["name"] = name
		object.SetLabels(labels)
		if slices.Contains(confirmed, name) {
			object.SetAnnotations(map[string]string{deletionprotection.AnnotationConfirmation: "true"})
		}
		f.create(object)
	}
}

// left returns the names of the remaining objects with the test's label.
func (f *fixture) left(kind string) []string {
	f.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kindOf(f, kind).GroupVersionKind)
	kit.Must(f, f.client.List(f.Context(), list, client.MatchingLabels{testLabel: f.namespace}))
	var names []string
	for _, object := range list.Items {
		names = append(names, strings.TrimPrefix(object.GetName(), f.namespace+"-"))
	}
	return names
}

// deleteCollection deletes the objects that have the test's label and the given labels, in one request.
func (f *fixture) deleteCollection(kind string, labels ...string) error {
	options := []client.DeleteAllOfOption{client.MatchingLabels{testLabel: f.namespace}}
	if len(labels) > 0 {
		requirement, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
			MatchLabels:      map[string]string{testLabel: f.namespace},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: labels}},
		})
		kit.Must(f, err)
		options = []client.DeleteAllOfOption{client.MatchingLabelsSelector{Selector: requirement}}
	}
	object := f.object(kind, "", "{}")
	if object.GetNamespace() != "" {
		options = append(options, client.InNamespace(f.namespace))
	}
	return f.client.DeleteAllOf(f.Context(), object, options...)
}

// TestDeletionOfCollections checks that no unconfirmed object is deleted. The selectors of the request count: the objects that they
// exclude need not be confirmed, although the review of the API server does not contain the selectors.
func TestDeletionOfCollections(t *testing.T) {
	f := newFixture(t)
	f.eachKind(func(kind, _ string) {
		if kind == "Bastion" {
			f.protectedObjects(kind, []string{"a", "b"})
			kit.Must(f, f.deleteCollection(kind))
			return
		}
		f.protectedObjects(kind, []string{"a", "b", "c", "d"}, "a", "b")
		names := f.left(kind)
		err := f.deleteCollection(kind, "c")
		f.wantRefused(err, http.StatusForbidden, fmt.Sprintf("%s%s: %s %q", deletionDenied, denial, kind, f.object(kind, "c", "{}").GetName()))
		if left := f.left(kind); !slices.Equal(left, names) {
			f.Errorf("%s: the remaining objects are %v", kind, left)
		}
		kit.Must(f, f.deleteCollection(kind, "a"))
		if left := f.left(kind); !slices.Equal(left, []string{"b", "c", "d"}) {
			f.Errorf("%s: the remaining objects are %v", kind, left)
		}
		if err := f.deleteCollection(kind); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), denial) {
			f.Errorf("%s: the answer is %v", kind, err)
		}
		if left := f.left(kind); !slices.Contains(left, "c") || !slices.Contains(left, "d") {
			f.Errorf("%s: the remaining objects are %v", kind, left)
		}
		for _, name := range []string{"c", "d"} {
			f.annotate(f.read(kind, name), "true")
		}
		kit.Must(f, f.deleteCollection(kind))
		if left := f.left(kind); len(left) > 0 {
			f.Errorf("%s: the remaining objects are %v", kind, left)
		}
	})
	if sent := f.requests.All(); len(sent) > 0 {
		f.Errorf("the webhook sent requests: %v", sent)
	}
}

// TestDeletionOfCollectionOfDefinitions checks the same for definitions. Only those with the label count.
func TestDeletionOfCollectionOfDefinitions(t *testing.T) {
	f := newFixture(t)
	for i, label := range []string{"false", "true", "true"} {
		object := definition(fmt.Sprintf("g%d.%s.example.com", i, f.namespace), "v1", "Thing", "things", apiextensionsv1.NamespaceScoped)
		object.Labels = map[string]string{testLabel: f.namespace, deletionprotection.LabelDeletionProtected: label}
		if i == 2 {
			object.Annotations = map[string]string{deletionprotection.AnnotationConfirmation: "true"}
		}
		f.create(object)
	}
	all := client.MatchingLabels{testLabel: f.namespace}
	protected := client.MatchingLabels{testLabel: f.namespace, deletionprotection.LabelDeletionProtected: "true"}
	err := f.client.DeleteAllOf(f.Context(), &apiextensionsv1.CustomResourceDefinition{}, protected)
	f.wantRefused(err, http.StatusForbidden, denial+`: CustomResourceDefinition "things.g1.`+f.namespace+`.example.com"`)
	err = f.client.DeleteAllOf(f.Context(), &apiextensionsv1.CustomResourceDefinition{}, all)
	f.wantRefused(err, http.StatusForbidden, denial+`: CustomResourceDefinition "things.g1.`+f.namespace+`.example.com"`)
	kit.Must(f, f.client.DeleteAllOf(f.Context(), &apiextensionsv1.CustomResourceDefinition{},
		client.MatchingLabels{testLabel: f.namespace, deletionprotection.LabelDeletionProtected: "false"}))
}

// TestDeletionOfOthers checks that the handler allows the deletion of other resources, even if the API server is configured to call it
// for them.
func TestDeletionOfOthers(t *testing.T) {
	f := newUnguarded(t, rule("", "v1", []string{"configmaps"}, admissionregistrationv1.Delete),
		rule("extensions.gardener.cloud", "v1alpha1", []string{"workers/status"}, admissionregistrationv1.Update))
	f.guard()
	labels := map[string]string{testLabel: f.namespace, deletionprotection.LabelDeletionProtected: "true"}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: f.namespace, Labels: labels}}
	f.create(configMap)
	kit.Must(f, f.client.Delete(f.Context(), configMap))
	worker := f.object("Worker", "a", validSpecs["Worker"])
	worker.SetLabels(labels)
	f.create(worker)
	kit.WriteStatus(f, f.client, worker)
}
