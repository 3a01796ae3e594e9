package operatingsystemconfig

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

const pathKernelSettings = "/etc/sysctl.d/99-k8s-general.conf"

// kernelSettings are the settings of the kernel on all nodes (Gardener).
var kernelSettings = map[string]string{
	"fs.aio-max-nr":                       "262144",
	"fs.file-max":                         "20000000",
	"fs.inotify.max_user_instances":       "8192",
	"fs.inotify.max_user_watches":         "524288",
	"kernel.softlockup_all_cpu_backtrace": "1",
	"kernel.softlockup_panic":             "1",
	"net.core.netdev_max_backlog":         "16384",
	"net.core.rmem_max":                   "16777216",
	"net.core.somaxconn":                  "32768",
	"net.core.wmem_max":                   "16777216",
	"net.ipv4.conf.all.forwarding":        "1",
	"net.ipv4.conf.default.forwarding":    "1",
	"net.ipv4.conf.default.log_martians":  "1",
	"net.ipv4.ip_local_port_range":        "32768 65535",
	"net.ipv4.tcp_max_syn_backlog":        "8096",
	"net.ipv4.tcp_retries2":               "8",
	"net.ipv4.tcp_rmem":                   "4096 12582912 16777216",
	"net.ipv4.tcp_slow_start_after_idle":  "0",
	"net.ipv4.tcp_tw_reuse":               "1",
	"net.ipv4.tcp_wmem":                   "4096 12582912 16777216",
	"net.ipv6.conf.all.forwarding":        "1",
	"net.ipv6.conf.default.forwarding":    "1",
	"vm.max_map_count":                    "135217728",
	"vm.memory_failure_early_kill":        "1",
}

// protectedSettings are those without which kubelet does not start if it protects the defaults of the kernel.
var protectedSettings = map[string]string{
	"kernel.keys.root_maxbytes": "25000000",
	"kernel.keys.root_maxkeys":  "1000000",
	"kernel.panic":              "10",
	"kernel.panic_on_oops":      "1",
	"vm.overcommit_memory":      "1",
	"vm.panic_on_oom":           "0",
}

// kernel sets the kernel's settings. Those of the pool override all others.
func kernel(values Values) (content, error) {
	settings := maps.Clone(kernelSettings)
	if values.WithoutKubeProxy {
		settings["net.netfilter.nf_conntrack_max"] = "1048576" // kube-proxy would set it
	}
	if ptr.Deref(values.Pool.Kubelet.ProtectKernelDefaults, true) {
		maps.Copy(settings, protectedSettings)
	}
	maps.Copy(settings, values.Pool.Worker.Sysctls)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text.WriteString(name + " = " + settings[name] + "\n")
	}
	return content{
		units: []extensionsv1alpha1.Unit{{
			Name: "systemd-sysctl.service", Command: ptr.To(extensionsv1alpha1.CommandRestart), Enable: ptr.To(true), FilePaths: []string{pathKernelSettings},
		}},
		files: []extensionsv1alpha1.File{textFile(pathKernelSettings, modeFile, text.String())},
	}, nil
}
