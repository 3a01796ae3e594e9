package netpol

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// podWithPorts returns a Pod whose container has TCP ports with these names.
func podWithPorts(names ...string) corev1.Pod {
	container := corev1.Container{Name: "main"}
	for i, name := range names {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: name, ContainerPort: int32(8000 + i), Protocol: corev1.ProtocolTCP})
	}
	return corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
}

// TestMissingPorts checks that a named port is reported if there are Pods and none of them has it.
func TestMissingPorts(t *testing.T) {
	changed := func(pod corev1.Pod, change func(*corev1.Pod)) corev1.Pod {
		change(&pod)
		return pod
	}
	sidecar := func(pod *corev1.Pod) {
		pod.Spec.InitContainers = podWithPorts("web").Spec.Containers
		pod.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	initial := func(pod *corev1.Pod) { pod.Spec.InitContainers = podWithPorts("web").Spec.Containers }
	udp := func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports[0].Protocol = corev1.ProtocolUDP }
	unset := func(pod *corev1.Pod) { pod.Spec.Containers[0].Ports[0].Protocol = "" }
	ended := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
	failed := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }
	going := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }
	for name, test := range map[string]struct {
		pods    []corev1.Pod
		missing bool
		unknown bool
	}{
		"no Pods":                          {unknown: true},
		"the Pod has it":                   {pods: []corev1.Pod{podWithPorts("metrics", "web")}},
		"the Pod has another":              {pods: []corev1.Pod{podWithPorts("metrics")}, missing: true},
		"the Pod has none":                 {pods: []corev1.Pod{podWithPorts()}, missing: true},
		"one of two has it":                {pods: []corev1.Pod{podWithPorts(), podWithPorts("web")}},
		"a sidecar has it":                 {pods: []corev1.Pod{changed(podWithPorts(), sidecar)}},
		"an init container has it":         {pods: []corev1.Pod{changed(podWithPorts(), initial)}, missing: true},
		"another protocol":                 {pods: []corev1.Pod{changed(podWithPorts("web"), udp)}, missing: true},
		"the protocol of old Pods":         {pods: []corev1.Pod{changed(podWithPorts("web"), unset)}},
		"all ended":                        {pods: []corev1.Pod{changed(podWithPorts(), ended), changed(podWithPorts(), failed)}, unknown: true},
		"all go":                           {pods: []corev1.Pod{changed(podWithPorts(), going)}, unknown: true},
		"the one that has it goes":         {pods: []corev1.Pod{podWithPorts(), changed(podWithPorts("web"), going)}, missing: true},
		"the one that does not have ended": {pods: []corev1.Pod{podWithPorts("web"), changed(podWithPorts(), ended)}},
	} {
		problems, known := MissingPorts([]NamedPort{{Name: "web", Protocol: corev1.ProtocolTCP, Where: "Port 80 of the Service"}}, test.pods)
		switch {
		case known == test.unknown:
			t.Errorf("%s: known is %t", name, known)
		case !test.missing && len(problems) > 0:
			t.Errorf("%s: got %v", name, problems)
		case test.missing && (len(problems) != 1 || problems[0].Reason != ReasonPodPort ||
			!strings.HasPrefix(problems[0].Message, `Port 80 of the Service: no Pod selected by the Service has a container port named "web" with protocol TCP`)):
			t.Errorf("%s: got %v", name, problems)
		}
	}
}

// TestNamedPorts checks that the named ports of a Service with policies are returned with their sources.
func TestNamedPorts(t *testing.T) {
	w, service := shop(map[string]string{
		"from-all-allowed-ports": `[{"port":"metrics"},{"port":1}]`, "from-world-to-ports": `[{"port":2},{"port":"dns","protocol":"UDP"}]`,
	})
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Port: 81, Protocol: corev1.ProtocolSCTP, TargetPort: intstr.FromString("web")})
	want := []NamedPort{
		{Name: "web", Protocol: corev1.ProtocolSCTP, Where: "Port 81 of the Service"},
		{Name: "metrics", Protocol: corev1.ProtocolTCP, Where: "Annotation networking.resources.gardener.cloud/from-all-allowed-ports"},
		{Name: "dns", Protocol: corev1.ProtocolUDP, Where: "Annotation networking.resources.gardener.cloud/from-world-to-ports"},
	}
	got := w.desired(service).NamedPorts
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
	w, service = shop(nil)
	if got := w.desired(service).NamedPorts; len(got) > 0 {
		t.Errorf("for a Service with port numbers, got %v", got)
	}
	service.Spec.Ports[0].TargetPort = intstr.FromString("web")
	delete(w.namespaces, "a")
	if got := w.desired(service).NamedPorts; len(got) > 0 {
		t.Errorf("for a Service without policies, got %v", got)
	}
}
