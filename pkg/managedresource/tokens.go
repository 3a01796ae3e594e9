package managedresource

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// writtenByTokenRequestor are the fields that gardener-resource-manager's token requestor writes into a Secret. It does so
// as the same field manager as applies the manifests of gardener-resource-manager's ManagedResources.
var writtenByTokenRequestor = []fieldowner.Pattern{
	{"data", "token"}, {"data", "kubeconfig"}, {"data", "bundle.crt"},
	{"metadata", "annotations", resourcesv1alpha1.AnnotationTokenRenewTimestamp},
}

// tokenFields returns the fields of a Secret that a token requestor may have written: those that are not in the manifest
// of a Secret that it fills in, or into which it copies what it got.
func tokenFields(ref object.Ref, obj map[string]any, labels map[string]string, targets map[object.Key]bool) []fieldowner.Pattern {
	if !getsToken(ref, labels, targets) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(writtenByTokenRequestor), func(field fieldowner.Pattern) bool { return field.Has(obj) })
}

// getsToken reports whether an object is a Secret that a token requestor fills in, or into which it copies what it got.
func getsToken(ref object.Ref, labels map[string]string, targets map[object.Key]bool) bool {
	return isSecret(ref.Key()) && (labels[resourcesv1alpha1.LabelPurpose] == resourcesv1alpha1.PurposeTokenRequestor || targets[ref.Key()])
}

// filledFields returns the fields of a manifest that only say where a token requestor is to write: a kubeconfig, which is a template,
// and keys without a value. They are sent as long as the live Secret does not have them; otherwise the two would overwrite each other.
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

func isSecret(key object.Key) bool {
	return key.Group == "" && key.Kind == "Secret"
}

// readTokenTargets finds out into which Secrets of the target cluster a token requestor copies what it got: annotations of
// Secrets in the source cluster name them. They are looked for only if one of the documents is a Secret of which others own
// fields, or that a token requestor may fill in.
func (p *pass) readTokenTargets(ctx context.Context) error {
	if !p.mayBeFilled() && !p.takesOverSecrets(ctx) {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := p.Source.List(ctx, list, client.UnsafeDisableDeepCopy,
		client.MatchingLabels{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor})
	if err != nil {
		return fmt.Errorf("list the Secrets of the source cluster for a token requestor: %w", err)
	}
	p.tokenTargets = map[object.Key]bool{}
	for _, secret := range list.Items {
		p.tokenTargets[object.Key{
			Kind:      "Secret",
			Namespace: secret.Annotations[resourcesv1alpha1.AnnotationTokenTargetNamespace],
			Name:      secret.Annotations[resourcesv1alpha1.AnnotationTokenTargetName],
		}] = true
	}
	return nil
}

// mayBeFilled reports whether one of the documents is a Secret with a key that a token requestor writes.
func (p *pass) mayBeFilled() bool {
	return slices.ContainsFunc(p.documents, func(document document) bool {
		ref, err := refOf(document.object)
		return err == nil && isSecret(ref.Key()) && slices.ContainsFunc(writtenByTokenRequestor, func(field fieldowner.Pattern) bool {
			return field.Has(document.object) || field[0] == "data" && fieldowner.Pattern{"stringData", field[1]}.Has(document.object)
		})
	})
}

// takesOverSecrets reports whether one of the documents is a Secret that gardener-resource-manager applied, or of which others
// own fields. Both have its label, so that watches show them.
func (p *pass) takesOverSecrets(ctx context.Context) bool {
	var secrets []object.Ref
	for _, document := range p.documents {
		if ref, err := refOf(document.object); err == nil && isSecret(ref.Key()) {
			ref.Namespace = orDefault(ref.Namespace)
			secrets = append(secrets, ref)
		}
	}
	return p.takesOver(ctx, secrets)
}

// takesOver reports whether fields of one of the objects are to be taken over.
func (p *pass) takesOver(ctx context.Context, refs []object.Ref) bool {
	for _, state := range p.Live.Read(ctx, refs) {
		if state.Presence == live.Present && (state.Observation.OwnedDigest == "" || state.Observation.Displaceable != nil) {
			return true
		}
	}
	return false
}
