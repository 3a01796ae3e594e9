package criticalcomponents

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var critical = map[string]string{Label: LabelValue}

// tolerating makes the Pods of a DaemonSet tolerate every taint.
func tolerating(daemonSet *appsv1.DaemonSet) {
	daemonSet.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func daemonSet(name string, changes ...func(*appsv1.DaemonSet)) appsv1.DaemonSet {
	one := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name), Labels: critical}}
	one.Spec.Template.Labels = critical
	tolerating(&one)
	for _, change := range changes {
		change(&one)
	}
	return one
}

func pod(name, owner string, status corev1.ConditionStatus, changes ...func(*corev1.Pod)) corev1.Pod {
	one := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: critical}}
	if owner != "" {
		one.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}}
	}
	one.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status}}
	for _, change := range changes {
		change(&one)
	}
	return one
}

func node(taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}},
		Spec:       corev1.NodeSpec{Taints: append(taints, corev1.Taint{Key: Taint, Effect: corev1.TaintEffectNoSchedule})},
	}
}

const (
	isReady  = corev1.ConditionTrue
	notReady = corev1.ConditionFalse
)

func terminating(one *corev1.Pod) { one.DeletionTimestamp = ptr.To(metav1.Now()) }

func in(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(one *corev1.Pod) { one.Status.Phase = phase }
}

func needs(drivers ...string) func(*corev1.Pod) {
	return func(one *corev1.Pod) {
		one.Annotations = map[string]string{"other": "driver"}
		for _, driver := range drivers {
			one.Annotations[AnnotationPrefixCSIDriver+driver+"-suffix"] = driver
		}
	}
}

func csiNode(drivers ...string) *storagev1.CSINode {
	one := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, driver := range drivers {
		one.Spec.Drivers = append(one.Spec.Drivers, storagev1.CSINodeDriver{Name: driver})
	}
	return one
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		daemonSets []appsv1.DaemonSet
		pods       []corev1.Pod
		csiNode    *storagev1.CSINode
		want       Missing
	}{
		"nothing is critical": {},
		"no Pods yet": {
			daemonSets: []appsv1.DaemonSet{daemonSet("b"), daemonSet("a")},
			want:       Missing{DaemonSets: []string{"kube-system/a", "kube-system/b"}},
		},
		"one of two": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a"), daemonSet("b")}, pods: []corev1.Pod{pod("a-1", "a", isReady)},
			want: Missing{DaemonSets: []string{"kube-system/b"}},
		},
		"first DaemonSets, then Pods": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a"), daemonSet("b")}, pods: []corev1.Pod{pod("a-1", "a", notReady)},
			want: Missing{DaemonSets: []string{"kube-system/b"}},
		},
		"a Pod of a DaemonSet of the same name that was deleted": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a", func(d *appsv1.DaemonSet) { d.UID = "new" })}, pods: []corev1.Pod{pod("a-1", "a", isReady)},
			want: Missing{DaemonSets: []string{"kube-system/a"}},
		},
		"an owner that is no controller": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a")},
			pods:       []corev1.Pod{pod("a-1", "a", isReady, func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil })},
			want:       Missing{DaemonSets: []string{"kube-system/a"}},
		},
		"all ready": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a"), daemonSet("b")},
			pods:       []corev1.Pod{pod("a-1", "a", isReady), pod("b-1", "b", isReady), pod("bare", "", isReady)},
		},
		"Pods that are not Ready, with and without a DaemonSet": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a"), daemonSet("b")},
			pods:       []corev1.Pod{pod("bare", "", notReady), pod("a-1", "a", corev1.ConditionUnknown), pod("b-1", "b", isReady)},
			want:       Missing{Pods: []string{"kube-system/a-1", "kube-system/bare"}},
		},
		"a Pod without conditions": {
			pods: []corev1.Pod{pod("bare", "", isReady, func(p *corev1.Pod) { p.Status.Conditions = nil })},
			want: Missing{Pods: []string{"kube-system/bare"}},
		},
		"a Pod that is being deleted is no Pod": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a")}, pods: []corev1.Pod{pod("a-1", "a", isReady, terminating)},
			want: Missing{DaemonSets: []string{"kube-system/a"}},
		},
		"nor one that failed": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a")}, pods: []corev1.Pod{pod("a-1", "a", notReady, in(corev1.PodFailed))},
			want: Missing{DaemonSets: []string{"kube-system/a"}},
		},
		"Pods that will never be Ready are not waited for": {
			pods: []corev1.Pod{pod("a", "", notReady, terminating), pod("b", "", notReady, in(corev1.PodSucceeded)), pod("c", "", notReady, in(corev1.PodFailed))},
		},
		"a DaemonSet that is being deleted gets no Pods": {
			daemonSets: []appsv1.DaemonSet{daemonSet("a", func(d *appsv1.DaemonSet) { d.DeletionTimestamp = ptr.To(metav1.Now()) })},
		},
		"a DaemonSet whose Pods are not critical": {
			daemonSets: []appsv1.DaemonSet{
				daemonSet("a", func(d *appsv1.DaemonSet) { d.Spec.Template.Labels = nil }),
				daemonSet("b", func(d *appsv1.DaemonSet) { d.Spec.Template.Labels = map[string]string{Label: "True"} }),
			},
		},
		"drivers, but no CSINode": {
			pods: []corev1.Pod{pod("a", "", isReady, needs("y", "x")), pod("b", "", isReady, needs("x"))},
			want: Missing{Drivers: []string{"x", "y"}},
		},
		"one of two drivers": {
			pods: []corev1.Pod{pod("a", "", isReady, needs("y", "x"))}, csiNode: csiNode("x", "z"), want: Missing{Drivers: []string{"y"}},
		},
		"first Pods, then drivers": {
			pods: []corev1.Pod{pod("a", "", notReady, needs("x"))}, want: Missing{Pods: []string{"kube-system/a"}},
		},
		"all drivers": {pods: []corev1.Pod{pod("a", "", isReady, needs("y", "x"))}, csiNode: csiNode("x", "y")},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(node(), test.daemonSets, test.pods, test.csiNode)
			if len(got.DaemonSets)+len(got.Pods)+len(got.Drivers)+len(test.want.DaemonSets)+len(test.want.Pods)+len(test.want.Drivers) > 0 &&
				!reflect.DeepEqual(normal(got), normal(test.want)) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if (got.Reason() == "") != (normal(got).DaemonSets == nil && normal(got).Pods == nil && normal(got).Drivers == nil) {
				t.Errorf("the reason is %q for %+v", got.Reason(), got)
			}
		})
	}
}

