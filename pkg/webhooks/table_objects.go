package webhooks

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/deletionprotection"
	"github.com/trellis-k8s/trellis/pkg/webhooks/endpointslicehints"
	"github.com/trellis-k8s/trellis/pkg/webhooks/extensionvalidation"
	"github.com/trellis-k8s/trellis/pkg/webhooks/nodeagentauthorizer"
	"github.com/trellis-k8s/trellis/pkg/webhooks/tokeninvalidator"
	"github.com/trellis-k8s/trellis/pkg/webhooks/verticalautoscaling"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

func vpaInPlaceUpdates() Webhook {
	return Webhook{
		Name: "vpa-in-place-updates", Path: verticalautoscaling.Path, Kind: webhookserver.Mutating, Setting: "vpaInPlaceUpdates",
		Does:    "Configures vertical pod autoscalers to resize Pods in place where possible.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.VPAInPlaceUpdates.Enabled },
		Calls: &Calls{
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule(onCreateUpdate, "autoscaling.k8s.io", "v1", "verticalpodautoscalers"),
			},
			NamespaceSelector: inNamespaces(), ObjectSelector: always(absent(verticalautoscaling.LabelSkip)),
			MatchPolicy: admissionregistrationv1.Equivalent, FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: defaultTimeout,
			FailureReason: "An autoscaler that is admitted unchanged would evict Pods.",
		},
		New: func(Facts) (http.Handler, error) { return admits(verticalautoscaling.NewHandler()) },
	}
}

func endpointSliceHints() Webhook {
	return Webhook{
		Name: "endpoint-slice-hints", Path: endpointslicehints.Path, Kind: webhookserver.Mutating, Setting: "endpointSliceHints", SeedOnly: true,
		Does:    "Keeps traffic in the zone in which it originates.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.EndpointSliceHints.Enabled },
		Calls: &Calls{
			Rules:             []admissionregistrationv1.RuleWithOperations{rule(onCreateUpdate, "discovery.k8s.io", "v1", "endpointslices")},
			NamespaceSelector: inNamespaces(), ObjectSelector: always(in(endpointslicehints.LabelConsider, "true")),
			MatchPolicy: admissionregistrationv1.Equivalent, FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: defaultTimeout,
			FailureReason: "Kubernetes retries the write of an EndpointSlice until it succeeds, so it gets its hints.",
		},
		New: func(Facts) (http.Handler, error) { return admits(endpointslicehints.NewHandler()) },
	}
}

func tokenInvalidator() Webhook {
	return Webhook{
		Name: "token-invalidator", Path: tokeninvalidator.Path, Kind: webhookserver.Mutating, Setting: "tokenInvalidator", SeedOnly: true,
		Does:    "Invalidates static tokens of ServiceAccounts in Secrets that the token-invalidator controller labelled.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.TokenInvalidator.Enabled },
		Calls: &Calls{
			Rules:             []admissionregistrationv1.RuleWithOperations{rule(onCreateUpdate, "", "v1", "secrets")},
			NamespaceSelector: inNamespaces(),
			ObjectSelector:    always(in(resourcesv1alpha1.LabelPurpose, resourcesv1alpha1.PurposeTokenInvalidator)),
			MatchPolicy:       admissionregistrationv1.Exact, FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: defaultTimeout,
			FailureReason: "A Secret that is admitted unchanged would have a valid token.",
		},
		New: func(Facts) (http.Handler, error) { return admits(tokeninvalidator.NewHandler()) },
	}
}

// The API groups whose resources are protected from deletion and validated.
const (
	groupExtensions = "extensions.gardener.cloud"
	groupEtcd       = "druid.gardener.cloud"
)

// deletionProtection returns two rows, because an API server selects CustomResourceDefinitions by a label but custom
// resources without one. Both rows have the same handler and path.
func deletionProtection() []Webhook {
	definitions := Webhook{
		Name: "crd-deletion-protection", Path: deletionprotection.Path, Kind: webhookserver.Validating, Setting: "crdDeletionProtection", SeedOnly: true,
		Does:    "Denies the deletion of protected CustomResourceDefinitions if it is not confirmed.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.CRDDeletionProtection.Enabled },
		Calls: &Calls{
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule(onDelete, "apiextensions.k8s.io", "v1beta1", "customresourcedefinitions"),
				rule(onDelete, "apiextensions.k8s.io", "v1", "customresourcedefinitions"),
			},
			NamespaceSelector: everything, ObjectSelector: always(in(deletionprotection.LabelDeletionProtected, "true")),
			MatchPolicy: admissionregistrationv1.Exact, FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: defaultTimeout,
			FailureReason: "Objects that are deleted by mistake are not restored.",
		},
		New: func(facts Facts) (http.Handler, error) {
			return admits(deletionprotection.NewHandler(facts.SourceDirect))
		},
	}
	calls, resources := *definitions.Calls, definitions
	calls.Rules, calls.ObjectSelector = nil, everything
	var plurals []string
	for _, kind := range extensionvalidation.Kinds() {
		if kind.Group == groupExtensions {
			plurals = append(plurals, kind.Plural)
		}
	}
	calls.Rules = []admissionregistrationv1.RuleWithOperations{
		rule(onDelete, groupEtcd, "v1alpha1", "etcds"), rule(onDelete, groupExtensions, "v1alpha1", plurals...),
	}
	resources.Name, resources.Calls = "cr-deletion-protection", &calls
	resources.Does = "Denies the deletion of resources of extensions if it is not confirmed."
	return []Webhook{definitions, resources}
}

// extensionValidation returns a row for each kind.
func extensionValidation() []Webhook {
	rows := make([]Webhook, 0, len(extensionvalidation.Kinds()))
	for _, kind := range extensionvalidation.Kinds() {
		rows = append(rows, Webhook{
			Name: "validation.extensions." + kind.Plural, Path: kind.Path(), Kind: webhookserver.Validating, Setting: "extensionValidation", SeedOnly: true,
			Does:    "Denies a " + kind.Kind + " that is invalid for its extension.",
			Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.ExtensionValidation.Enabled },
			Calls: &Calls{
				Rules:             []admissionregistrationv1.RuleWithOperations{rule(onCreateUpdate, kind.Group, kind.Version, kind.Plural)},
				NamespaceSelector: everything, ObjectSelector: everything,
				MatchPolicy: admissionregistrationv1.Exact, FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: defaultTimeout,
				FailureReason: "Extensions rely on what was validated.",
			},
			New: func(Facts) (http.Handler, error) { return admits(kind.NewHandler()) },
		})
	}
	return rows
}

func nodeAgentAuthorizer() Webhook {
	return Webhook{
		Name: "node-agent-authorizer", Path: nodeagentauthorizer.Path, Kind: webhookserver.Authorizing, Setting: "nodeAgentAuthorizer",
		Does:    "Allows node agents to access the objects of their own node.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.NodeAgentAuthorizer.Enabled },
		New:     func(facts Facts) (http.Handler, error) { return facts.NodeAgentAuthorizer() },
	}
}
