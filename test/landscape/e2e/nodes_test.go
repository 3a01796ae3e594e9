package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// nodesTimeout limits the creation of a Shoot with nodes, whose machines pull all images.
const nodesTimeout = 10 * time.Minute

// TestShootNodes creates a Shoot with a pool of two machines of provider-local. Both become nodes with the node agent and kubelet of their
// OperatingSystemConfig, without anything else than the user data. The Shoot reports that every node is ready. No bootstrap token is left.
// A user's program answers behind a Service. Then the nodes are replaced, the Shoot hibernates and wakes up, and it is deleted.
func TestShootNodes(t *testing.T) {
	if !*nodes {
		t.Skip("takes minutes: -landscape.nodes")
	}
	c, f := onFleet(t)
	c.reduceRequests()
	makeMachineImages(t)
	must(t, securityv1alpha1.AddToScheme(c.Scheme()))
	must(t, f.Up(c.ctx))
	shoot := c.shootWithNodes(f)
	key := client.ObjectKeyFromObject(shoot)
	t.Cleanup(func() {
		if t.Failed() {
			c.explainNodes(shoot)
		}
	})
	began := time.Now()
	must(t, f.Create(c.ctx, shoot))
	c.within(nodesTimeout, "the Shoot is created", func() error { return f.ShootIsReady(c.ctx, key) })
	must(t, f.Get(c.ctx, key, shoot))
	t.Logf("The Shoot was created after %s", time.Since(began).Round(time.Second))

	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, f.WriteKubeconfig(c.ctx, key, file))
	config, err := clientcmd.BuildConfigFromFlags("", file)
	must(t, err)
	inside, err := client.New(config, client.Options{Scheme: c.Scheme()})
	must(t, err)
	c.within(nodesTimeout, "two nodes are ready", func() error { return c.nodesAreReady(inside, 2) })
	t.Logf("Two nodes were ready after %s", time.Since(began).Round(time.Second))
	c.within(nodesTimeout, "the Shoot reports that every node is ready", func() error {
		must(t, f.Get(c.ctx, key, shoot))
		condition := corev1beta1.FindCondition(shoot.Status.Conditions, corev1beta1.ShootEveryNodeReady)
		if condition == nil || condition.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("the condition is %+v", condition)
		}
		return nil
	})
	c.eventually("no bootstrap token is left", func() error {
		var secrets corev1.SecretList
		if err := inside.List(c.ctx, &secrets, client.InNamespace(metav1.NamespaceSystem)); err != nil {
			return err
		}
		for _, secret := range secrets.Items {
			if secret.Type == corev1.SecretTypeBootstrapToken {
				return fmt.Errorf("%s still exists", secret.Name)
			}
		}
		return nil
	})
	c.answersInShoot(inside)
	t.Logf("A Deployment behind a Service answered %s after the Shoot was requested", time.Since(began).Round(time.Second))
	c.rollNodes(f, inside, shoot)
	c.hibernateNodes(f, inside, shoot)
	c.deleteShootWithNodes(f, shoot)
}

// answersInShoot deploys a user's program with three replicas and a Service in the Shoot, and waits until another Pod gets a response by the
// name of the Service.
func (c *cluster) answersInShoot(inside client.Client) {
	c.t.Helper()
	for _, object := range fleet.Web(c.image("probe")) {
		must(c.t, inside.Create(c.ctx, object))
	}
	ask := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "ask"}}
	c.within(nodesTimeout, "a Pod gets a response of the Service", func() error {
		must(c.t, inside.Get(c.ctx, client.ObjectKeyFromObject(ask), ask))
		if ask.Status.Succeeded == 0 {
			return fmt.Errorf("the status of the Job is %+v", ask.Status)
		}
		return nil
	})
}

// shootWithNodes returns the Shoot, and creates its credentials.
func (c *cluster) shootWithNodes(f *fleet.Fleet) *corev1beta1.Shoot {
	c.t.Helper()
	shoot, err := f.ShootWithNodes(c.ctx, client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: "nodes"}, 2)
	must(c.t, err)
	return shoot
}

// nodesAreReady returns an error unless the cluster has a number of nodes that are ready, have applied their configuration, and may run Pods.
func (c *cluster) nodesAreReady(inside client.Client, count int) error {
	var list corev1.NodeList
	if err := inside.List(c.ctx, &list); err != nil {
		return err
	}
	if len(list.Items) != count {
		return fmt.Errorf("there are %d nodes", len(list.Items))
	}
	var errs []error
	for i := range list.Items {
		node := &list.Items[i]
		if node.Annotations["checksum/cloud-config-data"] == "" {
			errs = append(errs, fmt.Errorf("%s has not applied its configuration", node.Name))
		}
		for _, taint := range node.Spec.Taints {
			if strings.HasSuffix(taint.Key, "critical-components-not-ready") {
				errs = append(errs, fmt.Errorf("%s has the taint %s", node.Name, taint.Key))
			}
		}
		errs = append(errs, ready(c, inside, node.Name))
	}
	return errors.Join(errs...)
}

// deleteShootWithNodes deletes the Shoot, and checks that neither its machines nor its namespaces are left.
func (c *cluster) deleteShootWithNodes(f *fleet.Fleet, shoot *corev1beta1.Shoot) {
	c.t.Helper()
	must(c.t, f.Get(c.ctx, client.ObjectKeyFromObject(shoot), shoot))
	before := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	must(c.t, f.Patch(c.ctx, shoot, client.MergeFrom(before)))
	began := time.Now()
	must(c.t, f.Delete(c.ctx, shoot))
	c.within(nodesTimeout, "the Shoot is deleted", func() error {
		err := f.Get(c.ctx, client.ObjectKeyFromObject(shoot), &corev1beta1.Shoot{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
	c.t.Logf("The Shoot was deleted after %s", time.Since(began).Round(time.Second))
	for _, name := range []string{shoot.Status.TechnicalID, "infra-" + shoot.Status.TechnicalID} {
		c.eventually("the namespace "+name+" is deleted", func() error {
			err := c.Get(c.ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(err, errors.New("it still exists"))
		})
	}
}

// explainNodes logs what the machines of a Shoot do.
func (c *cluster) explainNodes(shoot *corev1beta1.Shoot) {
	c.t.Helper()
	inside := *c
	inside.namespace = "infra-" + shoot.Status.TechnicalID
	var pods corev1.PodList
	if err := c.List(context.WithoutCancel(c.ctx), &pods, client.InNamespace(inside.namespace)); err != nil {
		c.t.Log(err)
		return
	}
	for _, pod := range pods.Items {
		for _, command := range []string{
			"systemctl --no-pager --failed", "journalctl --no-pager --lines 60 -u run-userdata -u gardener-node-init -u gardener-node-agent -u kubelet -u containerd",
		} {
			output, err := inside.tryKubectl("exec", pod.Name, "--", "/bin/sh", "-c", command)
			c.t.Logf("%s: %s: %v\n%s", pod.Name, command, err, output)
		}
	}
}
