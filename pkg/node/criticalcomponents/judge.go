package criticalcomponents

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys that this package shares with gardener-resource-manager and with gardenlet.
const (
	// Taint is the key of the taint that keeps Pods off a node until its critical components are ready. Its value and
	// effect do not matter.
	Taint = "node.gardener.cloud/critical-components-not-ready"
	// Label marks critical components, with the value LabelValue: DaemonSets, their Pod templates, and Pods.
	Label = "node.gardener.cloud/critical-component"
	// LabelValue is the value of Label.
	LabelValue = "true"
	// AnnotationPrefixCSIDriver is the prefix of annotations of a Pod whose values name CSI drivers that the node must
	// have.
	AnnotationPrefixCSIDriver = "node.gardener.cloud/wait-for-csi-node-"
)

// Reasons of Events, those of gardener-resource-manager.
//
// +events:on=Node of the target cluster
const (
	ReasonReady       = "NodeCriticalComponentsReady"       // Normal: the taint was removed
	ReasonUnscheduled = "UnscheduledNodeCriticalDaemonSets" // Warning: the node waits for DaemonSets that have no Pod on it
	ReasonUnready     = "UnreadyNodeCriticalPods"           // Warning: the node waits for Pods that are not ready
	ReasonDrivers     = "UnreadyRequiredCSIDrivers"         // Warning: the node waits for CSI drivers
)

// Missing describes what a node waits for. At most one of the lists has entries. They are sorted.
type Missing struct {
	// DaemonSets are those that should have a Pod on the node but have none, as "<namespace>/<name>".
	DaemonSets []string
	// Pods are the Pods on the node that are not Ready, as "<namespace>/<name>".
	Pods []string
	// Drivers are the CSI drivers that Pods on the node require and that the node does not have.
	Drivers []string
}

// Reason returns the reason of the Event that reports the missing components; empty if nothing is missing.
func (m Missing) Reason() string {
	switch {
	case len(m.DaemonSets) > 0:
		return ReasonUnscheduled
	case len(m.Pods) > 0:
		return ReasonUnready
	case len(m.Drivers) > 0:
		return ReasonDrivers
	default:
		return ""
	}
}

// Message describes the missing components.
func (m Missing) Message() string {
	switch m.Reason() {
	case ReasonUnscheduled:
		return fmt.Sprintf("%d critical DaemonSet(s) have no Pod on this node yet: %s", len(m.DaemonSets), strings.Join(m.DaemonSets, ", "))
	case ReasonUnready:
		return fmt.Sprintf("%d critical Pod(s) of this node are not Ready yet: %s", len(m.Pods), strings.Join(m.Pods, ", "))
	case ReasonDrivers:
		return fmt.Sprintf("%d CSI driver(s) that critical Pods of this node need are not registered in its CSINode yet: %s",
			len(m.Drivers), strings.Join(m.Drivers, ", "))
	default:
		return "all critical components of this node are ready"
	}
}

// Judge returns what a node waits for (the concept document of gardener-resource-manager, "Critical Components
// Controller"). DaemonSets and pods are those with the label, and pods are bound to the node. The CSINode is that of
// the node, or nil if it does not exist. Judge checks these conditions in order and reports the first unmet one: each
// DaemonSet that should run on the node has a Pod there, each Pod is Ready, each CSI driver is registered. Pods that
// are being deleted or have ended are ignored.
func Judge(node *corev1.Node, daemonSets []appsv1.DaemonSet, pods []corev1.Pod, csiNode *storagev1.CSINode) Missing {
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !alive(&pod) })
	if unscheduled := unscheduled(node, daemonSets, pods); len(unscheduled) > 0 {
		return Missing{DaemonSets: unscheduled}
	}
	var unready []string
	for i := range pods {
		if !ready(&pods[i]) {
			unready = append(unready, nameOf(&pods[i]))
		}
	}
	slices.Sort(unready)
	if len(unready) > 0 {
		return Missing{Pods: unready}
	}
	return Missing{Drivers: unregistered(pods, csiNode)}
}

// unscheduled returns the DaemonSets that should have a Pod on a node but have none.
func unscheduled(node *corev1.Node, daemonSets []appsv1.DaemonSet, pods []corev1.Pod) []string {
	var names []string
	for i := range daemonSets {
		daemonSet := &daemonSets[i]
		if !isCritical(daemonSet) || !shouldRunOn(daemonSet, node) {
			continue
		}
		if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return metav1.IsControlledBy(&pod, daemonSet) }) {
			names = append(names, nameOf(daemonSet))
		}
	}
	slices.Sort(names)
	return names
}

// isCritical reports whether a node must wait for the Pods of a labelled DaemonSet: its Pods will have the label too,
// and it still creates Pods.
func isCritical(daemonSet *appsv1.DaemonSet) bool {
	return daemonSet.DeletionTimestamp.IsZero() && daemonSet.Spec.Template.Labels[Label] == LabelValue
}

func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// unregistered returns the CSI drivers that Pods require and that a CSINode does not have.
func unregistered(pods []corev1.Pod, csiNode *storagev1.CSINode) []string {
	required := map[string]struct{}{}
	for i := range pods {
		for key, driver := range pods[i].Annotations {
			if strings.HasPrefix(key, AnnotationPrefixCSIDriver) {
				required[driver] = struct{}{}
			}
		}
	}
	if csiNode != nil {
		for _, driver := range csiNode.Spec.Drivers {
			delete(required, driver.Name)
		}
	}
	return slices.Sorted(maps.Keys(required))
}

// requireDrivers reports whether any of the Pods requires a CSI driver.
func requireDrivers(pods []corev1.Pod) bool { return len(unregistered(pods, nil)) > 0 }

// HasTaint reports whether a node waits for its critical components.
func HasTaint(node *corev1.Node) bool { return slices.ContainsFunc(node.Spec.Taints, isOurs) }

func isOurs(taint corev1.Taint) bool { return taint.Key == Taint }

func nameOf(obj client.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }
