package netpol

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NamedPort is a port of Pods that a Service references by name.
type NamedPort struct {
	Name     string
	Protocol corev1.Protocol
	// Where names the source of the reference: a port of the Service, or an annotation.
	Where string
}

// namedPorts returns the ports that are referenced by name, in the order of their sources.
func (r *Request) namedPorts() []NamedPort {
	var named []NamedPort
	add := func(port Port, where string) {
		if port.Port.Type == intstr.String {
			named = append(named, NamedPort{Name: port.Port.StrVal, Protocol: port.Protocol, Where: where})
		}
	}
	for _, port := range r.servicePorts {
		add(port.target, "Port "+strconv.Itoa(int(port.number))+" of the Service")
	}
	for _, alias := range r.aliases {
		for _, port := range alias.ports {
			add(port, "Annotation "+annotationAliasPrefix+alias.name+annotationAliasSuffix)
		}
	}
	if r.world != nil {
		for _, port := range *r.world {
			add(port, "Annotation "+AnnotationFromWorld)
		}
	}
	return named
}

// MissingPorts returns the named ports that none of the Pods has. Known is false if there are no Pods, or all of them
// have ended or are being deleted, because others may follow.
func MissingPorts(ports []NamedPort, pods []corev1.Pod) (problems []Problem, known bool) {
	live := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !lives(&pod) })
	if len(live) == 0 {
		return nil, false
	}
	for _, port := range ports {
		if !slices.ContainsFunc(live, func(pod corev1.Pod) bool { return port.isOf(&pod) }) {
			problems = append(problems, Problem{Reason: ReasonPodPort, Message: fmt.Sprintf(
				"%s: no Pod selected by the Service has a container port named %q with protocol %s, so its policies do not allow any traffic. "+
					"Correct the name, or give the container port this name.", port.Where, port.Name, port.Protocol)})
		}
	}
	return problems, true
}

// lives reports whether a Pod serves traffic, or may do so later.
func lives(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// isOf reports whether a container of a Pod has the port. Init containers count if they keep running as sidecars.
func (p NamedPort) isOf(pod *corev1.Pod) bool {
	has := func(container corev1.Container) bool {
		return slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool {
			return port.Name == p.Name && (port.Protocol == p.Protocol || port.Protocol == "" && p.Protocol == corev1.ProtocolTCP)
		})
	}
	sidecarHas := func(container corev1.Container) bool {
		return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways && has(container)
	}
	return slices.ContainsFunc(pod.Spec.Containers, has) || slices.ContainsFunc(pod.Spec.InitContainers, sidecarHas)
}
