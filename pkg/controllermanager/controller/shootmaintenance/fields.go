package shootmaintenance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/Masterminds/semver/v3"
	autoscalingv1 "k8s.io/api/autoscaling/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation/kubernetesversion"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// The minor versions of Kubernetes from which on fields of Shoots are forbidden.
const (
	withoutEvictionTimeout = 33
	withoutBindings        = 34
	withoutAddons          = 35
)

// minorOf returns the minor version of Kubernetes 1, or 0 if the version cannot be compared.
func minorOf(version string) uint64 {
	parsed, err := semver.NewVersion(version)
	if err != nil || parsed.Major() != 1 {
		return 0
	}
	return parsed.Minor()
}

// crosses reports whether an update reaches a minor version.
func crosses(before, after string, minor uint64) bool {
	return minorOf(before) < minor && minorOf(after) >= minor
}

// NeedsBinding reports whether an update of the control plane forbids the SecretBinding of a Shoot.
func NeedsBinding(before, after *corev1beta1.ShootSpec) bool {
	return crosses(before.Kubernetes.Version, after.Kubernetes.Version, withoutBindings) && before.SecretBindingName != nil && *before.SecretBindingName != ""
}

// removeFields removes what the new version of Kubernetes of a Shoot forbids. binding is the name of the CredentialsBinding that
// replaces the SecretBinding.
func removeFields(spec *corev1beta1.ShootSpec, before, binding string) (removed []string) {
	note := func(field string) { removed = append(removed, field+" removed") }
	after := spec.Kubernetes.Version
	if crosses(before, after, withoutEvictionTimeout) {
		if manager := spec.Kubernetes.KubeControllerManager; manager != nil && manager.PodEvictionTimeout != nil {
			manager.PodEvictionTimeout = nil
			note("spec.kubernetes.kubeControllerManager.podEvictionTimeout")
		}
		if scaler := spec.Kubernetes.ClusterAutoscaler; scaler != nil && scaler.MaxEmptyBulkDelete != nil {
			scaler.MaxEmptyBulkDelete = nil
			note("spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete")
		}
	}
	if crosses(before, after, withoutBindings) {
		if spec.SecretBindingName != nil && *spec.SecretBindingName != "" && binding != "" {
			removed = append(removed, fmt.Sprintf("spec.secretBindingName replaced by spec.credentialsBindingName %s", binding))
			spec.SecretBindingName, spec.CredentialsBindingName = nil, &binding
		}
		if spec.CloudProfileName != nil {
			reference := cloudprofile.ReferenceOf(spec)
			spec.CloudProfile, spec.CloudProfileName = &reference, nil
			note("spec.cloudProfileName")
		}
	}
	if crosses(before, after, withoutAddons) {
		removeOldSettings(spec, note)
	}
	return removed
}

// removeOldSettings removes what Kubernetes 1.35 and later forbid.
func removeOldSettings(spec *corev1beta1.ShootSpec, note func(string)) {
	if server := spec.Kubernetes.KubeAPIServer; server != nil {
		if server.EnableAnonymousAuthentication != nil {
			server.EnableAnonymousAuthentication = nil
			note("spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication")
		}
		if server.WatchCacheSizes != nil && server.WatchCacheSizes.Default != nil {
			server.WatchCacheSizes.Default = nil
			note("spec.kubernetes.kubeAPIServer.watchCacheSizes.default")
		}
	}
	if scheduler := spec.Kubernetes.KubeScheduler; scheduler != nil && scheduler.KubeMaxPDVols != nil {
		scheduler.KubeMaxPDVols = nil
		note("spec.kubernetes.kubeScheduler.kubeMaxPDVols")
	}
	if spec.Addons != nil {
		spec.Addons = nil
		note("spec.addons")
	}
	if spec.DNS == nil {
		return
	}
	for i := range spec.DNS.Providers {
		provider := &spec.DNS.Providers[i]
		if provider.SecretName == nil {
			continue
		}
		if provider.CredentialsRef == nil && *provider.SecretName != "" {
			provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: *provider.SecretName}
		}
		provider.SecretName = nil
		note(fmt.Sprintf("spec.dns.providers[%d].secretName", i))
	}
}

// removeUnsupported removes feature gates and admission plugins that the versions of Kubernetes of a Shoot do not have.
func removeUnsupported(spec *corev1beta1.ShootSpec) (removed []string) {
	minor := uint(minorOf(spec.Kubernetes.Version))
	gates := func(all map[string]bool, minor uint, of string) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			gate, known := kubernetesversion.FeatureGateOf(name)
			value, locked := gate.Locked(minor)
			if known && (!gate.Has(minor) || locked && all[name] != value) {
				delete(all, name)
				removed = append(removed, fmt.Sprintf("feature gate %s of %s removed, which Kubernetes 1.%d does not have, or does not allow to change", name, of, minor))
			}
		}
	}
	kubernetes := &spec.Kubernetes
	if server := kubernetes.KubeAPIServer; server != nil {
		gates(server.FeatureGates, minor, "kube-apiserver")
		server.AdmissionPlugins = slices.DeleteFunc(server.AdmissionPlugins, func(plugin corev1beta1.AdmissionPlugin) bool {
			known, found := kubernetesversion.AdmissionPluginOf(plugin.Name)
			if !found || known.Has(minor) {
				return false
			}
			removed = append(removed, fmt.Sprintf("admission plugin %s removed, which Kubernetes 1.%d does not have", plugin.Name, minor))
			return true
		})
	}
	if manager := kubernetes.KubeControllerManager; manager != nil {
		gates(manager.FeatureGates, minor, "kube-controller-manager")
	}
	if scheduler := kubernetes.KubeScheduler; scheduler != nil {
		gates(scheduler.FeatureGates, minor, "kube-scheduler")
	}
	if proxy := kubernetes.KubeProxy; proxy != nil {
		gates(proxy.FeatureGates, minor, "kube-proxy")
	}
	if kubelet := kubernetes.Kubelet; kubelet != nil {
		gates(kubelet.FeatureGates, minor, "kubelet")
	}
	for i := range spec.Provider.Workers {
		pool := &spec.Provider.Workers[i]
		if pool.Kubernetes != nil && pool.Kubernetes.Kubelet != nil {
			version := uint(minorOf(kubeletOf(pool, spec.Kubernetes.Version)))
			gates(pool.Kubernetes.Kubelet.FeatureGates, version, fmt.Sprintf("kubelet of worker pool %q", pool.Name))
		}
	}
	return removed
}
