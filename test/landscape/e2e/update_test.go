package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// fleetTimeout is how long a change of Shoots may take on a busy machine.
const fleetTimeout = 10 * time.Minute

// TestShootUpdate rolls out the two API servers of a Shoot in real containers. It updates them from an older minor
// version of Kubernetes to the current one, with the real programs of both, or changes a flag if there is no older
// version. Then it makes the Shoot highly available. Users write and read continuously. None of their requests fails
// while API servers are rolled out.
func TestShootUpdate(t *testing.T) {
	if !*updates && *older == "" {
		t.Skip("takes minutes: -landscape.older v1.36.0, after make controlplane-older VERSION=v1.36.0, or -landscape.updates without an older version")
	}
	c, f := onFleet(t)
	current, err := base.KubernetesVersion()
	must(t, err)
	begin := current
	if *older != "" {
		begin = *older
		must(t, base.PushOlder(c.ctx, begin))
		f.BeginWith(begin)
	}
	must(t, f.Up(c.ctx))
	c.serves(f, begin)
	c.within(fleetTimeout, "two API servers are ready", func() error { return c.serversReady(f, 2) })
	users := c.startUsers(c.shootConfig(f))
	c.makeRoom(f)
	c.noneFailed(users, "the change")
	if begin != current {
		c.changeShoot(f, "the update to "+current, func(shoot *corev1beta1.Shoot) {
			shoot.Spec.Kubernetes.Version = strings.TrimPrefix(current, "v")
		})
		c.noneFailed(users, "the update")
		c.serves(f, current)
	}
	c.makeHighlyAvailable(f)
	for _, u := range users {
		t.Logf("%s: %s", u.name, u.take())
	}
}

// onFleet returns the garden and the seed that a test installs on the base cluster.
func onFleet(t *testing.T) (*cluster, *fleet.Fleet) {
	t.Helper()
	needsLandscape(t)
	c := on(t, base)
	must(t, resourcesv1alpha1.AddToScheme(c.Scheme()))
	must(t, druidv1alpha1.AddToScheme(c.Scheme()))
	must(t, extensionsv1alpha1.AddToScheme(c.Scheme()))
	f, err := fleet.New(base, t.Logf)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			c.explain()
		}
	})
	return c, f
}

// shootConfig connects administrators to the API server of the Shoot.
func (c *cluster) shootConfig(f *fleet.Fleet) *rest.Config {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.ShootKubeconfig())
	must(c.t, err)
	return config
}

// noneFailed fails if a request failed since the users' requests were last counted.
func (c *cluster) noneFailed(users []*user, during string) {
	c.t.Helper()
	c.fewLost(users, during, 0)
}

// fewLost fails if a request failed since the users' requests were last counted, except for a number of writes of each
// user that etcd lost. A member of etcd forwards a write to the leader once. A leader that hands over, because it is
// replaced, drops it, and neither etcd nor kube-apiserver retries it.
func (c *cluster) fewLost(users []*user, during string, lost int) {
	c.t.Helper()
	for _, u := range users {
		counted := u.take()
		c.t.Logf("%s: %s", u.name, counted)
		if counted.failed > counted.lost || counted.lost > lost || counted.requests == 0 {
			c.t.Errorf("requests of the user that %s failed during %s", u.name, during)
		}
	}
}

// makeRoom changes a flag of the API servers, and reduces their requests, so that four of them, as during an update, fit
// on one node.
func (c *cluster) makeRoom(f *fleet.Fleet) {
	c.t.Helper()
	c.changeShoot(f, "a change of API servers", func(shoot *corev1beta1.Shoot) {
		if shoot.Spec.Kubernetes.KubeAPIServer == nil {
			shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{}
		}
		shoot.Spec.Kubernetes.KubeAPIServer.EventTTL = &metav1.Duration{Duration: 2 * time.Hour}
		shoot.Spec.Kubernetes.KubeAPIServer.Autoscaling = &corev1beta1.ControlPlaneAutoscaling{MinAllowed: fleet.SmallRequests()}
	})
}

// makeHighlyAvailable makes a Shoot tolerate failures of nodes. Its etcd grows from one member to three. For that, the
// first member is restarted with peer certificates while it is the only one, so requests fail in that time. The operation
// ends when all members are ready.
func (c *cluster) makeHighlyAvailable(f *fleet.Fleet) {
	c.t.Helper()
	c.changeShoot(f, "high availability", func(shoot *corev1beta1.Shoot) {
		shoot.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{
			FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeNode},
		}}
	})
	for _, name := range []string{"etcd-main", "etcd-events"} {
		etcd := &druidv1alpha1.Etcd{}
		must(c.t, c.Get(c.ctx, client.ObjectKey{Namespace: c.technicalID(f), Name: name}, etcd))
		if etcd.Status.ReadyReplicas != 3 {
			c.t.Errorf("the operation has succeeded, but %d of 3 members of %s are ready", etcd.Status.ReadyReplicas, name)
		}
	}
}

// changeShoot changes the Shoot, and waits until it is reconciled.
func (c *cluster) changeShoot(f *fleet.Fleet, what string, change func(*corev1beta1.Shoot)) {
	c.t.Helper()
	shoot := &corev1beta1.Shoot{}
	must(c.t, f.Get(c.ctx, shootOfFleet, shoot))
	before := client.MergeFrom(shoot.DeepCopy())
	change(shoot)
	began := time.Now()
	must(c.t, f.Patch(c.ctx, shoot, before))
	c.within(fleetTimeout, what, func() error { return f.ShootIsReady(c.ctx, shootOfFleet) })
	c.t.Logf("%s took %s", what, time.Since(began).Round(100*time.Millisecond))
}

// technicalID returns the namespace of the control plane of the Shoot that Up creates.
func (c *cluster) technicalID(f *fleet.Fleet) string {
	c.t.Helper()
	return c.technicalIDOf(f, shootOfFleet)
}

// serversReady returns an error unless a Shoot has exactly this number of API servers, all of them ready.
func (c *cluster) serversReady(f *fleet.Fleet, want int) error {
	var pods corev1.PodList
	if err := c.List(c.ctx, &pods, client.InNamespace(c.technicalID(f)), client.MatchingLabels{"app": "kubernetes", "role": "apiserver"}); err != nil {
		return err
	}
	ready := 0
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready != want || len(pods.Items) != want {
		return fmt.Errorf("%d of %d API servers are ready, want %d", ready, len(pods.Items), want)
	}
	return nil
}

// serves fails unless the API server of the Shoot and its controllers have a version.
func (c *cluster) serves(f *fleet.Fleet, version string) {
	c.t.Helper()
	output, err := exec.CommandContext(c.ctx, filepath.Join(base.Root, "bin", "kubectl"), "--kubeconfig", f.ShootKubeconfig(), "get", "--raw", "/version").CombinedOutput()
	if err != nil || !strings.Contains(string(output), `"gitVersion": "`+version+`"`) {
		c.t.Fatalf("the API server of the Shoot has another version than %s: %v\n%s", version, err, output)
	}
	var pods corev1.PodList
	must(c.t, c.List(c.ctx, &pods, client.InNamespace(c.technicalID(f)), client.MatchingLabels{"app": "kubernetes", "role": "controller-manager"}))
	for _, pod := range pods.Items {
		if image := pod.Spec.Containers[0].Image; pod.DeletionTimestamp == nil && !strings.HasSuffix(image, ":"+version) {
			c.t.Errorf("kube-controller-manager runs %s, want the version %s", image, version)
		}
	}
}
