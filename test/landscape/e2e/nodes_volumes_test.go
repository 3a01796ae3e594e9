package e2e

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// volumes claims a volume of the default StorageClass. It keeps its data from one Pod to the next, and is removed with the claim.
func (n *shootNodes) volumes() {
	n.t.Helper()
	u, began := n.users, time.Now()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	u.createNew(claim)
	for _, command := range [][]string{{"write", "/data/file", "kept"}, {"read", "/data/file"}} {
		u.runWithVolume(claim.Name, command)
	}
	if logs := u.kubectl("logs", "read"); logs != "kept" {
		n.t.Errorf("the second Pod reads %q", logs)
	}
	n.t.Logf("A volume was written and read again after %s", time.Since(began).Round(time.Second))
	must(n.t, u.Get(u.ctx, u.key(claim.Name), claim))
	for _, name := range []string{"write", "read"} {
		must(n.t, u.Delete(u.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}))
	}
	must(n.t, u.Delete(u.ctx, claim))
	u.eventually("the volume is removed", func() error {
		err := u.Get(u.ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &corev1.PersistentVolume{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the volume still exists: %w", err)
	})
}

// runWithVolume runs a Pod with the name and the arguments of a command until it has succeeded. The volume of the claim is mounted at /data.
func (c *cluster) runWithVolume(claim string, command []string) {
	c.t.Helper()
	container := c.container(command...)
	container.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	spec := pod(container)
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
	c.createNew(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: command[0]}, Spec: spec})
	c.eventually("the Pod "+command[0]+" succeeds", func() error {
		p := &corev1.Pod{}
		if err := c.Get(c.ctx, c.key(command[0]), p); err != nil {
			return err
		}
		if p.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("its phase is %s: %+v", p.Status.Phase, p.Status.ContainerStatuses)
		}
		return nil
	})
}

// metrics asks metrics-server, which the API server reaches through the tunnel, for the usage of nodes and Pods.
func (n *shootNodes) metrics() {
	n.t.Helper()
	node := n.nodeList("")[0].Name
	for what, command := range map[string][]string{
		node:         {"top", "nodes"},
		"kube-proxy": {"top", "pods", "--namespace", metav1.NamespaceSystem},
	} {
		n.users.eventually(strings.Join(command, " "), func() error {
			output, err := n.users.tryKubectl(command...)
			if err == nil && !strings.Contains(output, what) {
				err = fmt.Errorf("the output has no %s: %s", what, output)
			}
			return err
		})
	}
}
