package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/node/criticalcomponents"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

func quantity(value int64) resource.Quantity { return *resource.NewQuantity(value, resource.DecimalSI) }

// everRunning is a critical components controller for all tests that run in parallel. It checks nodes again only after an hour.
// Everything before that is triggered by watches.
var everRunning struct {
	mu     sync.Mutex
	users  int
	target *target
	stop   func()
}

// withController runs the controller until the last test that needs it has ended.
func withController(t *testing.T) *fixture {
	t.Helper()
	cp := shared.Get(t)
	everRunning.mu.Lock()
	defer everRunning.mu.Unlock()
	if everRunning.users == 0 {
		everRunning.target = startController(t, cp)
		everRunning.stop = everRunning.target.run()
	}
	everRunning.users++
	t.Cleanup(func() {
		everRunning.mu.Lock()
		defer everRunning.mu.Unlock()
		if everRunning.users--; everRunning.users == 0 {
			everRunning.stop()
		}
	})
	f := newFixtureOn(t, cp)
	f.components = everRunning.target.components
	return f
}

func startController(t *testing.T, cp *controlplane.ControlPlane, wrap ...func(*rest.Config)) *target {
	t.Helper()
	target, err := newTarget(cp, wrap...)
	kit.Must(t, err)
	target.components, err = target.newCache(criticalcomponents.CacheOptions(nil))
	kit.Must(t, err)
	csiNodes, err := target.newCache(criticalcomponents.CSINodeCacheOptions())
	kit.Must(t, err)
	kit.Must(t, criticalcomponents.NewReconciler(criticalcomponents.Reconciler{
		Nodes: target.GetCache(), Components: target.components, CSINodes: csiNodes, Client: target.GetClient(), Clock: clock.RealClock{},
		Options: criticalcomponents.Options{ConcurrentSyncs: 5, Backoff: time.Hour},
	}).AddToManager(context.Background(), target))
	return target
}

var (
	critical = map[string]string{criticalcomponents.Label: criticalcomponents.LabelValue}
	notReady = corev1.Taint{Key: criticalcomponents.Taint, Effect: corev1.TaintEffectNoSchedule}
	// tolerateAll are the tolerations of critical components.
	tolerateAll = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
)

// daemonSet creates a critical DaemonSet for the Nodes of the test.
func (f *fixture) daemonSet(name string, changes ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	f.Helper()
	selector := map[string]string{"app": name}
	one := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: critical},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name, criticalcomponents.Label: criticalcomponents.LabelValue}},
				Spec:       corev1.PodSpec{Tolerations: tolerateAll, NodeSelector: map[string]string{testLabel: f.namespace}},
			},
		},
	}
	one.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.org/image:1"}}
	one.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	for _, change := range changes {
		change(one)
	}
	kit.Must(f, f.client.Create(f.ctx, one))
	f.Cleanup(func() { f.delete(one) })
	f.eventuallyShown(one)
	return one
}

// pod creates a Pod.
func (f *fixture) pod(name string, labels map[string]string, changes ...func(*corev1.Pod)) *corev1.Pod {
	f.Helper()
	one := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			Containers:                   []corev1.Container{{Name: "main", Image: "example.org/image:1"}},
			AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](0),
			NodeSelector: map[string]string{testLabel: f.namespace},
		},
	}
	for _, change := range changes {
		change(one)
	}
	kit.Eventually(f, "the Pod is created", func() string { return kit.TextOf(f.client.Create(f.ctx, one)) }) // its ServiceAccount might be created late
	f.Cleanup(func() { f.delete(one) })
	f.eventuallyShown(one)
	return one
}

func on(nodeName string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName = nodeName
		pod.Spec.Tolerations = tolerateAll
	}
}

// bound waits for the Pod of an app on a Node.
func (f *fixture) bound(app, nodeName string) *corev1.Pod {
	f.Helper()
	var found *corev1.Pod
	kit.EventuallyTrue(f, "a Pod of "+app+" is on "+nodeName, func() bool {
		list := &corev1.PodList{}
		kit.Must(f, f.client.List(f.ctx, list, client.InNamespace(f.namespace), client.MatchingLabels{"app": app}))
		for i := range list.Items {
			if list.Items[i].Spec.NodeName == nodeName && list.Items[i].DeletionTimestamp.IsZero() {
				found = &list.Items[i]
			}
		}
		return found != nil
	})
	return found
}

// says writes the Ready condition of a Pod like the kubelet.
func (f *fixture) says(pod *corev1.Pod, ready corev1.ConditionStatus) {
	f.Helper()
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}}
	kit.Must(f, f.client.Status().Patch(f.ctx, pod, client.MergeFrom(before)))
	f.eventuallyShown(pod)
}

func (f *fixture) tainted(name string) bool {
	f.Helper()
	return criticalcomponents.HasTaint(f.readNode(name))
}

func (f *fixture) eventuallyReleased(name string) {
	f.Helper()
	kit.Eventually(f, "Node "+name+" no longer has the taint", func() string {
		if !f.tainted(name) {
			return ""
		}
		return fmt.Sprintf("%+v", f.events(name))
	})
}

