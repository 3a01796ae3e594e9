package controllermanager

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestSeeds checks what a new Seed gets from the garden: its namespace with copies of Secrets, approved certificates, and the
// condition of its backups.
func TestSeeds(t *testing.T) {
	g := newGardenletsWith(t, "monitorPeriod: 2s, shootMonitorPeriod: 1s")
	for name, run := range map[string]func(*gardenlets){
		"namespace": (*gardenlets).haveNamespaces, "copies": (*gardenlets).copiesFollow, "certificates": (*gardenlets).getCertificates, "backups": (*gardenlets).sumUpBackups,
		"silent": (*gardenlets).areSilent,
	} {
		t.Run(name, func(t *testing.T) {
			with := *g.fixture
			with.T = t
			run(&gardenlets{&with})
		})
	}
}

// haveNamespaces checks that each Seed owns its namespace, in which only its gardenlet has rights.
func (g *gardenlets) haveNamespaces() {
	for _, name := range []string{seedName, evil} {
		seed, namespace := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-" + name}}
		g.exists(seed)
		kit.EventuallyTrue(g, "the Seed owns its namespace", func() bool {
			return g.exists(namespace) && metav1.IsControlledBy(namespace, seed) && namespace.Labels[constants.LabelGardenRole] == constants.RoleSeed
		})
		kit.Change(g, g.client, namespace, func() { namespace.Labels[constants.LabelGardenRole] = "other" })
		kit.EventuallyTrue(g, "the label is restored", func() bool {
			return g.exists(namespace) && namespace.Labels[constants.LabelGardenRole] == constants.RoleSeed
		})
		kit.Eventually(g, "the gardenlet may use the namespace", func() string {
			return kit.TextOf(g.as(name).List(g.Context(), &corev1.SecretList{}, client.InNamespace(namespace.Name)))
		})
	}
	if err := g.as(evil).List(g.Context(), &corev1.SecretList{}, client.InNamespace("seed-"+seedName)); err == nil {
		g.Error("a gardenlet can read the namespace of another Seed")
	}
}

// copiesFollow checks that the Secrets with a role are copied to the namespaces of Seeds, and follow their originals.
func (g *gardenlets) copiesFollow() {
	copied := func(key string) {
		g.Helper()
		for _, seed := range []string{seedName, evil} {
			kit.Eventually(g, "the Secrets are copied", func() string {
				var secrets corev1.SecretList
				if err := g.as(seed).List(g.Context(), &secrets, client.InNamespace("seed-"+seed), client.HasLabels{constants.LabelGardenRole}); err != nil {
					return err.Error()
				}
				var found []string
				for _, secret := range secrets.Items {
					found = append(found, secret.Name+"="+string(secret.Data["key"]))
				}
				if want := []string{"domain-evil=" + key, "domain-local="}; !slices.Equal(found, want) && (key != "-" || len(found) != 1) {
					return fmt.Sprintf("got %q, want %q", found, want)
				}
				return ""
			})
		}
	}
	pull := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "not-copied", Labels: map[string]string{constants.LabelGardenRole: constants.RoleHelmPullSecret}}}
	g.create(pull)
	copied("")
	original := &corev1.Secret{ObjectMeta: in("garden", "domain", evil)}
	g.exists(original)
	kit.Change(g, g.client, original, func() { original.Data = map[string][]byte{"key": []byte("new")} })
	copied("new")
	changed := &corev1.Secret{ObjectMeta: in("seed-"+evil, "domain", evil)}
	g.exists(changed)
	kit.Change(g, g.client, changed, func() { changed.Data = nil })
	copied("new")
	g.delete(changed)
	copied("new")
	g.delete(original)
	copied("-")
}

