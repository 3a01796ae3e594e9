// Package nodeproblemdetector contains node-problem-detector, which reports problems of kernel and systemd as conditions and Events of
// the nodes of a shoot. Names and settings are the same as in Gardener.
package nodeproblemdetector

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// Image is the name of the image.
const Image = "node-problem-detector"

// Name is the name of the DaemonSet and its Service.
const Name = "node-problem-detector"

const port = 20257

// Values are the inputs of the component.
type Values struct {
	// Image is the reference of the image named by the constant Image.
	Image string
	// ServerHost is the host name of the API server outside of the cluster.
	ServerHost string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The shoot must define the kind.
	VerticalPodAutoscaler bool
}

var labels = map[string]string{"app.kubernetes.io/instance": "shoot-core", "app.kubernetes.io/name": Name}

// monitors are the files of the image that say what is monitored, by the flags that take them.
var monitors = []struct {
	flag  string
	files []string
}{
	{"config.system-log-monitor", []string{"kernel-monitor", "docker-monitor", "systemd-monitor", "readonly-monitor"}},
	{"config.custom-plugin-monitor", []string{"kernel-monitor-counter", "systemd-monitor-counter"}},
	{"config.system-stats-monitor", []string{"system-stats-monitor"}},
}

// command runs the program by a shell, as extensions that add monitors expect it.
func command() []string {
	line := []string{"exec", "/node-problem-detector", "--logtostderr"}
	for _, monitor := range monitors {
		var files []string
		for _, file := range monitor.files {
			files = append(files, "/config/"+file+".json")
		}
		line = append(line, "--"+monitor.flag+"="+strings.Join(files, ","))
	}
	return []string{"/bin/sh", "-c", strings.Join(append(line, "--prometheus-address=0.0.0.0", "--prometheus-port=20257"), " ")}
}

// Objects returns the objects of the component, all in the shoot.
func Objects(values Values) ([]client.Object, error) {
	allowed := constants.NetworkPolicyAllowed
	requirements := corev1.ResourceRequirements{Requests: parts.Requests("20m", "20Mi")}
	if !values.VerticalPodAutoscaler {
		requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: parts.Requests("0", "500Mi")[corev1.ResourceMemory]}
	}
	nodeName := corev1.EnvVar{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}
	daemon, err := parts.Daemon{
		Name: Name, Selector: labels, PriorityClass: constants.PriorityClassShootSystem900, ServiceAccount: Name,
		PodLabels: map[string]string{constants.LabelNetworkPolicyToAPIServer: allowed, constants.LabelNetworkPolicyToDNS: allowed},
		Containers: []corev1.Container{{
			Name: Name, Image: values.Image, Command: command(), Env: append([]corev1.EnvVar{nodeName}, parts.ServerHost(values.ServerHost)...),
			Ports:     []corev1.ContainerPort{{Name: "exporter", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			Resources: requirements, SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}, // to read the log of the kernel
			VolumeMounts: []corev1.VolumeMount{parts.Mount("log", "/var/log/journal"), parts.Mount("localtime", "/etc/localtime"), parts.Mount("kmsg", "/dev/kmsg")},
		}},
		Volumes: []corev1.Volume{
			parts.HostPath("log", "/var/log/journal", ""), parts.HostPath("localtime", "/etc/localtime", corev1.HostPathFileOrCreate), parts.HostPath("kmsg", "/dev/kmsg", ""),
		},
	}.DaemonSet()
	if err != nil {
		return nil, err
	}
	service := parts.SystemService(Name, labels, true, parts.TCPPort("exporter", port, port))
	objects := []client.Object{parts.ServiceAccount(metav1.NamespaceSystem, Name, parts.SystemComponent(labels)), service, daemon}
	objects = append(objects, parts.ClusterRights(Name, parts.SystemComponent(labels), rules(), parts.Account{Namespace: metav1.NamespaceSystem, Name: Name})...)
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.DaemonAutoscaler(Name, Name, Name, "20Mi"))
	}
	return objects, nil
}

func rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		parts.Rule("", []string{"nodes"}, "get"),
		parts.Rule("", []string{"nodes/status"}, "patch"),
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
	}
}
