package webhooks

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/loadbalancing"
	"github.com/trellis-k8s/trellis/pkg/webhooks/schedulername"
	"github.com/trellis-k8s/trellis/pkg/webhooks/seccompprofile"
	"github.com/trellis-k8s/trellis/pkg/webhooks/servicehost"
	"github.com/trellis-k8s/trellis/pkg/webhooks/spreadconstraints"
	"github.com/trellis-k8s/trellis/pkg/webhooks/systemcomponents"
	"github.com/trellis-k8s/trellis/pkg/webhooks/tokenmount"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// onPods returns the calls for the creation of Pods. A Pod without the change of the webhook would run differently than
// intended, so it is rejected until the webhook responds.
func onPods(namespaces, objects func(Placement) *metav1.LabelSelector, conditions ...admissionregistrationv1.MatchCondition) *Calls {
	return &Calls{
		Rules:             []admissionregistrationv1.RuleWithOperations{rule(onCreate, "", "v1", "pods")},
		NamespaceSelector: namespaces, ObjectSelector: others(pods(objects)), MatchConditions: conditions,
		MatchPolicy: admissionregistrationv1.Exact, FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: defaultTimeout,
		FailureReason: "A Pod cannot be changed after its creation, so it would run without this change until it is replaced.",
	}
}

func onlyIf(name, expression string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: name, Expression: expression}
}

func projectedTokenMount() Webhook {
	return Webhook{
		Name: "projected-token-mount", Path: tokenmount.Path, Kind: webhookserver.Mutating, Setting: "projectedTokenMount",
		Does:    "Mounts expiring tokens into Pods whose ServiceAccount disables token mounts.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.ProjectedTokenMount.Enabled },
		Reads:   []client.Object{&corev1.ServiceAccount{}},
		Calls: onPods(inNamespaces(), always(absent(tokenmount.LabelSkip)),
			onlyIf("has-a-service-account", `object.spec.?serviceAccountName.orValue("") != "" && object.spec.serviceAccountName != "default"`)),
		New: func(facts Facts) (http.Handler, error) {
			return admits(tokenmount.NewHandler(facts.Target, facts.TargetDirect, tokenmount.Options{
				ExpirationSeconds: ptr.Deref(facts.Config.ProjectedTokenMount.ExpirationSeconds, 0),
			}))
		},
	}
}

func podSchedulerName() Webhook {
	calls := onPods(everything, everything)
	calls.ObjectSelector, calls.FailurePolicy = pods(everything), admissionregistrationv1.Ignore
	calls.FailureReason = "The default scheduler also runs Pods, and Pods of the cluster must not wait for the resource-manager."
	return Webhook{
		Name: "pod-scheduler-name", Path: schedulername.Path, Kind: webhookserver.Mutating, Setting: "podSchedulerName",
		Does:    "Sets the scheduler of Pods that do not set one.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.PodSchedulerName.Enabled },
		Calls:   calls,
		New: func(facts Facts) (http.Handler, error) {
			return admits(schedulername.NewHandler(ptr.Deref(facts.Config.PodSchedulerName.SchedulerName, corev1.DefaultSchedulerName)))
		},
	}
}

func seccompProfile() Webhook {
	return Webhook{
		Name: "seccomp-profile", Path: seccompprofile.Path, Kind: webhookserver.Mutating, Setting: "seccompProfile",
		Does:    "Sets the seccomp profile RuntimeDefault in Pods without a profile.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.SeccompProfile.Enabled },
		Calls: onPods(inNamespaces(), always(absent(seccompprofile.LabelSkip)),
			onlyIf("has-no-profile", `object.spec.?securityContext.?seccompProfile.?type.orValue("") == ""`)),
		New: func(Facts) (http.Handler, error) { return admits(seccompprofile.NewHandler()) },
	}
}

