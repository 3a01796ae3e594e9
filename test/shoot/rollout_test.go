package shoot

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/podprocess"
)

const (
	// stopGrace is how long a program may take to stop.
	stopGrace = 30 * time.Second
	// followEvery is how often the programs are compared with their Deployments. refreshEvery is how often their files are
	// updated.
	followEvery, refreshEvery = 250 * time.Millisecond, time.Second
)

// rollout runs the programs of a control plane while their Deployments are rolled out. The simulated Pods of a revision
// become ready once the program runs according to that revision. Only the test schedules Pods.
type rollout struct {
	*world
	balancer *balancer
	// node is the node of the Pods.
	node    string
	running map[string]corev1.PodSpec
	pods    map[string]*podprocess.Pod
	stop    map[string]func()
	// refreshed is when the files of the programs were last updated.
	refreshed time.Time
	// port of the running API server.
	port int
	// together is called with the ports of two replicas of the API server while both are running.
	together func(old, latest int)
	// rolled counts rollouts.
	rolled map[string]int
}

// newRollout starts the programs. After that, call [rollout.follow] during rollouts.
func (w *world) newRollout() *rollout {
	w.Helper()
	r := &rollout{
		world: w, balancer: w.balance(), running: map[string]corev1.PodSpec{}, pods: map[string]*podprocess.Pod{}, stop: map[string]func(){}, rolled: map[string]int{},
		together: func(int, int) {},
	}
	for _, name := range []string{"kube-apiserver", "gardener-resource-manager", "kube-controller-manager"} {
		r.start(name)
	}
	r.node = w.cordon()[0].Name
	return r
}

func (r *rollout) deployment(name string) *appsv1.Deployment {
	r.Helper()
	deployment := &appsv1.Deployment{}
	kit.Must(r, r.seed.Get(r.Context(), client.ObjectKey{Namespace: technical, Name: name}, deployment))
	return deployment
}

// follow updates the programs to the revisions of their Deployments.
func (r *rollout) follow() {
	r.Helper()
	if time.Since(r.refreshed) > refreshEvery {
		for _, p := range r.pods {
			r.refresh(p)
		}
		r.refreshed = time.Now()
	}
	var list appsv1.DeploymentList
	kit.Must(r, r.seed.List(r.Context(), &list, client.InNamespace(technical)))
	for _, deployment := range list.Items {
		running, runs := r.running[deployment.Name]
		if runs && !equality.Semantic.DeepEqual(deployment.Spec.Template.Spec, running) {
			r.start(deployment.Name)
		}
	}
	r.release()
}

// refresh updates the tokens of a Pod, like the kubelet. Mounted objects may have been deleted with the revision of the
// Deployment.
func (r *rollout) refresh(p *podprocess.Pod) {
	r.Helper()
	for _, volume := range p.Volumes {
		if volume.Projected == nil || slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
			key := client.ObjectKey{Namespace: technical, Name: source.Secret.Name}
			return apierrors.IsNotFound(r.seed.Get(r.Context(), key, &corev1.Secret{}))
		}) {
			continue
		}
		kit.Must(r, p.WriteVolume(r.Context(), r.seed, volume))
	}
}

// start runs a program according to its Deployment and stops the previous one. Two API servers run concurrently for some time.
func (r *rollout) start(name string) {
	r.Helper()
	stop := func() {}
	if r.stop[name] != nil {
		stop = r.stop[name]
	}
	p := r.pod(name)
	spec := r.deployment(name).Spec.Template.Spec
	switch name {
	case "kube-apiserver":
		port, before := kit.FreePort(r), r.port
		process := r.startReplica(p, port)
		r.balancer.add(port)
		if before != 0 {
			r.together(before, port)
			r.balancer.remove(before)
		}
		r.port, r.stop[name] = port, r.ends(process)
		stop()
	case "kube-controller-manager":
		stop()
		r.stop[name] = r.ends(r.world.start(name, podprocess.With(p.Args, map[string]string{
			"secure-port": strconv.Itoa(kit.FreePort(r)), "bind-address": "127.0.0.1", "leader-elect": "false",
		})))
	default:
		stop()
		r.stop[name] = r.runManager(p).Stop
	}
	r.running[name], r.pods[name] = spec, p
	r.rolled[name]++
}

func (r *rollout) ends(process *controlplane.Process) func() {
	return func() { kit.Must(r, process.Stop(stopGrace)) }
}

// release schedules the Pods of running revisions.
func (r *rollout) release() {
	r.Helper()
	var pods corev1.PodList
	kit.Must(r, r.seed.List(r.Context(), &pods, client.InNamespace(technical)))
	pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName != "" || len(pod.OwnerReferences) == 0 })
	if len(pods.Items) == 0 {
		return
	}
	var sets appsv1.ReplicaSetList
	kit.Must(r, r.seed.List(r.Context(), &sets, client.InNamespace(technical)))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !slices.ContainsFunc(sets.Items, func(set appsv1.ReplicaSet) bool { return set.UID == pod.OwnerReferences[0].UID && r.runs(set) }) {
			continue
		}
		to := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: r.node}}
		if err := r.seed.SubResource("binding").Create(r.Context(), pod, to); err != nil {
			r.Logf("Pod %s is not scheduled yet: %v", pod.Name, err)
		}
	}
}

// runs reports whether the program runs according to a ReplicaSet.
func (r *rollout) runs(set appsv1.ReplicaSet) bool {
	if len(set.OwnerReferences) == 0 {
		return false
	}
	running, runs := r.running[set.OwnerReferences[0].Name]
	return runs && equality.Semantic.DeepEqual(set.Spec.Template.Spec, running)
}

// until calls follow repeatedly until the function returns no objection.
func (r *rollout) until(what string, objection func() string) {
	r.Helper()
	last, followed := "not checked yet", time.Time{}
	kit.EventuallyWithin(r, 8*kit.WaitTimeout, what, func() string {
		if time.Since(followed) > followEvery {
			r.follow()
			last, followed = objection(), time.Now()
		}
		return last
	})
}

// balancer forwards connections to replicas of the API server in turn, like its Service.
type balancer struct {
	mu    sync.Mutex
	ports []int
	next  int
}

// balance listens at the address of the shoot's API server.
func (w *world) balance() *balancer {
	w.Helper()
	b := &balancer{}
	listener, err := (&net.ListenConfig{}).Listen(w.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(w.port))
	kit.Must(w, err)
	w.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go b.forward(connection)
		}
	}()
	return b
}

func (b *balancer) add(port int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ports = append(b.ports, port)
}

func (b *balancer) remove(port int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ports = slices.DeleteFunc(b.ports, func(other int) bool { return other == port })
}

func (b *balancer) pick() (int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ports) == 0 {
		return 0, false
	}
	b.next++
	return b.ports[b.next%len(b.ports)], true
}

func (b *balancer) forward(from net.Conn) {
	defer from.Close()
	port, found := b.pick()
	if !found {
		return
	}
	to, err := (&net.Dialer{Timeout: stopGrace}).Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	defer to.Close()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}
