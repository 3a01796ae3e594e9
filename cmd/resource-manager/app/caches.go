package app

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/csrapprover"
	"github.com/trellis-k8s/trellis/pkg/node"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/pkg/webhooks/loadbalancing"
)

// cacheOptions restricts the cache to the configured namespaces. It keeps only the names and versions of Secrets and the
// fields that a token requestor needs, because annotations of kubectl repeat the data of a Secret.
func cacheOptions(config *configv1alpha1.ResourceManagerConfiguration) cache.Options {
	options := cache.Options{
		NewInformer:      rewatch.NewInformer,
		SyncPeriod:       ptr.To(config.SourceClientConnection.CacheResyncPeriod.Duration),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}: {
				Transform: cachetransform.Of(keepNameAndVersion),
			},
			&corev1.Secret{}:                     {Transform: cachetransform.Of(keepNameAndVersion)},
			&resourcesv1alpha1.ManagedResource{}: {Transform: cachetransform.NewCompactor().Compact},
		},
	}
	return inNamespaces(options, config.SourceClientConnection.Namespaces)
}

// targetCacheOptions restricts the cache to the configured namespaces, and reduces objects to the fields that their
// readers need.
func targetCacheOptions(config *configv1alpha1.ResourceManagerConfiguration) cache.Options {
	options := cache.Options{
		NewInformer: rewatch.NewInformer,
		SyncPeriod:  ptr.To(config.TargetClientConnection.CacheResyncPeriod.Duration),
		ByObject: map[client.Object]cache.ByObject{
			&autoscalingv2.HorizontalPodAutoscaler{}:    {Transform: cachetransform.Of(keepScale)},
			&corev1.Namespace{}:                         {Transform: cachetransform.Of(keepMarks)},
			&certificatesv1.CertificateSigningRequest{}: {Transform: csrapprover.Reduce},
			&corev1.Node{}:                              {Transform: node.Reduce},
			&corev1.ServiceAccount{}:                    {Transform: cachetransform.Of(keepAutomount)},
			&corev1.ConfigMap{}:                         named(loadbalancing.ConfigMapName),
			&corev1.Service{}:                           named(loadbalancing.ServiceName),
		},
	}
	return inNamespaces(options, config.TargetClientConnection.Namespaces)
}

// newTargetCache returns an additional cache of the target cluster, for objects that only one controller selects or
// reduces. It shares the connections of the other caches.
func newTargetCache(
	config *configv1alpha1.ResourceManagerConfiguration, targetCluster cluster.Cluster, options cache.Options,
) (cache.Cache, error) {
	options.HTTPClient, options.Mapper = targetCluster.GetHTTPClient(), targetCluster.GetRESTMapper()
	options.Scheme = targetCluster.GetScheme()
	options.NewInformer, options.SyncPeriod = rewatch.NewInformer, &config.TargetClientConnection.CacheResyncPeriod.Duration
	return cache.New(targetCluster.GetConfig(), options)
}

// named restricts a cache to objects of one name in all namespaces, including those that the resource-manager does not
// manage. It needs only the right to list and watch objects of that name.
func named(name string) cache.ByObject {
	return cache.ByObject{
		Namespaces: map[string]cache.Config{cache.AllNamespaces: {}}, Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name),
		Transform: cache.TransformStripManagedFields(),
	}
}

// inNamespaces restricts a cache to namespaces. Without namespaces, the cache holds all objects.
func inNamespaces(options cache.Options, namespaces []string) cache.Options {
	if len(namespaces) == 0 {
		return options
	}
	options.DefaultNamespaces = map[string]cache.Config{}
	for _, namespace := range namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// keepScale keeps the target, the lower bound and the controller of a HorizontalPodAutoscaler for ManagedResources, and
// the upper bound for the high availability webhook.
func keepScale(autoscaler *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	kept := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: cachetransform.Meta(autoscaler),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscaler.Spec.ScaleTargetRef, MinReplicas: autoscaler.Spec.MinReplicas, MaxReplicas: autoscaler.Spec.MaxReplicas,
		},
	}
	if controller := metav1.GetControllerOf(autoscaler); controller != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return kept
}

// keepMarks keeps the annotations of a Namespace that the high availability webhook reads.
func keepMarks(namespace *corev1.Namespace) *corev1.Namespace {
	kept := &corev1.Namespace{ObjectMeta: cachetransform.Meta(namespace)}
	kept.Annotations = cachetransform.KeepKeys(namespace.Annotations, highavailability.AnnotationFailureTolerance,
		highavailability.AnnotationZones, highavailability.AnnotationZonePinning)
	return kept
}

// keepAutomount keeps the automountServiceAccountToken of a ServiceAccount, for the webhook that mounts projected tokens.
func keepAutomount(account *corev1.ServiceAccount) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta: cachetransform.Meta(account), AutomountServiceAccountToken: account.AutomountServiceAccountToken,
	}
}

func keepNameAndVersion(meta *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{TypeMeta: meta.TypeMeta, ObjectMeta: cachetransform.Meta(meta)}
	kept.Labels = cachetransform.KeepKeys(meta.Labels, resourcesv1alpha1.LabelPurpose, resourcesv1alpha1.LabelClass)
	kept.Annotations = cachetransform.KeepKeys(meta.Annotations,
		resourcesv1alpha1.AnnotationTokenTargetName, resourcesv1alpha1.AnnotationTokenTargetNamespace,
		resourcesv1alpha1.AnnotationServiceAccountName, resourcesv1alpha1.AnnotationServiceAccountNamespace)
	return kept
}
