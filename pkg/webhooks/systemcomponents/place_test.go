package systemcomponents

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

// known is a fake source with fixed tolerations.
type known []corev1.Toleration

func (k known) Tolerations(context.Context) ([]corev1.Toleration, error) { return k, nil }

// unknown is a fake source that fails, as if nodes could not be read.
type unknown struct{ error }

func (u unknown) Tolerations(context.Context) ([]corev1.Toleration, error) { return nil, u.error }

var options = Options{
	PodNodeSelector: map[string]string{"worker.gardener.cloud/system-components": "true"},
	PodTolerations:  []corev1.Toleration{{Key: "z", Operator: corev1.TolerationOpExists}, {Key: "a", Operator: corev1.TolerationOpEqual, Value: "b"}},
}

func pods(nodes NodeTolerations, options Options) admittest.Handler[*corev1.Pod] {
	return admittest.Pods(NewHandler(nodes, options), func(pod *corev1.Pod) { pod.Spec.NodeSelector, pod.Spec.Tolerations = nil, nil })
}

func TestPlace(t *testing.T) {
	nodes := known{{Key: "c", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, {Key: "z", Operator: corev1.TolerationOpExists}}
	const selector = `worker.gardener.cloud/system-components: "true"`
	const tolerations = `{key: z, operator: Exists}, {key: a, operator: Equal, value: b}, {key: c, operator: Exists, effect: NoSchedule}`
	spec := func(fields string) string { return "\nspec: {containers: [], " + fields + "}" }
	owned := func(apiVersion, kind, controller string) string {
		return "metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: n, uid: '2'}, {apiVersion: " + apiVersion + ", kind: " + kind +
			", name: a, uid: '1', controller: " + controller + "}]}"
	}
	placed := spec("nodeSelector: {" + selector + "}, tolerations: [" + tolerations + "]")
	pods(nodes, options).Run(t, map[string]admittest.Case{
		"a Pod without both": {Before: spec(""), After: placed},
		"the Pod's own come first and are kept": {
			Before: spec("nodeSelector: {x: y}, tolerations: [{key: own, operator: Exists, tolerationSeconds: 5}, {key: c, operator: Exists}]"),
			After: spec("nodeSelector: {x: y, " + selector + "}, tolerations: [{key: own, operator: Exists, tolerationSeconds: 5}, {key: c, operator: Exists}, " +
				tolerations + "]"),
		},
		"the configured selector wins": {
			Before: spec(`nodeSelector: {worker.gardener.cloud/system-components: "false"}`), After: placed,
		},
		"what is there is not added again": {
			Before: spec("tolerations: [{key: c, operator: Exists, effect: NoSchedule}, {key: a, value: b}, {key: z, operator: Exists, tolerationSeconds: 5}]"),
			After: spec("nodeSelector: {" + selector + "}, tolerations: [{key: c, operator: Exists, effect: NoSchedule}, {key: a, value: b}, " +
				"{key: z, operator: Exists, tolerationSeconds: 5}, {key: z, operator: Exists}]"),
		},
		"of a DaemonSet":                    {Before: owned("apps/v1", "DaemonSet", "true") + spec("")},
		"of a ReplicaSet":                   {Before: owned("apps/v1", "ReplicaSet", "true") + spec(""), After: owned("apps/v1", "ReplicaSet", "true") + placed},
		"of another DaemonSet":              {Before: owned("apps.kruise.io/v1", "DaemonSet", "true") + spec(""), After: owned("apps.kruise.io/v1", "DaemonSet", "true") + placed},
		"a DaemonSet that does not control": {Before: owned("apps/v1", "DaemonSet", "false") + spec(""), After: owned("apps/v1", "DaemonSet", "false") + placed},
	})
	pods(known{}, Options{}).Run(t, map[string]admittest.Case{"nothing is configured": {Before: spec("")}})
	pods(unknown{errors.New("no connection")}, options).Run(t, map[string]admittest.Case{
		"nodes that cannot be read": {
			Before: spec(""), Code: 503, Refusal: "cannot determine the tolerations of the Pod: the nodes cannot be read: no connection",
		},
		"a DaemonSet does not need them": {Before: owned("apps/v1", "DaemonSet", "true") + spec("")},
	})
}

func node(labels map[string]string, taints ...corev1.Taint) corev1.Node {
	node := corev1.Node{Spec: corev1.NodeSpec{Taints: taints}}
	node.Labels = labels
	return node
}

func TestTolerationsOfNodes(t *testing.T) {
	const noSchedule, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	system := map[string]string{"system": "true", "a": "b"}
	nodes := []corev1.Node{
		node(system, corev1.Taint{Key: "z", Effect: noSchedule}, corev1.Taint{Key: "b", Value: "2", Effect: noSchedule}, corev1.Taint{Key: "b", Value: "1", Effect: noSchedule}),
		node(system, corev1.Taint{Key: "b", Value: "1", Effect: noSchedule}, corev1.Taint{Key: "b", Value: "1", Effect: noExecute}),
		node(system), node(nil, corev1.Taint{Key: "other", Effect: noSchedule}), node(map[string]string{"system": "false"}, corev1.Taint{Key: "other", Effect: noSchedule}),
		node(system, corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: noExecute}, corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: noSchedule},
			corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler", Value: "1", Effect: noSchedule}, corev1.Taint{Key: "DeletionCandidateOfClusterAutoscaler", Value: "1", Effect: corev1.TaintEffectPreferNoSchedule},
			corev1.Taint{Key: "kubernetes.io", Effect: noSchedule}),
	}
	want := []corev1.Toleration{
		{Key: "DeletionCandidateOfClusterAutoscaler", Operator: corev1.TolerationOpEqual, Value: "1", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "b", Operator: corev1.TolerationOpEqual, Value: "1", Effect: noExecute},
		{Key: "b", Operator: corev1.TolerationOpEqual, Value: "1", Effect: noSchedule},
		{Key: "b", Operator: corev1.TolerationOpEqual, Value: "2", Effect: noSchedule},
		{Key: "kubernetes.io", Operator: corev1.TolerationOpExists, Effect: noSchedule},
		{Key: "z", Operator: corev1.TolerationOpExists, Effect: noSchedule},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		if got := ofNodes(nodes, labels.SelectorFromSet(labels.Set{"system": "true"})); !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("got %+v", got)
		}
	}
	all := ofNodes(nodes, labels.SelectorFromSet(nil))
	if len(all) != len(want)+1 || !slices.ContainsFunc(all, func(toleration corev1.Toleration) bool { return toleration.Key == "other" }) {
		t.Errorf("without a selector, got %+v", all)
	}
}

