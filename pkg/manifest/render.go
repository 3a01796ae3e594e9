package manifest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Scope is the scope of a kind.
type Scope int

// The scopes.
const (
	ScopeUnknown Scope = iota
	ScopeNamespaced
	ScopeCluster
)

// RenderOptions are the options for rendering the objects of a ManagedResource.
type RenderOptions struct {
	Origin       string
	ManagedBy    string
	InjectLabels map[string]string
	// Scaled returns how an object is scaled. If it is nil, no object is scaled.
	Scaled func(object.Key) Scaling
	// Ignored selects fields whose live values are not reverted.
	Ignored []IgnoreRule
	// OnlyOnChange selects fields whose live values are not reverted while the manifest stays the same.
	OnlyOnChange []IgnoreRule
	// StatusOnCreation selects objects whose status is applied once, right after their creation.
	StatusOnCreation []resourcesv1alpha1.ObjectSelector
	// TokenTargets are the Secrets to which a token requestor copies tokens.
	TokenTargets map[object.Key]bool
}

// Rendered is the desired state of a ManagedResource in the target cluster.
type Rendered struct {
	Manifests []object.Manifest
	// Released are objects that are no longer managed.
	Released []object.Ref
	// Errors are the errors of manifests that could not be read. If there are any, Manifests is incomplete, and objects
	// that are missing from it must not be pruned.
	Errors []error
	// Coerced names objects with labels or annotations that were not strings.
	Coerced []string
	// Duplicated names keys that occur twice in a mapping, with their locations. The last one counts.
	Duplicated []string
}

// Render returns the manifests to be sent for documents. It sets default namespaces, labels and annotations, and
// removes fields that only the API server may set. Scopes are the scopes of the kinds in the target cluster. Render
// adds the kinds that the documents define. If the scope of an object is unknown, its namespace is that of the recorded
// object.
func Render(documents []Document, scopes map[schema.GroupVersionKind]Scope,
	recorded map[object.Key]resourcesv1alpha1.ObjectReference, options RenderOptions,
) Rendered {
	scopes = maps.Clone(scopes)
	for _, document := range documents {
		addDefinedScopes(scopes, document.Object)
	}
	var result Rendered
	byKey := map[object.Key][]object.Manifest{}
	for _, document := range documents {
		if document.Duplicates != "" {
			result.Duplicated = append(result.Duplicated, document.Duplicates)
		}
		ref, err := RefOf(document.Object)
		if err != nil {
			result.fail(fmt.Errorf("could not decode resource %s: %w", document.Source, err))
			continue
		}
		ref.Namespace = namespaceOf(ref, scopes[ref.GroupVersionKind], recorded)
		if paths := coerceMetadata(document.Object); len(paths) > 0 {
			result.Coerced = append(result.Coerced, describeCoerced(ref, paths))
		}
		if applyoptions.Of(annotationsOf(document.Object)).Release {
			result.Released = append(result.Released, ref)
			continue
		}
		manifest, err := complete(document, ref, options)
		if err != nil {
			result.fail(fmt.Errorf("could not decode resource %s: %w", document.Source, err))
			continue
		}
		byKey[ref.Key()] = append(byKey[ref.Key()], manifest)
	}
	for _, key := range slices.SortedFunc(maps.Keys(byKey), object.Key.Compare) {
		result.addUnlessContradictory(byKey[key])
	}
	return result
}

func (d *Rendered) fail(err error) {
	d.Errors = append(d.Errors, err)
}

// addUnlessContradictory adds an object unless its manifests contradict each other.
func (d *Rendered) addUnlessContradictory(copies []object.Manifest) {
	for _, other := range copies[1:] {
		if other.Digest != copies[0].Digest {
			d.fail(fmt.Errorf("%s occurs twice with different content, %s and %s: neither is applied, remove one",
				other.Ref, copies[0].Source, other.Source))
			return
		}
	}
	d.Manifests = append(d.Manifests, copies[0])
}

// RefOf returns the reference to an object. It returns an error for names that would direct a request elsewhere.
func RefOf(obj map[string]any) (object.Ref, error) {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	if apiVersion == "" || kind == "" {
		return object.Ref{}, errors.New("it has no apiVersion or no kind")
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" || gv.String() != apiVersion {
		return object.Ref{}, errors.New("its apiVersion is not <version> or <group>/<version>")
	}
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		return object.Ref{}, fmt.Errorf("the %s has no metadata.name, or one that is not a string", kind)
	}
	namespace, ok := meta["namespace"].(string)
	if !ok && meta["namespace"] != nil {
		return object.Ref{}, fmt.Errorf("the metadata.namespace of %s %s is not a string: quote it", kind, name)
	}
	ref := object.Ref{GroupVersionKind: gv.WithKind(kind), Namespace: namespace, Name: name}
	return ref, ref.Validate()
}

