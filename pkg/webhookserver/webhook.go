// Package webhookserver serves admission and authorization webhooks, and derives the webhook configurations of API servers
// from them. All programs with webhooks use it: each has a table of [Webhook] rows.
package webhookserver

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is the kind of request that an API server sends to a webhook.
type Kind string

// The kinds of webhooks.
const (
	Mutating    Kind = "mutating"
	Validating  Kind = "validating"
	Authorizing Kind = "authorizing"
)

// Webhook is a webhook of a program.
type Webhook struct {
	// Name is the name in logs and metrics, and, with the suffix of [Configuration], in a webhook configuration.
	Name string
	// Path is the path at which the webhook is served. Webhooks with the same path have the same handler.
	Path string
	Kind Kind
	// Calls defines the requests for which an API server calls the webhook. It is nil for authorizing webhooks.
	Calls *Calls
	// Reads are the kinds that the handler reads from caches. It does not decide before they are filled.
	Reads []client.Object
	// Handler decides. Configurations do not need it.
	Handler http.Handler
}

// Calls defines for which requests an API server calls an admission webhook, and what happens if the call fails.
type Calls struct {
	Rules []admissionregistrationv1.RuleWithOperations
	// NamespaceSelector and ObjectSelector restrict the objects for which the webhook is called. nil selects all.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	// MatchConditions exclude requests that the handler would not change anyway.
	MatchConditions []admissionregistrationv1.MatchCondition
	// MatchPolicy defines whether other versions of the resources also match.
	MatchPolicy admissionregistrationv1.MatchPolicyType
	// FailurePolicy defines what happens to a request if the webhook does not respond.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// TimeoutSeconds is how long the API server waits for a response.
	TimeoutSeconds int32
}
