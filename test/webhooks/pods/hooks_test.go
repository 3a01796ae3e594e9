package pods

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhooks/endpointslicehints"
	"github.com/trellis-k8s/trellis/pkg/webhooks/loadbalancing"
	"github.com/trellis-k8s/trellis/pkg/webhooks/schedulername"
	"github.com/trellis-k8s/trellis/pkg/webhooks/seccompprofile"
	"github.com/trellis-k8s/trellis/pkg/webhooks/servicehost"
	"github.com/trellis-k8s/trellis/pkg/webhooks/spreadconstraints"
	"github.com/trellis-k8s/trellis/pkg/webhooks/systemcomponents"
	"github.com/trellis-k8s/trellis/pkg/webhooks/tokenmount"
	"github.com/trellis-k8s/trellis/pkg/webhooks/verticalautoscaling"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

func rule(group, version, resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}}
}

func expression(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func selector(expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: slices.Clone(expressions)}
}

// standard selects namespaces like the resource-manager of a seed.
func standard() *metav1.LabelSelector {
	return selector(expression("gardener.cloud/role", metav1.LabelSelectorOpExists),
		expression("kubernetes.io/metadata.name", metav1.LabelSelectorOpNotIn, "kube-system", "kubernetes-dashboard"))
}

var (
	notOurselves = expression("app", metav1.LabelSelectorOpNotIn, "gardener-resource-manager")
	managed      = expression("resources.gardener.cloud/managed-by", metav1.LabelSelectorOpIn, "gardener")
)

func without(key string) metav1.LabelSelectorRequirement {
	return expression(key, metav1.LabelSelectorOpDoesNotExist)
}

// newHook returns a webhook with the most common settings.
func newHook(name, path string, handler admission.Handler, rules []admissionregistrationv1.RuleWithOperations, namespaces, objects *metav1.LabelSelector) hook {
	return hook{path: path, handler: handler, MutatingWebhook: admissionregistrationv1.MutatingWebhook{
		Name: name + ".resources.gardener.cloud", Rules: rules, NamespaceSelector: namespaces, ObjectSelector: objects,
		FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchPolicy: ptr.To(admissionregistrationv1.Exact),
		TimeoutSeconds: ptr.To[int32](10), ReinvocationPolicy: ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
	}}
}

// podHook returns a webhook for the creation of Pods. It is not called for static Pods.
func podHook(name, path string, handler admission.Handler, namespaces *metav1.LabelSelector, objects ...metav1.LabelSelectorRequirement) hook {
	objects = append(objects, expression("static-pod", metav1.LabelSelectorOpNotIn, "true"))
	return newHook(name, path, handler, rule("", "v1", "pods", create), namespaces, selector(objects...))
}

func serviceHost(host string) hook {
	injected := expression(servicehost.LabelInject, metav1.LabelSelectorOpNotIn, servicehost.InjectDisable)
	h := podHook("kubernetes-service-host", servicehost.Path, servicehost.NewHandler(host), selector(injected), injected)
	h.FailurePolicy, h.TimeoutSeconds = ptr.To(admissionregistrationv1.Ignore), ptr.To[int32](2)
	return h
}

func tokenMount(cached, live client.Reader) hook {
	handler := tokenmount.NewHandler(cached, live, tokenmount.Options{ExpirationSeconds: 43200})
	return podHook("projected-token-mount", tokenmount.Path, handler, standard(), without(tokenmount.LabelSkip), notOurselves)
}

func spreadConstraints() hook {
	return podHook("pod-topology-spread-constraints", spreadconstraints.Path, spreadconstraints.NewHandler(), standard(),
		without(spreadconstraints.LabelSkip), notOurselves)
}

// systemComponents is the webhook of the resource-manager of a shoot, except for its namespaces: other tests use kube-system too.
func (f *fixture) systemComponents(nodes cache.Cache, nodeSelector map[string]string, tolerations ...corev1.Toleration) hook {
	f.Helper()
	watched, err := systemcomponents.Watch(f.Context(), nodes, nodes, nodeSelector)
	kit.Must(f, err)
	handler := systemcomponents.NewHandler(watched, systemcomponents.Options{PodNodeSelector: nodeSelector, PodTolerations: tolerations})
	return podHook("system-components-config", systemcomponents.Path, handler, nil, managed, without(systemcomponents.LabelSkip))
}

func seccompProfile() hook {
	return podHook("seccomp-profile", seccompprofile.Path, seccompprofile.NewHandler(), standard(), without(seccompprofile.LabelSkip), notOurselves)
}

func schedulerName(name string) hook {
	h := podHook("pod-scheduler-name", schedulername.Path, schedulername.NewHandler(name), nil)
	h.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	return h
}

func loadBalancing(reader client.Reader) hook {
	return podHook("pod-kube-apiserver-load-balancing", loadbalancing.Path, loadbalancing.NewHandler(reader), nil)
}

func verticalAutoscaling() hook {
	h := newHook("vpa-in-place-updates", verticalautoscaling.Path, verticalautoscaling.NewHandler(),
		rule("autoscaling.k8s.io", "v1", "verticalpodautoscalers", create, update), standard(), selector(without(verticalautoscaling.LabelSkip)))
	h.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	return h
}

func endpointSliceHints() hook {
	h := newHook("endpoint-slice-hints", endpointslicehints.Path, endpointslicehints.NewHandler(),
		rule("discovery.k8s.io", "v1", "endpointslices", create, update), standard(),
		selector(expression(endpointslicehints.LabelConsider, metav1.LabelSelectorOpIn, "true")))
	h.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	return h
}