func warning(reason, note string) event {
	return event{corev1.EventTypeWarning, reason, criticalcomponents.ReporterName, note}
}

var normal = event{
	corev1.EventTypeNormal, criticalcomponents.ReasonReady, criticalcomponents.ReporterName,
	"All critical components of this node are ready: removed the taint " + criticalcomponents.Taint,
}

// TestNodeIsReleasedWhenItsComponentsAreReady covers the life of a node from its registration with the taint until other Pods are
// scheduled to it.
func TestNodeIsReleasedWhenItsComponentsAreReady(t *testing.T) {
	t.Parallel()
	f := withController(t)
	f.daemonSet("network")
	f.daemonSet("proxy")
	// The eviction by taints of Kubernetes might observe the removal of the taint later than the scheduler.
	other := f.pod("other", nil, func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: criticalcomponents.Taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	})
	kept := corev1.Taint{Key: "example.org/kept", Value: "v", Effect: corev1.TaintEffectPreferNoSchedule}
	name := f.namespace
	f.node(name, kept, notReady, corev1.Taint{Key: criticalcomponents.Taint, Value: "x", Effect: corev1.TaintEffectNoExecute})
	network, proxy := f.bound("network", name), f.bound("proxy", name)
	f.eventuallyTold(name, warning(criticalcomponents.ReasonUnready, fmt.Sprintf("2 critical Pod(s) of this node are not Ready yet: %s, %s",
		sorted(network, proxy)[0], sorted(network, proxy)[1])))
	f.says(network, corev1.ConditionTrue)
	f.says(proxy, corev1.ConditionFalse)
	kit.Must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(other), other))
	if !f.tainted(name) || other.Spec.NodeName != "" {
		t.Error("the node is released although one of its components is not ready")
	}
	f.says(proxy, corev1.ConditionTrue)
	f.eventuallyReleased(name)
	kit.EventuallyTrue(t, "the other Pod is scheduled", func() bool {
		kit.Must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(other), other))
		return other.Spec.NodeName == name
	})
	if taints := f.readNode(name).Spec.Taints; !slices.Equal(taints, []corev1.Taint{kept}) {
		t.Errorf("the taints are %+v", taints)
	}
	f.eventuallyTold(name, normal)
	if reasons := f.reasons(name); slices.Index(reasons, criticalcomponents.ReasonUnscheduled) > 0 || reasons[len(reasons)-1] != criticalcomponents.ReasonReady || len(reasons) > 3 {
		t.Errorf("the Events are %q", reasons)
	}

	// If the taint is added again, it is removed again. Pods that become unready later have no effect.
	again := f.readNode(name)
	f.change(again, func() { again.Spec.Taints = append(again.Spec.Taints, notReady) })
	f.eventuallyReleased(name)
	f.says(proxy, corev1.ConditionFalse)
}

func sorted(pods ...*corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, client.ObjectKeyFromObject(pod).String())
	}
	slices.Sort(names)
	return names
}

// TestDaemonSetsThatChange checks that a node is checked again when a DaemonSet is created, changed or deleted.
func TestDaemonSetsThatChange(t *testing.T) {
	t.Parallel()
	f := withController(t)
	name := f.namespace
	elsewhere := func(daemonSet *appsv1.DaemonSet) {
		daemonSet.Spec.Template.Spec.NodeSelector = map[string]string{testLabel: "elsewhere"}
	}
	intolerant := func(daemonSet *appsv1.DaemonSet) {
		daemonSet.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: criticalcomponents.Taint, Operator: corev1.TolerationOpExists}}
	}
	one := f.daemonSet("one", intolerant)
	f.node(name, notReady, corev1.Taint{Key: "example.org/first", Effect: corev1.TaintEffectNoSchedule})
	// No Event names this DaemonSet, because it does not tolerate the other taint.
	f.eventuallyReleased(name)
	f.eventuallyTold(name, normal)
	if reasons := f.reasons(name); !slices.Equal(reasons, []string{criticalcomponents.ReasonReady}) {
		t.Errorf("the Events are %q", reasons)
	}

	two := f.daemonSet("two")
	second := name + "-2"
	f.node(second, notReady)
	f.says(f.bound("two", second), corev1.ConditionTrue)
	f.bound("one", second)
	f.eventuallyGiven(second, criticalcomponents.ReasonUnready)
	f.change(one, func() { elsewhere(one) }) // Kubernetes deletes the Pod
	f.eventuallyReleased(second)

	third := name + "-3"
	f.node(third, notReady)
	f.bound("two", third)
	f.eventuallyGiven(third, criticalcomponents.ReasonUnready)
	f.delete(two)
	f.eventuallyReleased(third)
}

