package controlplanes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/podprocess"
)

// process is a running process of a Deployment.
type process struct {
	*controlplane.Process

	spec    corev1.PodSpec
	pod     *podprocess.Pod
	started time.Time
}

// Reconcile runs one process for a Deployment with replicas, and none for others. A changed Pod replaces the process.
func (r *Runner) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	deployment := &appsv1.Deployment{}
	if err := client.IgnoreNotFound(r.client.Get(ctx, request.NamespacedName, deployment)); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Deployment %s: %w", request.NamespacedName, err)
	}
	running := r.running(request.NamespacedName)
	spec, dir := deployment.Spec.Template.Spec, filepath.Join(r.options.Dir, request.Namespace, request.Name)
	switch {
	case deployment.UID == "" || deployment.DeletionTimestamp != nil || ptr.Deref(deployment.Spec.Replicas, 1) == 0:
		err := errors.Join(r.stop(request.NamespacedName), os.RemoveAll(dir))
		_ = os.Remove(filepath.Dir(dir)) // with the last program of the namespace
		if deployment.UID == "" && request.Name == kubeapiserver.Name {
			r.releasePort(request.Namespace)
		}
		return reconcile.Result{}, err
	case running != nil && running.Err() == nil && equality.Semantic.DeepEqual(running.spec, spec):
		return r.keep(ctx, deployment, running.pod)
	case running != nil && running.Err() != nil && time.Since(running.started) < restartInterval:
		return reconcile.Result{RequeueAfter: restartInterval}, nil
	}
	port, err := r.port(request.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	pod := podprocess.New(request.Namespace, spec, dir, "https://kube-apiserver\n", fmt.Sprintf("https://127.0.0.1:%d\n", port))
	if err := pod.Write(ctx, r.client); err != nil {
		return reconcile.Result{RequeueAfter: missingInterval}, nil // the objects are created soon
	}
	if err := r.stop(request.NamespacedName); err != nil {
		return reconcile.Result{}, err
	}
	started, err := r.start(ctx, request.NamespacedName, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.processes[request.NamespacedName] = &process{Process: started, spec: spec, pod: pod, started: time.Now()}
	return reconcile.Result{RequeueAfter: probeInterval}, nil
}

// keep does for a running process what a kubelet does.
func (r *Runner) keep(ctx context.Context, deployment *appsv1.Deployment, pod *podprocess.Pod) (reconcile.Result, error) {
	// Objects may be deleted with the revision of the Deployment that mounts them.
	_ = pod.Write(ctx, r.client)
	if deployment.Name != kubeapiserver.Name {
		return reconcile.Result{RequeueAfter: filesInterval}, nil
	}
	ready, err := r.makeReady(ctx, deployment, pod)
	if err != nil || ready && deployment.Status.ReadyReplicas == deployment.Status.Replicas {
		return reconcile.Result{RequeueAfter: filesInterval}, err
	}
	return reconcile.Result{RequeueAfter: probeInterval}, nil
}

func (r *Runner) running(key client.ObjectKey) *process {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.processes[key]
}

// stop stops the process of a Deployment, if there is one.
func (r *Runner) stop(key client.ObjectKey) error {
	running := r.running(key)
	if running == nil {
		return nil
	}
	if err := running.Stop(stopGrace); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.processes, key)
	return nil
}

func (r *Runner) start(ctx context.Context, key client.ObjectKey, pod *podprocess.Pod) (*controlplane.Process, error) {
	known := programs[key.Name]
	args, err := known.args(r, ctx, key.Namespace, pod)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", key, err)
	}
	return r.options.Cluster.StartProcess(key.Namespace+"-"+key.Name, r.options.Program(known.binary), args...)
}

// port returns the port of the API server of a namespace.
func (r *Runner) port(namespace string) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ports[namespace] == 0 {
		port, err := controlplane.FreePort()
		if err != nil {
			return 0, err
		}
		r.ports[namespace] = port
	}
	return r.ports[namespace], nil
}

// releasePort forgets the port of a namespace whose API server does not exist any longer.
func (r *Runner) releasePort(namespace string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.ports, namespace)
}