// getCertificates checks that a bootstrap token gets the certificate of the Seed that it names, and a gardenlet its own one.
func (g *gardenlets) getCertificates() {
	g.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-abcdef"}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "description": "for Seed " + seedName},
	})
	config := g.plane.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", "system:authenticated"}}
	token, err := client.New(config, client.Options{Scheme: g.client.Scheme(), Mapper: g.client.RESTMapper()})
	kit.Must(g, err)
	for name, test := range map[string]struct {
		as   client.Client
		seed string
		want certificatesv1.RequestConditionType
	}{
		"bootstrap":          {token, seedName, certificatesv1.CertificateApproved},
		"token of another":   {token, evil, certificatesv1.CertificateDenied},
		"renewal":            {g.as(seedName), seedName, certificatesv1.CertificateApproved},
		"renewal of another": {g.as(evil), seedName, certificatesv1.CertificateDenied},
	} {
		request := certificateRequest(g, test.seed, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.UsageClientAuth)
		request.Spec.Usages = append(request.Spec.Usages, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment)
		kit.Must(g, test.as.Create(g.Context(), request))
		kit.Eventually(g, name+" is "+string(test.want), func() string {
			if g.exists(request); len(request.Status.Conditions) == 1 && request.Status.Conditions[0].Type == test.want {
				return ""
			}
			return fmt.Sprintf("the conditions are %+v", request.Status.Conditions)
		})
	}
}

// areSilent checks that the conditions of a Seed whose gardenlet does not renew its Lease, and those of its Shoots, become Unknown.
func (g *gardenlets) areSilent() {
	shoot, seed := &corev1beta1.Shoot{ObjectMeta: in(project, "shoot", evil)}, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: evil}}
	managed := g.expires(seed)
	g.exists(shoot)
	changed := client.MergeFrom(shoot.DeepCopy())
	shoot.Status.SeedName = ptr.To(evil)
	kit.Must(g, g.client.Status().Patch(g.Context(), shoot, changed))
	unknown := func(all []corev1beta1.Condition, kind corev1beta1.ConditionType) bool {
		condition := corev1beta1.FindCondition(all, kind)
		return condition != nil && condition.Status == corev1beta1.ConditionUnknown && condition.Reason == "StatusUnknown"
	}
	kit.EventuallyTrue(g, "the gardenlet is not known to be ready", func() bool {
		return g.exists(seed) && unknown(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	})
	kit.EventuallyTrue(g, "the conditions of the Shoot are Unknown", func() bool {
		return g.exists(shoot) && unknown(shoot.Status.Conditions, corev1beta1.ShootControlPlaneHealthy) &&
			unknown(shoot.Status.Constraints, corev1beta1.ShootHibernationPossible)
	})
	kit.EventuallyTrue(g, "the ManagedSeed is reconciled, because the certificate of its gardenlet has expired", func() bool {
		return g.exists(managed) && managed.Generation > 1
	})
}

// expires makes a Seed a ManagedSeed whose gardenlet has a certificate that has expired.
func (g *gardenlets) expires(seed *corev1beta1.Seed) *seedmanagementv1alpha1.ManagedSeed {
	g.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(g, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "seedmanagement", "managedseed.yaml"))
	kit.Must(g, err)
	managed := &seedmanagementv1alpha1.ManagedSeed{}
	kit.Must(g, yaml.UnmarshalStrict(text, managed))
	managed.Name = seed.Name
	g.create(managed)
	expired := []byte(`{"status":{"clientCertificateExpirationTimestamp":"2026-01-01T00:00:00Z"}}`)
	kit.Must(g, g.client.Status().Patch(g.Context(), seed, client.RawPatch(types.MergePatchType, expired)))
	return managed
}

// sumUpBackups checks that the condition of a Seed follows its BackupBucket.
func (g *gardenlets) sumUpBackups() {
	seed, bucket := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}, &corev1beta1.BackupBucket{ObjectMeta: in("", "bucket", seedName)}
	eventually := func(want string) {
		g.Helper()
		kit.Eventually(g, "BackupBucketsReady is "+want, func() string {
			g.exists(seed)
			condition := corev1beta1.FindCondition(seed.Status.Conditions, corev1beta1.SeedBackupBucketsReady)
			if condition == nil || string(condition.Status)+" "+condition.Reason != want {
				return fmt.Sprintf("the conditions are %+v", seed.Status.Conditions)
			}
			return ""
		})
	}
	eventually("True BackupBucketsAvailable")
	g.exists(bucket)
	bucket.Status.LastError = &corev1beta1.LastError{Description: "no access"}
	kit.WriteStatus(g, g.client, bucket)
	eventually("False BackupBucketsError")
	bucket.Status.LastError = nil
	kit.WriteStatus(g, g.client, bucket)
	eventually("True BackupBucketsAvailable")
}
