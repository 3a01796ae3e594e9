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

// Mutator is a program whose webhooks change objects when they are written.
type Mutator struct {
	Configuration *admissionregistrationv1.MutatingWebhookConfiguration
	// Revision identifies the version of the program, which may change objects in another way though its configuration is the same: that of
	// its installation.
	Revision string
}

// MarkMutated annotates the objects that webhooks select by their labels with a digest of these webhooks, so that such objects are sent
// again when a webhook comes, goes or changes: the resource-manager sends nothing otherwise, as their manifests are the same. Webhooks
// without an objectSelector count for no object. Certificates of webhooks do not count either, as they are rotated. Leave the mutators out of
// [InputsDigest]: what they change is then rolled out at the pace of a new version of the program. The error names a selector that is
// invalid, and no object is changed.
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

// selectingWebhook is a webhook that selects objects by their labels.
type selectingWebhook struct {
	name     string
	selector labels.Selector
	// content is what decides about the changes that it makes.
	content []byte
}

// selectingWebhooks returns the webhooks that select objects by their labels, in the order of their names.
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
