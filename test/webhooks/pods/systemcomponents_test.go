package pods

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

var managedByGardener = map[string]string{"resources.gardener.cloud/managed-by": "gardener"}

// tolerated returns the keys of a Pod's tolerations, without those that Kubernetes added.
func tolerated(pod *corev1.Pod) string {
	var keys []string
	for _, toleration := range pod.Spec.Tolerations {
		if !strings.HasPrefix(toleration.Key, "node.kubernetes.io/") {
			keys = append(keys, toleration.Key)
		}
	}
	return strings.Join(keys, " ")
}

// TestSystemComponents checks that Pods get the node selector, and tolerate the configured taints and those of the selected nodes, in
// this order.
func TestSystemComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	selects := map[string]string{"system": f.namespace}
	f.newNode("a", selects, corev1.Taint{Key: "z", Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "c", Value: "v", Effect: corev1.TaintEffectNoExecute})
	f.newNode("b", selects, corev1.Taint{Key: "c", Value: "v", Effect: corev1.TaintEffectNoExecute}, corev1.Taint{Key: "b", Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler", Value: "1", Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "example.kubernetes.io/x", Effect: corev1.TaintEffectNoSchedule})
	f.newNode("c", map[string]string{"system": "no"}, corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule})
	f.register(f.systemComponents(f.reader(), selects, corev1.Toleration{Key: "y", Operator: corev1.TolerationOpExists}))

	const labels = `resources.gardener.cloud/managed-by: gardener`
	const text = `{metadata: {labels: {` + labels + `}}, spec: {nodeSelector: {disk: fast, system: mine}, tolerations: [{key: own, operator: Exists}]}}`
	kit.Eventually(t, "the webhook has the nodes in its cache", func() string {
		if got := tolerated(f.would(text)); got != "own y b c owner z" {
			return "the tolerations are " + got
		}
		return ""
	})
	first := f.would(text)
	if len(first.Spec.NodeSelector) != 2 || first.Spec.NodeSelector["system"] != f.namespace || first.Spec.NodeSelector["disk"] != "fast" {
		t.Errorf("the node selector is %v", first.Spec.NodeSelector)
	}
	want := corev1.Toleration{Key: "c", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoExecute}
	if !slices.Contains(first.Spec.Tolerations, want) {
		t.Errorf("the tolerations are %+v", first.Spec.Tolerations)
	}
	for range 20 {
		if got := tolerated(f.would(text)); got != "own y b c owner z" {
			t.Errorf("on another request, the Pod tolerates %s", got)
		}
	}
	for _, unchanged := range []string{
		`spec: {}`, `metadata: {labels: {` + labels + `, system-components-config.resources.gardener.cloud/skip: "true"}}`,
		`metadata: {labels: {resources.gardener.cloud/managed-by: other}}`,
		`metadata: {labels: {` + labels + `}, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: a, uid: "1", controller: true}]}`,
	} {
		if pod := f.would(unchanged); tolerated(pod) != "" || len(pod.Spec.NodeSelector) > 0 {
			t.Errorf("%s: the Pod is %+v", unchanged, pod.Spec)
		}
	}
}

// TestSystemComponentLandsOnItsTaintedNode checks that the webhook alone makes the Pod schedulable, also while nodes still have taints
// that differ from the configured ones. A Pod that opts out finds no node. After a change of the taint, new Pods tolerate the new one.
func TestSystemComponentLandsOnItsTaintedNode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	selects := map[string]string{"system": f.namespace}
	node := f.newNode("a", selects, corev1.Taint{Key: "old", Value: "v", Effect: corev1.TaintEffectNoSchedule})
	f.register(f.systemComponents(f.reader(), selects, corev1.Toleration{Key: "new", Operator: corev1.TolerationOpExists}))
	kit.EventuallyTrue(t, "the webhook has the node in its cache", func() bool {
		return strings.Contains(tolerated(f.would(`metadata: {labels: {resources.gardener.cloud/managed-by: gardener}}`)), "old")
	})

	component := f.deployment(2, managedByGardener)
	component.Spec.Template.Spec.Tolerations = nil
	kit.Must(t, f.client.Create(f.Context(), component))
	f.eventuallySpread("the component is on its node", every, "a: 2")
	kit.Eventually(t, "it is available", func() string {
		kit.Must(t, f.client.Get(t.Context(), client.ObjectKeyFromObject(component), component))
		if got := component.Status.AvailableReplicas; got != 2 {
			return fmt.Sprintf("%d Pods are", got)
		}
		return ""
	})

	optsOut := f.pod(`{metadata: {labels: {resources.gardener.cloud/managed-by: gardener, system-components-config.resources.gardener.cloud/skip: ""}}}`)
	optsOut.Name, optsOut.Spec.NodeSelector = "opts-out", selects
	kit.Must(t, f.client.Create(t.Context(), optsOut))
	kit.EventuallyTrue(t, "a Pod that opts out finds no node", func() bool {
		kit.Must(t, f.client.Get(t.Context(), client.ObjectKeyFromObject(optsOut), optsOut))
		return slices.ContainsFunc(optsOut.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
		})
	})

	patch := client.MergeFrom(node.DeepCopy())
	node.Spec.Taints[0].Key = "newer"
	kit.Must(t, f.client.Patch(t.Context(), node, patch))
	kit.Eventually(t, "new Pods tolerate the new taint", func() string {
		if got := tolerated(f.would(`metadata: {labels: {resources.gardener.cloud/managed-by: gardener}}`)); got != "new newer owner" {
			return "the tolerations are " + got
		}
		return ""
	})
	kit.Must(t, f.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(f.namespace), client.MatchingLabels{"app": "web"}))
	newer := func(pod corev1.Pod) bool { return strings.Contains(tolerated(&pod), "newer") }
	f.eventuallySpread("the component is on its node again", newer, "a: 2")
}

// TestDaemonSetsAreNoSystemComponents checks that the Pods of DaemonSets, which the controller creates for each node, are unchanged.
func TestDaemonSetsAreNoSystemComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	selects := map[string]string{"system": f.namespace}
	f.newNode("a", map[string]string{})
	f.register(f.systemComponents(f.reader(), selects, corev1.Toleration{Key: "configured", Operator: corev1.TolerationOpExists}))
	template := f.deployment(1, managedByGardener).Spec.Template
	template.Spec.NodeSelector = map[string]string{"owner": f.namespace}
	kit.Must(t, f.client.Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template},
	}))
	f.eventuallySpread("the agent is on its node", every, "a: 1")
	pods := &corev1.PodList{}
	kit.Must(t, f.client.List(t.Context(), pods, client.InNamespace(f.namespace)))
	if pod := pods.Items[0]; tolerated(&pod) != "owner" || pod.Spec.NodeSelector["system"] != "" {
		t.Errorf("the Pod is %+v", pod.Spec)
	}
}
