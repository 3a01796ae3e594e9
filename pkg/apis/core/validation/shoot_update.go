package validation

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// ValidateShootUpdate checks a Shoot that replaces another. Some rules depend on the status, which is that of the old one. The
// name of the Seed must stay: see ValidateShootBinding.
func ValidateShootUpdate(shoot, old *v1beta1.Shoot) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&shoot.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, rules.UnchangedInDeletion("shoot", shoot, shoot.Spec, old.Spec, path)...)
	if shoot.DeletionTimestamp == nil {
		errs = append(errs, forbidden(!equality.Semantic.DeepEqual(shoot.Spec.SeedName, old.Spec.SeedName), path.Child("seedName"),
			"only the subresource shoots/binding can change the name of the Seed")...)
	}
	errs = append(errs, validateOperations(shoot, old)...)
	errs = append(errs, validateForceDeletion(shoot, old)...)
	errs = append(errs, validateShootSpecUpdate(&shoot.Spec, &old.Spec, path)...)
	errs = append(errs, validateShootStateUpdate(shoot, old, path)...)
	c := contextOf(&shoot.Spec, shoot.Namespace, false)
	c.sameIssuers = equality.Semantic.DeepEqual(serviceAccounts(&shoot.Spec), serviceAccounts(&old.Spec))
	return append(errs, validateShoot(shoot, c)...)
}

// ValidateShootBinding checks the Seed that the subresource shoots/binding assigns to a Shoot. A Shoot that is being deleted
// keeps its Seed, and a Shoot with a Seed never loses it: only the gardenlet of a Seed can delete its control plane.
func ValidateShootBinding(shoot, old *v1beta1.Shoot) field.ErrorList {
	path := field.NewPath("spec", "seedName")
	if shoot.DeletionTimestamp != nil {
		return immutable(shoot.Spec.SeedName, old.Spec.SeedName, path)
	}
	return forbidden(old.Spec.SeedName != nil && shoot.Spec.SeedName == nil, path, "the Seed of a Shoot can be changed, but not removed")
}

func serviceAccounts(spec *v1beta1.ShootSpec) *v1beta1.ServiceAccountConfig {
	if spec.Kubernetes.KubeAPIServer == nil {
		return nil
	}
	return spec.Kubernetes.KubeAPIServer.ServiceAccountConfig
}

// ValidateShootTemplateUpdate checks the Shoot of a template that replaces another.
func ValidateShootTemplateUpdate(template, old *v1beta1.ShootTemplate, path *field.Path) field.ErrorList {
	errs := validateShootSpecUpdate(&template.Spec, &old.Spec, path.Child("spec"))
	if template.Spec.Networking != nil && old.Spec.Networking != nil {
		errs = append(errs, immutable(template.Spec.Networking.Nodes, old.Spec.Networking.Nodes, path.Child("spec", "networking", "nodes"))...)
	}
	return errs
}

// validateShootStateUpdate checks changes that the state of a Shoot may forbid.
func validateShootStateUpdate(shoot, old *v1beta1.Shoot, path *field.Path) field.ErrorList {
	errs := validateEncryptionUpdate(shoot, old, path.Child("kubernetes", "kubeAPIServer", "encryptionConfig"))
	errs = append(errs, forbidden(failureTolerance(&old.Spec) == "" && failureTolerance(&shoot.Spec) != "" &&
		(hibernated(old) || hibernated(shoot)),
		path.Child("controlPlane", "highAvailability", "failureTolerance", "type"),
		"Shoot is currently hibernated and cannot be scaled up to HA")...)
	operations := SplitOperations(shoot.Annotations[constants.AnnotationGardenerOperation])
	pending, force := pendingInPlaceUpdates(old), slices.Contains(operations, constants.OperationForceInPlaceUpdate)
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		before := workerOf(old, worker.Name)
		if before == nil || force || !slices.Contains(pending, worker.Name) {
			continue
		}
		changes := !equality.Semantic.DeepEqual(worker, before) || kubeletVersion(worker, &shoot.Spec) != kubeletVersion(before, &old.Spec) ||
			!equality.Semantic.DeepEqual(kubeletConfig(worker, &shoot.Spec), kubeletConfig(before, &old.Spec))
		errs = append(errs, forbidden(changes, path.Child("provider", "workers").Index(i),
			fmt.Sprintf("the worker pool %q is currently undergoing an in-place update. No changes are allowed to the worker pool", worker.Name))...)
	}
	if hibernationWanted(&shoot.Spec) && !hibernationWanted(&old.Spec) {
		errs = append(errs, validateHibernationStart(old, path.Child("hibernation", "enabled"))...)
	}
	return errs
}

