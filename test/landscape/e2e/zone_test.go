package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/test/landscape"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

const (
	// baseZone is the zone of the node of the base cluster. failingZone is the zone of the machine that fails.
	baseZone, failingZone = "base", "zone-b"
	// volumesOfMachines is the directory of the base cluster with the volumes of machines. The volumes are kept when a machine
	// is deleted.
	volumesOfMachines = "/var/lib/landscape/machines/"
	// detection is how long kube-controller-manager may take to remove the Pods of a failed node from Services. The grace
	// period of Nodes is 50 s.
	detection = 90 * time.Second
)

// zonesOfSeed are the zones of the Seed: the zone of the node of the base cluster, and one for each machine. A machine has
// the name of its zone.
var zonesOfSeed = []string{baseZone, failingZone, "zone-c"}

// zoneNodes returns the values for machines that are nodes of the base cluster, in which they run.
func zoneNodes() nodesValues {
	return nodesValues{
		TokenID: "fedcba", TokenSecret: "fedcba9876543210", Pods: base.Network.Pods().String(), Except: landscape.Node, Provisioner: true,
	}
}

// TestShootZones makes a Shoot highly available over three zones, in real containers on three nodes, and makes one of the
// zones fail. The Shoot responds without that zone, keeps all acknowledged writes, and recovers completely when the zone is
// back. A Shoot that exists when its Seed gets zones stays in the zone of its volumes.
func TestShootZones(t *testing.T) {
	if !*zones {
		t.Skip("takes minutes: -landscape.zones")
	}
	c, f := onFleet(t)
	makeMachineImages(t)
	f.AllowMachines()
	must(t, f.Up(c.ctx))
	before := c.serverPods(f)
	c.joinMachines()
	f.SetZones(zonesOfSeed...)
	must(t, f.Up(c.ctx))
	if placed := c.zonesOfShoot(f); placed != "" {
		t.Errorf("a Shoot that existed before its Seed had zones is in the zones %s", placed)
	}
	c.makeRoom(f)
	t.Logf("API servers before the Seed had zones: %v", slices.Collect(maps.Keys(before)))

	credentials := c.credentialsOf(f)
	c.writeMarker(credentials)
	c.tolerateZones(f)
	users := c.startUsers(c.shootConfig(f))
	c.served(users)
	c.noneFailed(users, "the time before the zone fails")
	c.zoneFails(f, users)
	c.readsMarker(credentials)
	c.zoneReturns(f, users)
	c.readsMarker(credentials)
	must(t, f.DeleteShoot(c.ctx))
}

// joinMachines creates a machine for each zone without a node, and waits until they are nodes of the base cluster.
func (c *cluster) joinMachines() {
	c.t.Helper()
	kubeconfig, err := os.ReadFile(base.Kubeconfig())
	must(c.t, err)
	values, roots := zoneNodes(), &corev1.ConfigMap{}
	must(c.t, c.Get(c.ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"}, roots))
	c.nodes(c.Client, kubeconfig, values)
	configuration := kubeletConfiguration + fmt.Sprintf("clusterDNS: [%q]\nclusterDomain: cluster.local\n", base.Network.DNS())
	c.nodeFiles(kubeconfig, []byte(roots.Data["ca.crt"]), values.token(), configuration)
	for _, zone := range zonesOfSeed {
		if zone == baseZone {
			continue
		}
		c.startMachine(zone)
		c.t.Cleanup(func() {
			_ = c.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: zone}})
		})
	}
	for _, zone := range zonesOfSeed {
		c.within(fleetTimeout, zone+" has a node", func() error { return c.zoneHasNode(zone) })
	}
}

// startMachine creates the machine of a zone. It uses the volumes of its predecessor.
func (c *cluster) startMachine(zone string) {
	c.t.Helper()
	machine := c.machinePod(zone)
	machine.Spec.Volumes = append(machine.Spec.Volumes, corev1.Volume{Name: "volumes", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: volumesOfMachines + zone, Type: ptr.To(corev1.HostPathDirectoryOrCreate)},
	}})
	container := &machine.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "volumes", MountPath: "/var/lib/landscape/volumes"})
	c.create(machine)
}

// zoneHasNode returns an error unless a node of a zone is ready. It sets the zone label of a machine's node.
func (c *cluster) zoneHasNode(zone string) error {
	if zone == baseZone {
		return ready(c, c.Client, landscape.Node)
	}
	if err := ready(c, c.Client, zone); err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: zone}}
	return c.Patch(c.ctx, node, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, corev1.LabelTopologyZone, zone)))
}

// zonesOfShoot returns the zones of the control plane, from the annotation of its namespace.
func (c *cluster) zonesOfShoot(f *fleet.Fleet) string {
	c.t.Helper()
	namespace := &corev1.Namespace{}
	must(c.t, c.Get(c.ctx, client.ObjectKey{Name: c.technicalID(f)}, namespace))
	return namespace.Annotations[highavailability.AnnotationZones]
}

