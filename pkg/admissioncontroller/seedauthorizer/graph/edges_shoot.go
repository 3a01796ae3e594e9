package graph

import (
	"cmp"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/issuer"
)

// PrefixSelfHosted is the prefix of the names of a self-hosted Shoot's Lease and Gardenlet.
const PrefixSelfHosted = "self-hosted-shoot-"

// ownSecrets and ownConfigMaps are the suffixes of the objects that gardenlet writes for a Shoot into its Project.
var (
	ownSecrets    = []string{constants.SuffixCACluster, constants.SuffixSSHKeypair, constants.SuffixSSHKeypairOld, constants.SuffixMonitoring}
	ownConfigMaps = []string{constants.SuffixCACluster, constants.SuffixCAKubelet}
)

// ofShoot returns the edges of a Shoot: to its Seeds, from its own objects, and from those to which it refers.
func ofShoot(shoot *corev1beta1.Shoot, _ Facts) []Edge {
	e := &edges{to: vertexOf(Shoot, shoot)}
	namespace, spec := shoot.Namespace, &shoot.Spec
	e.seeds(spec.SeedName, shoot.Status.SeedName)
	for _, suffix := range ownSecrets {
		e.add(Own, Secret, namespace, shoot.Name+suffix)
	}
	for _, suffix := range ownConfigMaps {
		e.add(Own, ConfigMap, namespace, shoot.Name+suffix)
	}
	e.add(Own, InternalSecret, namespace, shoot.Name+constants.SuffixCAClient)
	e.add(Own, ShootState, namespace, shoot.Name)
	if issuer.IsManaged(shoot.Annotations) && shoot.UID != "" {
		e.link(Own, Canonical(Vertex{Secret, constants.SystemShootIssuerNamespace, "--" + string(shoot.UID)}), e.to)
	}

	e.add(Read, Namespace, "", namespace)
	e.add(Read, SecretBinding, namespace, ptr.Deref(spec.SecretBindingName, ""))
	e.add(Read, CredentialsBinding, namespace, ptr.Deref(spec.CredentialsBindingName, ""))
	e.add(Read, ExposureClass, "", ptr.Deref(spec.ExposureClassName, ""))
	e.add(Read, CloudProfile, "", ptr.Deref(spec.CloudProfileName, ""))
	if profile := spec.CloudProfile; profile != nil {
		if Kind(profile.Kind) == NamespacedCloudProfile {
			e.add(Read, NamespacedCloudProfile, namespace, profile.Name)
		} else {
			e.add(Read, CloudProfile, "", profile.Name)
		}
	}
	if server := spec.Kubernetes.KubeAPIServer; server != nil {
		filesOf(e, namespace, server)
	}
	for _, named := range spec.Resources {
		e.refer(Read, named.ResourceRef.Kind, namespace, named.ResourceRef.Name)
	}
	if dns := spec.DNS; dns != nil {
		for _, provider := range dns.Providers {
			e.add(Read, Secret, namespace, ptr.Deref(provider.SecretName, ""))
			if ref := provider.CredentialsRef; ref != nil {
				e.refer(Read, cmp.Or(ref.Kind, string(Secret)), namespace, ref.Name)
			}
		}
	}
	if shoot.Labels[constants.LabelShootSelfHosted] == "true" {
		e.add(Own, Lease, namespace, PrefixSelfHosted+shoot.Name)
		e.add(Read, ConfigMap, "kube-system", constants.ClusterIdentityName)
	}
	return e.all
}

// filesOf adds the files of a Shoot's API server.
func filesOf(e *edges, namespace string, server *corev1beta1.KubeAPIServerConfig) {
	for _, plugin := range server.AdmissionPlugins {
		e.add(Read, Secret, namespace, ptr.Deref(plugin.KubeconfigSecretName, ""))
	}
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		e.add(Read, ConfigMap, namespace, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if structured := server.StructuredAuthentication; structured != nil {
		e.add(Read, ConfigMap, namespace, structured.ConfigMapName)
	}
	if structured := server.StructuredAuthorization; structured != nil {
		e.add(Read, ConfigMap, namespace, structured.ConfigMapName)
		for _, kubeconfig := range structured.Kubeconfigs {
			e.add(Read, Secret, namespace, kubeconfig.SecretName)
		}
	}
}

// Canonical returns the vertex under which an object is in the graph. The names of Secrets of managed issuers,
// <project>--<UID of the Shoot>, are reduced to the UID, because a Shoot does not name its Project.
func Canonical(vertex Vertex) Vertex {
	if vertex.Kind == Secret && vertex.Namespace == constants.SystemShootIssuerNamespace {
		if at := strings.LastIndex(vertex.Name, "--"); at >= 0 {
			vertex.Name = vertex.Name[at:]
		}
	}
	return vertex
}

// reduceShoot returns a Shoot with the fields that ofShoot reads.
func reduceShoot(shoot *corev1beta1.Shoot) *corev1beta1.Shoot {
	reduced := &corev1beta1.Shoot{ObjectMeta: cachetransform.Meta(shoot)}
	reduced.Labels = cachetransform.KeepKeys(shoot.Labels, constants.LabelShootSelfHosted)
	reduced.Annotations = cachetransform.KeepKeys(shoot.Annotations, constants.AnnotationAuthenticationIssuer)
	spec := &shoot.Spec
	reduced.Spec = corev1beta1.ShootSpec{
		SeedName: spec.SeedName, SecretBindingName: spec.SecretBindingName, CredentialsBindingName: spec.CredentialsBindingName,
		ExposureClassName: spec.ExposureClassName, CloudProfileName: spec.CloudProfileName, CloudProfile: spec.CloudProfile,
		Resources: spec.Resources, DNS: spec.DNS,
	}
	if server := spec.Kubernetes.KubeAPIServer; server != nil {
		reduced.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
			AdmissionPlugins: server.AdmissionPlugins, AuditConfig: server.AuditConfig,
			StructuredAuthentication: server.StructuredAuthentication, StructuredAuthorization: server.StructuredAuthorization,
		}
	}
	reduced.Status.SeedName = shoot.Status.SeedName
	return reduced.DeepCopy()
}