// validateHibernationStart checks that a cluster is not switched off while something is rolled out that needs it.
func validateHibernationStart(old *v1beta1.Shoot, path *field.Path) field.ErrorList {
	etcdKey, serviceAccountKey := etcdKeyPhase(old), serviceAccountKeyPhase(old)
	errs := forbidden(etcdKey == v1beta1.RotationPreparing || etcdKey == v1beta1.RotationCompleting, path,
		fmt.Sprintf("shoot cannot be hibernated when .status.credentials.rotation.etcdEncryptionKey.phase is %q", etcdKey))
	errs = append(errs, forbidden(serviceAccountKey == v1beta1.RotationPreparing ||
		serviceAccountKey == v1beta1.RotationPreparingWithoutWorkersRollout ||
		serviceAccountKey == v1beta1.RotationCompleting, path,
		fmt.Sprintf("shoot cannot be hibernated when .status.credentials.rotation.serviceAccountKey.phase is %q", serviceAccountKey))...)
	return append(errs, forbidden(!encryptionIsRolledOut(old), path,
		"shoot cannot be hibernated when spec.kubernetes.kubeAPIServer.encryptionConfig.resources and "+
			"status.credentials.encryptionAtRest.resources are not equal")...)
}

func validateShootSpecUpdate(spec, old *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	errs := immutable(spec.Region, old.Region, path.Child("region"))
	errs = append(errs, immutable(spec.Provider.Type, old.Provider.Type, path.Child("provider", "type"))...)
	if old.SchedulerName != nil || ptr.Deref(spec.SchedulerName, "") != constants.DefaultSchedulerName {
		errs = append(errs, immutable(spec.SchedulerName, old.SchedulerName, path.Child("schedulerName"))...)
	}
	if ptr.Deref(old.CredentialsBindingName, "") != "" && ptr.Deref(spec.CredentialsBindingName, "") == "" {
		errs = append(errs, field.Forbidden(path.Child("credentialsBindingName"), "can be changed, but not removed"))
	}
	replaced := spec.SecretBindingName == nil && ptr.Deref(spec.CredentialsBindingName, "") != ""
	if old.SecretBindingName != nil && !replaced {
		errs = append(errs, immutable(spec.SecretBindingName, old.SecretBindingName, path.Child("secretBindingName"))...)
	}
	errs = append(errs, validateVersionUpdate(spec.Kubernetes.Version, old.Kubernetes.Version, 1, path.Child("kubernetes", "version"))...)
	errs = append(errs, validateDNSUpdate(spec.DNS, old.DNS, old.SeedName != nil, path.Child("dns"))...)
	errs = append(errs, validateNetworkingUpdate(spec.Networking, old.Networking, path.Child("networking"))...)
	errs = append(errs, validateManagerUpdate(spec, old, path.Child("kubernetes", "kubeControllerManager"))...)
	errs = append(errs, validateControlPlaneUpdate(spec, old, path.Child("controlPlane"))...)
	errs = append(errs, validateNodeLocalDNSUpdate(spec, old, path.Child("systemComponents", "nodeLocalDNS", "enabled"))...)
	return append(errs, validateWorkersUpdate(spec, old, path.Child("provider", "workers"))...)
}

// validateDNSUpdate checks that the domain of a Shoot stays, and who manages it as soon as the Shoot is on a Seed.
func validateDNSUpdate(dns, old *v1beta1.DNS, onSeed bool, path *field.Path) field.ErrorList {
	if old == nil {
		return nil
	}
	if dns == nil {
		return field.ErrorList{field.Forbidden(path, "cannot be removed")}
	}
	errs := immutableOnceSet(dns.Domain, old.Domain, path.Child("domain"))
	primary := func(provider v1beta1.DNSProvider) bool { return ptr.Deref(provider.Primary, false) }
	before := slices.IndexFunc(old.Providers, primary)
	if before < 0 || !onSeed {
		return errs
	}
	now := slices.IndexFunc(dns.Providers, primary)
	if now < 0 {
		return append(errs, field.Forbidden(path.Child("providers"), "removing a primary provider is not allowed"))
	}
	return append(errs, forbidden(ptr.Deref(dns.Providers[now].Type, "") != ptr.Deref(old.Providers[before].Type, ""),
		path.Child("providers").Index(now).Child("type"), "changing primary provider type is not allowed")...)
}

func failureTolerance(spec *v1beta1.ShootSpec) v1beta1.FailureToleranceType {
	if spec.ControlPlane == nil || spec.ControlPlane.HighAvailability == nil {
		return ""
	}
	return spec.ControlPlane.HighAvailability.FailureTolerance.Type
}

