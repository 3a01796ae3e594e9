package graph

import (
	"encoding/json"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// ofSeed returns the edges of a Seed: from its namespace and Lease, from the identity of the garden, and from objects to which it
// refers.
func ofSeed(seed *corev1beta1.Seed, _ Facts) []Edge {
	e := &edges{to: SeedVertex(seed.Name)}
	e.add(Read, Namespace, "", constants.PrefixSeedNamespace+seed.Name)
	// The UIDs of these namespaces also identify the garden.
	e.add(Read, Namespace, "", "kube-system")
	e.add(Read, Namespace, "", constants.GardenNamespace)
	e.add(Read, ConfigMap, "kube-system", constants.ClusterIdentityName)
	e.add(Own, Lease, constants.SystemSeedLeaseNamespace, seed.Name)
	ofSeedSpec(e, &seed.Spec)
	return e.all
}

// ofSeedSpec adds edges from the objects to which a Seed refers.
func ofSeedSpec(e *edges, spec *corev1beta1.SeedSpec) {
	if spec.Backup != nil {
		e.credentials(Protect, spec.Backup.CredentialsRef)
	}
	if provider := spec.DNS.Provider; provider != nil {
		e.credentials(Read, provider.CredentialsRef)
	}
	if internal := spec.DNS.Internal; internal != nil {
		e.credentials(Read, &internal.CredentialsRef)
	}
	for i := range spec.DNS.Defaults {
		e.credentials(Read, &spec.DNS.Defaults[i].CredentialsRef)
	}
	for _, named := range spec.Resources {
		e.refer(Read, named.ResourceRef.Kind, constants.GardenNamespace, named.ResourceRef.Name)
	}
}

func reduceSeed(seed *corev1beta1.Seed) *corev1beta1.Seed {
	reduced := &corev1beta1.Seed{ObjectMeta: cachetransform.Meta(seed)}
	reduced.Annotations = cachetransform.KeepKeys(seed.Annotations, constants.AnnotationGardenerOperation)
	reduced.Spec = corev1beta1.SeedSpec{Backup: seed.Spec.Backup, DNS: seed.Spec.DNS, Resources: seed.Spec.Resources}
	reduced.Status.ClientCertificateExpirationTimestamp = seed.Status.ClientCertificateExpirationTimestamp
	for _, condition := range seed.Status.Conditions {
		if condition.Type == corev1beta1.SeedGardenletReady {
			// Its change triggers the edges of a ManagedSeed to be computed again.
			reduced.Status.Conditions = append(reduced.Status.Conditions, corev1beta1.Condition{Type: condition.Type, Status: condition.Status})
		}
	}
	return reduced.DeepCopy()
}

// ofManagedSeed returns the edges of a ManagedSeed: to the Shoot that becomes a Seed and to this Seed, and from what its gardenlet
// is started with. The gardenlet of the Shoot's Seed owns the Seed, too: it deletes it.
func ofManagedSeed(managed *seedmanagementv1alpha1.ManagedSeed, facts Facts) []Edge {
	e := &edges{to: vertexOf(ManagedSeed, managed)}
	if managed.Spec.Shoot != nil {
		e.link(Own, e.to, ShootVertex(managed.Namespace, managed.Spec.Shoot.Name))
	}
	e.link(Read, e.to, SeedVertex(managed.Name))
	e.link(Own, SeedVertex(managed.Name), e.to)
	if template := seedTemplate(managed.Spec.Gardenlet.Config.Raw); template != nil {
		if template.Spec.Backup != nil {
			e.credentials(Own, template.Spec.Backup.CredentialsRef)
		}
		ofSeed := &edges{to: SeedVertex(managed.Name)}
		for _, named := range template.Spec.Resources {
			ofSeed.refer(Read, named.ResourceRef.Kind, constants.GardenNamespace, named.ResourceRef.Name)
		}
		e.all = append(e.all, ofSeed.all...)
	}
	if !MayBootstrap(facts.Registration(managed.Name), managed.Annotations, facts.Now) {
		return e.all
	}
	switch ptr.Deref(managed.Spec.Gardenlet.Bootstrap, seedmanagementv1alpha1.BootstrapToken) {
	case seedmanagementv1alpha1.BootstrapToken:
		e.add(Own, Secret, "kube-system", TokenSecret(managed.Namespace, managed.Name))
	case seedmanagementv1alpha1.BootstrapServiceAccount:
		account := constants.PrefixBootstrapServiceAccount + managed.Name
		e.add(Own, ServiceAccount, managed.Namespace, account)
		e.add(Own, ClusterRoleBinding, "", BootstrapBinding(managed.Namespace, account))
	case seedmanagementv1alpha1.BootstrapNone:
	}
	return e.all
}

// ofGardenlet returns the edges of a Gardenlet: to its Seed or self-hosted Shoot, and from what it is deployed with.
func ofGardenlet(gardenlet *seedmanagementv1alpha1.Gardenlet, facts Facts) []Edge {
	e := &edges{to: vertexOf(Gardenlet, gardenlet)}
	if shoot, is := selfHosted(gardenlet.Name); is {
		e.link(Own, e.to, ShootVertex(gardenlet.Namespace, shoot))
	} else if gardenlet.Namespace == constants.GardenNamespace {
		e.link(Own, e.to, SeedVertex(gardenlet.Name))
	}
	if template := seedTemplate(gardenlet.Spec.Config.Raw); template != nil && template.Spec.Backup != nil {
		e.credentials(Protect, template.Spec.Backup.CredentialsRef)
	}
	repository := gardenlet.Spec.Deployment.Helm.OCIRepository
	if ref := repository.PullSecretRef; ref != nil {
		e.add(Read, Secret, gardenlet.Namespace, ref.Name)
	}
	if ref := repository.CABundleSecretRef; ref != nil {
		e.add(Read, Secret, gardenlet.Namespace, ref.Name)
	}
	// A Gardenlet without a Seed gets its first credentials from an administrator.
	if seed := facts.Registration(gardenlet.Name); seed != nil && MayBootstrap(seed, gardenlet.Annotations, facts.Now) {
		e.add(Own, Secret, "kube-system", TokenSecret(gardenlet.Namespace, gardenlet.Name))
	}
	return e.all
}

// seedTemplate returns the Seed in the configuration of a gardenlet, or nil if it has none.
func seedTemplate(configuration []byte) *corev1beta1.SeedTemplate {
	var gardenlet struct {
		SeedConfig *corev1beta1.SeedTemplate `json:"seedConfig"`
	}
	if len(configuration) == 0 || json.Unmarshal(configuration, &gardenlet) != nil {
		return nil // the API server refuses such a configuration
	}
	return gardenlet.SeedConfig
}
