package controllermanager

import (
	"crypto/x509/pkix"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
)

const (
	project = "garden-dev"
	// evil is a Seed whose gardenlet is compromised. It has a Shoot in the same project as the Seed seedName.
	evil = "evil"
)

// gardenlets is a garden with two Seeds. Each has a Shoot, backups, an extension, and all objects that belong to them or to
// which they refer, named after the Seed. The gardenlets have the rights that gardenlet's chart and the controller-manager
// grant them.
type gardenlets struct{ *fixture }

func newGardenlets(t *testing.T) *gardenlets {
	t.Helper()
	return newGardenletsWith(t, "monitorPeriod: 1h")
}

// newGardenletsWith is newGardenlets with settings of the controllers of Seeds.
func newGardenletsWith(t *testing.T, seeds string) *gardenlets {
	t.Helper()
	g := &gardenlets{newFixture(t)}
	g.configure(seeds)
	for _, name := range []string{constants.SystemPublicNamespace, constants.SystemSeedLeaseNamespace, project} {
		if object := (&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); !g.exists(object) {
			g.create(object)
		}
	}
	charts.Apply(t, g.client, "gardenlet", map[string]any{
		"mode": "garden", "seeds": []any{map[string]any{"name": evil}, map[string]any{"name": seedName}},
	}, charts.IsRight)
	g.create(&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To(project)}})
	g.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "infra-credentials"}})
	for _, seed := range []string{seedName, evil} {
		g.createSeed(seed)
		g.createShoot(seed)
		g.createBackups(seed)
		g.createBastion(seed)
		g.createExtension(seed)
	}
	g.start()
	g.eventuallyInstalled("extension-" + seedName)
	return g
}

// in returns the metadata of an object of a Seed.
func in(namespace, name, seed string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + seed}
}

func (g *gardenlets) createSeed(name string) {
	g.Helper()
	seed := example(g.fixture, "seed.yaml", &corev1beta1.Seed{})
	seed.Name, seed.Labels = name, map[string]string{"name": name}
	seed.Spec.Backup.CredentialsRef.Name, seed.Spec.DNS.Provider.CredentialsRef.Name = "backup-"+name, "dns-"+name
	seed.Spec.Resources[0].ResourceRef.Name = "resource-" + name
	seed.Spec.DNS.Defaults = nil
	g.create(seed)
	for _, secret := range []string{"backup", "dns", "pull"} {
		g.create(&corev1.Secret{ObjectMeta: in("garden", secret, name), Data: map[string][]byte{"key": []byte(secret)}})
	}
	g.create(&corev1.ConfigMap{ObjectMeta: in("garden", "resource", name)})
	g.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "domain-" + name, Labels: map[string]string{constants.LabelGardenRole: constants.RoleDefaultDomain}},
	})
}

func (g *gardenlets) createShoot(seed string) {
	g.Helper()
	named := func(apiVersion, kind, name string) corev1beta1.NamedResourceReference {
		name += "-" + seed
		return corev1beta1.NamedResourceReference{Name: name, ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}}
	}
	shoot := example(g.fixture, "shoot.yaml", &corev1beta1.Shoot{})
	shoot.ObjectMeta = in(project, "shoot", seed)
	shoot.Spec.SeedName, shoot.Spec.DNS, shoot.Spec.Extensions = &seed, nil, nil
	shoot.Spec.Resources = []corev1beta1.NamedResourceReference{
		named("v1", "Secret", "secret"), named("v1", "ConfigMap", "config"), named(securityv1alpha1.SchemeGroupVersion.String(), "WorkloadIdentity", "identity"),
	}
	g.create(shoot)
	name := shoot.Name
	identity := &securityv1alpha1.WorkloadIdentity{ObjectMeta: in(project, "identity", seed)}
	identity.Spec.Audiences, identity.Spec.TargetSystem.Type = []string{"cloud"}, "local"
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: in(project, "secret", seed)}, &corev1.ConfigMap{ObjectMeta: in(project, "config", seed)}, identity,
		&corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name + constants.SuffixCAClient}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name + constants.SuffixCACluster}},
		&corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{
			Namespace: project, Name: name, Annotations: map[string]string{constants.AnnotationConfirmationDeletion: "true"},
		}},
	} {
		g.create(object)
	}
}

func (g *gardenlets) createBackups(seed string) {
	g.Helper()
	g.create(bucket("bucket-"+seed, seed, "backup-"+seed))
	g.create(&corev1beta1.BackupEntry{
		ObjectMeta: in(project, "entry", seed), Spec: corev1beta1.BackupEntrySpec{BucketName: "bucket-" + seed, SeedName: &seed},
	})
	g.create(&corev1.Secret{ObjectMeta: in("garden", "generated-bucket-bucket", seed)})
}

func (g *gardenlets) createBastion(seed string) {
	g.Helper()
	bastion := &operationsv1alpha1.Bastion{ObjectMeta: in(project, "bastion", seed)}
	bastion.Spec.ShootRef.Name, bastion.Spec.SeedName, bastion.Spec.ProviderType = "shoot-"+seed, &seed, ptr.To("local")
	bastion.Spec.SSHPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKxkQ0rGTrkHVWuRYhQ2bkd4kRz1Lx9nR7X4JfVvXy0v dev@example.org"
	bastion.Spec.Ingress = []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}
	g.create(bastion)
}

func bucket(name, seed, credentials string) *corev1beta1.BackupBucket {
	return &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.BackupBucketSpec{
		Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, SeedName: &seed,
		CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: credentials},
	}}
}

// createExtension registers an extension that is installed only in one Seed.
func (g *gardenlets) createExtension(seed string) {
	g.Helper()
	name := "extension-" + seed
	g.create(&gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Helm: &gardencorev1.HelmControllerDeployment{
		OCIRepository: &gardencorev1.OCIRepository{
			Ref: ptr.To("registry.example.org/chart:v1"), PullSecretRef: &corev1.LocalObjectReference{Name: "pull-" + seed},
		},
	}})
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	registration.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{
		DeploymentRefs: []corev1beta1.DeploymentRef{{Name: name}}, Policy: ptr.To(corev1beta1.ControllerDeploymentPolicyAlways),
		SeedSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": seed}},
	}
	g.create(registration)
}

// as returns a client of the gardenlet of a Seed.
func (g *gardenlets) as(seed string) client.Client {
	g.Helper()
	config := g.plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: constants.PrefixSeedUser + seed, Groups: []string{constants.SeedsGroup, "system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: g.client.Scheme(), Mapper: g.client.RESTMapper()})
	kit.Must(g, err)
	return c
}

// uidOf returns the UID of a Seed, which is the name of its BackupBucket.
func (g *gardenlets) uidOf(seed string) string {
	g.Helper()
	found := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seed}}
	g.exists(found)
	return string(found.UID)
}

// installation returns the installation of the extension of a Seed.
func (g *gardenlets) installation(seed string) *corev1beta1.ControllerInstallation {
	g.Helper()
	var list corev1beta1.ControllerInstallationList
	found := &corev1beta1.ControllerInstallation{}
	kit.EventuallyTrue(g, "the extension is installed in Seed "+seed, func() bool {
		kit.Must(g, g.client.List(g.Context(), &list, client.MatchingFields{"spec.seedRef.name": seed}))
		if len(list.Items) > 0 {
			found = &list.Items[0]
		}
		return len(list.Items) > 0
	})
	return found
}

// subjectOf returns the subject of the certificate of a Seed's gardenlet.
func subjectOf(seed string) *pkix.Name {
	return &pkix.Name{CommonName: constants.PrefixSeedUser + seed, Organization: []string{constants.SeedsGroup}}
}
