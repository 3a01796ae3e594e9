package app

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/restclient"
)

// restConfig returns the connection to a cluster, from the kubeconfig file or, without one, from the Pod's service
// account.
func restConfig(connection *configv1alpha1.ClientConnection) (*rest.Config, error) {
	config, err := baseConfig(connection.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "resource-manager/" + version
	restclient.Tune(config)
	config.QPS, config.Burst = connection.QPS, int(connection.Burst)
	config.AcceptContentTypes, config.ContentType = connection.AcceptContentTypes, connection.ContentType
	return config, nil
}

// targetRestConfig returns the connection to the target cluster. Without its own kubeconfig, this is the cluster of the
// Pod, as in gardener-resource-manager, or, outside of a Pod, the source cluster.
func targetRestConfig(config *configv1alpha1.ResourceManagerConfiguration) (*rest.Config, error) {
	if !hasOwnTarget(config, os.Getenv("KUBERNETES_SERVICE_HOST") != "") {
		return restConfig(&config.SourceClientConnection)
	}
	return restConfig(config.TargetClientConnection)
}

// hasOwnTarget reports whether the target cluster has its own connection settings.
func hasOwnTarget(config *configv1alpha1.ResourceManagerConfiguration, inPod bool) bool {
	return config.TargetClientConnection != nil && (config.TargetClientConnection.Kubeconfig != "" || inPod)
}

func baseConfig(path string) (*rest.Config, error) {
	if path == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no kubeconfig is set, and the process does not run in a Pod: %w", err)
		}
		return config, nil
	}
	return kubeconfig.Read(path)
}

// newSourceProbe returns a check that the API server of the source cluster responds.
func newSourceProbe(config *rest.Config) (healthz.Checker, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client to probe the source cluster: %w", err)
	}
	return func(request *http.Request) error {
		if err := client.RESTClient().Get().AbsPath("/healthz").Do(request.Context()).Error(); err != nil {
			return fmt.Errorf("the API server of the source cluster does not respond: %w", err)
		}
		return nil
	}, nil
}