// namespaceOf returns the effective namespace of an object.
func namespaceOf(ref object.Ref, scope Scope, recorded map[object.Key]resourcesv1alpha1.ObjectReference) string {
	switch {
	case scope == ScopeCluster || ref.GroupKind() == (schema.GroupKind{Kind: "Namespace"}):
		return ""
	case scope == ScopeNamespaced:
		return NamespaceOrDefault(ref.Namespace)
	}
	for _, namespace := range []string{ref.Namespace, NamespaceOrDefault(ref.Namespace), ""} {
		key := object.Key{Group: ref.Group, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
		if _, ok := recorded[key]; ok {
			return namespace
		}
	}
	return NamespaceOrDefault(ref.Namespace)
}

// NamespaceOrDefault returns the namespace, or "default" if it is empty.
func NamespaceOrDefault(namespace string) string {
	if namespace == "" {
		return corev1.NamespaceDefault
	}
	return namespace
}

// complete sets the labels and annotations of an object and encodes it.
func complete(doc Document, ref object.Ref, options RenderOptions) (object.Manifest, error) {
	meta, err := normalize(doc.Object, ref)
	if err != nil {
		return object.Manifest{}, err
	}
	dropDuplicates(doc.Object, ref.GroupKind())
	labels, err := stringMap(meta, "metadata.labels")
	if err != nil {
		return object.Manifest{}, err
	}
	annotations, err := stringMap(meta, "metadata.annotations")
	if err != nil {
		return object.Manifest{}, err
	}
	manifest := object.Manifest{
		Ref: ref, Source: doc.Source, Labels: labels, Annotations: maps.Clone(annotations),
		Directive: applyoptions.Of(annotations),
	}
	if ref.GroupKind() == object.Definition {
		manifest.Defines, _ = definedKinds(doc.Object)
	}
	labelled := true
	maps.Copy(labels, options.labels()) // the inventory contains them for every object
	if !manifest.Directive.Bare {
		annotations[resourcesv1alpha1.AnnotationOrigin] = options.Origin
		annotations[resourcesv1alpha1.AnnotationDescription] = resourcesv1alpha1.Description
		meta["labels"], meta["annotations"] = fieldsOf(labels), fieldsOf(annotations)
		labelled = hasTemplateLabel(doc.Object)
		labelTemplates(doc.Object, ref.GroupKind(), options.labels())
		preserved := preservedFields(ref.GroupKind(), doc.Object, manifest.Annotations, options.scalingOf(ref))
		manifest.Preserve, manifest.PreserveIfSet = preserved.always, preserved.ifSet
		manifest.OnlyOnChange = ignoredFields(options.OnlyOnChange, ref)
		ignored := ignoredFields(options.Ignored, ref)
		manifest.Preserve = append(manifest.Preserve, ignored...)
		if !slices.ContainsFunc(ignored, coversReplicas) {
			manifest.ReplicasFromZero = preserved.fromZero
		}
		manifest.PreserveIfSet = append(manifest.PreserveIfSet, filledFields(ref, doc.Object, labels, options.TokenTargets)...)
		manifest.Untaken = tokenFields(ref, doc.Object, labels, options.TokenTargets)
		if size := fieldowner.ClaimSize(); ref.GroupKind() == (schema.GroupKind{Kind: "PersistentVolumeClaim"}) && size.Has(doc.Object) {
			manifest.Untaken = append(manifest.Untaken, size) // a client may have expanded the claim
		}
		if ref.GroupKind() == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
			for key := range options.labels() { // the template of a Job is immutable
				manifest.Preserve = append(manifest.Preserve, fieldowner.Pattern{"spec", "template", "metadata", "labels", key})
			}
		}
		if status, hasStatus := doc.Object["status"]; hasStatus {
			manifest.Preserve = append(manifest.Preserve, fieldowner.Pattern{"status"})
			if manifest.Status, err = options.statusOf(ref, status); err != nil {
				return object.Manifest{}, err
			}
		}
	}
	manifest, err = encode(manifest, doc.Object)
	if err == nil && !labelled {
		manifest.Adopted, err = adopted(manifest, doc.Object)
	}
	return manifest, err
}

// encode sets the bodies: Body without the preserved fields, Initial with all fields for the creation, and Changed with
// the OnlyOnChange fields for changed manifests. Initial and Changed are only set if they differ from Body.
func encode(manifest object.Manifest, obj map[string]any) (object.Manifest, error) {
	body, err := object.EncodeBody(obj)
	if err != nil {
		return manifest, fmt.Errorf("encode %s: %w", manifest.Ref, err)
	}
	full := body
	if manifest.Stripped, body, err = strip(obj, manifest.Preserve, body); err != nil {
		return manifest, fmt.Errorf("encode %s: %w", manifest.Ref, err)
	}
	changed := body
	onChange, body, err := strip(obj, manifest.OnlyOnChange, body)
	if err != nil {
		return manifest, fmt.Errorf("encode %s: %w", manifest.Ref, err)
	}
	manifest.Preserve = append(manifest.Preserve, manifest.OnlyOnChange...)
	manifest.Stripped = append(manifest.Stripped, onChange...)
	if len(manifest.Stripped) > 0 {
		manifest.Initial = full
	}
	if len(onChange) > 0 {
		manifest.Changed = changed
	}
	parts := [][]byte{changed}
	for _, pattern := range manifest.Stripped {
		// A field may be removed from the manifest at the same time as it is no longer preserved.
		parts = append(parts, []byte(strings.Join(pattern, "/")))
	}
	manifest.Body, manifest.Digest = body, object.Digest(parts...)
	return manifest, nil
}