// serverPods returns the nodes of the API servers by the names of their Pods.
func (c *cluster) serverPods(f *fleet.Fleet) map[string]string {
	c.t.Helper()
	return c.nodesOfPods(f, client.MatchingLabels{"app": "kubernetes", "role": "apiserver"})
}

func (c *cluster) nodesOfPods(f *fleet.Fleet, labels client.MatchingLabels) map[string]string {
	c.t.Helper()
	pods, nodes := &corev1.PodList{}, map[string]string{}
	must(c.t, c.List(c.ctx, pods, client.InNamespace(c.technicalID(f)), labels))
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			nodes[pod.Name] = pod.Spec.NodeName
		}
	}
	return nodes
}

// tolerateZones makes the Shoot tolerate the failure of a zone. Each zone has an API server and a member of each etcd.
func (c *cluster) tolerateZones(f *fleet.Fleet) {
	c.t.Helper()
	c.changeShoot(f, "high availability over zones", func(shoot *corev1beta1.Shoot) {
		shoot.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{
			FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeZone},
		}}
	})
	if placed := c.zonesOfShoot(f); placed != "base,zone-b,zone-c" {
		c.t.Errorf("the Shoot is in the zones %s", placed)
	}
	want := []string{landscape.Node, failingZone, "zone-c"}
	for name, labels := range map[string]client.MatchingLabels{
		"API servers":            {"app": "kubernetes", "role": "apiserver"},
		"members of etcd-main":   {"app.kubernetes.io/part-of": "etcd-main"},
		"members of etcd-events": {"app.kubernetes.io/part-of": "etcd-events"},
	} {
		c.within(fleetTimeout, name+" are in all zones", func() error {
			pods := c.nodesOfPods(f, labels)
			if nodes := slices.Sorted(maps.Values(pods)); len(nodes) != len(want) || !slices.Equal(nodes, slices.Sorted(slices.Values(want))) {
				return fmt.Errorf("they run on %v", pods)
			}
			return nil
		})
	}
}

// served waits until users have been served for a while.
func (c *cluster) served(users []*user) {
	c.t.Helper()
	for _, u := range users {
		u.take()
	}
	c.within(fleetTimeout, "users are served", func() error {
		for _, u := range users {
			if sent := u.sent(); sent < servedRequests {
				return fmt.Errorf("%s has sent %d requests", u.name, sent)
			}
		}
		return nil
	})
}

// zoneFails ends the machine of a zone abruptly. Until the API server of the seed has noticed the failure, every third
// connection might fail. After that, no request fails.
func (c *cluster) zoneFails(f *fleet.Fleet, users []*user) {
	c.t.Helper()
	began := time.Now()
	machine := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: failingZone}}
	must(c.t, c.Delete(c.ctx, machine, client.GracePeriodSeconds(0)))
	c.within(detection, "the node of the zone is not ready", func() error {
		if ready(c, c.Client, failingZone) == nil {
			return errors.New("the node is ready")
		}
		return nil
	})
	c.t.Logf("the node of the zone is reported as not ready after %s", time.Since(began).Round(100*time.Millisecond))
	c.within(detection, "users are served", func() error {
		for _, u := range users {
			if count := u.successes(); count < servedRequests {
				return fmt.Errorf("%s has had %d successful requests since the last failed one", u.name, count)
			}
		}
		return nil
	})
	for _, u := range users {
		c.t.Logf("until the failure of the zone is detected: %s: %s", u.name, u.take())
	}
	c.served(users)
	c.noneFailed(users, "the time without the zone")
	c.within(fleetTimeout, "the failure is reported", func() error {
		for _, condition := range c.shoot(f).Status.Conditions {
			if condition.Type == corev1beta1.ShootControlPlaneHealthy && condition.Status != corev1beta1.ConditionTrue {
				c.t.Logf("%s: %s %s", condition.Type, condition.Status, condition.Message)
				return nil
			}
		}
		return errors.New("ControlPlaneHealthy is True")
	})
}

// zoneReturns starts the machine of the zone again. The Shoot recovers completely, and no request fails in the meantime.
func (c *cluster) zoneReturns(f *fleet.Fleet, users []*user) {
	c.t.Helper()
	began := time.Now()
	c.eventually("the machine is deleted", func() error {
		err := c.Get(c.ctx, c.key(failingZone), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
	c.startMachine(failingZone)
	c.within(fleetTimeout, "the zone has a node again", func() error { return c.zoneHasNode(failingZone) })
	c.t.Logf("the node of the zone is ready after %s", time.Since(began).Round(100*time.Millisecond))
	c.within(fleetTimeout, "the Shoot is healthy", func() error {
		for _, condition := range c.shoot(f).Status.Conditions {
			if condition.Status != corev1beta1.ConditionTrue {
				return fmt.Errorf("%s: %s %s", condition.Type, condition.Status, condition.Message)
			}
		}
		return c.serversReady(f, len(zonesOfSeed))
	})
	c.t.Logf("the Shoot is healthy after %s", time.Since(began).Round(100*time.Millisecond))
	c.noneFailed(users, "the return of the zone")
}
