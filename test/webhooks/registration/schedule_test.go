package registration

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/test/kit"
)

func deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{highavailability.LabelType: "server"}},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selectorOf(name), Template: templateOf(name)},
	}
}

func statefulSet(namespace, name string, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{highavailability.LabelType: "server"}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: selectorOf(name), Template: templateOf(name), PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
}

func selectorOf(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func templateOf(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "example.org/image:1"}}, TerminationGracePeriodSeconds: new(int64),
	}}
}

// placed waits until the given number of Pods have nodes. It returns the number of Pods of each zone and of each node.
func (f *fixture) placed(namespace, app string, count int) (zoned, hosted map[string]int) {
	f.Helper()
	kit.Eventually(f, fmt.Sprintf("%d Pods of %s run", count, app), func() string {
		pods := &corev1.PodList{}
		kit.Must(f, f.client.List(f.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}))
		zoned, hosted = map[string]int{}, map[string]int{}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
				continue
			}
			node := &corev1.Node{}
			kit.Must(f, f.client.Get(f.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, node))
			zoned[node.Labels[corev1.LabelTopologyZone]]++
			hosted[node.Name]++
		}
		if running := sum(hosted); running != count || len(pods.Items) != count {
			return fmt.Sprintf("%d of %d Pods run, on nodes %v", running, len(pods.Items), hosted)
		}
		return ""
	})
	return zoned, hosted
}

func sum(counts map[string]int) int {
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}

// uneven reports whether some zone or node has at least two Pods more than another one, among the given number of domains.
func uneven(counts map[string]int, domains int) bool {
	least, most := 1<<30, 0
	for _, count := range counts {
		least, most = min(least, count), max(most, count)
	}
	if len(counts) < domains {
		least = 0
	}
	return most-least > 1
}

// rolledOut waits until all Pods of a Deployment or StatefulSet are ready and match its current template.
func (f *fixture) rolledOut(workload client.Object, count int32) {
	f.Helper()
	type replicas struct{ all, updated, ready int32 }
	kit.Eventually(f, fmt.Sprintf("%s is rolled out", workload.GetName()), func() string {
		kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(workload), workload))
		var observed int64
		var got replicas
		switch live := workload.(type) {
		case *appsv1.Deployment:
			status := live.Status
			observed, got = status.ObservedGeneration, replicas{status.Replicas, status.UpdatedReplicas, status.ReadyReplicas}
		case *appsv1.StatefulSet:
			status := live.Status
			observed, got = status.ObservedGeneration, replicas{status.Replicas, status.UpdatedReplicas, status.ReadyReplicas}
		}
		if observed != workload.GetGeneration() || got != (replicas{count, count, count}) {
			return fmt.Sprintf("generation %d of %d, %+v", observed, workload.GetGeneration(), got)
		}
		return ""
	})
}

// TestPodsAreSpread checks that the scheduler places the Pods of workloads that the webhooks changed into the zones of the namespace,
// spread over zones and nodes, after creation, scaling and updates.
func TestPodsAreSpread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	namespace := f.namespace(map[string]string{
		highavailability.AnnotationZones: "zone-0,zone-1,zone-2", highavailability.AnnotationFailureTolerance: "zone",
	})
	deployed, stateful := deployment(namespace, "deployed", 1), statefulSet(namespace, "stateful", 1)
	expect := func(what string, workload client.Object, count int) {
		t.Helper()
		f.rolledOut(workload, int32(count))
		zoned, hosted := f.placed(namespace, workload.GetName(), count)
		t.Logf("%s, %s: zones %v, nodes %v", workload.GetName(), what, zoned, hosted)
		if uneven(zoned, min(zones, count)) || uneven(hosted, count) {
			t.Errorf("%s, %s: zones %v, nodes %v", workload.GetName(), what, zoned, hosted)
		}
	}
	change := func(workload client.Object, patch string) {
		t.Helper()
		kit.Must(t, f.client.Patch(t.Context(), workload, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	for _, workload := range []client.Object{deployed, stateful} {
		kit.Must(t, f.client.Create(t.Context(), workload))
		expect("created with one replica", workload, 2)
		// Six replicas, by the annotation: one on each node. The spread is then over other domains, so this is a rollout too.
		change(workload, `{"metadata":{"annotations":{"`+highavailability.AnnotationReplicas+`":"6"}}}`)
		expect("six replicas", workload, 6)
	}
	change(deployed, `{"spec":{"template":{"metadata":{"labels":{"version":"2"}}}}}`)
	expect("updated", deployed, 6)
}

// TestPodsStayInZones checks that pinned Pods run only in the zones of the namespace.
func TestPodsStayInZones(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	namespace := f.namespace(map[string]string{highavailability.AnnotationZones: "zone-1", highavailability.AnnotationZonePinning: "true"})
	workload := deployment(namespace, "pinned", 1)
	workload.Annotations = map[string]string{highavailability.AnnotationReplicas: "4"}
	kit.Must(t, f.client.Create(t.Context(), workload))
	if zoned, hosted := f.placed(namespace, "pinned", 4); len(zoned) != 1 || zoned["zone-1"] != 4 || uneven(hosted, nodes/zones) {
		t.Errorf("zones %v, nodes %v", zoned, hosted)
	}
}

// TestMatchConditions checks that objects and namespaces that the webhook is not called for are unchanged, that autoscalers are
// changed, and that bad annotations are refused with a message that the client receives.
func TestMatchConditions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	namespace := f.namespace(nil)
	skipped := deployment(namespace, "skipped", 1)
	skipped.Labels[highavailability.LabelSkip] = "whatever"
	kit.Must(t, f.client.Create(t.Context(), skipped))
	elsewhere := deployment(kit.NewNamespace(t, f.client, "elsewhere", map[string]string{labelTest: t.Name()}), "elsewhere", 1)
	kit.Must(t, f.client.Create(t.Context(), elsewhere))
	for _, untouched := range []*appsv1.Deployment{skipped, elsewhere} {
		if *untouched.Spec.Replicas != 1 {
			t.Errorf("%s has %d replicas", untouched.Name, *untouched.Spec.Replicas)
		}
	}
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app", Labels: map[string]string{highavailability.LabelType: "server"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "scaled"},
			MinReplicas:    ptr.To[int32](1), MaxReplicas: 5,
		},
	}
	kit.Must(t, f.client.Create(t.Context(), autoscaler))
	if *autoscaler.Spec.MinReplicas != 2 {
		t.Errorf("the minimum of the autoscaler is %d replicas", *autoscaler.Spec.MinReplicas)
	}
	kit.EventuallyTrue(t, "the webhook has the autoscaler in its cache", func() bool {
		scaled := deployment(namespace, "scaled", 4)
		kit.Must(t, f.client.Create(t.Context(), scaled, client.DryRunAll))
		constraints := scaled.Spec.Template.Spec.TopologySpreadConstraints
		return *scaled.Spec.Replicas == 4 && len(constraints) == 1
	})
	bad := deployment(namespace, "bad", 1)
	bad.Annotations = map[string]string{highavailability.AnnotationReplicas: "many"}
	const want = `admission webhook "high-availability-config.resources.gardener.cloud" denied the request: the annotation ` +
		highavailability.AnnotationReplicas + ` is "many", but must be a whole number from 0 to 2147483647`
	if err := f.client.Create(t.Context(), bad); kit.TextOf(err) != want {
		t.Errorf("the answer to a bad annotation is %v", err)
	}
}
