// Package webhooks has the table of all webhooks: from it come the handlers that the resource-manager serves, the configurations
// that make API servers call them, and the reference in the documentation.
package webhooks

import (
	"context"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

// Kind is what an API server asks a webhook for.
type Kind string

// The kinds of webhooks.
const (
	Mutating    Kind = "mutating"
	Validating  Kind = "validating"
	Authorizing Kind = "authorizing"
)

// nameSuffix ends the name of each webhook of a configuration (gardener-resource-manager).
const nameSuffix = ".resources.gardener.cloud"

// The time-outs of webhooks, in seconds (gardener-resource-manager).
const (
	defaultTimeout = 10
	// hastyTimeout is for what Pods can do without.
	hastyTimeout = 2
)

// Webhook is a row of the table.
type Webhook struct {
	// Name is that in a configuration of webhooks, without its suffix.
	Name string
	// Prefixed returns the name for a resource-manager with a prefix; nil if it is the same.
	Prefixed func(prefix string) string
	// Path is where it is served.
	Path string
	Kind Kind
	// Does is a sentence about it, for people.
	Does string
	// Setting is the field of the component configuration under "webhooks" that enables it.
	Setting string
	// Enabled reads this field.
	Enabled func(*configv1alpha1.WebhooksConfiguration) bool
	// SeedOnly is set if the API server of a shoot does not need it.
	SeedOnly bool
	// Calls says what an API server calls it for; nil for authorizing webhooks.
	Calls *Calls
	// Reads are the kinds that it reads from caches of the target cluster. It does not decide before they are filled.
	Reads []client.Object
	// New returns what serves it.
	New func(Facts) (http.Handler, error)
}

// nameFor returns the name in a configuration.
func (w Webhook) nameFor(placement Placement) string {
	if w.Prefixed != nil {
		return w.Prefixed(placement.NamePrefix) + nameSuffix
	}
	return w.Name + nameSuffix
}

// Calls says what an API server calls an admission webhook for, and what happens if it cannot.
type Calls struct {
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector restrict what it is called for.
	NamespaceSelector, ObjectSelector func(Placement) *metav1.LabelSelector
	// MatchConditions leave out requests that the handler would not change anyway.
	MatchConditions []admissionregistrationv1.MatchCondition
	// MatchPolicy is whether other versions of the resources also match.
	MatchPolicy admissionregistrationv1.MatchPolicyType
	// FailurePolicy is what happens to a request if the webhook does not answer, and FailureReason why.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	FailureReason string
	// TimeoutSeconds is how long the API server waits.
	TimeoutSeconds int32
}

// Facts are what handlers decide by.
type Facts struct {
	// Target reads caches of the target cluster, and TargetDirect its API server.
	Target, TargetDirect client.Reader
	// Source reads caches of the source cluster, and SourceDirect its API server.
	Source, SourceDirect client.Reader
	// Informers fill the caches of the target cluster, until Context ends.
	Informers cache.Informers
	Context   context.Context //nolint:containedctx // it is that of the process, for what goes on after New has returned
	// NodeAgentAuthorizer makes the handler of that name, which has caches of its own.
	NodeAgentAuthorizer func() (http.Handler, error)
	// Config holds the settings of all webhooks.
	Config *configv1alpha1.WebhooksConfiguration
}

// Enabled returns the rows of the table that a configuration enables, in the table's order.
func Enabled(table []Webhook, config *configv1alpha1.WebhooksConfiguration) []Webhook {
	var enabled []Webhook
	for _, webhook := range table {
		if webhook.Enabled(config) {
			enabled = append(enabled, webhook)
		}
	}
	return enabled
}
