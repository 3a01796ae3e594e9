package clusterautoscaler

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// configMapPriorities is where the expander priority finds the priorities of the sets of machines.
const configMapPriorities = "cluster-autoscaler-priority-expander"

// flags returns the flags of the program.
func flags(values Values) []string {
	all := []string{
		fmt.Sprintf("--address=:%d", port), "--kubeconfig=" + parts.ShootKubeconfig, "--cloud-provider=mcm", "--stderrthreshold=info",
		"--skip-nodes-with-system-pods=false", "--skip-nodes-with-local-storage=false", "--expendable-pods-priority-cutoff=-10",
		"--balance-similar-node-groups=true", "--ignore-taint=" + constants.TaintNodeCriticalComponentsNotReady,
		"--expander=" + expander(values),
	}
	settings := settings(values.Config)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name] != "" {
			all = append(all, "--"+name+"="+settings[name])
		}
	}
	for _, each := range []struct {
		flag   string
		taints []string
	}{{"startup-taint", values.Config.StartupTaints}, {"status-taint", values.Config.StatusTaints}, {"ignore-taint", values.Config.IgnoreTaints}} {
		for _, taint := range each.taints {
			all = append(all, "--"+each.flag+"="+taint)
		}
	}
	if values.MaxNodes > 0 {
		all = append(all, fmt.Sprintf("--max-nodes-total=%d", values.MaxNodes))
	}
	if slices.ContainsFunc(values.Deployments, func(of extensionsv1alpha1.MachineDeployment) bool {
		return ptr.Deref(of.AutoPreserveFailedMachineMax, 0) > 0
	}) {
		all = append(all, "--max-total-unready-percentage=100") // it must not stop because of failed machines that are preserved
	}
	for _, of := range values.Deployments {
		all = append(all, fmt.Sprintf("--nodes=%d:%d:%s.%s", of.Minimum, of.Maximum, values.Namespace, of.Name))
	}
	return all
}

// expander returns how a set of machines is chosen to grow. Priorities count first, if any pool has one.
func expander(values Values) string {
	usual := string(ptr.Deref(values.Config.Expander, corev1beta1.ClusterAutoscalerExpanderLeastWaste))
	const priority = string(corev1beta1.ClusterAutoscalerExpanderPriority)
	if !prioritized(values.Deployments) || slices.Contains(strings.Split(usual, ","), priority) {
		return usual
	}
	return priority + "," + usual
}

func prioritized(deployments []extensionsv1alpha1.MachineDeployment) bool {
	return slices.ContainsFunc(deployments, func(of extensionsv1alpha1.MachineDeployment) bool { return of.Priority != nil })
}

// priorities returns the ConfigMap with the priorities, nil if no set of machines has one. Those without one have the lowest.
func priorities(deployments []extensionsv1alpha1.MachineDeployment) (*corev1.ConfigMap, error) {
	if !prioritized(deployments) {
		return nil, nil
	}
	names := map[string][]string{}
	for _, of := range deployments {
		priority := strconv.Itoa(int(ptr.Deref(of.Priority, 0)))
		names[priority] = append(names[priority], "^.*\\."+regexp.QuoteMeta(of.Name)+"$")
	}
	text, err := yaml.Marshal(names)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: configMapPriorities},
		Data:       map[string]string{"priorities": unquotedKeys(string(text))},
	}, nil
}

// keys are keys that are numbers. The program reads numbers, and YAML writes strings with digits in quotes.
var keys = regexp.MustCompile(`(?m)^"(-?\d+)":`)

func unquotedKeys(text string) string { return keys.ReplaceAllString(text, "$1:") }

// settings returns the flags of the fields of spec.kubernetes.clusterAutoscaler, empty for fields without a value.
func settings(config corev1beta1.ClusterAutoscaler) map[string]string {
	return map[string]string{
		"scale-down-delay-after-add":          duration(config.ScaleDownDelayAfterAdd),
		"scale-down-delay-after-delete":       duration(config.ScaleDownDelayAfterDelete),
		"scale-down-delay-after-failure":      duration(config.ScaleDownDelayAfterFailure),
		"scale-down-unneeded-time":            duration(config.ScaleDownUnneededTime),
		"scale-down-utilization-threshold":    text(config.ScaleDownUtilizationThreshold),
		"scan-interval":                       duration(config.ScanInterval),
		"max-node-provision-time":             duration(config.MaxNodeProvisionTime),
		"max-graceful-termination-sec":        text(config.MaxGracefulTerminationSeconds),
		"new-pod-scale-up-delay":              duration(config.NewPodScaleUpDelay),
		"ignore-daemonsets-utilization":       text(config.IgnoreDaemonsetsUtilization),
		"v":                                   text(config.Verbosity),
		"max-scale-down-parallelism":          text(config.MaxScaleDownParallelism),
		"max-drain-parallelism":               text(config.MaxDrainParallelism),
		"initial-node-group-backoff-duration": duration(config.InitialNodeGroupBackoffDuration),
		"max-node-group-backoff-duration":     duration(config.MaxNodeGroupBackoffDuration),
		"node-group-backoff-reset-timeout":    duration(config.NodeGroupBackoffResetTimeout),
		"emit-per-nodegroup-metrics":          text(config.EmitPerNodeGroupMetrics),
		"max-binpacking-time":                 duration(config.MaxBinpackingTime),
	}
}

// text returns a value as that of a flag, empty if it is not set.
func text[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

// duration returns a duration as the value of a flag, empty if it is not set.
func duration(value *metav1.Duration) string {
	if value == nil {
		return ""
	}
	return value.Duration.String()
}
