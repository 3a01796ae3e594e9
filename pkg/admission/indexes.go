package admission

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// Index gives keys to objects, by which they are found without a walk over all objects.
type Index[T client.Object] struct {
	// Name is unique among the indexes of a kind.
	Name string
	// Keys returns the keys of an object.
	Keys func(T) []string
}

// Key returns the key of an object with a namespace.
func Key(namespace, name string) string { return namespace + "/" + name }

// The indexes of the kinds.
var (
	// ClusterOIDCPresetsAll has one key, the empty string, for all objects.
	ClusterOIDCPresetsAll = Index[*settingsv1alpha1.ClusterOpenIDConnectPreset]{"all", func(*settingsv1alpha1.ClusterOpenIDConnectPreset) []string {
		return []string{""}
	}}
	// OIDCPresetsByNamespace have their namespaces.
	OIDCPresetsByNamespace = Index[*settingsv1alpha1.OpenIDConnectPreset]{"namespace", func(p *settingsv1alpha1.OpenIDConnectPreset) []string {
		return []string{p.Namespace}
	}}
	// ControllerRegistrationsByResource have the keys <kind>/<type> of their resources.
	ControllerRegistrationsByResource = Index[*gardencorev1beta1.ControllerRegistration]{"resource", func(r *gardencorev1beta1.ControllerRegistration) []string {
		var keys []string
		for _, resource := range r.Spec.Resources {
			keys = append(keys, Key(resource.Kind, resource.Type))
		}
		return keys
	}}
	// ControllerRegistrationsByAutoEnable have the types of clusters in which their extensions are enabled by default.
	ControllerRegistrationsByAutoEnable = Index[*gardencorev1beta1.ControllerRegistration]{"autoEnable", func(r *gardencorev1beta1.ControllerRegistration) []string {
		var keys []string
		for _, resource := range r.Spec.Resources {
			for _, cluster := range resource.AutoEnable {
				keys = append(keys, string(cluster))
			}
		}
		return keys
	}}
	// CredentialsBindingsByQuota and SecretBindingsByQuota have the namespaces and names of their quotas.
	CredentialsBindingsByQuota = Index[*securityv1alpha1.CredentialsBinding]{"quota", func(b *securityv1alpha1.CredentialsBinding) []string {
		return references(b.Quotas, b.Namespace)
	}}
	SecretBindingsByQuota = Index[*gardencorev1beta1.SecretBinding]{"quota", func(b *gardencorev1beta1.SecretBinding) []string {
		return references(b.Quotas, b.Namespace)
	}}
	// ManagedSeedsByShoot have the namespaces and names of their Shoots.
	ManagedSeedsByShoot = Index[*seedmanagementv1alpha1.ManagedSeed]{"shoot", func(s *seedmanagementv1alpha1.ManagedSeed) []string {
		if s.Spec.Shoot == nil {
			return nil
		}
		return []string{Key(s.Namespace, s.Spec.Shoot.Name)}
	}}
	ProjectsByNamespace = Index[*gardencorev1beta1.Project]{"namespace", func(p *gardencorev1beta1.Project) []string {
		if p.Spec.Namespace == nil {
			return nil
		}
		return []string{*p.Spec.Namespace}
	}}
	// ShootsByDomain have the keys of their domain, see DomainKeys.
	ShootsByDomain = Index[*gardencorev1beta1.Shoot]{"domain", func(s *gardencorev1beta1.Shoot) []string {
		if s.Spec.DNS == nil || ptr.Deref(s.Spec.DNS.Domain, "") == "" {
			return nil
		}
		return DomainKeys(*s.Spec.DNS.Domain)
	}}
	// ShootsBySeed have the names of the Seeds of their spec and their status.
	ShootsBySeed = Index[*gardencorev1beta1.Shoot]{"seed", func(s *gardencorev1beta1.Shoot) []string {
		return distinct(ptr.Deref(s.Spec.SeedName, ""), ptr.Deref(s.Status.SeedName, ""))
	}}
	// ShootsByBinding have the keys that BindingKey returns for their bindings.
	ShootsByBinding = Index[*gardencorev1beta1.Shoot]{"binding", func(s *gardencorev1beta1.Shoot) []string {
		var keys []string
		if s.Spec.SecretBindingName != nil {
			keys = append(keys, BindingKey(KindSecretBinding, s.Namespace, *s.Spec.SecretBindingName))
		}
		if s.Spec.CredentialsBindingName != nil {
			keys = append(keys, BindingKey(KindCredentialsBinding, s.Namespace, *s.Spec.CredentialsBindingName))
		}
		return keys
	}}
)

// The kinds of bindings.
const (
	KindCredentialsBinding = "CredentialsBinding"
	KindSecretBinding      = "SecretBinding"
)

// BindingKey returns the key of a binding in the index ShootsByBinding.
func BindingKey(kind, namespace, name string) string { return kind + "/" + Key(namespace, name) }

// references returns the keys of references. The namespace is the default of theirs.
func references(quotas []corev1.ObjectReference, namespace string) []string {
	var keys []string
	for _, quota := range quotas {
		keys = append(keys, Key(cmp.Or(quota.Namespace, namespace), quota.Name))
	}
	return keys
}

const (
	domainIs    = "is "
	domainBelow = "below "
)

// parentsOf returns the domains above a domain, the nearest one first.
func parentsOf(domain string) []string {
	var parents []string
	for _, parent, found := strings.Cut(domain, "."); found; _, parent, found = strings.Cut(parent, ".") {
		parents = append(parents, parent)
	}
	return parents
}

// DomainKeys returns the keys of what has a domain: one of the domain and one of each domain above it. RelatedDomains finds them.
func DomainKeys(domain string) []string {
	keys := []string{domainIs + domain}
	for _, parent := range parentsOf(domain) {
		keys = append(keys, domainBelow+parent)
	}
	return keys
}

// RelatedDomains returns the keys for an index of DomainKeys, by which it finds what has a domain, one above it or one below it.
func RelatedDomains(domain string) []string {
	keys := []string{domainIs + domain, domainBelow + domain}
	for _, parent := range parentsOf(domain) {
		keys = append(keys, domainIs+parent)
	}
	return keys
}

func distinct(values ...string) []string {
	var found []string
	for i, value := range values {
		if value != "" && (i == 0 || value != values[0]) {
			found = append(found, value)
		}
	}
	return found
}
