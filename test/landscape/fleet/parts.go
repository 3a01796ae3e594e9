package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// life contains the objects from whose times the parts of the creation of a Shoot with nodes follow.
type life struct {
	shoot *corev1beta1.Shoot
	// control are the Pods of the control plane, and machines those of the machines.
	control, machines []corev1.Pod
	nodes             []corev1.Node
	web               *appsv1.Deployment
	ask               *batchv1.Job
}

// sayParts prints the parts of the creation of the Shoot with nodes, and when each was done.
func (f *Fleet) sayParts(ctx context.Context) error {
	one, err := f.lifeOfNodes(ctx)
	if err != nil {
		return err
	}
	f.say("Shoot %s, seconds since its creation:", nodesKey)
	for _, line := range one.parts() {
		f.say("  %s", line)
	}
	return nil
}

// lifeOfNodes reads the objects of the Shoot with nodes.
func (f *Fleet) lifeOfNodes(ctx context.Context) (life, error) {
	one := life{shoot: &corev1beta1.Shoot{}, web: &appsv1.Deployment{}, ask: &batchv1.Job{}}
	inside, err := f.insideNodes()
	if err != nil {
		return life{}, err
	}
	if err := f.Get(ctx, nodesKey, one.shoot); err != nil {
		return life{}, fmt.Errorf("read Shoot %s: %w", nodesKey, err)
	}
	var control, machines corev1.PodList
	var nodes corev1.NodeList
	namespace := one.shoot.Status.TechnicalID
	for _, read := range []func() error{
		func() error { return f.base.List(ctx, &control, client.InNamespace(namespace)) },
		func() error { return f.base.List(ctx, &machines, client.InNamespace("infra-"+namespace)) },
		func() error { return inside.List(ctx, &nodes) },
		func() error {
			return inside.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: webName}, one.web)
		},
		func() error {
			return inside.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: askName}, one.ask)
		},
	} {
		if err := read(); err != nil {
			return life{}, fmt.Errorf("read the objects of Shoot %s: %w", nodesKey, err)
		}
	}
	one.control, one.machines, one.nodes = control.Items, machines.Items, nodes.Items
	return one, nil
}

// parts returns a line for each part with its end, in the order of time. Times have a resolution of one second, like those of API servers.
// A restarted Pod counts with its last start.
func (l life) parts() []string {
	var all []moment
	add := func(what string, times ...metav1.Time) {
		var last time.Time
		for _, each := range times {
			if each.IsZero() {
				return // not done yet
			}
			if each.After(last) {
				last = each.Time
			}
		}
		if len(times) > 0 {
			all = append(all, moment{last, what})
		}
	}
	add("etcd is ready", readyPods(l.control, "etcd-")...)
	add("the API server is ready", readyPods(l.control, "kube-apiserver-")...)
	add("the machines are requested", createdPods(l.machines)...)
	add("the machines have started", startedPods(l.machines)...)
	var registered, ready []metav1.Time
	for i := range l.nodes {
		registered = append(registered, l.nodes[i].CreationTimestamp)
		ready = append(ready, readyNode(&l.nodes[i]))
	}
	add("kubelets have registered the nodes", registered...)
	slices.SortFunc(ready, func(a, b metav1.Time) int { return a.Compare(b.Time) }) // nodes that are not ready come first
	if len(ready) > 0 {
		add("the first node is ready", ready[0])
	}
	add("all nodes are ready", ready...)
	if last := l.shoot.Status.LastOperation; last != nil && last.State == corev1beta1.LastOperationStateSucceeded {
		add("the operation of the Shoot has succeeded", last.LastUpdateTime)
	}
	add("the user's Deployment is created", l.web.CreationTimestamp)
	for _, condition := range l.web.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue {
			add("its replicas are available", condition.LastTransitionTime)
		}
	}
	if done := l.ask.Status.CompletionTime; done != nil {
		add("another Pod got a response of the Service", *done)
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	lines := make([]string, 0, len(all))
	before := l.shoot.CreationTimestamp.Time
	for _, each := range all {
		lines = append(lines, fmt.Sprintf("%5.0f  (+%.0f)  %s", each.at.Sub(l.shoot.CreationTimestamp.Time).Seconds(), each.at.Sub(before).Seconds(), each.what))
		before = each.at
	}
	return lines
}

// readyPods returns when the Pods with a prefix became ready. The zero time means that a Pod is not.
func readyPods(pods []corev1.Pod, prefix string) []metav1.Time {
	var times []metav1.Time
	for i := range pods {
		if !strings.HasPrefix(pods[i].Name, prefix) {
			continue
		}
		at := metav1.Time{}
		for _, condition := range pods[i].Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				at = condition.LastTransitionTime
			}
		}
		times = append(times, at)
	}
	return times
}

func createdPods(pods []corev1.Pod) []metav1.Time {
	var times []metav1.Time
	for i := range pods {
		times = append(times, pods[i].CreationTimestamp)
	}
	return times
}

// startedPods returns when the containers of Pods started. The zero time means that one does not run.
func startedPods(pods []corev1.Pod) []metav1.Time {
	var times []metav1.Time
	for i := range pods {
		for _, container := range pods[i].Status.ContainerStatuses {
			at := metav1.Time{}
			if running := container.State.Running; running != nil {
				at = running.StartedAt
			}
			times = append(times, at)
		}
	}
	return times
}

// readyNode returns since when a node is ready, or the zero time.
func readyNode(node *corev1.Node) metav1.Time {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime
		}
	}
	return metav1.Time{}
}
