package app

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/process"
	"github.com/trellis-k8s/trellis/pkg/restclient"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// seedRestConfig returns the connection to the seed, from the kubeconfig file or, without one, from the Pod's service
// account.
func seedRestConfig(connection *componentbaseconfigv1alpha1.ClientConnectionConfiguration) (*rest.Config, error) {
	config, err := process.RestConfig(connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("seed cluster: %w", err)
	}
	tune(config, connection)
	return config, nil
}

// tune sets the common options of all connections of this process.
func tune(config *rest.Config, connection *componentbaseconfigv1alpha1.ClientConnectionConfiguration) {
	config.UserAgent = component + "/" + version
	config.QPS, config.Burst = connection.QPS, int(connection.Burst)
	config.AcceptContentTypes, config.ContentType = connection.AcceptContentTypes, connection.ContentType
	restclient.Tune(config)
}

func newSeedScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(resourcesv1alpha1.AddToScheme(scheme))
	utilruntime.Must(extensionsv1alpha1.AddToScheme(scheme))
	return scheme
}

func newGardenScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(served.AddToScheme(scheme))
	return scheme
}
