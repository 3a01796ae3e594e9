package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// nodesKey identifies the Shoot with nodes of [Fleet.UpWithNodes]. Its pool has nodesOfShoot machines.
var nodesKey = client.ObjectKey{Namespace: "garden-dev", Name: "nodes"}

const (
	nodesOfShoot = 2
	// webReplicas is the number of Pods of the user's program, and webName the name of its objects. askName is the Job that sends a request.
	webReplicas = 3
	webName     = "web"
	askName     = "ask"
)

// machineSteps make the images of machines. They come first, because the CloudProfile and the registration of the provider name them.
var machineSteps = []step{
	{"images of machines", (*Fleet).makeMachineImages, buildTimeout},
}

// nodeSteps create a Shoot with nodes, and use it.
var nodeSteps = []step{
	{"requests of control planes", (*Fleet).reduceRequests, timeout},
	{"Shoot " + nodesKey.String(), (*Fleet).createNodes, timeout},
	{"its control plane", (*Fleet).awaitNodesControlPlane, shootTimeout},
	{"its nodes", (*Fleet).awaitNodes, shootTimeout},
	{"kubeconfig of the Shoot", (*Fleet).writeNodesKubeconfig, timeout},
	{"a user's Deployment", (*Fleet).deployWeb, timeout},
	{"a response of its Service", (*Fleet).awaitAnswer, shootTimeout},
	{"timeline", (*Fleet).sayParts, timeout},
}

// UpWithNodes does the same as [Fleet.Up], and creates a Shoot with two nodes. In the Shoot, it deploys a program with three replicas and a
// Service, and returns when another Pod gets a response by the name of the Service. It prints how long each part took.
func (f *Fleet) UpWithNodes(ctx context.Context) error {
	return f.execute(ctx, slices.Concat(machineSteps, steps, nodeSteps))
}

// makeMachineImages makes the images of machines, and that of the user's program.
func (f *Fleet) makeMachineImages(ctx context.Context) error {
	if err := f.landscape.MachineImages(ctx); err != nil {
		return err
	}
	_, err := f.landscape.Push(ctx, "probe")
	return err
}

// reduceRequests makes room for two control planes on a node with two cores.
func (f *Fleet) reduceRequests(ctx context.Context) error {
	for _, object := range RequestsPolicy() {
		if err := client.IgnoreAlreadyExists(f.base.Create(ctx, object)); err != nil {
			return fmt.Errorf("reduce the requests of control planes: %w", err)
		}
	}
	return nil
}

// createNodes creates the Shoot, unless it exists.
func (f *Fleet) createNodes(ctx context.Context) error {
	shoot, err := f.ShootWithNodes(ctx, nodesKey, nodesOfShoot)
	if err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(f.Create(ctx, shoot)); err != nil {
		return fmt.Errorf("create Shoot %s: %w", nodesKey, err)
	}
	return nil
}

func (f *Fleet) awaitNodesControlPlane(ctx context.Context) error {
	return wait(ctx, func() error { return f.ShootIsReady(ctx, nodesKey) })
}

func (f *Fleet) awaitNodes(ctx context.Context) error {
	return wait(ctx, func() error { return f.NodesAreReady(ctx, nodesKey) })
}

// NodesAreReady returns an error unless a Shoot is created and reports that every node is ready.
func (f *Fleet) NodesAreReady(ctx context.Context, key client.ObjectKey) error {
	if err := f.ShootIsReady(ctx, key); err != nil {
		return err
	}
	shoot := &corev1beta1.Shoot{}
	if err := f.Get(ctx, key, shoot); err != nil {
		return err
	}
	condition := corev1beta1.FindCondition(shoot.Status.Conditions, corev1beta1.ShootEveryNodeReady)
	if condition == nil {
		return fmt.Errorf("the condition %s is missing", corev1beta1.ShootEveryNodeReady)
	}
	if condition.Status != corev1beta1.ConditionTrue {
		return fmt.Errorf("the condition %s is %s: %s", condition.Type, condition.Status, condition.Message)
	}
	return nil
}

// NodesKubeconfig returns the path of the kubeconfig for an administrator of the Shoot with nodes, which UpWithNodes writes.
func (f *Fleet) NodesKubeconfig() string {
	return filepath.Join(f.landscape.Directory, "nodes.kubeconfig")
}

func (f *Fleet) writeNodesKubeconfig(ctx context.Context) error {
	return f.WriteKubeconfig(ctx, nodesKey, f.NodesKubeconfig())
}

// insideNodes connects to the Shoot with nodes as its administrator.
func (f *Fleet) insideNodes() (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.NodesKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of Shoot %s: %w", nodesKey, err)
	}
	inside, err := client.New(config, client.Options{Scheme: f.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connect to Shoot %s: %w", nodesKey, err)
	}
	return inside, nil
}

// Web returns a user's program with three replicas and a Service, and a Job that waits for a response of the Service. image is the image of
// test/landscape/programs/probe.
func Web(image string) []client.Object {
	labels := map[string]string{"app": webName}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	}
	pod := func(restart corev1.RestartPolicy, args ...string) corev1.PodSpec {
		return corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "probe", Image: image, Args: args}}}
	}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: meta(webName), Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](webReplicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(corev1.RestartPolicyAlways, "serve", ":8080")},
		}},
		&corev1.Service{ObjectMeta: meta(webName), Spec: corev1.ServiceSpec{
			Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		}},
		&batchv1.Job{ObjectMeta: meta(askName), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: pod(corev1.RestartPolicyNever, "wait", "http://"+webName+".default.svc.cluster.local"),
		}}},
	}
}

// deployWeb creates the objects of [Web], unless they exist.
func (f *Fleet) deployWeb(ctx context.Context) error {
	image, err := f.landscape.Image("probe")
	if err != nil {
		return err
	}
	inside, err := f.insideNodes()
	if err != nil {
		return err
	}
	return wait(ctx, func() error {
		var errs []error
		for _, object := range Web(image) {
			errs = append(errs, client.IgnoreAlreadyExists(inside.Create(ctx, object)))
		}
		return errors.Join(errs...)
	})
}

// awaitAnswer waits until all replicas are available and the Job got a response.
func (f *Fleet) awaitAnswer(ctx context.Context) error {
	inside, err := f.insideNodes()
	if err != nil {
		return err
	}
	return wait(ctx, func() error {
		web, ask := &appsv1.Deployment{}, &batchv1.Job{}
		for name, object := range map[string]client.Object{webName: web, askName: ask} {
			err := inside.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, object)
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("%s was deleted: create it again with make landscape: %w", name, err)
			}
			if err != nil {
				return err
			}
		}
		if web.Status.AvailableReplicas < webReplicas {
			return fmt.Errorf("%d of %d replicas are available", web.Status.AvailableReplicas, webReplicas)
		}
		if ask.Status.Succeeded == 0 {
			return fmt.Errorf("no Pod got a response of the Service yet: the status of the Job is %+v", ask.Status)
		}
		return nil
	})
}
