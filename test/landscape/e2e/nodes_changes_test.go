package e2e

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// changeSpec changes the specification of a Shoot.
func (c *cluster) changeSpec(f *fleet.Fleet, shoot *corev1beta1.Shoot, change func(*corev1beta1.ShootSpec)) {
	c.t.Helper()
	must(c.t, f.Get(c.ctx, client.ObjectKeyFromObject(shoot), shoot))
	before := shoot.DeepCopy()
	change(&shoot.Spec)
	must(c.t, f.Patch(c.ctx, shoot, client.MergeFrom(before)))
}

// nodeUIDs returns the UIDs of all nodes.
func (c *cluster) nodeUIDs(inside client.Client) (map[types.UID]bool, error) {
	var list corev1.NodeList
	err := inside.List(c.ctx, &list)
	uids := map[types.UID]bool{}
	for _, node := range list.Items {
		uids[node.UID] = true
	}
	return uids, err
}

// rollNodes changes the version of the machine image. Both nodes are replaced, one after the other, and a disruption budget of a user's
// program is obeyed: two of its three replicas are available at all times.
func (c *cluster) rollNodes(f *fleet.Fleet, inside client.Client, shoot *corev1beta1.Shoot) {
	c.t.Helper()
	must(c.t, inside.Create(c.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}))
	old, err := c.nodeUIDs(inside)
	must(c.t, err)
	began, fewest := time.Now(), int32(3)
	c.changeSpec(f, shoot, func(spec *corev1beta1.ShootSpec) {
		spec.Provider.Workers[0].Machine.Image.Version = ptr.To(fleet.MachineVersions[1])
	})
	c.within(nodesTimeout, "both nodes are replaced", func() error {
		web := &appsv1.Deployment{}
		if err := inside.Get(c.ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "web"}, web); err == nil {
			fewest = min(fewest, web.Status.AvailableReplicas)
		}
		present, err := c.nodeUIDs(inside)
		if err != nil {
			return err
		}
		for uid := range present {
			if old[uid] {
				return fmt.Errorf("the node %s still exists", uid)
			}
		}
		return errors.Join(c.nodesAreReady(inside, 2), f.ShootIsReady(c.ctx, client.ObjectKeyFromObject(shoot)))
	})
	if fewest < 2 {
		c.t.Errorf("only %d of 3 replicas were available, against the disruption budget", fewest)
	}
	c.t.Logf("Both nodes were replaced after %s; at least %d of 3 replicas were available", time.Since(began).Round(time.Second), fewest)
}

// hibernateNodes hibernates the Shoot, which then has no machines, and wakes it up with the same pool and the user's program.
func (c *cluster) hibernateNodes(f *fleet.Fleet, inside client.Client, shoot *corev1beta1.Shoot) {
	c.t.Helper()
	key := client.ObjectKeyFromObject(shoot)
	began := time.Now()
	c.changeSpec(f, shoot, func(spec *corev1beta1.ShootSpec) { spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} })
	c.within(nodesTimeout, "the Shoot hibernates", func() error {
		must(c.t, f.Get(c.ctx, key, shoot))
		if !shoot.Status.IsHibernated {
			return errors.New("it does not hibernate yet")
		}
		return f.ShootIsReady(c.ctx, key)
	})
	for _, namespace := range []string{shoot.Status.TechnicalID, "infra-" + shoot.Status.TechnicalID} {
		var pods corev1.PodList
		must(c.t, c.List(c.ctx, &pods, client.InNamespace(namespace)))
		if len(pods.Items) > 0 {
			c.t.Errorf("a hibernated Shoot has %d Pods in %s", len(pods.Items), namespace)
		}
	}
	c.t.Logf("The Shoot hibernated after %s", time.Since(began).Round(time.Second))
	began = time.Now()
	c.changeSpec(f, shoot, func(spec *corev1beta1.ShootSpec) { spec.Hibernation.Enabled = ptr.To(false) })
	c.within(nodesTimeout, "the Shoot wakes up", func() error {
		if err := f.ShootIsReady(c.ctx, key); err != nil {
			return err
		}
		return c.nodesAreReady(inside, 2)
	})
	c.t.Logf("The Shoot had two nodes again after %s", time.Since(began).Round(time.Second))
}
