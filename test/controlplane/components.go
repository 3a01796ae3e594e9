package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const pollInterval = 50 * time.Millisecond

// startComponents starts the requested clients of kube-apiserver, without waiting for them.
func (cp *ControlPlane) startComponents() error {
	type component struct {
		name   string
		wanted bool
		args   []string
	}
	stages, err := cp.stageArgs()
	if err != nil {
		return err
	}
	for _, c := range []component{
		{"kube-controller-manager", cp.options.ControllerManager, cp.controllerManagerArgs()},
		{"kube-scheduler", cp.options.Scheduler, []string{
			"--kubeconfig=" + cp.path("kubeconfig"), "--leader-elect=false", "--secure-port=0",
			"--kube-api-qps=1000", "--kube-api-burst=1000",
		}},
		{"kwok", cp.options.Nodes > 0, append([]string{
			"--kubeconfig=" + cp.path("kubeconfig"), "--manage-all-nodes", "--node-lease-duration-seconds=40",
			"--node-ip=192.0.2.2", "--cidr=10.64.0.0/16",
		}, stages...)},
	} {
		if !c.wanted {
			continue
		}
		path, err := cp.binaries.find(c.name)
		if err != nil {
			return err
		}
		if _, err := cp.start(&Process{name: c.name, component: true}, path, c.args); err != nil {
			return err
		}
	}
	return nil
}

// controllerManagerArgs makes kube-controller-manager work as fast as possible, without leader election and without a
// server.
func (cp *ControlPlane) controllerManagerArgs() []string {
	args := []string{
		"--kubeconfig=" + cp.path("kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
		// Tokens and the root certificate of service accounts. Envtest creates the key.
		"--service-account-private-key-file=" + cp.path("certs/sa-signer.key"),
		"--root-ca-file=" + cp.path("certs/ca.crt"),
		// Nodes must be usable immediately, and stay usable on a machine that is busy or was suspended.
		"--node-monitor-period=1s",
		"--node-monitor-grace-period=10m",
		"--node-startup-grace-period=10m",
		// Do not wait 30s until an HPA is evaluated again.
		"--horizontal-pod-autoscaler-sync-period=2s",
	}
	for _, kind := range []string{
		"deployment", "replicaset", "statefulset", "job", "cron-job", "gc", "namespace", "service-endpoint",
		"serviceaccount-token",
	} {
		args = append(args, "--concurrent-"+kind+"-syncs=20")
	}
	return append(args, cp.options.ControllerManagerArgs...)
}

// stageArgs configures how kwok makes nodes and Pods ready.
func (cp *ControlPlane) stageArgs() ([]string, error) {
	if cp.options.Nodes == 0 {
		return nil, nil
	}
	dir, err := cp.binaries.find("kwok-stages")
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the stages of kwok: %w", err)
	}
	var args []string
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		if entry.Name() == readyStage {
			if file, err = cp.adapt(file); err != nil {
				return nil, fmt.Errorf("adapt how Pods become ready: %w", err)
			}
		}
		args = append(args, "--config="+file)
	}
	return args, nil
}

// readyStage is the file of the stage in which Pods become ready.
const readyStage = "pod-ready.yaml"

// adapt writes a copy of the stage that the options ask for, and returns its path: with transition times in the distant past, and with another
// condition.
func (cp *ControlPlane) adapt(stage string) (string, error) {
	content, err := os.ReadFile(stage)
	if err != nil {
		return "", err
	}
	const conditions, field, now, longAgo = "    matchExpressions:\n", "lastTransitionTime: ", "{{ $now | Quote }}", `"2000-01-01T00:00:00Z"`
	for _, change := range []struct {
		wanted   bool
		from, to string
	}{
		{cp.options.AvailableAtOnce, field + now, field + longAgo},
		{cp.options.HeldPods != "", conditions, conditions + "    - {key: '" + cp.options.HeldPods + "', operator: DoesNotExist}\n"},
	} {
		if !change.wanted {
			continue
		}
		if !bytes.Contains(content, []byte(change.from)) {
			return "", fmt.Errorf("%s has no %s", stage, change.from)
		}
		content = bytes.ReplaceAll(content, []byte(change.from), []byte(change.to))
	}
	path := cp.path(readyStage)
	return path, os.WriteFile(path, content, 0o600) //nolint:gosec // a path of this test
}

// awaitControllerManager waits for the objects that a Pod in the default namespace needs.
func (cp *ControlPlane) awaitControllerManager(ctx context.Context) error {
	return cp.await(ctx, "the service account and root certificate of the namespace default",
		func(ctx context.Context, c client.Client) error {
			return errors.Join(
				c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{}),
				c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}),
			)
		})
}

// createNodes creates the simulated nodes and waits until Pods can be scheduled to them.
func (cp *ControlPlane) createNodes(ctx context.Context) error {
	c, err := cp.client()
	if err != nil {
		return err
	}
	names := make([]string, cp.options.Nodes)
	for i := range names {
		names[i] = "node-" + strconv.Itoa(i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: names[i],
			Labels: map[string]string{
				corev1.LabelHostname: names[i], corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		}}
		if err := c.Create(ctx, node); err != nil {
			return fmt.Errorf("creating Node %s: %w", names[i], err)
		}
	}
	return cp.await(ctx, "the nodes to become ready", func(ctx context.Context, c client.Client) error {
		for _, name := range names {
			node := &corev1.Node{}
			if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
				return fmt.Errorf("reading Node %s: %w", name, err)
			}
			if err := cp.checkNode(node); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkNode returns an error if a node is not ready for Pods.
func (cp *ControlPlane) checkNode(node *corev1.Node) error {
	// Only kube-controller-manager removes the taints of new nodes.
	if cp.options.ControllerManager && len(node.Spec.Taints) > 0 {
		return fmt.Errorf("the Node %s is tainted: %v", node.Name, node.Spec.Taints)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("the Node %s is not ready", node.Name)
}

// await polls until the check returns no error. It returns early if a process has ended.
func (cp *ControlPlane) await(ctx context.Context, what string, check func(context.Context, client.Client) error) error {
	c, err := cp.client()
	if err != nil {
		return err
	}
	var objection error
	err = wait.PollUntilContextTimeout(ctx, pollInterval, programTimeout, true, func(ctx context.Context) (bool, error) {
		if err := cp.checkProcesses(); err != nil {
			return false, err
		}
		objection = check(ctx, c)
		return objection == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, errors.Join(err, objection))
	}
	return nil
}

func (cp *ControlPlane) client() (client.Client, error) {
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return c, nil
}

// checkProcesses returns an error if one of the control plane's own programs has ended.
func (cp *ControlPlane) checkProcesses() error {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	var errs []error
	for _, process := range cp.processes {
		if process.component {
			errs = append(errs, process.Err())
		}
	}
	return errors.Join(errs...)
}
