package faults

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	manifestpkg "github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/test/kit"
)

// key identifies an object.
type key struct {
	schema.GroupVersionKind
	namespace, name string
}

func (k key) String() string { return fmt.Sprintf("%s %s/%s", k.Kind, k.namespace, k.name) }

func keyOf(obj *unstructured.Unstructured) key {
	return key{obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName()}
}

// wanted is a declared object and the ManagedResource that declares it.
type wanted struct {
	*unstructured.Unstructured
	by string
}

func (w *world) wanted(s state) map[key]wanted {
	w.Helper()
	all := map[key]wanted{}
	for name, objects := range w.objects(s) {
		for _, obj := range objects {
			if obj.GetAnnotations()[resourcesv1alpha1.AnnotationMode] == resourcesv1alpha1.ModeIgnore {
				continue
			}
			if w.replicas > 0 && obj.GetKind() == "Deployment" {
				kit.Must(w, unstructured.SetNestedField(obj.Object, w.replicas, "spec", "replicas"))
			}
			all[keyOf(obj)] = wanted{obj, name}
		}
	}
	return all
}

// kinds returns the kinds of all objects of the scenario.
func (w *world) kinds() []schema.GroupVersionKind {
	w.Helper()
	kinds := map[schema.GroupVersionKind]bool{}
	for _, s := range []state{w.given, w.then} {
		for k := range w.wanted(s) {
			kinds[k.GroupVersionKind] = true
		}
	}
	return slices.Collect(maps.Keys(kinds))
}

// ours returns the objects that the resource-manager created: those with its origin annotation, with or without
// the label, and those with the label that are not among the objects of others.
func (w *world) ours() (map[key]*unstructured.Unstructured, error) {
	w.Helper()
	ours := map[key]*unstructured.Unstructured{}
	for _, gvk := range w.kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		selection := []client.ListOption{client.InNamespace(w.namespace)}
		if gvk.Kind == "CustomResourceDefinition" {
			selection = []client.ListOption{client.MatchingLabels{resourcesv1alpha1.LabelManagedBy: w.class()}}
		}
		err := w.client.List(w.Context(), list, selection...)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // the definition does not exist, so no objects exist
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			obj := &list.Items[i]
			if w.isOurs(obj) {
				ours[keyOf(obj)] = obj
			}
		}
	}
	return ours, nil
}

func (w *world) isOurs(obj metav1.Object) bool {
	if slices.ContainsFunc(w.untouched, func(other *unstructured.Unstructured) bool { return other.GetUID() == obj.GetUID() }) {
		return false
	}
	origin, found := resourcesv1alpha1.ParseOrigin(obj.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin])
	return found && origin.ClusterID == w.class() || obj.GetLabels()[resourcesv1alpha1.LabelManagedBy] == w.class()
}

// objections returns the differences between the cluster and a state.
func (w *world) objections(s state) []string {
	w.Helper()
	if err := w.rollOut(); err != nil {
		return []string{err.Error()}
	}
	ours, err := w.ours()
	if err != nil {
		return []string{err.Error()}
	}
	var objections []string
	all := w.wanted(s)
	for k, want := range all {
		if got, there := ours[k]; !there {
			objections = append(objections, k.String()+" is missing")
		} else if text := w.differs(want, got); text != "" {
			objections = append(objections, k.String()+": "+text)
		}
	}
	for k, obj := range ours {
		if _, is := all[k]; !is && !slices.Contains(w.left, k.name) {
			objections = append(objections, fmt.Sprintf("%s exists, but is not wanted; deletion timestamp %v", k, obj.GetDeletionTimestamp()))
		}
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := w.client.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
		return append(objections, err.Error())
	}
	for i := range list.Items {
		objections = append(objections, objectionsTo(&list.Items[i], all)...)
		if inputs, replaced := w.outdated[list.Items[i].Name]; replaced && list.Items[i].Status.AppliedInputs == inputs {
			objections = append(objections, list.Items[i].Name+" was not reconciled since its Secret changed")
		}
		if manifests, is := s[list.Items[i].Name]; is && ptr.Deref(list.Items[i].Status.SecretsDataChecksum, "") != w.checksum(manifests) {
			objections = append(objections, list.Items[i].Name+" was reconciled with other manifests")
		}
	}
	if len(list.Items) != len(s) {
		objections = append(objections, fmt.Sprintf("found %d ManagedResources, want %d", len(list.Items), len(s)))
	}
	slices.Sort(objections)
	return objections
}

