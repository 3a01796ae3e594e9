package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// compressFrom is the size in bytes from which manifests are compressed. Smaller ones stay readable.
const compressFrom = 4096

// Default limits with which the resource-manager reads a Secret.
const (
	maxBytes     = 64 << 20
	maxDocuments = 20_000
)

// revision is a bundle in its encoded form.
type revision struct {
	bundle Bundle
	// keys and texts are the names and the JSON of the objects.
	keys  []object.Key
	texts [][]byte
	// content is a digest of the desired state. Equal bundles have equal digests.
	content string
}

// compile encodes a bundle. Equal bundles have equal revisions, regardless of the order of their objects.
func compile(bundle Bundle, scheme *runtime.Scheme) (*revision, error) {
	if bundle.AppliesItself {
		bundle.Spec.KeepObjects = ptr.To(true)
	}
	bundle.Spec.SecretRefs = nil
	bundle.Spec.DeleteAfter = deleteAfter(bundle)
	r := &revision{bundle: bundle}
	type item struct {
		key  object.Key
		text []byte
	}
	items := make([]item, 0, len(bundle.Objects))
	for _, obj := range bundle.Objects {
		key, text, err := encode(obj, scheme, bundle.Spec.StatusOnCreation)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", bundle, err)
		}
		items = append(items, item{key, text})
	}
	slices.SortFunc(items, func(a, b item) int { return a.key.Compare(b.key) })
	for i, item := range items {
		if i > 0 && item.key == items[i-1].key {
			return nil, fmt.Errorf("%s contains the object %s twice", bundle, item.key)
		}
		r.keys = append(r.keys, item.key)
		r.texts = append(r.texts, item.text)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%s has no objects: omit it from the plan, or delete it with a tombstone", bundle)
	}
	rest, err := json.Marshal(struct {
		Spec        resourcesv1alpha1.ManagedResourceSpec
		DeleteAfter []Key
		Labels      map[string]string
		Choices     map[string]string
	}{bundle.Spec, bundle.DeleteAfter, bundle.Labels, bundle.Choices})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", bundle, err)
	}
	r.content = object.Digest(append(slices.Clip(r.texts), rest)...)
	return r, nil
}

// deleteAfter returns the ManagedResources that must be deleted before the objects of a bundle. The resource-manager
// needs this for manual deletions. Nil stands for the bundles that depend on it, an empty list for none.
func deleteAfter(bundle Bundle) []resourcesv1alpha1.ManagedResourceReference {
	if bundle.DeleteAfter == nil {
		return nil
	}
	references := make([]resourcesv1alpha1.ManagedResourceReference, 0, len(bundle.DeleteAfter))
	for _, key := range bundle.DeleteAfter {
		references = append(references, resourcesv1alpha1.ManagedResourceReference{Namespace: key.Namespace, Name: key.Name})
	}
	return references
}

// encode returns an object as JSON with sorted fields, without its status, unless withStatus selects it.
func encode(obj client.Object, scheme *runtime.Scheme, withStatus []resourcesv1alpha1.ObjectSelector) (object.Key, []byte, error) {
	kind, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return object.Key{}, nil, fmt.Errorf("the kind of object %s: %w", keyOf(obj), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return object.Key{}, nil, fmt.Errorf("encode %s %s: %w", kind.Kind, keyOf(obj), err)
	}
	u := &unstructured.Unstructured{Object: maps.Clone(content)}
	if metadata, found := u.Object["metadata"].(map[string]any); found {
		metadata = maps.Clone(metadata)
		delete(metadata, "creationTimestamp") // null in typed objects
		u.Object["metadata"] = metadata
	}
	u.SetGroupVersionKind(kind)
	selects := func(s resourcesv1alpha1.ObjectSelector) bool { return s.Selects(kind.GroupKind(), u.GetName()) }
	if !slices.ContainsFunc(withStatus, selects) {
		delete(u.Object, "status")
	}
	if u.GetName() == "" {
		return object.Key{}, nil, fmt.Errorf("a %s has no name", kind.Kind)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return object.Key{}, nil, fmt.Errorf("encode %s %s: %w", kind.Kind, keyOf(obj), err)
	}
	return object.Key{Group: kind.Group, Kind: kind.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}, text, nil
}

// secrets returns the Secrets that hold the manifests of a revision.
func (r *revision) secrets(owner Owner) ([]*corev1.Secret, error) {
	documents := make([]manifestsecret.Document, 0, len(r.texts))
	for i, text := range r.texts {
		converted, err := readable(text)
		if err != nil {
			return nil, fmt.Errorf("%s: encode %s: %w", r.bundle, r.keys[i], err)
		}
		documents = append(documents, manifestsecret.Document{Name: r.keys[i].String(), Text: converted})
	}
	secrets, err := pack(owner, r.bundle.Key, documents)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.bundle, err)
	}
	return secrets, nil
}

// readable returns a JSON object as YAML. The result is that of yaml.JSONToYAML, which parses JSON with the much slower parser of YAML.
func readable(text []byte) ([]byte, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	return yaml.Marshal(content)
}

// pack writes documents into Secrets of a flow.
func pack(owner Owner, key Key, documents []manifestsecret.Document) ([]*corev1.Secret, error) {
	secrets, err := manifestsecret.Secrets(documents, manifestsecret.Options{
		Namespace: key.Namespace, Name: key.Name, CompressFrom: compressFrom, MaxBytes: maxBytes, MaxDocuments: maxDocuments,
	})
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		maps.Copy(secret.Labels, owner.marks())
		secret.Annotations = map[string]string{AnnotationOwner: owner.String()}
	}
	return secrets, nil
}

// InputsDigest returns a digest of all inputs of a flow, prefixed with a digest of their types. Inputs with the same
// JSON have the same digest. The error is that of the JSON encoder.
func InputsDigest(inputs ...any) (string, error) {
	parts := make([][]byte, 0, len(inputs))
	for _, input := range inputs {
		part, err := json.Marshal(input)
		if err != nil {
			return "", fmt.Errorf("encode the inputs of a flow: %w", err)
		}
		parts = append(parts, part)
	}
	return typesDigest(inputs) + typesEnd + object.Digest(parts...), nil
}
