// Package extensionwebhooks finds the webhooks with which extensions change the objects of control planes. The manifests of these objects do
// not change with the webhooks, so a flow marks them: see [flow.MarkMutated].
package extensionwebhooks

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Rollouts remembers which revision of each extension was last rolled out completely. While a new revision is being rolled out, webhooks may
// still be served by the former one, so objects that are sent then may keep its changes.
type Rollouts struct {
	mu        sync.Mutex
	completed map[string]string
}

// Mutators returns the webhook configurations of extensions, sorted by name. installations are the ManagedResources of ControllerInstallations,
// by their names. Their revisions are those that were last rolled out completely, and empty if none was since the start of the process.
func (r *Rollouts) Mutators(
	configurations []admissionregistrationv1.MutatingWebhookConfiguration, installations map[string]*resourcesv1alpha1.ManagedResource,
) []flow.Mutator {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.completed == nil {
		r.completed = map[string]string{}
	}
	maps.DeleteFunc(r.completed, func(name, _ string) bool { return installations[name] == nil })
	for name, mr := range installations {
		if flow.IsRolledOut(mr) {
			r.completed[name] = Revision(mr)
		}
	}
	var found []flow.Mutator
	for i := range configurations {
		if name := installationOf(&configurations[i]); name != "" {
			found = append(found, flow.Mutator{Configuration: &configurations[i], Revision: r.completed[name]})
		}
	}
	slices.SortFunc(found, func(a, b flow.Mutator) int { return cmp.Compare(a.Configuration.Name, b.Configuration.Name) })
	return found
}

// Revision returns the revision of an extension: the Secrets with its manifests, whose names change with their contents.
func Revision(mr *resourcesv1alpha1.ManagedResource) string {
	var names []string
	for _, reference := range mr.Spec.SecretRefs {
		names = append(names, reference.Name)
	}
	return strings.Join(names, " ")
}

// installationOf returns the ControllerInstallation whose program serves a webhook of the configuration, empty if another program does.
func installationOf(configuration *admissionregistrationv1.MutatingWebhookConfiguration) string {
	for _, webhook := range configuration.Webhooks {
		if service := webhook.ClientConfig.Service; service != nil {
			if name, is := strings.CutPrefix(service.Namespace, constants.PrefixExtensionNamespace); is {
				return name
			}
		}
	}
	return ""
}

// In returns the webhooks of mutators that select objects by labels in a namespace with the given labels. Of their metadata and certificates,
// which change without another effect, it keeps only the names.
func In(mutators []flow.Mutator, namespace map[string]string) []flow.Mutator {
	var selected []flow.Mutator
	for _, mutator := range mutators {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		configuration.Name = mutator.Configuration.Name
		for _, webhook := range mutator.Configuration.Webhooks {
			// The API server refuses selectors that cannot be parsed.
			selector, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
			everywhere := webhook.NamespaceSelector == nil
			if err != nil || !everywhere && !selector.Matches(labels.Set(namespace)) || isEmpty(webhook.ObjectSelector) {
				continue
			}
			webhook.ClientConfig.CABundle = nil
			configuration.Webhooks = append(configuration.Webhooks, webhook)
		}
		if len(configuration.Webhooks) > 0 {
			selected = append(selected, flow.Mutator{Configuration: configuration, Revision: mutator.Revision})
		}
	}
	return selected
}

func isEmpty(selector *metav1.LabelSelector) bool {
	return selector == nil || len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0
}