// validateControlPlaneUpdate checks that the failure tolerance of a control plane that runs stays, and its zones: they may
// become more, or be left to the scheduler, when the control plane is spread over zones.
func validateControlPlaneUpdate(spec, old *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	now, before := failureTolerance(spec), failureTolerance(old)
	if before != "" && old.SeedName != nil {
		errs = append(errs, immutable(now, before, path.Child("highAvailability", "failureTolerance", "type"))...)
	}
	zones, were := zonesOf(spec.ControlPlane), zonesOf(old.ControlPlane)
	kept := !slices.ContainsFunc(were, func(zone string) bool { return !slices.Contains(zones, zone) })
	spread := before != now && now == v1beta1.FailureToleranceTypeZone && (kept || len(zones) == 0)
	if !slices.Equal(zones, were) && !spread {
		errs = append(errs, field.Invalid(path.Child("zones"), zones, apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}

func zonesOf(plane *v1beta1.ControlPlane) []string {
	if plane == nil {
		return nil
	}
	return plane.Zones
}

// validateNodeLocalDNSUpdate checks that the DNS cache of nodes is not switched on or off if nodes that are updated in place
// would have to be replaced for it.
func validateNodeLocalDNSUpdate(spec, old *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	enabled := func(spec *v1beta1.ShootSpec) bool {
		return spec.SystemComponents != nil && spec.SystemComponents.NodeLocalDNS != nil && spec.SystemComponents.NodeLocalDNS.Enabled
	}
	if enabled(spec) == enabled(old) {
		return nil
	}
	proxy, c := spec.Kubernetes.KubeProxy, contextOf(spec, "", false)
	ipvs := proxy != nil && ptr.Deref(proxy.Mode, "") == v1beta1.ProxyModeIPVS && ptr.Deref(proxy.Enabled, true)
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		pool := c.ofPool(worker)
		if v1beta1.IsUpdateStrategyInPlace(worker.UpdateStrategy) && (ipvs || pool.version != nil && !pool.atLeast("1.34")) {
			return field.ErrorList{field.Forbidden(path,
				"node-local-dns setting can not be changed if shoot has at least one worker pool with an in-place update strategy")}
		}
	}
	return nil
}

// validateVersionUpdate checks that a version of Kubernetes is not lower than before, nor higher by more minor versions
// than it may be. A version without a patch version counts as the lowest one that it can be completed to.
func validateVersionUpdate(now, before string, minors uint64, path *field.Path) field.ErrorList {
	newer, err := semver.NewVersion(now)
	if err != nil {
		return nil // is reported for the object as such
	}
	older, err := semver.NewVersion(before)
	if err != nil {
		return nil
	}
	switch {
	case newer.LessThan(older):
		return field.ErrorList{field.Forbidden(path, "the version cannot be lowered from "+before+" to "+now)}
	case newer.Major() != older.Major() || newer.Minor() > older.Minor()+minors:
		return field.ErrorList{field.Forbidden(path, "the version can be raised by one minor version at a time, not from "+before+" to "+now)}
	}
	return nil
}

func validateNetworkingUpdate(networking, old *v1beta1.Networking, path *field.Path) field.ErrorList {
	if old == nil {
		return nil
	}
	if networking == nil {
		return field.ErrorList{field.Forbidden(path, "cannot be removed")}
	}
	errs := immutable(networking.Type, old.Type, path.Child("type"))
	errs = append(errs, immutableOnceSet(networking.Pods, old.Pods, path.Child("pods"))...)
	errs = append(errs, immutableOnceSet(networking.Services, old.Services, path.Child("services"))...)
	single, dual := []v1beta1.IPFamily{v1beta1.IPFamilyIPv4}, []v1beta1.IPFamily{v1beta1.IPFamilyIPv4, v1beta1.IPFamilyIPv6}
	now, before := networking.IPFamilies, old.IPFamilies
	migrates := slices.Equal(before, single) && slices.Equal(now, dual) || slices.Equal(before, dual) && slices.Equal(now, single)
	if !slices.Equal(now, before) && !migrates && len(before) > 0 {
		errs = append(errs, field.Invalid(path.Child("ipFamilies"), now, "can change from IPv4 to IPv4 and IPv6 and back only"))
	}
	return errs
}

func validateManagerUpdate(spec, old *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	manager, before := spec.Kubernetes.KubeControllerManager, old.Kubernetes.KubeControllerManager
	if before == nil {
		return nil
	}
	if manager == nil {
		manager = &v1beta1.KubeControllerManagerConfig{}
	}
	errs := immutableOnceSet(manager.NodeCIDRMaskSize, before.NodeCIDRMaskSize, path.Child("nodeCIDRMaskSize"))
	return append(errs, immutableOnceSet(manager.NodeCIDRMaskSizeIPv6, before.NodeCIDRMaskSizeIPv6, path.Child("nodeCIDRMaskSizeIPv6"))...)
}
