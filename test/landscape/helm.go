package landscape

import (
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// Helm returns what Helm needs to install a release in a namespace of the base cluster. All that installs charts on a landscape uses it: the field
// manager is the one of the helm command, because the name of the program, which Helm takes by default, makes two programs conflict in definitions
// that a release leaves.
func (l *Landscape) Helm(namespace string) (*action.Configuration, error) {
	kube.ManagedFieldsManager = "helm"
	kubeconfig := l.Kubeconfig()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := action.NewConfiguration()
	if err := config.Init(flags, namespace, ""); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}
	return config, nil
}
