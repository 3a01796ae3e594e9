package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// shootNodes is a Shoot with nodes, seen from its seed and from inside.
type shootNodes struct {
	*cluster
	fleet *fleet.Fleet
	shoot *corev1beta1.Shoot
	// config and inside connect to the API server of the Shoot as its administrator.
	config *rest.Config
	inside client.Client
	// users is the namespace of users in the Shoot.
	users *cluster
}

// TestShootNodesOperations uses, changes and disturbs a Shoot with two machines of provider-local. Each subtest leaves two nodes that are ready.
// A Shoot that exists already is used, so that a single subtest can be repeated on a landscape that is kept.
func TestShootNodesOperations(t *testing.T) {
	if !*nodes {
		t.Skip("takes minutes: -landscape.nodes")
	}
	n := newShootNodes(t)
	for _, each := range []struct {
		name string
		run  func(*shootNodes)
	}{
		{"tunnel", (*shootNodes).tunnel},
		{"clients", (*shootNodes).clientsInside},
		{"extensions", (*shootNodes).extensionsOfUsers},
		{"policies", (*shootNodes).policies},
		{"metrics", (*shootNodes).metrics},
		{"volumes", (*shootNodes).volumes},
		{"kubelet", (*shootNodes).kubelet},
		{"first", (*shootNodes).firstNode},
		{"scaling", (*shootNodes).scaling},
		{"pools", (*shootNodes).pools},
		{"inplace", (*shootNodes).inPlace},
		{"versions", (*shootNodes).versions},
		{"agent", (*shootNodes).agentKilled},
		{"services", (*shootNodes).servicesStopped},
		{"machine", (*shootNodes).machineDeleted},
		{"controllers", (*shootNodes).controllersKilled},
		{"cut", (*shootNodes).tunnelIsCut},
		{"servers", (*shootNodes).tunnelServersReplaced},
		{"rotation", (*shootNodes).rotation},
		{"deletion", func(n *shootNodes) { n.deleteShootWithNodes(n.fleet, n.shoot) }},
	} {
		t.Run(each.name, func(t *testing.T) {
			own := *n
			own.cluster, own.users = n.in(t), n.users.in(t)
			t.Cleanup(func() {
				if t.Failed() {
					own.explainNodes(own.shoot)
				}
			})
			each.run(&own)
		})
	}
}

// newShootNodes creates the Shoot with nodes, unless it exists, and waits until its nodes are ready.
func newShootNodes(t *testing.T) *shootNodes {
	t.Helper()
	c, f := onFleet(t)
	c.reduceRequests()
	makeMachineImages(t)
	must(t, securityv1alpha1.AddToScheme(c.Scheme()))
	if *older != "" {
		must(t, base.PushOlder(c.ctx, *older))
		f.BeginWith(*older)
	}
	must(t, f.Up(c.ctx))
	shoot := c.shootWithNodes(f)
	// Nodes apply a changed configuration at once.
	shoot.Annotations = map[string]string{constants.AnnotationShootCloudConfigExecutionMaxDelaySeconds: "0"}
	n := &shootNodes{cluster: c, fleet: f, shoot: shoot}
	if err := f.Create(c.ctx, shoot); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	c.within(nodesTimeout, "the Shoot is created", func() error { return f.ShootIsReady(c.ctx, client.ObjectKeyFromObject(shoot)) })
	must(t, f.Get(c.ctx, client.ObjectKeyFromObject(shoot), shoot))
	n.connect()
	n.settled("two nodes are ready", 2)
	return n
}

// connect gets credentials for the Shoot.
func (n *shootNodes) connect() {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "kubeconfig")
	must(n.t, n.fleet.WriteKubeconfig(n.ctx, client.ObjectKeyFromObject(n.shoot), file))
	var err error
	n.config, err = clientcmd.BuildConfigFromFlags("", file)
	must(n.t, err)
	n.inside, err = client.New(n.config, client.Options{Scheme: n.Scheme()})
	must(n.t, err)
	n.users = &cluster{Client: n.inside, t: n.t, ctx: n.ctx, landscape: n.landscape, namespace: metav1.NamespaceDefault, kubeconfig: file}
}

// infra is the namespace of the machines.
func (n *shootNodes) infra() *cluster {
	inside := *n.cluster
	inside.namespace = "infra-" + n.shoot.Status.TechnicalID
	return &inside
}

// onMachine runs a command on the machine of a node.
func (n *shootNodes) onMachine(node, command string) (string, error) {
	return n.infra().tryKubectl("exec", node, "--", "/bin/sh", "-c", command)
}

// change changes the specification of the Shoot.
func (n *shootNodes) change(change func(*corev1beta1.ShootSpec)) {
	n.t.Helper()
	n.changeSpec(n.fleet, n.shoot, change)
}

// settled waits until the Shoot is reconciled and has a number of nodes that are ready, and returns how long that took.
func (n *shootNodes) settled(what string, count int) time.Duration {
	n.t.Helper()
	began := time.Now()
	n.within(nodesTimeout, what, func() error {
		return errors.Join(n.nodesAreReady(n.inside, count), n.fleet.ShootIsReady(n.ctx, client.ObjectKeyFromObject(n.shoot)))
	})
	return time.Since(began).Round(time.Second)
}

// nodeList returns the nodes of a pool, or of all pools.
func (n *shootNodes) nodeList(pool string) []corev1.Node {
	n.t.Helper()
	var list corev1.NodeList
	options := []client.ListOption{}
	if pool != "" {
		options = append(options, client.MatchingLabels{constants.LabelWorkerPool: pool})
	}
	must(n.t, n.inside.List(n.ctx, &list, options...))
	return list.Items
}

// containers returns, for each Pod of the Shoot, how often its containers have started. Pods of Jobs are left out.
func (n *shootNodes) containers() map[string]int32 {
	n.t.Helper()
	var list corev1.PodList
	must(n.t, n.inside.List(n.ctx, &list))
	found := map[string]int32{}
	for _, pod := range list.Items {
		if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || pod.DeletionTimestamp != nil {
			continue
		}
		starts := int32(0)
		for _, container := range pod.Status.ContainerStatuses {
			starts += container.RestartCount
		}
		found[fmt.Sprintf("%s/%s %s", pod.Namespace, pod.Name, pod.UID)] = starts
	}
	return found
}

// sameContainers reports containers that have started again, and Pods that are gone, except those whose image does not exist.
func (n *shootNodes) sameContainers(before map[string]int32, during string) {
	n.t.Helper()
	after := n.containers()
	for pod, starts := range before {
		if now, found := after[pod]; (!found || now != starts) && !strings.Contains(pod, "node-problem-detector") {
			n.t.Errorf("%s: Pod %s exists: %t, its containers had started %d times again before and %d after", during, pod, found, starts, now)
		}
	}
}
