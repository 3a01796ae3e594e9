package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	maxWorkerName = 15
	// membersOfHighAvailability is the number of nodes and zones of a highly available control plane.
	membersOfHighAvailability = 3
	// maxKubeletSkew is the number of minor versions that a kubelet may be behind the API server.
	maxKubeletSkew     = 3
	maxSysctlsSize     = 4086
	maxSysctlSegment   = 255
	criticalComponents = constants.TaintNodeCriticalComponentsNotReady
)

var (
	volumeSize = regexp.MustCompile(`^(\d)+Gi$`)
	sysctlPath = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9][-_a-z0-9.]*$`)
)

func validateProvider(provider *v1beta1.Provider, c *shootContext, path *field.Path) field.ErrorList {
	errs := typeName(provider.Type, path.Child("type"))
	errs = append(errs, c.needsNodes(isSet(provider.ControlPlaneConfig), path.Child("controlPlaneConfig"))...)
	errs = append(errs, c.needsNodes(isSet(provider.InfrastructureConfig), path.Child("infrastructureConfig"))...)
	errs = append(errs, c.needsNodes(provider.WorkersSettings != nil, path.Child("workersSettings"))...)
	at := path.Child("workers")
	errs = append(errs, unique(provider.Workers, at, "name", func(worker v1beta1.Worker) string { return worker.Name })...)
	controlPlanes := 0
	for i := range provider.Workers {
		worker := &provider.Workers[i]
		errs = append(errs, validateWorker(worker, c, at.Index(i))...)
		if worker.ControlPlane == nil {
			continue
		}
		if controlPlanes++; controlPlanes > 1 {
			errs = append(errs, field.Forbidden(at.Index(i).Child("controlPlane"), "one pool runs the control plane"))
		}
		errs = append(errs, validateWorkerControlPlane(worker, provider.Type, c, at.Index(i))...)
	}
	if !c.workerless {
		errs = append(errs, validateSystemPools(provider.Workers, at)...)
	}
	return errs
}

// validateSystemPools checks that system components find nodes in the zones of each pool that may run them.
func validateSystemPools(workers []v1beta1.Worker, path *field.Path) field.ErrorList {
	most, found := map[string]int32{}, false
	zonesOf := func(worker *v1beta1.Worker) string {
		zones := slices.Clone(worker.Zones)
		slices.Sort(zones)
		return strings.Join(zones, ",")
	}
	for i := range workers {
		if worker := &workers[i]; systemPool(worker) && worker.Maximum > 0 {
			found = true
			most[zonesOf(worker)] = max(most[zonesOf(worker)], worker.Maximum)
		}
	}
	if !found {
		return field.ErrorList{field.Forbidden(path, "one pool with a maximum above 0 must allow system components")}
	}
	var errs field.ErrorList
	for i := range workers {
		worker := &workers[i]
		if n := most[zonesOf(worker)]; systemPool(worker) && n > 0 && worker.Maximum == n && int(n) < len(worker.Zones) {
			errs = append(errs, field.Invalid(path.Index(i).Child("maximum"), worker.Maximum,
				"must be at least the number of zones, so that system components run in each"))
		}
	}
	return errs
}

func systemPool(worker *v1beta1.Worker) bool {
	return worker.SystemComponents == nil || worker.SystemComponents.Allow
}

func validateWorker(worker *v1beta1.Worker, c *shootContext, path *field.Path) field.ErrorList {
	errs := shortName(worker.Name, path.Child("name"))
	errs = append(errs, notNegative(&worker.Minimum, path.Child("minimum"))...)
	errs = append(errs, atLeast(&worker.Maximum, worker.Minimum, path.Child("maximum"))...)
	errs = append(errs, atLeast(worker.Priority, -1, path.Child("priority"))...)
	errs = append(errs, certificates(worker.CABundle, path.Child("caBundle"))...)
	errs = append(errs, metav1validation.ValidateLabels(worker.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(worker.Annotations, path.Child("annotations"))...)
	errs = append(errs, required(worker.Machine.Type, path.Child("machine", "type"))...)
	errs = append(errs, optionalOneOf(worker.Machine.Architecture, path.Child("machine", "architecture"), v1beta1.ArchitectureAMD64,
		v1beta1.ArchitectureARM64)...)
	if worker.Machine.Image != nil {
		errs = append(errs, required(worker.Machine.Image.Name, path.Child("machine", "image", "name"))...)
	}
	if worker.CRI != nil {
		errs = append(errs, validateCRI(worker.CRI, path.Child("cri"))...)
	}
	errs = append(errs, validateTaints(worker.Taints, path.Child("taints"))...)
	errs = append(errs, validateVolumes(worker, path)...)
	errs = append(errs, validateSysctls(worker.Sysctls, path.Child("sysctls"))...)
	errs = append(errs, uniqueValues(worker.Zones, path.Child("zones"))...)
	errs = append(errs, validateUpdateStrategy(worker, path)...)
	errs = append(errs, validateMachineManagement(worker, path.Child("machineControllerManager"))...)
	errs = append(errs, validatePoolAutoscaling(worker.ClusterAutoscaler, path.Child("clusterAutoscaler"))...)
	if worker.Kubernetes == nil {
		return errs
	}
	if worker.Kubernetes.Kubelet != nil {
		errs = append(errs, validateKubelet(worker.Kubernetes.Kubelet, c.ofPool(worker), path.Child("kubernetes", "kubelet"))...)
	}
	return append(errs, validateKubeletVersion(worker.Kubernetes.Version, c, path.Child("kubernetes", "version"))...)
}

func validatePoolAutoscaling(options *v1beta1.ClusterAutoscalerOptions, path *field.Path) field.ErrorList {
	if options == nil {
		return nil
	}
	errs := between(options.ScaleDownUtilizationThreshold, 0, 1, path.Child("scaleDownUtilizationThreshold"))
	errs = append(errs, between(options.ScaleDownGpuUtilizationThreshold, 0, 1, path.Child("scaleDownGpuUtilizationThreshold"))...)
	return append(errs, durationsNotNegative(path, durations{
		"scaleDownUnneededTime": options.ScaleDownUnneededTime, "scaleDownUnreadyTime": options.ScaleDownUnreadyTime,
		"maxNodeProvisionTime": options.MaxNodeProvisionTime,
	})...)
}

func shortName(name string, path *field.Path) field.ErrorList {
	if errs := namespaceName(name, path); errs != nil {
		return errs
	}
	if len(name) > maxWorkerName {
		return field.ErrorList{field.TooLong(path, name, maxWorkerName)}
	}
	return nil
}

func validateKubeletVersion(value *string, c *shootContext, path *field.Path) field.ErrorList {
	if value == nil || c.version == nil {
		return nil
	}
	kubelet, err := version.ParseGeneric(*value)
	if err != nil {
		return field.ErrorList{field.Invalid(path, *value, "must be a version such as 1.34.2")}
	}
	if kubelet.Major() != c.version.Major() || c.version.LessThan(kubelet) {
		return field.ErrorList{field.Forbidden(path, "must not be higher than that of the cluster")}
	}
	if kubelet.Minor()+maxKubeletSkew < c.version.Minor() {
		return field.ErrorList{field.Forbidden(path, "must be at most three minor versions lower than that of the cluster")}
	}
	return nil
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	errs := unique(taints, path, "", func(taint corev1.Taint) string { return taint.Key + ":" + string(taint.Effect) })
	for i, taint := range taints {
		at := path.Index(i)
		errs = append(errs, taintKey(taint.Key, at.Child("key"))...)
		errs = append(errs, messages(validation.IsValidLabelValue(taint.Value), taint.Value, at.Child("value"))...)
		errs = append(errs, oneOf(taint.Effect, at.Child("effect"), corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
			corev1.TaintEffectNoExecute)...)
	}
	return errs
}

func validateVolumes(worker *v1beta1.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	size := func(value string, at *field.Path) {
		if !volumeSize.MatchString(value) {
			errs = append(errs, field.Invalid(at, value, "must be a number of Gi, such as 50Gi"))
		}
	}
	if worker.Volume != nil {
		size(worker.Volume.VolumeSize, path.Child("volume", "size"))
		if worker.Volume.Name != nil {
			errs = append(errs, shortName(*worker.Volume.Name, path.Child("volume", "name"))...)
		}
	} else {
		errs = append(errs, forbidden(len(worker.DataVolumes) > 0, path.Child("dataVolumes"), "needs volume, the root disk")...)
	}
	at := path.Child("dataVolumes")
	errs = append(errs, unique(worker.DataVolumes, at, "name", func(volume v1beta1.DataVolume) string { return volume.Name })...)
	for i, volume := range worker.DataVolumes {
		size(volume.VolumeSize, at.Index(i).Child("size"))
		errs = append(errs, shortName(volume.Name, at.Index(i).Child("name"))...)
	}
	if name := worker.KubeletDataVolumeName; name != nil &&
		!slices.ContainsFunc(worker.DataVolumes, func(volume v1beta1.DataVolume) bool { return volume.Name == *name }) {
		errs = append(errs, field.Invalid(path.Child("kubeletDataVolumeName"), *name, "is not the name of a data volume"))
	}
	return errs
}

func validateSysctls(sysctls map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(sysctls) {
		at := path.Key(key)
		tooLong := func(segment string) bool { return len(segment) > maxSysctlSegment }
		segments := strings.FieldsFunc(key, func(r rune) bool { return r == '.' || r == '/' })
		if !sysctlPath.MatchString(key) || strings.Contains(key, "..") || len(key) > maxSysctlsSize || slices.ContainsFunc(segments, tooLong) {
			errs = append(errs, field.Invalid(at, key, "must be the name of a kernel setting, such as net.ipv4.ip_forward"))
		}
		errs = append(errs, required(sysctls[key], at)...)
	}
	return errs
}

func validateUpdateStrategy(worker *v1beta1.Worker, path *field.Path) field.ErrorList {
	errs := optionalOneOf(worker.UpdateStrategy, path.Child("updateStrategy"), v1beta1.AutoRollingUpdate, v1beta1.AutoInPlaceUpdate,
		v1beta1.ManualInPlaceUpdate)
	surge, unavailable := path.Child("maxSurge"), path.Child("maxUnavailable")
	if ptr.Deref(worker.UpdateStrategy, "") == v1beta1.ManualInPlaceUpdate {
		const why = "the user decides which nodes are updated"
		errs = append(errs, forbidden(worker.MaxSurge != nil && !zero(worker.MaxSurge), surge, why)...)
		return append(errs, forbidden(worker.MaxUnavailable != nil && !zero(worker.MaxUnavailable), unavailable, why)...)
	}
	errs = append(errs, numberOrPercent(worker.MaxSurge, surge, false)...)
	errs = append(errs, numberOrPercent(worker.MaxUnavailable, unavailable, true)...)
	if worker.MaxSurge != nil && worker.MaxUnavailable != nil && zero(worker.MaxSurge) && zero(worker.MaxUnavailable) {
		errs = append(errs, field.Invalid(unavailable, worker.MaxUnavailable.String(), "must not be 0 if maxSurge is 0"))
	}
	return errs
}

func zero(value *intstr.IntOrString) bool {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true)
	return err == nil && n == 0
}

func numberOrPercent(value *intstr.IntOrString, path *field.Path, limited bool) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.Int {
		return notNegative(&value.IntVal, path)
	}
	percent, is := strings.CutSuffix(value.StrVal, "%")
	n, err := strconv.Atoi(percent)
	if !is || err != nil || n < 0 || limited && n > 100 {
		return field.ErrorList{field.Invalid(path, value.StrVal, "must be a number or a percentage, such as 20%")}
	}
	return nil
}

func validateMachineManagement(worker *v1beta1.Worker, path *field.Path) field.ErrorList {
	settings := worker.MachineControllerManagerSettings
	if settings == nil {
		return nil
	}
	errs := durationsNotNegative(path, durations{
		"machineDrainTimeout": settings.MachineDrainTimeout, "machineHealthTimeout": settings.MachineHealthTimeout,
		"machineCreationTimeout": settings.MachineCreationTimeout, "inPlaceUpdateTimeout": settings.InPlaceUpdateTimeout,
		"machinePreserveTimeout": settings.MachinePreserveTimeout,
	})
	errs = append(errs, notNegative(settings.MaxEvictRetries, path.Child("maxEvictRetries"))...)
	if !v1beta1.IsUpdateStrategyInPlace(worker.UpdateStrategy) {
		const why = "is for in-place updates only"
		errs = append(errs, forbidden(settings.InPlaceUpdateTimeout != nil, path.Child("inPlaceUpdateTimeout"), why)...)
		errs = append(errs, forbidden(ptr.Deref(settings.DisableHealthTimeout, false), path.Child("disableHealthTimeout"), why)...)
	}
	most := worker.Maximum
	if systemPool(worker) && most > 0 {
		most-- // one node must be able to run system components
	}
	return append(errs, between(settings.AutoPreserveFailedMachineMax, 0, most, path.Child("autoPreserveFailedMachineMax"))...)
}

// validateControlPlaneNodes checks that the pool of a control plane has a node for each member of etcd, and that these are
// updated one by one.
func validateControlPlaneNodes(worker *v1beta1.Worker, tolerance v1beta1.FailureToleranceType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	nodes := int32(1)
	if tolerance != "" {
		nodes = membersOfHighAvailability
		if unavailable := worker.MaxUnavailable; unavailable == nil || *unavailable != intstr.FromInt32(1) {
			errs = append(errs, field.Invalid(path.Child("maxUnavailable"), unavailable,
				"must be 1 for the pool of a highly available control plane"))
		}
	}
	for name, count := range map[string]int32{"minimum": worker.Minimum, "maximum": worker.Maximum} {
		if count != nodes {
			errs = append(errs, field.Invalid(path.Child(name), count,
				fmt.Sprintf("minimum and maximum of the pool with the control plane must be %d", nodes)))
		}
	}
	if tolerance == v1beta1.FailureToleranceTypeZone && len(worker.Zones) != membersOfHighAvailability {
		errs = append(errs, field.Invalid(path.Child("zones"), worker.Zones, "must be three for a control plane that tolerates the failure of a zone"))
	}
	return errs
}

func validateWorkerControlPlane(worker *v1beta1.Worker, providerType string, c *shootContext, path *field.Path) field.ErrorList {
	at := path.Child("controlPlane")
	errs := forbidden(c.namespace != constants.GardenNamespace, at, "self-hosted Shoots are in the namespace garden")
	errs = append(errs, validateControlPlaneNodes(worker, c.tolerance, path)...)
	if backup := worker.ControlPlane.Backup; backup != nil {
		errs = append(errs, validateBackup(backup, at.Child("backup"), providerType)...)
		errs = append(errs, credentials(backup.CredentialsRef, at.Child("backup", "credentialsRef"), secret, internalSecret)...)
		if backup.CredentialsRef != nil && backup.CredentialsRef.Namespace != c.namespace {
			errs = append(errs, field.Invalid(at.Child("backup", "credentialsRef", "namespace"), backup.CredentialsRef.Namespace,
				"must be the namespace of the Shoot"))
		}
	}
	exposure := worker.ControlPlane.Exposure
	if exposure == nil {
		return errs
	}
	errs = append(errs, forbidden(exposure.Extension != nil && exposure.DNS != nil, at.Child("exposure"),
		"must have either extension or dns")...)
	if exposure.Extension != nil && exposure.Extension.Type != nil {
		errs = append(errs, typeName(*exposure.Extension.Type, at.Child("exposure", "extension", "type"))...)
	}
	return errs
}
