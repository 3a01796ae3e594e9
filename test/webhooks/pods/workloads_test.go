package pods

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// newNode creates a simulated node for this test alone, and waits until Pods can be scheduled to it.
func (f *fixture) newNode(suffix string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	f.Helper()
	name := f.namespace + "-" + suffix
	all := map[string]string{corev1.LabelHostname: name, "owner": f.namespace}
	maps.Copy(all, labels)
	// Pods of other tests do not tolerate this taint.
	taints = append(taints, corev1.Taint{Key: "owner", Value: f.namespace, Effect: corev1.TaintEffectNoSchedule})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}, Spec: corev1.NodeSpec{Taints: taints}}
	kit.Must(f, f.client.Create(f.Context(), node))
	kit.Eventually(f, "the node is ready", func() string {
		kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(node), node))
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == len(taints) {
				return ""
			}
		}
		return fmt.Sprintf("%v, %v", node.Status.Conditions, node.Spec.Taints)
	})
	return node
}

// deployment returns a Deployment whose Pods tolerate the nodes of the test.
func (f *fixture) deployment(replicas int32, labels map[string]string) *appsv1.Deployment {
	all := map[string]string{"app": "web"}
	maps.Copy(all, labels)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.FromString("100%")), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: all},
				Spec: corev1.PodSpec{
					Containers:   []corev1.Container{{Name: "main", Image: "image"}},
					Tolerations:  []corev1.Toleration{{Key: "owner", Operator: corev1.TolerationOpExists}},
					NodeSelector: map[string]string{}, TerminationGracePeriodSeconds: new(int64),
				},
			},
		},
	}
}

// spread returns the number of selected Pods on each node, by the suffixes of the node names, in ascending order.
func (f *fixture) spread(of func(corev1.Pod) bool) []string {
	f.Helper()
	pods := &corev1.PodList{}
	kit.Must(f, f.client.List(f.Context(), pods, client.InNamespace(f.namespace), client.MatchingLabels{"app": "web"}))
	counts := map[string]int{}
	for _, pod := range pods.Items {
		if of(pod) {
			name := pod.Spec.NodeName
			counts[name[max(0, len(name)-1):]]++
		}
	}
	var result []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		result = append(result, fmt.Sprintf("%s: %d", name, counts[name]))
	}
	return result
}

func (f *fixture) eventuallySpread(reason string, of func(corev1.Pod) bool, want ...string) {
	f.Helper()
	kit.Eventually(f, reason, func() string {
		if got := f.spread(of); !slices.Equal(got, want) {
			return fmt.Sprintf("the spread is %q, want %q", got, want)
		}
		return ""
	})
}

func every(corev1.Pod) bool { return true }

func ofVersion(version string) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool { return pod.Annotations["version"] == version }
}

// TestPodsAreSpreadAfterARollingUpdate starts with all Pods of the first version on one of two nodes. Without the webhook, the
// scheduler counts them when it balances the second version, so that all Pods of the second version are placed on the other node and
// stay there. With the webhook, the scheduler counts only the new Pods. Half of them are on each node while both versions run, after
// that, and after another update.
func TestPodsAreSpreadAfterARollingUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(spreadConstraints())
	pool := map[string]string{"pool": f.namespace}
	a := f.newNode("a", pool)
	f.newNode("b", pool)

	update := func(f *fixture, deployment *appsv1.Deployment, change func()) {
		f.Helper()
		patch := client.MergeFrom(deployment.DeepCopy())
		change()
		kit.Must(f, f.client.Patch(f.Context(), deployment, patch))
	}
	// roll returns the Deployment with both versions. The second version never becomes available.
	roll := func(f *fixture, labels map[string]string) *appsv1.Deployment {
		f.Helper()
		deployment := f.deployment(4, labels)
		template := &deployment.Spec.Template
		template.Annotations = map[string]string{"version": "1"}
		template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: a.Name, "pool": pool["pool"]}
		template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: deployment.Spec.Selector,
		}}
		kit.Must(f, f.client.Create(f.Context(), deployment))
		f.eventuallySpread("the first version is on one node", every, "a: 4")
		kit.Eventually(f, "the first version is available", func() string {
			kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(deployment), deployment))
			if got := deployment.Status.AvailableReplicas; got != 4 {
				return fmt.Sprintf("%d Pods are", got)
			}
			return ""
		})
		update(f, deployment, func() {
			deployment.Spec.MinReadySeconds = 3600
			deployment.Spec.ProgressDeadlineSeconds = ptr.To[int32](7200)
			deployment.Spec.Template.Annotations["version"] = "2"
			delete(deployment.Spec.Template.Spec.NodeSelector, corev1.LabelHostname)
		})
		return deployment
	}
	t.Run("without the webhook", func(t *testing.T) {
		t.Parallel()
		f := f.in(t)
		roll(f, map[string]string{"topology-spread-constraints.resources.gardener.cloud/skip": ""})
		f.eventuallySpread("the second version is on the other node", ofVersion("2"), "b: 4")
	})
	t.Run("with the webhook", func(t *testing.T) {
		t.Parallel()
		f := f.in(t)
		deployment := roll(f, nil)
		f.eventuallySpread("the second version is on both nodes", ofVersion("2"), "a: 2", "b: 2")
		f.eventuallySpread("the first version still runs", ofVersion("1"), "a: 4")
		update(f, deployment, func() { deployment.Spec.MinReadySeconds = 0 })
		f.eventuallySpread("only the second version is left", every, "a: 2", "b: 2")
		update(f, deployment, func() {
			deployment.Spec.Template.Annotations["version"] = "3"
			deployment.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
		})
		f.eventuallySpread("the third version is on both nodes", ofVersion("3"), "a: 2", "b: 2")
		f.eventuallySpread("only the third version is left", every, "a: 2", "b: 2")
	})
}

// TestSpreadConstraints checks the constraint of the specification's example, and the constraints that are unchanged.
func TestSpreadConstraints(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(spreadConstraints())
	const spec = `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule`
	const hash = `pod-template-hash: 123abc`
	for text, want := range map[string]string{
		"metadata: {labels: {" + hash + "}}\n" + spec + "}]}":                                                                            "123abc",
		"metadata: {labels: {" + hash + "}}\n" + spec + ", labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [pod-template-hash]}]}": "123abc",
		"metadata: {labels: {" + hash + "}}\n" + spec + ", labelSelector: {matchLabels: {pod-template-hash: other}}}]}":                  "other",
		"metadata: {labels: {a: b}}\n" + spec + "}]}":                                                                                    "",
		"metadata: {labels: {" + hash + `, topology-spread-constraints.resources.gardener.cloud/skip: "no"}}` + "\n" + spec + "}]}":      "",
		"metadata: {labels: {" + hash + `, app: gardener-resource-manager}}` + "\n" + spec + "}]}":                                       "",
		"metadata: {labels: {" + hash + `, static-pod: "true"}}` + "\n" + spec + "}]}":                                                   "",
	} {
		constraint := f.would(text).Spec.TopologySpreadConstraints[0]
		got := ""
		if constraint.LabelSelector != nil {
			got = constraint.LabelSelector.MatchLabels["pod-template-hash"]
		}
		if got != want || len(constraint.MatchLabelKeys) > 0 {
			t.Errorf("%s: the constraint is %+v", text, constraint)
		}
	}
}