// differs compares an object with its manifest. All declared fields must be equal, data must have no other keys,
// and the object must have its marks.
func (w *world) differs(want wanted, got *unstructured.Unstructured) string {
	if got.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	origin := resourcesv1alpha1.Origin{ClusterID: w.class(), Owner: client.ObjectKey{Namespace: w.namespace, Name: want.by}}
	if text := got.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; text != origin.String() {
		return "its origin is " + text
	}
	if label := got.GetLabels()[resourcesv1alpha1.LabelManagedBy]; label != w.class() {
		return "its managed-by label is " + label
	}
	for field, value := range want.Object {
		switch field {
		case "stringData":
			if data := encoded(value); !reflect.DeepEqual(data, got.Object["data"]) {
				return fmt.Sprintf("data is %v, want %v", got.Object["data"], data)
			}
		case "data":
			if !reflect.DeepEqual(value, got.Object[field]) {
				return fmt.Sprintf("%s is %v, want %v", field, got.Object[field], value)
			}
		default:
			if !within(value, got.Object[field]) {
				return fmt.Sprintf("%s is %v, want %v", field, got.Object[field], value)
			}
		}
	}
	return ""
}

// encoded returns stringData as data.
func encoded(texts any) any {
	data := map[string]any{}
	fields, _ := texts.(map[string]any)
	for name, text := range fields {
		data[name] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(text)))
	}
	return data
}

