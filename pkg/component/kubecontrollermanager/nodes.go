package kubecontrollermanager

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// DefaultMonitorGracePeriod is for how long a node may give no sign of life until it is not ready (Gardener).
const DefaultMonitorGracePeriod = 40 * time.Second

// hasNodes reports whether the shoot has workers.
func (v Values) hasNodes() bool { return v.Mounted.KubeletCA != "" }

// nodeFlags returns the flags of the controllers for nodes, their networks and workloads.
func nodeFlags(values Values) []string {
	if !values.hasNodes() {
		return nil
	}
	client := [2]string{pathClientCA + "/" + secrets.KeyCACert, pathClientCA + "/" + secrets.KeyCAKey}
	serving := [2]string{pathKubeletCA + "/" + secrets.KeyCACert, pathKubeletCA + "/" + secrets.KeyCAKey}
	all := []string{
		"--cluster-signing-kubelet-client-cert-file=" + client[0], "--cluster-signing-kubelet-client-key-file=" + client[1],
		"--cluster-signing-kubelet-serving-cert-file=" + serving[0], "--cluster-signing-kubelet-serving-key-file=" + serving[1],
		"--concurrent-deployment-syncs=50", "--concurrent-replicaset-syncs=50", "--concurrent-statefulset-syncs=15",
		"--attach-detach-reconcile-sync-period=1m0s",
		"--node-monitor-grace-period=" + ptr.Deref(values.Config.NodeMonitorGracePeriod, metav1.Duration{Duration: DefaultMonitorGracePeriod}).Duration.String(),
	}
	all = append(all, networkFlags(values)...)
	return append(all, autoscalerFlags(values.Config.HorizontalPodAutoscalerConfig)...)
}

// networkFlags returns the flags for the ranges of Pods on nodes. With two address families, the size has a flag for each.
func networkFlags(values Values) []string {
	if len(values.PodNetworks) == 0 {
		return nil
	}
	all := []string{"--allocate-node-cidrs=true", "--cluster-cidr=" + strings.Join(values.PodNetworks, ",")}
	for _, network := range values.PodNetworks {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			continue // the API server refuses it
		}
		flag, size := "--node-cidr-mask-size", values.Config.NodeCIDRMaskSize
		switch {
		case len(values.PodNetworks) > 1 && prefix.Addr().Is4():
			flag += "-ipv4"
		case prefix.Addr().Is6():
			flag, size = flag+"-ipv6", values.Config.NodeCIDRMaskSizeIPv6
			if size == nil && len(values.PodNetworks) == 1 {
				size = values.Config.NodeCIDRMaskSize
			}
		}
		if size != nil {
			all = append(all, fmt.Sprintf("%s=%d", flag, *size))
		}
	}
	return all
}

// autoscalerFlags returns the settings of the controller of HorizontalPodAutoscalers that the Shoot sets.
func autoscalerFlags(config *corev1beta1.HorizontalPodAutoscalerConfig) []string {
	if config == nil {
		return nil
	}
	const prefix = "--horizontal-pod-autoscaler-"
	var all []string
	for _, each := range []struct {
		flag   string
		period *metav1.Duration
	}{
		{"cpu-initialization-period", config.CPUInitializationPeriod}, {"downscale-stabilization", config.DownscaleStabilization},
		{"initial-readiness-delay", config.InitialReadinessDelay}, {"sync-period", config.SyncPeriod},
	} {
		if each.period != nil {
			all = append(all, prefix+each.flag+"="+each.period.Duration.String())
		}
	}
	if config.Tolerance != nil {
		all = append(all, prefix+"tolerance="+strconv.FormatFloat(*config.Tolerance, 'f', -1, 64))
	}
	return all
}
