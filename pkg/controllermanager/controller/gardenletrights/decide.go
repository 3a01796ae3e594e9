package gardenletrights

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// suffix distinguishes the Roles from those of gardenlet's chart.
	suffix = ":gardenlet-rights"
	// namespaceRole is the ClusterRole of gardenlet's chart with the rights of a gardenlet in the namespace of its Seed.
	namespaceRole = "gardener.cloud:system:seed-namespace"
)

// World contains the objects from which the rights in a namespace follow.
type World struct {
	// Shoots of the namespace.
	Shoots []corev1beta1.Shoot
	// Others are Shoots of other namespaces whose credentials may be in the namespace. Bindings are all bindings to credentials.
	Others   []corev1beta1.Shoot
	Bindings []Bound
	// Seeds, Buckets, Entries, Installations and Deployments are all objects of the garden.
	Seeds         []corev1beta1.Seed
	Buckets       []corev1beta1.BackupBucket
	Entries       []corev1beta1.BackupEntry
	Installations []corev1beta1.ControllerInstallation
	Deployments   []gardencorev1.ControllerDeployment
	// Managed are the Shoots with the managed issuer, and Projects all Projects. They are only needed for the namespace of the documents of
	// these issuers.
	Managed  []corev1beta1.Shoot
	Projects []corev1beta1.Project
}

// Keep keeps the fields of a Shoot from which its rights follow, for a cache.
func Keep(kept, shoot *corev1beta1.Shoot) {
	kept.Spec.SeedName, kept.Status.SeedName = shoot.Spec.SeedName, shoot.Status.SeedName
	kept.Spec.Resources, kept.Spec.DNS = shoot.Spec.Resources, shoot.Spec.DNS
	kept.Spec.SecretBindingName, kept.Spec.CredentialsBindingName = shoot.Spec.SecretBindingName, shoot.Spec.CredentialsBindingName
	if value, found := shoot.Annotations[constants.AnnotationAuthenticationIssuer]; found {
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, constants.AnnotationAuthenticationIssuer, value)
	}
	server := shoot.Spec.Kubernetes.KubeAPIServer
	if server == nil {
		return
	}
	if kept.Spec.Kubernetes.KubeAPIServer == nil {
		kept.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{}
	}
	reduced := kept.Spec.Kubernetes.KubeAPIServer
	reduced.AuditConfig, reduced.AdmissionPlugins = server.AuditConfig, nil
	for _, plugin := range server.AdmissionPlugins {
		if plugin.KubeconfigSecretName != nil {
			reduced.AdmissionPlugins = append(reduced.AdmissionPlugins, corev1beta1.AdmissionPlugin{
				Name: plugin.Name, KubeconfigSecretName: plugin.KubeconfigSecretName,
			})
		}
	}
	if structured := server.StructuredAuthentication; structured != nil {
		reduced.StructuredAuthentication = &corev1beta1.StructuredAuthentication{ConfigMapName: structured.ConfigMapName}
	}
	if structured := server.StructuredAuthorization; structured != nil {
		reduced.StructuredAuthorization = &corev1beta1.StructuredAuthorization{
			ConfigMapName: structured.ConfigMapName, Kubeconfigs: structured.Kubeconfigs,
		}
	}
}

// Wanted returns the rights in a namespace by the names of the Seeds. It is a pure function. It relies on the policies of
// gardenlet's chart: a gardenlet changes no reference of its own objects to one that it may not read already.
func Wanted(namespace string, world World) map[string]Grants {
	all := seeds{}
	for i := range world.Shoots {
		shoot := &world.Shoots[i]
		for _, seed := range seedsOf(shoot.Spec.SeedName, shoot.Status.SeedName) {
			ofShoot(all.of(seed), shoot)
		}
	}
	for _, shoots := range [][]corev1beta1.Shoot{world.Shoots, world.Others} {
		for i := range shoots {
			for _, seed := range seedsOf(shoots[i].Spec.SeedName, shoots[i].Status.SeedName) {
				ofBindings(all.of(seed), namespace, &shoots[i], world.Bindings)
			}
		}
	}
	for i := range world.Seeds {
		ofSeed(all.of(world.Seeds[i].Name), namespace, &world.Seeds[i])
	}
	ofBackups(all, namespace, world)
	switch namespace {
	case constants.GardenNamespace:
		ofExtensions(all, world)
	case constants.SystemShootIssuerNamespace:
		ofIssuers(all, world)
	}
	for seed, grants := range all {
		if len(grants) == 0 {
			delete(all, seed)
		}
	}
	return all
}

