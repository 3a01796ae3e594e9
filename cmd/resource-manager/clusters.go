package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

// maxKubeconfigSize caps what is parsed; real kubeconfigs have a few KiB.
const maxKubeconfigSize = 1 << 20

// restConfig returns how to reach a cluster: by the kubeconfig file or, without one, as a pod of the cluster.
func restConfig(connection *configv1alpha1.ClientConnection) (*rest.Config, error) {
	config, err := baseConfig(connection.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "resource-manager/" + version
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRedirects{plainWatches{next}} })
	config.WarningHandlerWithContext = &warnings{told: map[string]bool{}}
	config.QPS, config.Burst = connection.QPS, int(connection.Burst)
	config.AcceptContentTypes, config.ContentType = connection.AcceptContentTypes, connection.ContentType
	return config, nil
}

// targetRestConfig returns how to reach the target cluster. Without a kubeconfig of its own that is the cluster of the pod, as
// with gardener-resource-manager, or, outside of a pod, the source cluster.
func targetRestConfig(config *configv1alpha1.ResourceManagerConfiguration) (*rest.Config, error) {
	if !hasOwnTarget(config, os.Getenv("KUBERNETES_SERVICE_HOST") != "") {
		return restConfig(&config.SourceClientConnection)
	}
	return restConfig(config.TargetClientConnection)
}

// hasOwnTarget tells whether the target cluster is reached in another way than the source cluster.
func hasOwnTarget(config *configv1alpha1.ResourceManagerConfiguration, inPod bool) bool {
	return config.TargetClientConnection != nil && (config.TargetClientConnection.Kubeconfig != "" || inPod)
}

func baseConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no kubeconfig is given, and this is not a pod: %w", err)
		}
		return config, nil
	}
	info, err := os.Stat(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if info.Size() > maxKubeconfigSize {
		return nil, fmt.Errorf("kubeconfig %s has %d bytes, more than the %d allowed", kubeconfig, info.Size(), maxKubeconfigSize)
	}
	raw, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	if err := checkUsers(raw); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

// checkUsers refuses ways to authenticate that run programs, read other files or act as somebody else, as
// gardener-resource-manager does: kubeconfigs of shoots come from outside.
func checkUsers(config *clientcmdapi.Config) error {
	var errs []error
	for name, user := range config.AuthInfos {
		for field, set := range map[string]bool{
			"exec":               user.Exec != nil,
			"auth-provider":      user.AuthProvider != nil,
			"client-certificate": user.ClientCertificate != "",
			"client-key":         user.ClientKey != "",
			"as":                 user.Impersonate != "" || user.ImpersonateUID != "",
			"as-groups":          len(user.ImpersonateGroups) > 0,
			"as-user-extra":      len(user.ImpersonateUserExtra) > 0,
		} {
			if set {
				errs = append(errs, fmt.Errorf("user %q must not use %q: use client-certificate-data and client-key-data, "+
					"token, tokenFile or username and password", name, field))
			}
		}
	}
	return errors.Join(errs...)
}

// newSourceProbe returns a check of whether the API server of the source cluster answers.
func newSourceProbe(config *rest.Config) (healthz.Checker, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 5 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client to probe the source cluster: %w", err)
	}
	return func(request *http.Request) error {
		if err := client.RESTClient().Get().AbsPath("/healthz").Do(request.Context()).Error(); err != nil {
			return fmt.Errorf("the API server of the source cluster does not answer: %w", err)
		}
		return nil
	}, nil
}
