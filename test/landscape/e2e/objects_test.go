package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// container returns a container that runs the program probe.
func (c *cluster) container(args ...string) corev1.Container {
	return corev1.Container{Name: "probe", Image: c.image("probe"), Args: args}
}

// server returns a Pod that serves HTTP on port 8080, and is ready when the port is open.
func (c *cluster) server() corev1.PodSpec {
	container := c.container("serve", ":8080", ":8081")
	container.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("web")},
	}}
	return pod(container)
}

func pod(container corev1.Container) corev1.PodSpec {
	grace := int64(1)
	return corev1.PodSpec{Containers: []corev1.Container{container}, TerminationGracePeriodSeconds: &grace}
}

func (c *cluster) deployment(name string, replicas int32, spec corev1.PodSpec) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}
}

func service(name string, kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Type: kind, Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
}

// available waits until all Pods of a Deployment are available, and returns their names.
func (c *cluster) available(name string) []string {
	c.t.Helper()
	d := &appsv1.Deployment{}
	c.eventually("Deployment "+name, func() error {
		if err := c.Get(c.ctx, c.key(name), d); err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas ||
			s.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	pods := &corev1.PodList{}
	must(c.t, c.List(c.ctx, pods, client.InNamespace(c.namespace), client.MatchingLabels{"app": name}))
	var names []string
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil { // a Deployment does not count terminating Pods
			names = append(names, p.Name)
		}
	}
	return names
}

// kubectl runs kubectl and returns its output.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	output, err := c.tryKubectl(args...)
	must(c.t, err)
	return output
}

func (c *cluster) tryKubectl(args ...string) (string, error) {
	command := c.kubectlCommand(args...)
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, failure.String())
	}
	return strings.TrimSpace(string(output)), err
}

func (c *cluster) kubectlCommand(args ...string) *exec.Cmd {
	args = append([]string{"--kubeconfig", cmp.Or(c.kubeconfig, c.landscape.Kubeconfig()), "--namespace", c.namespace}, args...)
	return exec.CommandContext(c.ctx, filepath.Join(c.landscape.Root, "bin", "kubectl"), args...)
}

// probe runs the program probe in a Pod.
func (c *cluster) probe(pod string, args ...string) (string, error) {
	return c.tryKubectl(append([]string{"exec", pod, "--", "/probe"}, args...)...)
}

// reaches waits until a Pod gets a response from a URL.
func (c *cluster) reaches(pod, url string) {
	c.t.Helper()
	c.eventually(pod+" reaches "+url, func() error {
		_, err := c.probe(pod, "get", url)
		return err
	})
}

// blocked waits until a Pod gets no response from a URL.
func (c *cluster) blocked(pod, url string) {
	c.t.Helper()
	c.eventually(pod+" does not reach "+url, func() error {
		if _, err := c.probe(pod, "get", url); err == nil {
			return errors.New("it gets a response")
		}
		return nil
	})
}

// podIP returns the address of a running Pod.
func (c *cluster) podIP(name string) string {
	c.t.Helper()
	p := &corev1.Pod{}
	c.eventually("Pod "+name, func() error {
		if err := c.Get(c.ctx, c.key(name), p); err != nil {
			return err
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is not ready: %+v", p.Status)
	})
	return p.Status.PodIP
}
