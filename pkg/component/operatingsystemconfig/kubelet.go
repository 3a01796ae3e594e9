package operatingsystemconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// kubelet runs kubelet with the settings of the pool. Infrastructures add their own flags by webhooks.
func kubelet(values Values) (content, error) {
	config, err := kubeletConfiguration(values)
	if err != nil {
		return content{}, err
	}
	unit := startedUnit(paths.KubeletUnit, unitOfKubelet(values), paths.KubeletCA, paths.KubeletConfig, paths.KubeletProgram)
	return content{
		units: []extensionsv1alpha1.Unit{unit},
		files: []extensionsv1alpha1.File{
			textFile(paths.KubeletCA, modeFile, joinPEM(values.KubeletCA)),
			textFile(paths.KubeletConfig, modeSecret, config),
			programFile(paths.KubeletProgram, values.Images.Kubelet, "/kubelet"),
		},
	}, nil
}

func unitOfKubelet(values Values) string {
	idle, ping := http2Timeouts(values.MonitorGracePeriod)
	return fmt.Sprintf(`[Unit]
Description=kubelet: runs the Pods of this node.
Documentation=https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
After=containerd.service
Wants=containerd.service

[Service]
Restart=always
RestartSec=5
EnvironmentFile=/etc/environment
EnvironmentFile=-/var/lib/kubelet/extra_args
Environment=HTTP2_READ_IDLE_TIMEOUT_SECONDS=%d
Environment=HTTP2_PING_TIMEOUT_SECONDS=%d
ExecStart=%s \
    %s $KUBELET_EXTRA_ARGS

[Install]
WantedBy=multi-user.target
`, idle, ping, paths.KubeletProgram, strings.Join(kubeletFlags(values), " \\\n    "))
}

// http2Timeouts returns after how many seconds kubelet checks an idle connection to the API server, and how long it waits for the
// answer. Both together end before the node counts as not ready (Gardener).
func http2Timeouts(grace int) (idle, ping int) {
	if grace <= 0 || grace >= 46 {
		return 30, 15
	}
	return max((grace-2)*2/3, 1), max((grace-2)/3, 1)
}

func kubeletFlags(values Values) []string {
	labels := values.Pool.LabelsOfKubelet()
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	flags := []string{
		"--bootstrap-kubeconfig=" + paths.KubeletBootstrap,
		"--config=" + paths.KubeletConfig,
		"--kubeconfig=" + paths.KubeletKubeconfig,
		"--node-labels=" + strings.Join(pairs, ","),
		"--container-runtime-endpoint=unix://" + paths.ContainerdSocket,
		"--runtime-cgroups=/system.slice/" + paths.ContainerdUnit,
	}
	if values.PreferIPv6 {
		flags = append(flags, `--node-ip="::"`)
	}
	return append(flags, "--v=2")
}

// kubeletMount mounts the data volume of kubelet, which the node agent formats when the machine is new.
func kubeletMount(values Values) (content, error) {
	if values.Pool.Worker.KubeletDataVolumeName == nil {
		return content{}, nil
	}
	unit := `[Unit]
Description=Mounts the data volume of kubelet.
Before=kubelet.service

[Mount]
What=/dev/disk/by-label/KUBEDEV
Where=/var/lib/kubelet
Type=ext4
Options=defaults,prjquota,errors=remount-ro

[Install]
WantedBy=local-fs.target
`
	return content{units: []extensionsv1alpha1.Unit{startedUnit(paths.KubeletMountUnit, unit)}}, nil
}

// memoryThresholds returns at how little available memory kubelet evicts Pods: at once, and after a grace period. They depend on the
// memory of the machine type (Gardener).
func memoryThresholds(machine *corev1beta1.MachineType) (hard, soft string) {
	const eightGi = 8 << 30
	switch {
	case machine == nil || machine.Memory.IsZero():
		return "100Mi", "200Mi"
	case machine.Memory.Value() > eightGi:
		return "1Gi", "1.5Gi"
	}
	return "5%", "10%"
}

// reservedOf returns what kubelet reserves for itself and the container runtime (Gardener).
func reservedOf(given *corev1beta1.KubeletConfigReserved) map[string]string {
	reserved := map[string]string{"cpu": "80m", "memory": "1Gi"}
	if given == nil {
		return reserved
	}
	if given.CPU != nil {
		reserved["cpu"] = given.CPU.String()
	}
	if given.Memory != nil {
		reserved["memory"] = given.Memory.String()
	}
	if given.EphemeralStorage != nil {
		reserved["ephemeral-storage"] = given.EphemeralStorage.String()
	}
	if given.PID != nil {
		reserved["pid"] = strconv.FormatInt(given.PID.Value(), 10)
	}
	return reserved
}

// protects reports whether kubelet refuses to start with settings of the kernel that it would have to change.
func protects(values Values) bool { return ptr.Deref(values.Pool.Kubelet.ProtectKernelDefaults, true) }