// normal replaces empty lists with nil.
func normal(m Missing) Missing {
	for _, list := range []*[]string{&m.DaemonSets, &m.Pods, &m.Drivers} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return m
}

func TestMessages(t *testing.T) {
	for want, missing := range map[string]Missing{
		"UnscheduledNodeCriticalDaemonSets: 2 critical DaemonSet(s) have no Pod on this node yet: a/b, c/d":                            {DaemonSets: []string{"a/b", "c/d"}},
		"UnreadyNodeCriticalPods: 1 critical Pod(s) of this node are not Ready yet: a/b":                                               {Pods: []string{"a/b"}},
		"UnreadyRequiredCSIDrivers: 1 CSI driver(s) that critical Pods of this node need are not registered in its CSINode yet: csi.x": {Drivers: []string{"csi.x"}},
		": all critical components of this node are ready":                                                                             {},
	} {
		if got := missing.Reason() + ": " + missing.Message(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestShouldRunOn(t *testing.T) {
	noSchedule := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	spec := func(change func(*corev1.PodSpec)) appsv1.DaemonSet {
		return daemonSet("a", func(d *appsv1.DaemonSet) { change(&d.Spec.Template.Spec) })
	}
	tolerates := func(tolerations ...corev1.Toleration) appsv1.DaemonSet {
		return spec(func(s *corev1.PodSpec) { s.Tolerations = tolerations })
	}
	ours := corev1.Toleration{Key: Taint, Operator: corev1.TolerationOpExists}
	required := func(operator corev1.NodeSelectorOperator, key string, values ...string) appsv1.DaemonSet {
		return spec(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}},
			}}}
		})
	}
	for name, test := range map[string]struct {
		daemonSet appsv1.DaemonSet
		taints    []corev1.Taint
		want      bool
	}{
		"anywhere":                         {daemonSet: daemonSet("a"), want: true},
		"on this node":                     {daemonSet: spec(func(s *corev1.PodSpec) { s.NodeName = "n" }), want: true},
		"on another node":                  {daemonSet: spec(func(s *corev1.PodSpec) { s.NodeName = "m" })},
		"selector":                         {daemonSet: spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "a"} }), want: true},
		"another selector":                 {daemonSet: spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "b"} })},
		"affinity":                         {daemonSet: required(corev1.NodeSelectorOpIn, "zone", "a", "b"), want: true},
		"another affinity":                 {daemonSet: required(corev1.NodeSelectorOpNotIn, "zone", "a")},
		"an affinity that is not valid":    {daemonSet: required("Is", "zone", "a")},
		"does not tolerate our taint":      {daemonSet: tolerates()},
		"tolerates our taint":              {daemonSet: tolerates(ours), want: true},
		"does not tolerate another taint":  {daemonSet: tolerates(ours), taints: []corev1.Taint{noSchedule("x")}},
		"nor a taint that evicts":          {daemonSet: tolerates(ours), taints: []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}}},
		"a taint that only advises":        {daemonSet: tolerates(ours), taints: []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}, want: true},
		"a taint with another value":       {daemonSet: tolerates(ours, corev1.Toleration{Key: "x", Value: "1"}), taints: []corev1.Taint{{Key: "x", Value: "2", Effect: corev1.TaintEffectNoSchedule}}},
		"taints that every DaemonSet has":  {daemonSet: tolerates(ours), taints: []corev1.Taint{noSchedule(corev1.TaintNodeUnschedulable), noSchedule(corev1.TaintNodeDiskPressure), noSchedule(corev1.TaintNodeMemoryPressure), noSchedule(corev1.TaintNodePIDPressure)}, want: true},
		"taints of a node that just began": {daemonSet: tolerates(ours), taints: []corev1.Taint{noSchedule(corev1.TaintNodeNotReady), noSchedule(corev1.TaintNodeUnreachable), noSchedule(corev1.TaintNodeNetworkUnavailable), noSchedule("node.cloudprovider.kubernetes.io/uninitialized"), {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}, want: true},
		"a node that is out of service":    {daemonSet: tolerates(ours), taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shouldRunOn(&test.daemonSet, node(test.taints...)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
