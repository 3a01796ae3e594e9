package manifest

import (
	"slices"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// writtenByTokenRequestor are the fields that the token requestor of gardener-resource-manager writes to a Secret. Its
// field manager is the one that also applies the manifests of gardener-resource-manager's ManagedResources.
var writtenByTokenRequestor = []fieldowner.Pattern{
	{"data", "token"}, {"data", "kubeconfig"}, {"data", "bundle.crt"},
	{"metadata", "annotations", resourcesv1alpha1.AnnotationTokenRenewTimestamp},
}

// tokenFields returns the fields of a Secret that a token requestor may have written. They are those that are not in
// the manifest, if the token requestor fills in the Secret or copies tokens to it.
func tokenFields(ref object.Ref, obj map[string]any, labels map[string]string, targets map[object.Key]bool) []fieldowner.Pattern {
	if !getsToken(ref, labels, targets) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(writtenByTokenRequestor), func(field fieldowner.Pattern) bool { return field.Has(obj) })
}

// getsToken reports whether an object is a Secret that a token requestor fills in or to which it copies tokens.
func getsToken(ref object.Ref, labels map[string]string, targets map[object.Key]bool) bool {
	return IsSecret(ref.Key()) && (labels[resourcesv1alpha1.LabelPurpose] == resourcesv1alpha1.PurposeTokenRequestor || targets[ref.Key()])
}

// filledFields returns the fields of a manifest that are placeholders for a token requestor: a kubeconfig, which is a
// template, and keys without a value. They are sent only as long as the live Secret does not have them. Otherwise, the
// two controllers would overwrite each other.
func filledFields(ref object.Ref, obj map[string]any, labels map[string]string, targets map[object.Key]bool) []fieldowner.Pattern {
	if !getsToken(ref, labels, targets) {
		return nil
	}
	data, _ := obj["data"].(map[string]any)
	var fields []fieldowner.Pattern
	for _, key := range []string{resourcesv1alpha1.DataKeyKubeconfig, resourcesv1alpha1.DataKeyToken, resourcesv1alpha1.DataKeyBundle} {
		if value, found := data[key]; found && (key == resourcesv1alpha1.DataKeyKubeconfig || value == "" || value == nil) {
			fields = append(fields, fieldowner.Pattern{"data", key})
		}
	}
	return fields
}

// IsSecret reports whether the object is a Secret.
func IsSecret(key object.Key) bool {
	return key.Group == "" && key.Kind == "Secret"
}

// MayBeFilledByTokenRequestor reports whether a document is a Secret with a key that a token requestor writes.
func MayBeFilledByTokenRequestor(doc Document) bool {
	ref, err := RefOf(doc.Object)
	return err == nil && IsSecret(ref.Key()) && slices.ContainsFunc(writtenByTokenRequestor, func(field fieldowner.Pattern) bool {
		return field.Has(doc.Object) || field[0] == "data" && fieldowner.Pattern{"stringData", field[1]}.Has(doc.Object)
	})
}
