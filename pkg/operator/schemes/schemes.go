// Package schemes has the kinds that the operator knows in the runtime cluster and in the virtual garden.
package schemes

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// Runtime returns the kinds of the runtime cluster.
func Runtime() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
		extensionsv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// Virtual returns the kinds of the virtual garden.
func Virtual() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(served.AddToScheme(scheme))
	return scheme
}

// ConnectVirtual returns a client and a cache of the virtual garden, which is not started yet.
func ConnectVirtual(config *rest.Config) (cluster.Cluster, error) {
	return cluster.New(config, func(o *cluster.Options) {
		o.Scheme = Virtual()
		o.Cache.NewInformer, o.Cache.DefaultTransform = rewatch.NewInformer, cache.TransformStripManagedFields()
	})
}
