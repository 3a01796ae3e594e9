package landscape

import (
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// Helm returns the configuration that Helm needs to install a release in a namespace of the base cluster. All code that
// installs charts on a landscape uses it. The field manager is that of the helm command. By default, Helm uses the name of
// the program, so two programs would conflict in definitions that a release keeps.
func (l *Landscape) Helm(namespace string) (*action.Configuration, error) {
	kube.ManagedFieldsManager = "helm"
	kubeconfig := l.Kubeconfig()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := action.NewConfiguration()
	if err := config.Init(flags, namespace, ""); err != nil {
		return nil, fmt.Errorf("preparing Helm: %w", err)
	}
	return config, nil
}
