// Package loadbalancing implements the webhook that routes the API server requests of Pods with a generic kubeconfig
// through an istio ingress gateway of their own cluster, which balances the requests.
//
// It reads the data of the ConfigMaps named ConfigMapName in the namespaces of Pods, and spec.clusterIPs of the Services
// named ServiceName in the namespaces that the ConfigMaps reference. A cache may be restricted to these objects by the
// field metadata.name. The right to list and watch objects of that name is then sufficient. A Pod that is created at the
// same moment as the ConfigMap might miss it. It then reaches the API server directly.
package loadbalancing

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// Path is the path of the webhook.
const Path = "/webhooks/pod-kube-apiserver-load-balancing"

const (
	// ConfigMapName is the name of the ConfigMap that enables load balancing in its namespace.
	ConfigMapName = "istio-internal-load-balancing"
	// ServiceName is the name of the Service of the ingress gateway.
	ServiceName = "istio-ingressgateway-internal"
)

// NewHandler returns a handler for the creation of Pods. The reader reads the objects that the package documentation
// lists.
func NewHandler(reader client.Reader) admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} },
		func(ctx context.Context, request *admission.Request, pod *corev1.Pod) error {
			if !usesGenericKubeconfig(&pod.Spec) {
				return nil
			}
			configMap := &corev1.ConfigMap{}
			err := reader.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: ConfigMapName}, configMap)
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return admit.Unavailable(
					"cannot determine whether to balance the requests of the Pod: the ConfigMap %s in namespace %q cannot be read: %w",
					ConfigMapName, request.Namespace, err)
			}
			target, err := parse(request.Namespace, configMap.Data)
			if err != nil {
				return err
			}
			ips, err := readIPs(ctx, reader, request.Namespace, target.namespace)
			if err != nil {
				return err
			}
			balance(pod, target, ips)
			return nil
		})
}

// readIPs returns the IP addresses of the ingress gateway in a namespace. The ConfigMap in podNamespace references this
// namespace.
func readIPs(ctx context.Context, reader client.Reader, podNamespace, namespace string) ([]string, error) {
	service := &corev1.Service{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ServiceName}, service)
	switch {
	case apierrors.IsNotFound(err):
		return nil, admit.Refuse(http.StatusForbidden,
			"the Service %s in namespace %q, referenced by the ConfigMap %s in namespace %q, does not exist: "+
				"create it, or correct or delete the ConfigMap", ServiceName, namespace, ConfigMapName, podNamespace)
	case err != nil:
		return nil, admit.Unavailable("cannot balance the requests of the Pod: the Service %s in namespace %q cannot be read: %w",
			ServiceName, namespace, err)
	}
	return service.Spec.ClusterIPs, nil
}
