package webhooks

import (
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// The operations for which webhooks are called.
var (
	onCreate       = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	onCreateUpdate = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	onDelete       = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
)

// Table returns all webhooks. Names, paths, rules and selectors are those of gardener-resource-manager.
func Table() []Webhook {
	return slices.Concat(
		[]Webhook{
			projectedTokenMount(), highAvailability(), podSchedulerName(), seccompProfile(), kubernetesServiceHost(),
			podKubeAPIServerLoadBalancing(), systemComponentsConfig(), podTopologySpreadConstraints(), vpaInPlaceUpdates(),
			endpointSliceHints(), tokenInvalidator(),
		},
		deletionProtection(), manualDeletionProtection(), extensionValidation(), []Webhook{nodeAgentAuthorizer()},
	)
}

func highAvailability() Webhook {
	return Webhook{
		Name: "high-availability-config", Path: highavailability.Path, Kind: webhookserver.Mutating,
		Does:    "Sets replicas, zones, spread and tolerations of workloads, and bounds of their autoscalers.",
		Setting: "highAvailabilityConfig",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.HighAvailabilityConfig.Enabled },
		Reads:   []client.Object{&corev1.Namespace{}, &autoscalingv2.HorizontalPodAutoscaler{}, &corev1.Node{}},
		Calls: &Calls{
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule(onCreateUpdate, "apps", "v1", "deployments", "statefulsets"),
				rule(onCreateUpdate, "autoscaling", "v2", "horizontalpodautoscalers"),
			},
			NamespaceSelector: inNamespaces(in(highavailability.LabelConsider, "true")),
			ObjectSelector:    managed(absent(highavailability.LabelSkip)),
			MatchPolicy:       admissionregistrationv1.Equivalent,
			FailurePolicy:     admissionregistrationv1.Fail, TimeoutSeconds: defaultTimeout,
			FailureReason: "A workload that is admitted unchanged would be rolled out twice, and run without high availability until then.",
		},
		New: func(facts Facts) (http.Handler, error) {
			settings := facts.Config.HighAvailabilityConfig
			return admits(highavailability.NewHandler(facts.Target, facts.TargetDirect, highavailability.Options{
				NotReadySeconds: settings.DefaultNotReadyTolerationSeconds, UnreachableSeconds: settings.DefaultUnreachableTolerationSeconds,
			}))
		},
	}
}

// admits serves an admission handler.
func admits(handler admission.Handler) (http.Handler, error) {
	return &admission.Webhook{Handler: handler}, nil
}

// rule returns a rule for resources in a version of an API group, in all scopes.
func rule(
	operations []admissionregistrationv1.OperationType, group, version string, resources ...string,
) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: ptr.To(admissionregistrationv1.AllScopes),
	}}
}
