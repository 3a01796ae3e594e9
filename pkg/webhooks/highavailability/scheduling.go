package highavailability

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// hostDomains is the minimum number of nodes to spread Pods over, if there are as many Pods.
const hostDomains = 3

// workload has the common fields of Deployments and StatefulSets.
type workload struct {
	metav1.Object

	replicas *int32
	template *corev1.PodTemplateSpec
	// selector selects the Pods to spread.
	selector *metav1.LabelSelector
	// hashed reports whether Pods of different templates have different pod-template-hash labels.
	hashed bool
}

// pinToZones restricts Pods to the zones of the namespace.
func pinToZones(spec *corev1.PodSpec, around *surroundings) {
	if len(around.zones) == 0 || (around.failureTolerance == nil && !around.zonePinning) {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{}
	}
	if len((*required).NodeSelectorTerms) == 0 {
		(*required).NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range (*required).NodeSelectorTerms {
		term := &(*required).NodeSelectorTerms[i]
		term.MatchExpressions = slices.DeleteFunc(term.MatchExpressions, func(requirement corev1.NodeSelectorRequirement) bool {
			return requirement.Key == corev1.LabelTopologyZone
		})
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: around.zones,
		})
	}
}

// spread spreads Pods over nodes and zones, if there are several Pods.
func spread(w workload, around *surroundings) {
	spec := &w.template.Spec
	replicas := ptr.Deref(w.replicas, 0)
	if replicas > 1 {
		most := replicas
		if around.autoscaler != nil && replicas <= around.autoscaler.most {
			most = around.autoscaler.most
		}
		spec.TopologySpreadConstraints = slices.DeleteFunc(spec.TopologySpreadConstraints, func(constraint corev1.TopologySpreadConstraint) bool {
			return constraint.TopologyKey == corev1.LabelHostname || constraint.TopologyKey == corev1.LabelTopologyZone
		})
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, acrossHosts(w, around, most))
		if needsZones(around) {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, acrossZones(w, around, most))
		}
	}
	if w.hashed {
		compareSameTemplate(spec.TopologySpreadConstraints)
	}
}

func acrossHosts(w workload, around *surroundings, most int32) corev1.TopologySpreadConstraint {
	constraint := corev1.TopologySpreadConstraint{
		TopologyKey: corev1.LabelHostname, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: w.selector,
	}
	wanted := resourcesv1alpha1.Truthy(w.GetAnnotations()[AnnotationHostSpread]) || ptr.Deref(around.failureTolerance, "") != ""
	if wanted && around.severalNodes { // with a single node, the second Pod could never start
		constraint.WhenUnsatisfiable = corev1.DoNotSchedule
		constraint.MinDomains = ptr.To(min(hostDomains, most))
	}
	return constraint
}

func needsZones(around *surroundings) bool {
	return len(around.zones) > 1 && (around.failureTolerance == nil || *around.failureTolerance == toleranceZone)
}

func acrossZones(w workload, around *surroundings, most int32) corev1.TopologySpreadConstraint {
	domains := most
	if len(around.zones) < int(most) {
		domains = int32(len(around.zones)) //nolint:gosec // G115: it is less than an int32
	}
	return corev1.TopologySpreadConstraint{
		TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule,
		MinDomains: &domains, LabelSelector: w.selector,
	}
}

// compareSameTemplate makes constraints count only Pods of the same template, so that Pods are still spread evenly after
// a rolling update. The API server rejects this for constraints without a selector, or with a selector that already
// contains the label.
func compareSameTemplate(constraints []corev1.TopologySpreadConstraint) {
	const hash = appsv1.DefaultDeploymentUniqueLabelKey
	for i := range constraints {
		constraint := &constraints[i]
		if constraint.LabelSelector == nil || selects(constraint.LabelSelector, hash) || slices.Contains(constraint.MatchLabelKeys, hash) {
			continue
		}
		constraint.MatchLabelKeys = append(constraint.MatchLabelKeys, hash)
	}
}

// selects reports whether a selector has a requirement for a label.
func selects(selector *metav1.LabelSelector, key string) bool {
	_, found := selector.MatchLabels[key]
	return found || slices.ContainsFunc(selector.MatchExpressions, func(requirement metav1.LabelSelectorRequirement) bool {
		return requirement.Key == key
	})
}

// tolerate adds a toleration for a taint of failed nodes with a number of seconds, unless the Pod already tolerates the
// taint. It adds none if seconds is nil.
func tolerate(spec *corev1.PodSpec, taint string, seconds *int64) {
	if seconds == nil || slices.ContainsFunc(spec.Tolerations, func(toleration corev1.Toleration) bool {
		return toleration.Key == taint && (toleration.Effect == "" || toleration.Effect == corev1.TaintEffectNoExecute)
	}) {
		return
	}
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds,
	})
}
