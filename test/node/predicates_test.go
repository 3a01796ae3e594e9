package node

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/node/criticalcomponents"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestPredicatesAgreeWithKubernetes checks that nodes wait for a DaemonSet exactly if Kubernetes' own controller wants a Pod on them.
func TestPredicatesAgreeWithKubernetes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	nodes := []*corev1.Node{
		f.node(f.namespace + "-plain"),
		f.node(f.namespace+"-tainted", taint("example.org/a", "1", corev1.TaintEffectNoSchedule)),
		f.node(f.namespace+"-evicting", taint("example.org/a", "1", corev1.TaintEffectNoExecute)),
		f.node(f.namespace+"-advised", taint("example.org/a", "1", corev1.TaintEffectPreferNoSchedule)),
		f.node(f.namespace+"-cordoned", taint(corev1.TaintNodeUnschedulable, "", corev1.TaintEffectNoSchedule)),
		f.node(f.namespace+"-gone", taint(corev1.TaintNodeOutOfService, "nodeshutdown", corev1.TaintEffectNoExecute)),
	}
	tolerate := func(tolerations ...corev1.Toleration) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Tolerations = tolerations }
	}
	variants := map[string]func(*corev1.PodSpec){
		"all":         tolerate(tolerateAll...),
		"none":        tolerate(),
		"key":         tolerate(corev1.Toleration{Key: "example.org/a", Operator: corev1.TolerationOpExists}),
		"value":       tolerate(corev1.Toleration{Key: "example.org/a", Value: "1"}),
		"other-value": tolerate(corev1.Toleration{Key: "example.org/a", Value: "2"}),
		"effect":      tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}),
		"affinity":    func(spec *corev1.PodSpec) { spec.Affinity = nodeAffinity(corev1.LabelHostname, nodes[0].Name) },
		"node":        func(spec *corev1.PodSpec) { spec.NodeName = nodes[1].Name },
		"selector": func(spec *corev1.PodSpec) {
			spec.NodeSelector = map[string]string{testLabel: f.namespace, corev1.LabelHostname: nodes[2].Name}
		},
		"field": func(spec *corev1.PodSpec) {
			spec.Affinity = nodeAffinity("x", "x")
			spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0] = corev1.NodeSelectorTerm{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{nodes[0].Name}}},
			}
		},
	}
	for name, change := range variants {
		f.daemonSet(name, func(d *appsv1.DaemonSet) { change(&d.Spec.Template.Spec) })
	}
	for _, one := range nodes {
		kit.EventuallyTrue(t, "the temporary taints are removed", func() bool {
			for _, taint := range f.readNode(one.Name).Spec.Taints {
				if taint.Key == corev1.TaintNodeNotReady {
					return false
				}
			}
			return true
		})
	}
	for name := range variants {
		kit.Eventually(t, "both agree on "+name, func() string {
			daemonSet, pods := &appsv1.DaemonSet{}, &corev1.PodList{}
			kit.Must(t, f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, daemonSet))
			kit.Must(t, f.client.List(f.ctx, pods, client.InNamespace(f.namespace), client.MatchingLabels{"app": name}))
			if daemonSet.Status.ObservedGeneration != daemonSet.Generation || int(daemonSet.Status.DesiredNumberScheduled) > len(pods.Items) {
				return "Kubernetes has not decided yet"
			}
			wanted := 0
			for _, one := range nodes {
				if len(criticalcomponents.Judge(f.readNode(one.Name), []appsv1.DaemonSet{*daemonSet}, nil, nil).DaemonSets) > 0 {
					wanted++
				}
			}
			if wanted != int(daemonSet.Status.DesiredNumberScheduled) {
				return fmt.Sprintf("%d nodes would wait, Kubernetes wants %d Pods", wanted, daemonSet.Status.DesiredNumberScheduled)
			}
			return ""
		})
	}
}