// strip removes the fields of the patterns from an object with the given encoded body. It returns the patterns whose
// fields existed, and the body without these fields.
func strip(obj map[string]any, patterns []fieldowner.Pattern, body []byte) (stripped []fieldowner.Pattern, rest []byte, err error) {
	for _, pattern := range patterns {
		if pattern.Has(obj) {
			stripped = append(stripped, pattern)
		}
	}
	if len(stripped) == 0 {
		return nil, body, nil
	}
	for _, pattern := range stripped {
		pattern.Strip(obj)
	}
	rest, err = object.EncodeBody(obj)
	return stripped, rest, err
}

// normalize removes the fields of an object that only the API server sets, sets its namespace and returns its metadata.
func normalize(obj map[string]any, ref object.Ref) (map[string]any, error) {
	meta := mapAt(obj, "metadata")
	for _, field := range serverFields {
		delete(meta, field)
	}
	dropBookkeeping(meta, ref.GroupKind())
	delete(meta, "namespace")
	if ref.Namespace != "" {
		meta["namespace"] = ref.Namespace
	}
	if _, aggregated := obj["aggregationRule"].(map[string]any); aggregated && ref.Kind == "ClusterRole" {
		delete(obj, "rules") // a controller of Kubernetes fills them in
	}
	if ref.Group == "" && ref.Kind == "Secret" {
		return meta, mergeStringData(obj)
	}
	return meta, nil
}

// annotationsOf returns the annotations of an object that are strings.
func annotationsOf(obj map[string]any) map[string]string {
	meta, _ := obj["metadata"].(map[string]any)
	values, _ := meta["annotations"].(map[string]any)
	annotations := make(map[string]string, len(values))
	for key, value := range values {
		if text, ok := value.(string); ok {
			annotations[key] = text
		}
	}
	return annotations
}

// serverFields are the metadata fields that only the API server sets. Objects that were read from a cluster have them,
// and server-side apply rejects some of them.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid",
}

// labels returns the labels for every object and for pod templates. The managed-by label takes precedence.
func (m RenderOptions) labels() map[string]string {
	labels := maps.Clone(m.InjectLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[resourcesv1alpha1.LabelManagedBy] = m.ManagedBy
	return labels
}

// mergeStringData moves the stringData of a Secret to data, as the API server does. With server-side apply, stringData
// would be owned although it is never stored, so that keys that are removed from it would stay in data.
func mergeStringData(secret map[string]any) error {
	stringData, err := stringMap(secret, "stringData")
	if err != nil || secret["stringData"] == nil {
		return err
	}
	if _, isMap := secret["data"].(map[string]any); !isMap && secret["data"] != nil {
		return errors.New("its data is not a map")
	}
	for key, value := range stringData {
		mapAt(secret, "data")[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	delete(secret, "stringData")
	return nil
}

// mapAt returns the map in a field. It creates the map if the field does not contain one.
func mapAt(parent map[string]any, field string) map[string]any {
	child, ok := parent[field].(map[string]any)
	if !ok {
		child = map[string]any{}
		parent[field] = child
	}
	return child
}

// stringMap returns a copy of a field that must map strings to strings. Null becomes the empty string, as in requests
// to the API server other than server-side apply. The path is used in errors. Its last part is the name of the field in
// parent.
func stringMap(parent map[string]any, path string) (map[string]string, error) {
	field := path[strings.LastIndex(path, ".")+1:]
	values, ok := parent[field].(map[string]any)
	if !ok && parent[field] != nil {
		return nil, fmt.Errorf("its %s is not a map", path)
	}
	result := make(map[string]string, len(values)+2)
	for _, key := range slices.Sorted(maps.Keys(values)) { // for deterministic errors
		text, ok := values[key].(string)
		if !ok && values[key] != nil {
			return nil, fmt.Errorf("its %s[%q] is not a string: quote it", path, key)
		}
		result[key] = text
	}
	return result, nil
}

// fieldsOf converts a map to its type after decoding from JSON, as patterns require it.
func fieldsOf(values map[string]string) map[string]any {
	fields := make(map[string]any, len(values))
	for key, value := range values {
		fields[key] = value
	}
	return fields
}