func kubernetesServiceHost() Webhook {
	enabled := always(notIn(servicehost.LabelInject, servicehost.InjectDisable))
	calls := onPods(enabled, enabled)
	calls.ObjectSelector, calls.FailurePolicy, calls.TimeoutSeconds = pods(enabled), admissionregistrationv1.Ignore, hastyTimeout
	calls.FailureReason = "Without it, a Pod reaches the API server by a longer path, " +
		"and Pods of the cluster must not wait for the resource-manager."
	return Webhook{
		Name: "kubernetes-service-host", Path: servicehost.Path, Kind: webhookserver.Mutating, Setting: "kubernetesServiceHost",
		Does:    "Configures containers to connect to the API server by its own name.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.KubernetesServiceHost.Enabled },
		Calls:   calls,
		New: func(facts Facts) (http.Handler, error) {
			return admits(servicehost.NewHandler(facts.Config.KubernetesServiceHost.Host))
		},
	}
}

func podKubeAPIServerLoadBalancing() Webhook {
	return Webhook{
		Name: "pod-kube-apiserver-load-balancing", Path: loadbalancing.Path, Kind: webhookserver.Mutating, Setting: "podKubeAPIServerLoadBalancing",
		Prefixed: func(prefix string) string { return "pod-" + prefix + "kube-apiserver-load-balancing" },
		Does:     "Configures Pods of a control plane to connect to the API server through its load balancer.",
		Enabled:  func(c *configv1alpha1.WebhooksConfiguration) bool { return c.PodKubeAPIServerLoadBalancing.Enabled },
		Reads:    []client.Object{&corev1.ConfigMap{}, &corev1.Service{}},
		Calls: onPods(inNamespaces(), everything, onlyIf("uses-the-generic-kubeconfig",
			`object.spec.?volumes.orValue([]).exists(v, v.?secret.?secretName.orValue("").startsWith("generic-token-kubeconfig") || `+
				`v.?projected.?sources.orValue([]).exists(s, s.?secret.?name.orValue("").startsWith("generic-token-kubeconfig")))`)),
		New: func(facts Facts) (http.Handler, error) { return admits(loadbalancing.NewHandler(facts.Target)) },
	}
}

func systemComponentsConfig() Webhook {
	namespaces := func(p Placement) *metav1.LabelSelector {
		if p.Shoot {
			return inNamespaces()(p)
		}
		return inNamespaces(in(systemcomponents.LabelConsider, "true"))(p)
	}
	return Webhook{
		Name: "system-components-config", Path: systemcomponents.Path, Kind: webhookserver.Mutating, Setting: "systemComponentsConfig",
		Does:    "Schedules system components on the nodes for system components.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.SystemComponentsConfig.Enabled },
		Reads:   []client.Object{&corev1.Node{}},
		Calls:   onPods(namespaces, managed(absent(systemcomponents.LabelSkip))),
		New: func(facts Facts) (http.Handler, error) {
			settings := facts.Config.SystemComponentsConfig
			nodes, err := systemcomponents.Watch(facts.Context, facts.Target, facts.Informers, settings.NodeSelector)
			if err != nil {
				return nil, err
			}
			return admits(systemcomponents.NewHandler(nodes, systemcomponents.Options{
				PodNodeSelector: settings.PodNodeSelector, PodTolerations: settings.PodTolerations,
			}))
		},
	}
}

func podTopologySpreadConstraints() Webhook {
	return Webhook{
		Name: "pod-topology-spread-constraints", Path: spreadconstraints.Path, Kind: webhookserver.Mutating, Setting: "podTopologySpreadConstraints",
		Does:    "Limits topology spread constraints to Pods of the same template.",
		Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.PodTopologySpreadConstraints.Enabled },
		Calls: onPods(inNamespaces(), managed(absent(spreadconstraints.LabelSkip)),
			onlyIf("has-constraints", `has(object.spec.topologySpreadConstraints) && "pod-template-hash" in object.metadata.?labels.orValue({})`)),
		New: func(Facts) (http.Handler, error) { return admits(spreadconstraints.NewHandler()) },
	}
}
