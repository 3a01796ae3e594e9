package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Mutator is a program whose webhooks mutate objects when they are written.
type Mutator struct {
	Configuration *admissionregistrationv1.MutatingWebhookConfiguration
	// Revision identifies the version of the program's installation. A new version may mutate objects differently even if
	// its webhook configuration is unchanged.
	Revision string
}

// MarkMutated annotates the objects that webhooks select by labels with a digest of these webhooks. A new, changed or
// removed webhook then changes the manifest, so that the resource-manager applies the object again. Webhooks without
// an objectSelector and webhook certificates are ignored, because certificates are rotated. Leave the mutators out of
// [InputsDigest]: their changes are then rolled out at the pace of a new version of the program. If a selector is
// invalid, MarkMutated returns an error and changes no object.
func MarkMutated(objects []client.Object, mutators []Mutator) error {
	webhooks, err := selectingWebhooks(mutators)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		var parts [][]byte
		for _, webhook := range webhooks {
			if webhook.selector.Matches(labels.Set(obj.GetLabels())) {
				parts = append(parts, webhook.content)
			}
		}
		if len(parts) == 0 {
			continue
		}
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[AnnotationMutators] = object.Digest(parts...)
		obj.SetAnnotations(annotations)
	}
	return nil
}

// selectingWebhook is a webhook that selects objects by labels.
type selectingWebhook struct {
	name     string
	selector labels.Selector
	// content determines the mutations of the webhook.
	content []byte
}

// selectingWebhooks returns the webhooks that select objects by labels, sorted by name.
func selectingWebhooks(mutators []Mutator) ([]selectingWebhook, error) {
	var found []selectingWebhook
	for _, mutator := range mutators {
		for _, webhook := range mutator.Configuration.Webhooks {
			name := mutator.Configuration.Name + "/" + webhook.Name
			selector, err := metav1.LabelSelectorAsSelector(webhook.ObjectSelector)
			if err != nil {
				return nil, fmt.Errorf("objectSelector of the mutating webhook %s: %w", name, err)
			}
			if selector.Empty() || webhook.ObjectSelector == nil {
				continue
			}
			webhook.ClientConfig.CABundle = nil
			content, err := json.Marshal(webhook)
			if err != nil {
				return nil, fmt.Errorf("encode the mutating webhook %s: %w", name, err)
			}
			found = append(found, selectingWebhook{name, selector, slices.Concat([]byte(name+" "+mutator.Revision+" "), content)})
		}
	}
	slices.SortFunc(found, func(a, b selectingWebhook) int { return cmp.Compare(a.name, b.name) })
	return found, nil
}
