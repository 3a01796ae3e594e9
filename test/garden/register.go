package garden

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// versions are the groups and versions that the API server serves.
func versions() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, resource := range served.Resources() {
		if version := resource.GroupVersion(); !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return versions
}

// register makes kube-apiserver pass requests for the garden's API on to the API server.
func (g *Garden) register(ctx context.Context, authority []byte) error {
	c, err := client.New(g.Config(), client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the control plane: %w", err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: serviceNamespace, Name: serviceName},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	if err := c.Create(ctx, service); err != nil {
		return fmt.Errorf("create Service %s/%s: %w", serviceNamespace, serviceName, err)
	}
	for _, version := range versions() {
		apiService := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1",
			"kind":       "APIService",
			"metadata":   map[string]any{"name": version.Version + "." + version.Group},
			"spec": map[string]any{
				"group": version.Group, "version": version.Version, "groupPriorityMinimum": int64(10000), "versionPriority": priority(version),
				"caBundle": base64.StdEncoding.EncodeToString(authority),
				"service":  map[string]any{"namespace": serviceNamespace, "name": serviceName, "port": int64(g.port)},
			},
		}}
		if err := c.Create(ctx, apiService); err != nil {
			return fmt.Errorf("create APIService %s: %w", apiService.GetName(), err)
		}
	}
	return nil
}

// priority prefers core.gardener.cloud/v1beta1 to v1, which has one kind only.
func priority(version schema.GroupVersion) int64 {
	if version.Version == "v1" {
		return 10
	}
	return 20
}