// seeds are the grants by Seed.
type seeds map[string]Grants

func (s seeds) of(seed string) Grants {
	if s[seed] == nil {
		s[seed] = Grants{}
	}
	return s[seed]
}

// seedsOf returns the names of Seeds without repetitions. During a migration there are two.
func seedsOf(names ...*string) []string {
	var found []string
	for _, name := range names {
		if name := ptr.Deref(name, ""); name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// Bound is a binding to credentials for an infrastructure.
type Bound struct {
	// Namespace of the binding. One of the names is set, by its kind.
	Namespace, SecretBinding, CredentialsBinding string
	// Ref refers to the credentials.
	Ref corev1.ObjectReference
}

// bindingOfSecret returns a SecretBinding as Bound.
func bindingOfSecret(of *corev1beta1.SecretBinding) Bound {
	return Bound{Namespace: of.Namespace, SecretBinding: of.Name, Ref: corev1.ObjectReference{
		APIVersion: "v1", Kind: "Secret", Namespace: cmp.Or(of.SecretRef.Namespace, of.Namespace), Name: of.SecretRef.Name,
	}}
}

// bindsShoot reports whether a Shoot uses the binding.
func (b Bound) bindsShoot(shoot *corev1beta1.Shoot) bool {
	secret, credentials := ptr.Deref(shoot.Spec.SecretBindingName, ""), ptr.Deref(shoot.Spec.CredentialsBindingName, "")
	return b.Namespace == shoot.Namespace && (secret != "" && b.SecretBinding == secret || credentials != "" && b.CredentialsBinding == credentials)
}

// ofBindings adds the credentials of a Shoot that are in a namespace.
func ofBindings(g Grants, namespace string, shoot *corev1beta1.Shoot, bindings []Bound) {
	for _, one := range bindings {
		if one.bindsShoot(shoot) && one.Ref.Namespace == namespace {
			g.refer(one.Ref.APIVersion, one.Ref.Kind, one.Ref.Name)
		}
	}
}

// ofShoot adds the objects of a Shoot, and those in its namespace to which it refers.
func ofShoot(g Grants, shoot *corev1beta1.Shoot) {
	g.add(publishCA, shoot.Name+constants.SuffixCACluster)
	g.add(shareClientCA, shoot.Name+constants.SuffixCAClient)
	g.add(keepState, shoot.Name)
	g.add(readSecretBinding, ptr.Deref(shoot.Spec.SecretBindingName, ""))
	g.add(readCredentialsBinding, ptr.Deref(shoot.Spec.CredentialsBindingName, ""))
	if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil {
		ofServer(g, server)
	}
	for _, named := range shoot.Spec.Resources {
		g.refer(named.ResourceRef.APIVersion, named.ResourceRef.Kind, named.ResourceRef.Name)
	}
	if dns := shoot.Spec.DNS; dns != nil {
		for _, provider := range dns.Providers {
			g.add(readSecret, ptr.Deref(provider.SecretName, ""))
			if ref := provider.CredentialsRef; ref != nil {
				g.refer(ref.APIVersion, ref.Kind, ref.Name)
			}
		}
	}
}

// Named returns the names of the Secrets and ConfigMaps in its own namespace to which a Shoot refers, sorted. It excludes the
// credentials of its infrastructure, to which bindings refer.
func Named(shoot *corev1beta1.Shoot) (secrets, configMaps []string) {
	g := Grants{}
	ofShoot(g, shoot)
	return sets.List(g[readSecret]), sets.List(g[readConfigMap])
}

// ofServer adds the files of an API server.
func ofServer(g Grants, server *corev1beta1.KubeAPIServerConfig) {
	for _, plugin := range server.AdmissionPlugins {
		g.add(readSecret, ptr.Deref(plugin.KubeconfigSecretName, ""))
	}
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		g.add(readConfigMap, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if structured := server.StructuredAuthentication; structured != nil {
		g.add(readConfigMap, structured.ConfigMapName)
	}
	if structured := server.StructuredAuthorization; structured != nil {
		g.add(readConfigMap, structured.ConfigMapName)
		for _, kubeconfig := range structured.Kubeconfigs {
			g.add(readSecret, kubeconfig.SecretName)
		}
	}
}

// ofSeed adds the objects of a namespace to which a Seed refers. The name of its BackupBucket is its UID. gardenlet's chart has
// a policy that lets a gardenlet create only BackupBuckets whose generated Secret it may delete: with the bucket of another
// Seed, it would get the backups of that Seed.
func ofSeed(g Grants, namespace string, seed *corev1beta1.Seed) {
	spec := &seed.Spec
	for _, ref := range credentialsOf(spec) {
		if isIn(namespace, ref) {
			g.refer(cmp.Or(ref.APIVersion, "v1"), cmp.Or(ref.Kind, "Secret"), ref.Name)
		}
	}
	if backup := spec.Backup; backup != nil && isIn(namespace, backup.CredentialsRef) {
		g.protect(backup.CredentialsRef.APIVersion, backup.CredentialsRef.Kind, backup.CredentialsRef.Name)
	}
	if namespace == constants.GardenNamespace {
		if spec.Backup != nil && seed.UID != "" {
			g.add(generateSecret, constants.PrefixGeneratedBackupBucketSecret+string(seed.UID))
		}
		for _, named := range spec.Resources {
			g.refer(named.ResourceRef.APIVersion, named.ResourceRef.Kind, named.ResourceRef.Name)
		}
	}
}

// credentialsOf returns the references of a Seed to credentials.
func credentialsOf(spec *corev1beta1.SeedSpec) []*corev1.ObjectReference {
	var found []*corev1.ObjectReference
	if backup := spec.Backup; backup != nil {
		found = append(found, backup.CredentialsRef)
	}
	if provider := spec.DNS.Provider; provider != nil {
		found = append(found, provider.CredentialsRef)
	}
	if internal := spec.DNS.Internal; internal != nil {
		found = append(found, &internal.CredentialsRef)
	}
	for i := range spec.DNS.Defaults {
		found = append(found, &spec.DNS.Defaults[i].CredentialsRef)
	}
	return found
}

func isIn(namespace string, ref *corev1.ObjectReference) bool {
	return ref != nil && cmp.Or(ref.Namespace, constants.GardenNamespace) == namespace
}

// ofBackups adds the credentials of BackupBuckets, for the gardenlets of the buckets and of their entries. An entry that
// moved is in the bucket of another Seed until its backups are copied.
func ofBackups(all seeds, namespace string, world World) {
	users := usersOf(world.Entries)
	for i := range world.Buckets {
		bucket := &world.Buckets[i]
		generated := constants.PrefixGeneratedBackupBucketSecret + bucket.Name
		ref := bucket.Spec.CredentialsRef
		for _, seed := range seedsOf(bucket.Spec.SeedName) {
			if isIn(namespace, ref) {
				all.of(seed).protect(ref.APIVersion, ref.Kind, ref.Name)
			}
			if namespace == constants.GardenNamespace {
				all.of(seed).add(generateSecret, generated)
			}
		}
		for _, seed := range users[bucket.Name] {
			if isIn(namespace, ref) {
				all.of(seed).refer(ref.APIVersion, ref.Kind, ref.Name)
			}
			if namespace == constants.GardenNamespace {
				all.of(seed).add(readSecret, generated)
			}
		}
	}
}

// usersOf returns the Seeds of the entries by bucket. An entry from which backups are copied counts only beside the entry that gets them in
// the same Seed: gardenlets create both, and the first must not give access to the backups of another Seed for longer than a move.
func usersOf(entries []corev1beta1.BackupEntry) map[string][]string {
	home := map[types.NamespacedName]string{}
	for i := range entries {
		home[types.NamespacedName{Namespace: entries[i].Namespace, Name: entries[i].Name}] = ptr.Deref(entries[i].Spec.SeedName, "")
	}
	users := map[string][]string{}
	for i := range entries {
		entry := &entries[i]
		if target, is := strings.CutPrefix(entry.Name, constants.PrefixSourceBackupEntry); is &&
			home[types.NamespacedName{Namespace: entry.Namespace, Name: target}] != ptr.Deref(entry.Spec.SeedName, "") {
			continue
		}
		users[entry.Spec.BucketName] = append(users[entry.Spec.BucketName], seedsOf(entry.Spec.SeedName, entry.Status.SeedName)...)
	}
	return users
}

// ofExtensions adds the objects of namespace garden that the extensions of Seeds need: for their charts, and for the values
// of these.
func ofExtensions(all seeds, world World) {
	deployments := map[string]*gardencorev1.ControllerDeployment{}
	for i := range world.Deployments {
		deployments[world.Deployments[i].Name] = &world.Deployments[i]
	}
	for i := range world.Installations {
		spec := &world.Installations[i].Spec
		if spec.SeedRef == nil || spec.DeploymentRef == nil || deployments[spec.DeploymentRef.Name] == nil {
			continue
		}
		deployment, g := deployments[spec.DeploymentRef.Name], all.of(spec.SeedRef.Name)
		if helm := deployment.Helm; helm != nil && helm.OCIRepository != nil {
			for _, ref := range []*corev1.LocalObjectReference{helm.OCIRepository.PullSecretRef, helm.OCIRepository.CABundleSecretRef} {
				if ref != nil {
					g.add(readSecret, ref.Name)
				}
			}
		}
		for _, named := range deployment.Resources {
			g.refer(named.ResourceRef.APIVersion, named.ResourceRef.Kind, named.ResourceRef.Name)
		}
	}
}

// OwnSeed returns the name of the Seed whose namespace this is, or an empty text. Only the controller of the namespace counts: the
// name could be that of another namespace.
func OwnSeed(namespace *metav1.PartialObjectMetadata, all []corev1beta1.Seed) string {
	for i := range all {
		if namespace.Name == constants.PrefixSeedNamespace+all[i].Name && metav1.IsControlledBy(namespace, &all[i]) {
			return all[i].Name
		}
	}
	return ""
}

// meta returns the metadata of a Role and its RoleBinding.
func meta(namespace, seed string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: constants.PrefixSeedUser + seed + suffix, Labels: map[string]string{constants.LabelGardenRole: constants.RoleGardenletRights},
	}
}

// Role returns the Role for a Seed.
func Role(namespace, seed string, grants Grants) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: meta(namespace, seed), Rules: grants.Rules()}
}

// Binding returns the RoleBinding for a Seed. In the namespace of the Seed, own is set: its gardenlet has there what ServiceAccounts
// of extensions need, and not only rights to single objects.
func Binding(namespace, seed string, own bool) *rbacv1.RoleBinding {
	made := &rbacv1.RoleBinding{ObjectMeta: meta(namespace, seed)}
	made.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: made.Name}
	if own {
		made.RoleRef.Kind, made.RoleRef.Name = "ClusterRole", namespaceRole
	}
	made.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: constants.PrefixSeedUser + seed}}
	return made
}
