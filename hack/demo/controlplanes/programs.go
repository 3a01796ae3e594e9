package controlplanes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/podprocess"
)

// program is what a Deployment of a control plane runs.
type program struct {
	binary string
	args   func(r *Runner, ctx context.Context, namespace string, pod *podprocess.Pod) ([]string, error)
}

// programs are those of the control planes that run, by the names of their Deployments. All others are only simulated.
var programs = map[string]program{
	kubeapiserver.Name:         {"kube-apiserver", (*Runner).apiServer},
	kubecontrollermanager.Name: {"kube-controller-manager", (*Runner).controllers},
	resourcemanager.Name:       {"resource-manager", (*Runner).resourceManager},
}

// apiServer keeps the objects of each control plane apart by the UID of its namespace: a Shoot that is created again starts without any.
func (r *Runner) apiServer(ctx context.Context, namespace string, pod *podprocess.Pod) ([]string, error) {
	port, err := r.port(namespace)
	if err != nil {
		return nil, err
	}
	object := &corev1.Namespace{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: namespace}, object); err != nil {
		return nil, fmt.Errorf("read Namespace %s: %w", namespace, err)
	}
	return pod.APIServer(port, r.options.Cluster.EtcdURL(), "/"+string(object.UID)), nil
}

func (*Runner) controllers(_ context.Context, _ string, pod *podprocess.Pod) ([]string, error) {
	port, err := controlplane.FreePort()
	return pod.Controllers(port), err
}

// TokenValidity is longer than a demo runs.
const TokenValidity = 30 * 24 * time.Hour

// resourceManager has the rights of its ServiceAccount.
func (r *Runner) resourceManager(ctx context.Context, namespace string, pod *podprocess.Pod) ([]string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: resourcemanager.Account}}
	kubeconfig, err := podprocess.KubeconfigOf(ctx, r.client, r.options.Cluster.Kubeconfig(), account, TokenValidity)
	if err != nil {
		return nil, err
	}
	c := podprocess.Connection{Kubeconfig: filepath.Join(pod.Directory, "source.kubeconfig")}
	for _, port := range []*any{&c.Health, &c.Metrics, &c.Webhooks} {
		if *port, err = controlplane.FreePort(); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(pod.File())
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if text, err = pod.ResourceManager(text, c); err != nil {
		return nil, err
	}
	config := filepath.Join(pod.Directory, "config.yaml")
	for path, content := range map[string][]byte{c.Kubeconfig: kubeconfig, config: text} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--config=" + config}, nil
}
