package criticalcomponents

import (
	"encoding/json"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestDecisionsNeedNoMore checks that the decision is the same for reduced and complete objects.
func TestDecisionsNeedNoMore(t *testing.T) {
	selecting := daemonSet("b", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "b"} })
	pinned := daemonSet("c", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.NodeName = "m" })
	intolerant := daemonSet("d", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Tolerations = nil })
	affine := daemonSet("e", func(d *appsv1.DaemonSet) {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "DoesNotExist"}}}},
		}}}
	})
	daemonSets := []appsv1.DaemonSet{daemonSet("a"), selecting, pinned, intolerant, affine}
	for name, pods := range map[string][]corev1.Pod{
		"no Pod":         nil,
		"a Pod":          {pod("a-1", "a", isReady)},
		"not Ready":      {pod("a-1", "a", notReady)},
		"going":          {pod("a-1", "a", isReady, terminating)},
		"failed":         {pod("a-1", "a", isReady, in(corev1.PodFailed))},
		"with drivers":   {pod("a-1", "a", isReady, needs("x", "y"))},
		"with no driver": {pod("a-1", "a", isReady, needs())},
	} {
		want := Judge(node(), daemonSets, pods, csiNode("x"))
		got := Judge(node(), reduced(t, daemonSets), reduced(t, pods), reduced(t, []storagev1.CSINode{*csiNode("x")})[0].DeepCopy())
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func reduced[T any](t *testing.T, whole []T) []T {
	t.Helper()
	var result []T
	for i := range whole {
		one, err := reduceObject(any(&whole[i]))
		if err != nil {
			t.Fatal(err)
		}
		pointer, ok := one.(*T)
		if !ok {
			t.Fatalf("got %T", one)
		}
		result = append(result, *pointer)
	}
	return result
}

// TestReducedObjectsAreSmall checks that large fields are removed.
func TestReducedObjectsAreSmall(t *testing.T) {
	large := pod("a-1", "a", isReady)
	large.Annotations = map[string]string{"large": string(make([]byte, 10_000))}
	large.Spec = corev1.PodSpec{NodeName: "n", Containers: make([]corev1.Container, 100)}
	set := daemonSet("a")
	set.Spec.Template.Spec.Containers = make([]corev1.Container, 100)
	set.Status.NumberReady = 7
	for _, obj := range []runtime.Object{&large, &set} {
		one, err := reduceObject(obj)
		text, marshalErr := json.Marshal(one)
		if err != nil || marshalErr != nil || len(text) > 900 {
			t.Errorf("%d bytes remain, %v, %v: %s", len(text), err, marshalErr, text)
		}
	}
	if other, err := reduceObject(&corev1.Service{}); err != nil || !reflect.DeepEqual(other, &corev1.Service{}) {
		t.Errorf("got %+v, %v", other, err)
	}
}