// TestOtherDaemonSetsAreNotWaitedFor checks that the node does not wait for DaemonSets without a Pod on it.
func TestOtherDaemonSetsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	f := withController(t)
	for name, change := range map[string]func(*appsv1.DaemonSet){
		"does-not-tolerate": func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Tolerations = nil },
		"another-selector": func(d *appsv1.DaemonSet) {
			d.Spec.Template.Spec.NodeSelector = map[string]string{testLabel: "elsewhere"}
		},
		"another-node":      func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.NodeName = "elsewhere" },
		"another-affinity":  func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Affinity = nodeAffinity(testLabel, "elsewhere") },
		"not-critical":      func(d *appsv1.DaemonSet) { d.Labels = nil },
		"pods-not-critical": func(d *appsv1.DaemonSet) { delete(d.Spec.Template.Labels, criticalcomponents.Label) },
		"another-value":     func(d *appsv1.DaemonSet) { d.Labels = map[string]string{criticalcomponents.Label: "yes"} },
	} {
		f.daemonSet(name, change, func(d *appsv1.DaemonSet) {
			if name == "not-critical" || name == "another-value" {
				delete(d.Spec.Template.Labels, criticalcomponents.Label) // otherwise its Pods are critical
			}
		})
	}
	f.node(f.namespace, notReady)
	f.eventuallyReleased(f.namespace)
	f.eventuallyTold(f.namespace, normal)
	if reasons := f.reasons(f.namespace); len(reasons) != 1 {
		t.Errorf("the Events are %q", reasons)
	}
}

func nodeAffinity(key, value string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
		}}},
	}}}
}

// TestPodsWithoutDaemonSet checks that the node waits for labelled Pods, whichever client created them, but not for Pods that have ended.
func TestPodsWithoutDaemonSet(t *testing.T) {
	t.Parallel()
	f := withController(t)
	name := f.namespace
	one := f.pod("one", critical, on(name))
	ended := f.pod("ended", critical, on(name))
	before := ended.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	kit.Must(t, f.client.Status().Patch(f.ctx, ended, client.MergeFrom(before)))
	f.eventuallyShown(ended)
	f.pod("not-critical", nil, on(name))
	f.node(name, notReady)
	f.eventuallyTold(name, warning(criticalcomponents.ReasonUnready, "1 critical Pod(s) of this node are not Ready yet: "+f.namespace+"/one"))
	f.says(one, corev1.ConditionTrue)
	f.eventuallyReleased(name)

	second := name + "-2"
	f.pod("two", critical, on(second))
	f.node(second, notReady)
	f.eventuallyTold(second, warning(criticalcomponents.ReasonUnready, "1 critical Pod(s) of this node are not Ready yet: "+f.namespace+"/two"))
	two := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "two"}}
	f.change(two, func() { two.Labels = nil }) // it is no longer critical
	f.eventuallyReleased(second)
}

// TestCSIDrivers checks that a node waits for the drivers that its Pods need, whenever they register.
func TestCSIDrivers(t *testing.T) {
	t.Parallel()
	f := withController(t)
	name := f.namespace
	pod := f.pod("csi", critical, on(name), func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{
			criticalcomponents.AnnotationPrefixCSIDriver + "disk": "disk.csi.example.org", criticalcomponents.AnnotationPrefixCSIDriver + "file": "file.csi.example.org",
		}
	})
	f.says(pod, corev1.ConditionTrue)
	f.node(name, notReady)
	f.eventuallyTold(name, warning(criticalcomponents.ReasonDrivers, "2 CSI driver(s) that critical Pods of this node need are not registered in its CSINode yet: "+
		"disk.csi.example.org, file.csi.example.org"))
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "disk.csi.example.org", NodeID: "1"},
	}}}
	kit.Must(t, f.client.Create(f.ctx, csiNode))
	f.Cleanup(func() { f.delete(csiNode) })
	if !f.tainted(name) {
		t.Error("the node is released although a driver is not registered")
	}
	f.change(csiNode, func() {
		csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, storagev1.CSINodeDriver{Name: "file.csi.example.org", NodeID: "1"})
	})
	f.eventuallyReleased(name)
	f.eventuallyTold(name, normal)
}

// TestNodeThatIsNotReadyYet checks that the node also waits for a DaemonSet that tolerates the taint of critical components, but not
// the taint of nodes that are not ready. Its Pod is created late.
func TestNodeThatIsNotReadyYet(t *testing.T) {
	t.Parallel()
	f := withController(t)
	name := f.namespace
	f.daemonSet("modest", func(d *appsv1.DaemonSet) {
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: criticalcomponents.Taint, Operator: corev1.TolerationOpExists}}
	})
	one := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{testLabel: f.namespace}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{notReady, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}},
	}
	kit.Must(t, f.client.Create(f.ctx, one))
	f.Cleanup(func() { f.delete(one) })
	f.eventuallyTold(name, warning(criticalcomponents.ReasonUnscheduled, "1 critical DaemonSet(s) have no Pod on this node yet: "+f.namespace+"/modest"))
	before := one.DeepCopy()
	one.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test", LastHeartbeatTime: metav1.Now()}}
	one.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: quantity(110)}
	kit.Must(t, f.client.Status().Patch(f.ctx, one, client.MergeFrom(before)))
	f.says(f.bound("modest", name), corev1.ConditionTrue)
	f.eventuallyReleased(name)
}
