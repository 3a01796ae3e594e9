package core

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const rotationDocumentation = ", see " +
	"https://gardener.cloud/docs/gardener/shoot-operations/shoot_credentials_rotation/#gardener-provided-credentials for details"

// shootWarnings returns warnings about valid settings of a written Shoot that should change.
func shootWarnings(updated, old shoot, now time.Time, rotationInterval time.Duration) []string {
	if updated.DeletionTimestamp != nil {
		return nil
	}
	warnings := deprecatedFields(&updated.Spec)
	if text(updated.Spec.CloudProfileName) != "" && !before(updated, "1.33") { // older versions fill it automatically
		warnings = append(warnings, "you are setting the spec.cloudProfileName field. "+
			"The field is deprecated and forbidden starting from Kubernetes 1.34. Instead, use the spec.cloudProfile field.")
	}
	if old != nil {
		warnings = append(warnings, dueRotations(old, now, rotationInterval)...)
		warnings = append(warnings, unfinishedRotations(old, now, rotationInterval/3)...)
	}
	return warnings
}

// deprecatedFields returns a warning for each field that is deprecated in newer versions of Kubernetes or of the API.
func deprecatedFields(spec *gardencorev1beta1.ShootSpec) []string {
	var warnings []string
	warn := func(set bool, path, why string) {
		if set {
			warnings = append(warnings, "you are setting the "+path+" field. "+why)
		}
	}
	warn(text(spec.SecretBindingName) != "", "spec.secretBindingName",
		"The field is deprecated and forbidden starting from Kubernetes 1.34. Instead, use the spec.credentialsBindingName field.")
	warn(spec.Addons != nil, "spec.addons", "The field is deprecated and forbidden starting from Kubernetes 1.35.")
	deprecatedServerFields(spec.Kubernetes.KubeAPIServer, warn)
	if scaler := spec.Kubernetes.ClusterAutoscaler; scaler != nil {
		warn(scaler.MaxEmptyBulkDelete != nil, "spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete",
			"The field is deprecated and forbidden starting from Kubernetes 1.33. "+
				"Instead, use the spec.kubernetes.clusterAutoscaler.maxScaleDownParallelism field.")
		warn(len(scaler.IgnoreTaints) > 0, "spec.kubernetes.clusterAutoscaler.ignoreTaints",
			"The field is deprecated and forbidden starting from Kubernetes 1.32. Instead, use the startupTaints and statusTaints fields.")
	}
	if manager := spec.Kubernetes.KubeControllerManager; manager != nil {
		warn(manager.PodEvictionTimeout != nil, "spec.kubernetes.kubeControllerManager.podEvictionTimeout",
			"The field has no effect and is forbidden starting from Kubernetes 1.33. Instead, use the "+
				"spec.kubernetes.kubeAPIServer.(defaultNotReadyTolerationSeconds/defaultUnreachableTolerationSeconds) fields.")
	}
	if scheduler := spec.Kubernetes.KubeScheduler; scheduler != nil {
		warn(scheduler.KubeMaxPDVols != nil, "spec.kubernetes.kubeScheduler.kubeMaxPDVols",
			"The field is deprecated and forbidden starting from Kubernetes 1.35.")
	}
	if proxy := spec.Kubernetes.KubeProxy; proxy != nil && proxy.Mode != nil && *proxy.Mode == gardencorev1beta1.ProxyModeIPVS {
		warnings = append(warnings, "the IPVS mode of kube-proxy (spec.kubernetes.kubeProxy.mode) is deprecated in Kubernetes. "+
			"Use IPTables or NFTables instead.")
	}
	return warnings
}

func deprecatedServerFields(server *gardencorev1beta1.KubeAPIServerConfig, warn func(set bool, path, why string)) {
	if server == nil {
		return
	}
	warn(server.EnableAnonymousAuthentication != nil, "spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication",
		"The field is deprecated and forbidden starting from Kubernetes 1.35. "+
			"Instead, configure anonymous authentication endpoints with structured authentication.")
	warn(server.WatchCacheSizes != nil && server.WatchCacheSizes.Default != nil, "spec.kubernetes.kubeAPIServer.watchCacheSizes.default",
		"The field is deprecated and forbidden starting from Kubernetes 1.35, as kube-apiserver sizes its caches itself.")
}

// dueRotations returns a warning for each of a Shoot's credentials that were last rotated, or created, at least an
// interval ago.
func dueRotations(s shoot, now time.Time, interval time.Duration) []string {
	isDue := func(last *metav1.Time) bool { return last == nil || now.Sub(last.Time) >= interval }
	if now.Sub(s.CreationTimestamp.Time) < interval {
		return nil
	}
	if s.Status.Credentials == nil || s.Status.Credentials.Rotation == nil {
		return []string{"you should consider rotating the shoot credentials" + rotationDocumentation}
	}
	var warnings []string
	warn := func(due bool, what string) {
		if due {
			warnings = append(warnings, "you should consider rotating the "+what+rotationDocumentation)
		}
	}
	rotation := s.Status.Credentials.Rotation
	warn(rotation.CertificateAuthorities == nil || isDue(rotation.CertificateAuthorities.LastInitiationTime), "certificate authorities")
	warn(rotation.ETCDEncryptionKey == nil || isDue(rotation.ETCDEncryptionKey.LastInitiationTime), "ETCD encryption key")
	warn(rotation.Observability == nil || isDue(rotation.Observability.LastInitiationTime), "observability passwords")
	warn(rotation.ServiceAccountKey == nil || isDue(rotation.ServiceAccountKey.LastInitiationTime), "ServiceAccount token signing key")
	warn(sshAccess(s) && (rotation.SSHKeypair == nil || isDue(rotation.SSHKeypair.LastInitiationTime)), "SSH key pair")
	return warnings
}

// unfinishedRotations returns a warning for each rotation that has been waiting for its completion for longer than
// limit.
func unfinishedRotations(s shoot, now time.Time, limit time.Duration) []string {
	if s.Status.Credentials == nil || s.Status.Credentials.Rotation == nil {
		return nil
	}
	var warnings []string
	warn := func(phase gardencorev1beta1.CredentialsRotationPhase, prepared *metav1.Time, what string) {
		if phase == gardencorev1beta1.RotationPrepared && prepared != nil && now.Sub(prepared.Time) >= limit {
			warnings = append(warnings, fmt.Sprintf(
				"the %s rotation initiation was finished more than %s ago and should be completed", what, limit))
		}
	}
	rotation := s.Status.Credentials.Rotation
	if ca := rotation.CertificateAuthorities; ca != nil {
		warn(ca.Phase, ca.LastInitiationFinishedTime, "certificate authorities")
	}
	if key := rotation.ETCDEncryptionKey; key != nil {
		warn(key.Phase, key.LastInitiationFinishedTime, "ETCD encryption key")
	}
	if key := rotation.ServiceAccountKey; key != nil {
		warn(key.Phase, key.LastInitiationFinishedTime, "ServiceAccount token signing key")
	}
	return warnings
}
