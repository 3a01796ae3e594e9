package shootsecrets

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// roleShootSecrets is the value of constants.LabelGardenRole on the objects that the controller writes.
	roleShootSecrets = "shoot-secrets"
	// suffix distinguishes the Roles from those of gardenlet's chart.
	suffix = ":shoot-secrets"
)

// Named returns the names of the Secrets in its own namespace to which a Shoot refers, sorted. It excludes credentials of
// its provider. Bindings refer to those, and they can be in other namespaces.
func Named(shoot *corev1beta1.Shoot) []string {
	var names []string
	add := func(name *string) {
		if name := ptr.Deref(name, ""); name != "" {
			names = append(names, name)
		}
	}
	if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil {
		for _, plugin := range server.AdmissionPlugins {
			add(plugin.KubeconfigSecretName)
		}
		if structured := server.StructuredAuthorization; structured != nil {
			for _, kubeconfig := range structured.Kubeconfigs {
				add(&kubeconfig.SecretName)
			}
		}
	}
	for _, named := range shoot.Spec.Resources {
		if named.ResourceRef.Kind == "Secret" && named.ResourceRef.APIVersion == corev1.SchemeGroupVersion.String() {
			add(&named.ResourceRef.Name)
		}
	}
	if dns := shoot.Spec.DNS; dns != nil {
		for _, provider := range dns.Providers {
			add(provider.SecretName)
			if ref := provider.CredentialsRef; ref != nil && ref.Kind == "Secret" && ref.APIVersion == corev1.SchemeGroupVersion.String() {
				add(&ref.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Reduce returns the fields of a Shoot's specification that Named reads.
func Reduce(spec *corev1beta1.ShootSpec) corev1beta1.ShootSpec {
	kept := corev1beta1.ShootSpec{Resources: spec.Resources, DNS: spec.DNS}
	server := spec.Kubernetes.KubeAPIServer
	if server == nil {
		return kept
	}
	reduced := &corev1beta1.KubeAPIServerConfig{}
	for _, plugin := range server.AdmissionPlugins {
		if plugin.KubeconfigSecretName != nil {
			reduced.AdmissionPlugins = append(reduced.AdmissionPlugins, corev1beta1.AdmissionPlugin{
				Name: plugin.Name, KubeconfigSecretName: plugin.KubeconfigSecretName,
			})
		}
	}
	if structured := server.StructuredAuthorization; structured != nil {
		reduced.StructuredAuthorization = &corev1beta1.StructuredAuthorization{Kubeconfigs: structured.Kubeconfigs}
	}
	kept.Kubernetes.KubeAPIServer = reduced
	return kept
}

// wanted returns the names of the Secrets that the gardenlets of Seeds may read in a namespace, by the names of the
// Seeds, sorted. During a migration, both Seeds may read them.
func wanted(shoots []corev1beta1.Shoot) map[string][]string {
	all := map[string][]string{}
	for i := range shoots {
		names := Named(&shoots[i])
		for _, seed := range seedsOf(&shoots[i]) {
			if len(names) > 0 {
				all[seed] = append(all[seed], names...)
			}
		}
	}
	for seed, names := range all {
		slices.Sort(names)
		all[seed] = slices.Compact(names)
	}
	return all
}

// seedsOf returns the names of the Seeds of a Shoot. During a migration there are two.
func seedsOf(shoot *corev1beta1.Shoot) []string {
	var names []string
	for _, name := range []*string{shoot.Spec.SeedName, shoot.Status.SeedName} {
		if name := ptr.Deref(name, ""); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// meta returns the metadata of a Role and its RoleBinding.
func meta(namespace, seed string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: constants.PrefixSeedUser + seed + suffix,
		Labels: map[string]string{constants.LabelGardenRole: roleShootSecrets},
	}
}

// role returns the Role for a Seed. Its names also permit lists and watches of single objects by name.
func role(namespace, seed string, secrets []string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: meta(namespace, seed), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: []string{"get", "list", "watch"},
	}}}
}

// binding returns the RoleBinding for a Seed.
func binding(namespace, seed string) *rbacv1.RoleBinding {
	made := &rbacv1.RoleBinding{ObjectMeta: meta(namespace, seed)}
	made.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: made.Name}
	made.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: constants.PrefixSeedUser + seed}}
	return made
}
