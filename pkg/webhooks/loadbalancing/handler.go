// Package loadbalancing is the webhook that lets Pods which talk to API servers with a generic kubeconfig do so through an istio ingress
// gateway of their own cluster, which balances their requests.
//
// It reads the ConfigMaps named ConfigMapName in the namespaces of Pods (data), and the Services named ServiceName in the namespaces that
// these name (spec.clusterIPs). A cache may hold these alone, selected by the field metadata.name, for which the right to list and
// watch objects of that name is enough. A Pod that is created at the same moment as the ConfigMap may miss it, and then reaches the API
// server as if the annotation did not exist.
package loadbalancing

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/webhooks/admit"
)

// Path is where the webhook is served.
const Path = "/webhooks/pod-kube-apiserver-load-balancing"

const (
	// ConfigMapName is the ConfigMap that switches load balancing on in its namespace.
	ConfigMapName = "istio-internal-load-balancing"
	// ServiceName is the Service of the ingress gateway.
	ServiceName = "istio-ingressgateway-internal"
)

// NewHandler returns a handler for the creation of Pods, with a reader of what the package says.
func NewHandler(reader client.Reader) admission.Handler {
	return admit.Mutating(func() *corev1.Pod { return &corev1.Pod{} }, func(ctx context.Context, request *admission.Request, pod *corev1.Pod) error {
		if !usesGenericKubeconfig(&pod.Spec) {
			return nil
		}
		configMap := &corev1.ConfigMap{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: ConfigMapName}, configMap)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return admit.Unavailable("cannot determine whether to balance the requests of the Pod: the ConfigMap %s in namespace %q cannot be read: %w",
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

// readIPs returns the IP addresses of the ingress gateway in a namespace, which the ConfigMap of the Pod's namespace names.
func readIPs(ctx context.Context, reader client.Reader, podNamespace, namespace string) ([]string, error) {
	service := &corev1.Service{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ServiceName}, service)
	switch {
	case apierrors.IsNotFound(err):
		return nil, admit.Refuse(http.StatusForbidden, "the Service %s in namespace %q, referenced by the ConfigMap %s in namespace %q, does not exist: "+
			"create it, or correct or delete the ConfigMap", ServiceName, namespace, ConfigMapName, podNamespace)
	case err != nil:
		return nil, admit.Unavailable("cannot balance the requests of the Pod: the Service %s in namespace %q cannot be read: %w",
			ServiceName, namespace, err)
	}
	return service.Spec.ClusterIPs, nil
}
