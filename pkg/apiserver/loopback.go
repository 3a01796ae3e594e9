package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// newLoopbackClient returns a client for objects that this server serves. It does not use discovery, because the server
// does not serve yet.
func newLoopbackClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := served.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("set up the API types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, resource := range served.Resources() {
		var scope meta.RESTScope = meta.RESTScopeRoot
		if resource.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		name := resource.GroupVersion().WithResource(resource.Name)
		mapper.AddSpecific(resource.GroupVersionKind, name, name, scope)
	}
	loopback, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server itself: %w", err)
	}
	return loopback, nil
}