// within reports whether everything in one value is also in another one, which may have more fields.
func within(part, whole any) bool {
	switch part := part.(type) {
	case map[string]any:
		fields, is := whole.(map[string]any)
		if !is {
			return false
		}
		for name, value := range part {
			if !within(value, fields[name]) {
				return false
			}
		}
		return true
	case []any:
		items, is := whole.([]any)
		if !is || len(items) != len(part) {
			return false
		}
		for i := range part {
			if !within(part[i], items[i]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(part) == fmt.Sprint(whole) // numbers have one of two types
}

// checksum returns the checksum of the Secret that holds manifests.
func (w *world) checksum(manifests []string) string {
	w.Helper()
	return manifestpkg.Checksum([]*corev1.Secret{{Data: w.data(manifests)}})
}

// objectionsTo returns the differences between a ManagedResource and a healthy, fully reconciled one.
func objectionsTo(mr *resourcesv1alpha1.ManagedResource, all map[key]wanted) []string {
	if mr.DeletionTimestamp != nil {
		return []string{mr.Name + " is being deleted: " + fmt.Sprint(mr.Status.Resources)}
	}
	var objections []string
	if mr.Status.ObservedGeneration != mr.Generation || mr.Status.AppliedInputs == "" ||
		!slices.Equal(mr.Finalizers, []string{resourcesv1alpha1.FinalizerOf(*mr.Spec.Class)}) {
		objections = append(objections, fmt.Sprintf("%s is not fully reconciled: observed %d of %d, inputs %q, finalizers %v", mr.Name,
			mr.Status.ObservedGeneration, mr.Generation, mr.Status.AppliedInputs, mr.Finalizers))
	}
	for conditionType, want := range map[resourcesv1alpha1.ConditionType]string{
		resourcesv1alpha1.ResourcesApplied:     "True " + resourcesv1alpha1.ReasonApplySucceeded,
		resourcesv1alpha1.ResourcesHealthy:     "True " + resourcesv1alpha1.ReasonResourcesHealthy,
		resourcesv1alpha1.ResourcesProgressing: "False " + resourcesv1alpha1.ReasonResourcesRolledOut,
	} {
		condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, conditionType)
		if got := string(condition.Status) + " " + condition.Reason; got != want {
			objections = append(objections, fmt.Sprintf("%s of %s is %s: %s", conditionType, mr.Name, got, condition.Message))
		}
	}
	var recorded, owned []string
	for _, entry := range mr.Status.Resources {
		recorded = append(recorded, entryKey(entry).String())
	}
	for k, want := range all {
		if want.by == mr.Name {
			owned = append(owned, k.String())
		}
	}
	slices.Sort(recorded)
	slices.Sort(owned)
	if !slices.Equal(recorded, owned) {
		objections = append(objections, fmt.Sprintf("the inventory of %s is %v, want %v", mr.Name, recorded, owned))
	}
	return objections
}

func entryKey(entry resourcesv1alpha1.ObjectReference) key {
	return key{schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind), entry.Namespace, entry.Name}
}

// verify checks the final state after all processes have stopped.
func (w *world) verify(undisturbed string) {
	w.Helper()
	for _, finding := range w.findings(undisturbed) {
		w.Error(finding)
	}
}

// findings returns all violations: differences from the declared state, changes of objects that must not change,
// violations recorded during the run, and differences from the outcome of a run without a fault. An empty
// undisturbed skips the last check.
func (w *world) findings(undisturbed string) []string {
	w.Helper()
	findings := append(w.objections(w.then), w.violated()...)
	for _, before := range w.untouched {
		after := &unstructured.Unstructured{}
		after.SetGroupVersionKind(before.GroupVersionKind())
		err := w.client.Get(w.Context(), client.ObjectKeyFromObject(before), after)
		if err != nil || after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
			findings = append(findings, fmt.Sprintf("%s of another owner was changed: %v %v", keyOf(before), err, after.Object))
		}
	}
	uids := w.uids()
	for k, before := range w.kept {
		if after := uids[k]; before != after && !w.deletedByHand(k) {
			findings = append(findings, fmt.Sprintf("%s had the UID %s before and has the UID %q now", k, before, after))
		}
	}
	for k, before := range w.leftBehind {
		if obj := w.read(k); (obj == nil || string(obj.UID) != before) && !w.deletedByHand(k) {
			findings = append(findings, fmt.Sprintf("%s should have been retained with the UID %s, but is %v", k, before, obj))
		}
	}
	if w.recreated != nil {
		undisturbed = "" // the fields that other managers had set are lost
	}
	if got := w.snapshot(); undisturbed != "" && got != undisturbed {
		findings = append(findings, "the outcome differs from that of a run without a fault:\n"+got+"\nwithout a fault:\n"+undisturbed)
	}
	return findings
}

// deletedByHand reports whether the fault of the run deletes an object by hand.
func (w *world) deletedByHand(k key) bool { return w.recreated != nil && k.isOf(*w.recreated) }

// snapshot describes the final state of a run, without details that differ between runs.
func (w *world) snapshot() string {
	w.Helper()
	ours, err := w.ours()
	kit.Must(w, err)
	var lines []string
	for _, obj := range ours {
		delete(obj.Object, "status")
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
			unstructured.RemoveNestedField(obj.Object, "metadata", field)
		}
		for _, field := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(obj.Object, "spec", field)
		}
		managers := obj.GetManagedFields()
		obj.SetManagedFields(nil)
		var fields []string
		for _, entry := range managers {
			if entry.Subresource == "" {
				fields = append(fields, fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.FieldsV1.GetRawString()))
			}
		}
		slices.Sort(fields)
		text, err := json.Marshal([]any{obj.Object, fields})
		kit.Must(w, err)
		lines = append(lines, strings.ReplaceAll(string(text), w.namespace, placeholder))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
