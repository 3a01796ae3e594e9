package kubeproxy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// cleanUp removes the rules of the previous mode when the mode changes between iptables and ipvs. kube-proxy itself does that only for
// changes from and to nftables, so that mode needs no shell in the image.
const cleanUp = `set -e
mode=` + pathState + `/mode
previous="$(cat "$mode" 2>/dev/null || true)"
if [ -n "$previous" ] && [ "$previous" != "$KUBE_PROXY_MODE" ]; then
  /usr/local/bin/kube-proxy --v=2 --cleanup --config=` + pathConfig + "/" + fileConfig + ` --proxy-mode="$previous"
fi
echo "$KUBE_PROXY_MODE" > "$mode"
`

// PoolObjects returns the objects of a pool with a version. Those that all pools share must be applied before.
func PoolObjects(values Values, pool Pool) ([]client.Object, error) {
	config, err := configuration(values)
	if err != nil {
		return nil, err
	}
	access, err := kubeconfig(values)
	if err != nil {
		return nil, err
	}
	name, mounts := Name+"-"+pool.Suffix(), mounts()
	daemon := parts.Daemon{
		Name: name, Selector: parts.Merge(labels, map[string]string{"pool": pool.Name, "version": pool.Version}),
		PodLabels: parts.NodeCritical(nil), PriorityClass: parts.PriorityNodeCritical, ServiceAccount: Name,
		NodeSelector: pool.NodeLabels(), HostNetwork: true,
		InitContainers: initContainers(values, pool, mounts),
		Containers: []corev1.Container{{
			Name: Name, Image: pool.Image, Command: command(), VolumeMounts: mounts,
			Ports: []corev1.ContainerPort{
				{Name: "metrics", ContainerPort: portMetrics, HostPort: portMetrics, Protocol: corev1.ProtocolTCP},
				{Name: "healthz", ContainerPort: portHealth, HostPort: portHealth, Protocol: corev1.ProtocolTCP},
			},
			ReadinessProbe:  parts.HTTPProbe("/livez", portHealth, corev1.URISchemeHTTP),
			Resources:       resources(values),
			SecurityContext: securityContext(pool.Version),
		}},
		Volumes: []corev1.Volume{
			parts.SecretVolume("kubeconfig", access.Name), parts.ConfigVolume("config", config.Name),
			parts.HostPath("modules", "/lib/modules", ""), parts.HostPath("state", pathState, corev1.HostPathDirectoryOrCreate),
			parts.HostPath("xtables-lock", "/run/xtables.lock", corev1.HostPathFileOrCreate),
		},
	}
	set, err := daemon.DaemonSet()
	if err != nil {
		return nil, err
	}
	objects := []client.Object{set}
	if values.VerticalPodAutoscaler {
		autoscaler := parts.DaemonAutoscaler(name, name, Name, "")
		objects = append(objects, autoscaler)
	}
	return objects, nil
}

func command() []string {
	return []string{parts.Program(Name), "--config=" + pathConfig + "/" + fileConfig, "--v=2"}
}

func mounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		parts.Mount("kubeconfig", pathKubeconfig), parts.Mount("config", pathConfig), parts.Mount("modules", "/lib/modules"),
		{Name: "xtables-lock", MountPath: "/run/xtables.lock"},
	}
}

// initContainers sets up the kernel with all privileges, so that the program itself needs less.
func initContainers(values Values, pool Pool, mounts []corev1.VolumeMount) []corev1.Container {
	privileged := &corev1.SecurityContext{Privileged: ptr.To(true)}
	var containers []corev1.Container
	if values.Mode != corev1beta1.ProxyModeNFTables {
		containers = append(containers, corev1.Container{
			Name: "cleanup", Image: pool.Image, Command: []string{"/bin/sh", "-c", cleanUp},
			Env:          []corev1.EnvVar{{Name: "KUBE_PROXY_MODE", Value: modes[values.Mode]}},
			VolumeMounts: append([]corev1.VolumeMount{{Name: "state", MountPath: pathState}}, mounts...), SecurityContext: privileged,
			Resources: corev1.ResourceRequirements{Requests: parts.Requests("20m", "64Mi")},
		})
	}
	return append(containers, corev1.Container{
		Name: "kube-proxy-init", Image: pool.Image, Command: append(command(), "--init-only"), VolumeMounts: mounts, SecurityContext: privileged,
		Resources: corev1.ResourceRequirements{Requests: parts.Requests("20m", "64Mi")},
	})
}

// resources limits the memory only if nothing adapts the requests (Gardener).
func resources(values Values) corev1.ResourceRequirements {
	requirements := corev1.ResourceRequirements{Requests: parts.Requests("20m", "64Mi")}
	if !values.VerticalPodAutoscaler {
		requirements.Limits = corev1.ResourceList{corev1.ResourceMemory: parts.Requests("0", "2048Mi")[corev1.ResourceMemory]}
	}
	return requirements
}

// Between these versions, kube-proxy sets the kernel up again after the init container has done so, which needs all privileges.
var privilegedFrom, privilegedBefore = version.MustParseGeneric("1.33.0"), version.MustParseGeneric("1.33.6")

func securityContext(of string) *corev1.SecurityContext {
	if parsed, err := version.ParseGeneric(of); err == nil && parsed.AtLeast(privilegedFrom) && parsed.LessThan(privilegedBefore) {
		return &corev1.SecurityContext{Privileged: ptr.To(true)}
	}
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "SYS_RESOURCE"}},
	}
}
