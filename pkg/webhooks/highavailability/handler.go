package highavailability

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Options are the settings of the webhook.
type Options struct {
	// NotReadySeconds and UnreachableSeconds are how many seconds Pods stay on a node that is not ready or unreachable. If
	// nil, Kubernetes decides.
	NotReadySeconds, UnreachableSeconds *int64
}

// NewHandler returns a handler for Deployments, StatefulSets and HorizontalPodAutoscalers. It reads their surroundings
// from caches of their cluster, and objects that the caches lack from the API server.
func NewHandler(caches, direct client.Reader, options Options) admission.Handler {
	read := reader{caches, direct}
	return admit.ByKind(map[schema.GroupKind]admission.Handler{
		{Group: appsv1.GroupName, Kind: "Deployment"}: admit.Mutating(func() *appsv1.Deployment { return &appsv1.Deployment{} },
			func(ctx context.Context, request *admission.Request, deployment *appsv1.Deployment) error {
				replicas, err := change(ctx, read, options, request, workload{
					Object: deployment, replicas: deployment.Spec.Replicas, template: &deployment.Spec.Template, hashed: true,
					selector: &metav1.LabelSelector{MatchLabels: deployment.Spec.Template.Labels},
				})
				deployment.Spec.Replicas = replicas
				return err
			}),
		{Group: appsv1.GroupName, Kind: "StatefulSet"}: admit.Mutating(func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} },
			func(ctx context.Context, request *admission.Request, set *appsv1.StatefulSet) error {
				replicas, err := change(ctx, read, options, request, workload{
					Object: set, replicas: set.Spec.Replicas, template: &set.Spec.Template, selector: set.Spec.Selector,
				})
				set.Spec.Replicas = replicas
				return err
			}),
		{Group: autoscalingv2.GroupName, Kind: "HorizontalPodAutoscaler"}: admit.Mutating(
			func() *autoscalingv2.HorizontalPodAutoscaler { return &autoscalingv2.HorizontalPodAutoscaler{} },
			func(ctx context.Context, request *admission.Request, autoscaler *autoscalingv2.HorizontalPodAutoscaler) error {
				around, err := read.namespace(ctx, request.Namespace)
				if err != nil {
					return err
				}
				wanted, err := wantedReplicas(autoscaler, around.failureTolerance)
				if err != nil {
					return err
				}
				setBounds(&autoscaler.Spec, wanted)
				return nil
			}),
	})
}

// change changes a workload in place, except for its replicas, which it returns.
func change(ctx context.Context, read reader, options Options, request *admission.Request, w workload) (*int32, error) {
	around, err := read.around(ctx, request.Namespace, schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, request.Name)
	if err != nil {
		return nil, err
	}
	if w.replicas, err = replicasOf(w, around); err != nil {
		return nil, err
	}
	spec := &w.template.Spec
	pinToZones(spec, around)
	spread(w, around)
	tolerate(spec, corev1.TaintNodeNotReady, options.NotReadySeconds)
	tolerate(spec, corev1.TaintNodeUnreachable, options.UnreachableSeconds)
	return w.replicas, nil
}
