package care

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// remediated returns a corrected configuration and a description of the changes. There are none if it is not problematic,
// or if it must not be changed. The rules are Gardener's.
func (c Configuration) remediated() (Configuration, []string) {
	if c.ofGardener() || c.Labels[constants.LabelWebhookRemediationExclude] == "true" {
		return c, nil
	}
	var changes []string
	c.Webhooks = slices.Clone(c.Webhooks)
	for i := range c.Webhooks {
		remediated, different := c.Webhooks[i].remediated()
		for _, change := range different {
			changes = append(changes, fmt.Sprintf("webhook %s: %s", remediated.Name, change))
		}
		c.Webhooks[i] = remediated
	}
	if len(changes) > 0 {
		c.Annotations = maps.Clone(c.Annotations)
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[constants.AnnotationGardenerWarning] = "gardenlet has changed this configuration, " +
			"because it could prevent the cluster from waking up or nodes from joining:\n- " + strings.Join(changes, "\n- ")
	}
	return c, changes
}

// remediated returns a corrected webhook and a description of the changes. A timeout that is too long is reduced. If
// requests fail without the webhook, it is excluded from protected resources that labels identify. For other protected
// resources, its failure policy is set to Ignore.
func (w Webhook) remediated() (Webhook, []string) {
	var changes []string
	most := int32(maxTimeout)
	if len(w.matching(protectedLeases)) > 0 {
		most = maxTimeoutLeases
	}
	if tooLong(w.TimeoutSeconds, most) {
		changes = append(changes, fmt.Sprintf("set timeoutSeconds to %d (previously: %s)", most, w.timeout()))
		w.TimeoutSeconds = ptr.To(most)
	}
	if !w.fails() {
		return w, changes
	}
	ignore := false
	for _, each := range protectedResources {
		if len(w.matching([]protected{each})) == 0 {
			continue
		}
		var changed string
		switch {
		case len(each.object) > 0:
			w.ObjectSelector, changed = without(w.ObjectSelector, each.object)
			changes = append(changes, "added to objectSelector: "+changed)
		case len(each.namespace) > 0:
			w.NamespaceSelector, changed = without(w.NamespaceSelector, each.namespace)
			changes = append(changes, "added to namespaceSelector: "+changed)
		default:
			ignore = true
		}
	}
	if ignore {
		w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		changes = append(changes, "set failurePolicy to Ignore")
	}
	return w, changes
}

// without returns a selector that excludes objects with any of the given labels, and the added requirements.
func without(selector *metav1.LabelSelector, of labels.Set) (*metav1.LabelSelector, string) {
	extended := &metav1.LabelSelector{}
	if selector != nil {
		extended = selector.DeepCopy()
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		requirement := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{of[key]}}
		extended.MatchExpressions = append(extended.MatchExpressions, requirement)
		texts = append(texts, fmt.Sprintf("%s notin (%s)", key, of[key]))
	}
	return extended, strings.Join(texts, ", ")
}