func FuzzPlace(f *testing.F) {
	f.Add([]byte(`{"spec":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"c"},{"key":"c","operator":"Equal"},{"operator":"Exists","tolerationSeconds":1}]}}`), "c", "", "NoSchedule")
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"a","uid":"1","controller":true},null]}}`), "c", "d", "")
	f.Fuzz(func(t *testing.T, raw []byte, key, value, effect string) {
		if !utf8.ValidString(key + " " + value + " " + effect) {
			t.Skip("no node has such a taint")
		}
		nodes := []corev1.Node{node(nil, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, corev1.Taint{Key: key})}
		pods(known(ofNodes(nodes, labels.Everything())), options).Robust(t, raw)
	})
}

// BenchmarkPod measures one Pod in a cluster with a number of nodes and five different taints. The nodes never change, or
// before every Pod.
func BenchmarkPod(b *testing.B) {
	for _, count := range []int{10, 1000} {
		for _, changes := range []bool{false, true} {
			b.Run(fmt.Sprintf("nodes=%d,changes=%t", count, changes), func(b *testing.B) { benchmarkPod(b, count, changes) })
		}
	}
}

func benchmarkPod(b *testing.B, count int, changes bool) {
	b.Helper()
	var items []corev1.Node
	for i := range count {
		items = append(items, node(nil, corev1.Taint{Key: fmt.Sprintf("taint-%d", i%5), Effect: corev1.TaintEffectNoSchedule}))
	}
	nodes := newNodes(&lister{items: items}, nil)
	for b.Loop() {
		if changes {
			nodes.eventHandler().OnAdd(&items[0], false)
		}
		tolerations, err := nodes.Tolerations(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		place(&corev1.PodSpec{}, options.PodNodeSelector, options.PodTolerations, tolerations)
	}
}
