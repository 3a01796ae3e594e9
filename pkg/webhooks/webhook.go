// Package webhooks has the table of all webhooks. The resource-manager serves the handlers of the table. The webhook
// configurations of API servers and the reference documentation are derived from it.
package webhooks

import (
	"context"
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// nameSuffix is the suffix of the names of webhooks in a configuration, as in gardener-resource-manager.
const nameSuffix = ".resources.gardener.cloud"

// The timeouts of webhooks in seconds, as in gardener-resource-manager.
const (
	defaultTimeout = 10
	// hastyTimeout is for changes that Pods do not depend on.
	hastyTimeout = 2
)

// Webhook is a row of the table.
type Webhook struct {
	// Name is the name in a webhook configuration, without its suffix.
	Name string
	// Prefixed returns the name for a resource-manager with a name prefix. If nil, the name does not depend on the prefix.
	Prefixed func(prefix string) string
	// Path is the path at which the webhook is served.
	Path string
	Kind webhookserver.Kind
	// Does describes the webhook in a sentence for the documentation.
	Does string
	// Setting is the field of the component configuration under "webhooks" that enables the webhook.
	Setting string
	// Enabled returns the value of this field.
	Enabled func(*configv1alpha1.WebhooksConfiguration) bool
	// SeedOnly is set if the API server of a shoot does not need the webhook.
	SeedOnly bool
	// Calls defines the requests for which an API server calls the webhook. It is nil for authorizing webhooks.
	Calls *Calls
	// Reads are the kinds that the webhook reads from caches of the target cluster. It does not decide before they are
	// filled.
	Reads []client.Object
	// New returns the handler of the webhook.
	New func(Facts) (http.Handler, error)
}

// nameFor returns the name in a configuration, without its suffix.
func (w Webhook) nameFor(placement Placement) string {
	if w.Prefixed != nil {
		return w.Prefixed(placement.NamePrefix)
	}
	return w.Name
}

// Calls defines for which requests an API server calls an admission webhook, and what happens if the call fails.
type Calls struct {
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector restrict the objects for which the webhook is called.
	NamespaceSelector, ObjectSelector func(Placement) *metav1.LabelSelector
	// MatchConditions exclude requests that the handler would not change anyway.
	MatchConditions []admissionregistrationv1.MatchCondition
	// MatchPolicy defines whether other versions of the resources also match.
	MatchPolicy admissionregistrationv1.MatchPolicyType
	// FailurePolicy defines what happens to a request if the webhook does not respond. FailureReason explains the choice.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	FailureReason string
	// TimeoutSeconds is how long the API server waits for a response.
	TimeoutSeconds int32
}

// Facts are the inputs of handlers.
type Facts struct {
	// Target reads from caches of the target cluster. TargetDirect reads from its API server.
	Target, TargetDirect client.Reader
	// Source reads from caches of the source cluster. SourceDirect reads from its API server.
	Source, SourceDirect client.Reader
	// Informers fill the caches of the target cluster until Context ends.
	Informers cache.Informers
	Context   context.Context //nolint:containedctx // the context of the process, for work that continues after New returns
	// NodeAgentAuthorizer creates the handler of the node agent authorizer, which has its own caches.
	NodeAgentAuthorizer func() (http.Handler, error)
	// Config has the settings of all webhooks.
	Config *configv1alpha1.WebhooksConfiguration
}

// Enabled returns the rows of the table that a configuration enables, in the order of the table.
func Enabled(table []Webhook, config *configv1alpha1.WebhooksConfiguration) []Webhook {
	var enabled []Webhook
	for _, webhook := range table {
		if webhook.Enabled(config) {
			enabled = append(enabled, webhook)
		}
	}
	return enabled
}

// Register registers the handlers of webhooks with a server and starts the caches that they read. The returned check
// fails until the caches are filled. The error names the webhook that cannot be served.
func Register(server webhook.Server, webhooks []Webhook, facts Facts, metrics webhookserver.Metrics) (ready func() error, err error) {
	var rows []webhookserver.Webhook
	served := map[string]bool{}
	for _, row := range webhooks {
		if served[row.Path] {
			continue // another row has the same handler
		}
		served[row.Path] = true
		handler, err := row.New(facts)
		if err != nil {
			return nil, fmt.Errorf("webhook %s: %w", row.Name, err)
		}
		one := webhookserver.Webhook{Name: row.Name, Path: row.Path, Kind: row.Kind, Reads: row.Reads, Handler: handler}
		if row.Calls != nil {
			one.Calls = &webhookserver.Calls{FailurePolicy: row.Calls.FailurePolicy}
		}
		rows = append(rows, one)
	}
	return webhookserver.Register(facts.Context, server, facts.Informers, rows, metrics)
}
