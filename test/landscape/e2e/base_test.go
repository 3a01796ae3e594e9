// Package e2e tests workloads on a landscape.
package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fetch sends a request from the host.
func fetch(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return string(content), err
}

// TestServices checks that a Deployment with three replicas responds at its Service's name, at the Service's address from
// the host, and at the address of a load balancer, and that logs, exec and port-forward work.
func TestServices(t *testing.T) {
	c := onBase(t)
	c.create(c.deployment("web", 3, c.server()), service("web", corev1.ServiceTypeLoadBalancer))
	pods := c.available("web")
	if len(pods) != 3 {
		t.Fatalf("the Deployment has the Pods %v, want 3", pods)
	}
	answered := map[string]bool{}
	c.eventually("all Pods respond", func() error {
		answer, err := c.probe(pods[0], "get", "http://web/")
		if err != nil {
			return err
		}
		answered[strings.Fields(answer)[2]] = true
		if len(answered) < 3 {
			return fmt.Errorf("only %v responded", answered)
		}
		return nil
	})
	if address, err := c.probe(pods[0], "lookup", "web."+c.namespace+".svc.cluster.local"); err != nil || address == "" {
		t.Errorf("the name of the Service has the address %q: %v", address, err)
	}
	s := &corev1.Service{}
	c.eventually("the Service has an address", func() error {
		if err := c.Get(c.ctx, c.key("web"), s); err != nil {
			return err
		}
		if len(s.Status.LoadBalancer.Ingress) != 1 {
			return fmt.Errorf("its status is %+v", s.Status)
		}
		return nil
	})
	for _, address := range []string{s.Spec.ClusterIP, s.Status.LoadBalancer.Ingress[0].IP} {
		c.eventually("the host reaches "+address, func() error {
			answer, err := fetch(c.ctx, "http://"+address)
			if err == nil && !strings.HasPrefix(answer, "hello from web-") {
				err = fmt.Errorf("the response is %q", answer)
			}
			return err
		})
	}
	if logs := c.kubectl("logs", pods[0]); !strings.Contains(logs, "serving on :8080") {
		t.Errorf("the logs are %q", logs)
	}
	forward(t, c, pods[0])
}

func forward(t *testing.T, c *cluster, pod string) {
	t.Helper()
	command := c.kubectlCommand("port-forward", pod, ":8080")
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	line, err := bufio.NewReader(output).ReadString('\n') // Forwarding from 127.0.0.1:40000 -> 8080
	must(t, err)
	answer, err := fetch(c.ctx, "http://"+strings.Fields(line)[2])
	if err != nil || !strings.HasPrefix(answer, "hello from "+pod) {
		t.Errorf("the response over port-forward is %q: %v", answer, err)
	}
}

// TestStorage checks that a claim gets a volume when a Pod uses it, that the volume keeps data from one Pod to the next,
// and that it is removed with the claim.
func TestStorage(t *testing.T) {
	c := onBase(t)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	c.create(claim)
	job := func(name string, args ...string) {
		container := c.container(args...)
		container.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		spec := pod(container)
		spec.RestartPolicy = corev1.RestartPolicyNever
		spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
		c.create(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}})
		c.eventually("Job "+name, func() error {
			j := &batchv1.Job{}
			if err := c.Get(c.ctx, c.key(name), j); err != nil {
				return err
			}
			if j.Status.Succeeded != 1 {
				return fmt.Errorf("its status is %+v", j.Status)
			}
			return nil
		})
	}
	job("write", "write", "/data/file", "kept")
	job("read", "read", "/data/file")
	if logs := c.kubectl("logs", "job/read"); logs != "kept" {
		t.Errorf("the second Pod reads %q", logs)
	}
	must(t, c.Get(c.ctx, c.key("data"), claim))
	must(t, c.DeleteAllOf(c.ctx, &batchv1.Job{}, client.InNamespace(c.namespace), client.PropagationPolicy(metav1.DeletePropagationForeground)))
	must(t, c.Delete(c.ctx, claim))
	c.eventually("the volume is removed", func() error {
		err := c.Get(c.ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &corev1.PersistentVolume{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the volume still exists: %w", err)
	})
}
