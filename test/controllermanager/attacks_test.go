package controllermanager

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// operation is a request to objects of a Seed. It stores nothing.
type operation struct {
	name string
	// send sends the request for the objects of a Seed.
	send func(g *gardenlets, as client.Client, seed string) error
	// never is set if not even the gardenlet of that Seed may send it.
	never bool
}

// TestGardenletsHarmOnlyTheirSeed checks that the gardenlet of a Seed cannot read, change or create objects of another Seed,
// even if both have Shoots in one project, and that it can do what it needs with its own.
func TestGardenletsHarmOnlyTheirSeed(t *testing.T) {
	g := newGardenlets(t)
	clients := map[string]client.Client{}
	for _, seed := range []string{seedName, evil} {
		clients[seed] = client.NewDryRunClient(g.as(seed))
	}
	for _, operation := range append(append(reads(), writes()...), grabs()...) {
		t.Run(operation.name, func(t *testing.T) {
			g := &gardenlets{g.fixture}
			refused := func(by, of string) {
				t.Helper()
				kit.EventuallyWithin(t, observed, "the gardenlet of Seed "+by+" is refused", func() string {
					err := operation.send(g, clients[by], of)
					if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.seedName") {
						return ""
					}
					return "got " + kit.TextOf(err)
				})
			}
			refused(evil, seedName)
			if operation.never {
				refused(evil, evil)
				return
			}
			kit.Eventually(t, "the own gardenlet is permitted", func() string {
				if err := operation.send(g, clients[seedName], seedName); err != nil {
					return err.Error()
				}
				return ""
			})
		})
	}
}

func merge(content string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(content))
}

const (
	// observed is how long the API servers may take to observe policies and rights.
	observed = 30 * time.Second
	annotate = `{"metadata":{"annotations":{"test":"a"}}}`
	anyName  = ""
)

// listed lists one object by its name, as gardenlet watches it.
func listed(g *gardenlets, as client.Client, list client.ObjectList, meta metav1.ObjectMeta) error {
	return as.List(g.Context(), list, client.InNamespace(meta.Namespace), client.MatchingFields{metav1.ObjectNameField: meta.Name})
}

// reads are reads of objects with keys.
func reads() []operation {
	byName := func(name string, list client.ObjectList, namespace, object string) operation {
		return operation{name: "read " + name, send: func(g *gardenlets, as client.Client, seed string) error {
			return listed(g, as, list, in(namespace, object, seed))
		}}
	}
	all := func(name string, list client.ObjectList, namespace string) operation {
		return operation{name: "list " + name, never: true, send: func(g *gardenlets, as client.Client, _ string) error {
			return as.List(g.Context(), list, client.InNamespace(namespace))
		}}
	}
	token := func(context func(seed string) *securityv1alpha1.ContextObject) func(*gardenlets, client.Client, string) error {
		return func(g *gardenlets, as client.Client, seed string) error {
			request := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ContextObject: context(seed), ExpirationSeconds: ptr.To[int64](3600)}}
			return as.SubResource("token").Create(g.Context(), &securityv1alpha1.WorkloadIdentity{ObjectMeta: in(project, "identity", seed)}, request)
		}
	}
	return []operation{
		byName("backup credentials", &corev1.SecretList{}, "garden", "backup"), byName("DNS credentials", &corev1.SecretList{}, "garden", "dns"),
		byName("pull secret", &corev1.SecretList{}, "garden", "pull"), byName("generated credentials", &corev1.SecretList{}, "garden", "generated-bucket-bucket"),
		byName("resource of the Seed", &corev1.ConfigMapList{}, "garden", "resource"), byName("Secret of a Shoot", &corev1.SecretList{}, project, "secret"),
		byName("ConfigMap of a Shoot", &corev1.ConfigMapList{}, project, "config"),
		byName("WorkloadIdentity of a Shoot", &securityv1alpha1.WorkloadIdentityList{}, project, "identity"),
		{name: "read client CA", send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Get(g.Context(), client.ObjectKey{Namespace: project, Name: "shoot-" + seed + constants.SuffixCAClient}, &corev1beta1.InternalSecret{})
		}},
		{name: "read ShootState", send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Get(g.Context(), client.ObjectKey{Namespace: project, Name: "shoot-" + seed}, &corev1beta1.ShootState{})
		}},
		all("Secrets of garden", &corev1.SecretList{}, "garden"), all("Secrets of a project", &corev1.SecretList{}, project),
		all("all Secrets", &corev1.SecretList{}, anyName), all("all ConfigMaps", &corev1.ConfigMapList{}, anyName),
		all("all InternalSecrets", &corev1beta1.InternalSecretList{}, anyName), all("all ShootStates", &corev1beta1.ShootStateList{}, anyName),
		all("all WorkloadIdentities", &securityv1alpha1.WorkloadIdentityList{}, anyName),
		{name: "request token", send: token(func(string) *securityv1alpha1.ContextObject { return nil })},
		{name: "request token for foreign Shoot", never: true, send: func(g *gardenlets, as client.Client, seed string) error {
			other := map[string]string{seedName: evil, evil: seedName}[seed]
			shoot := &corev1beta1.Shoot{ObjectMeta: in(project, "shoot", other)}
			g.exists(shoot)
			return token(func(string) *securityv1alpha1.ContextObject { return contextOf(shoot) })(g, as, seed)
		}},
		{name: "request token for Shoot", send: func(g *gardenlets, as client.Client, seed string) error {
			shoot := &corev1beta1.Shoot{ObjectMeta: in(project, "shoot", seed)}
			g.exists(shoot)
			return token(func(string) *securityv1alpha1.ContextObject { return contextOf(shoot) })(g, as, seed)
		}},
	}
}

func contextOf(shoot *corev1beta1.Shoot) *securityv1alpha1.ContextObject {
	return &securityv1alpha1.ContextObject{
		Kind: "Shoot", APIVersion: corev1beta1.SchemeGroupVersion.String(), Name: shoot.Name, Namespace: ptr.To(shoot.Namespace), UID: shoot.UID,
	}
}

// writes are writes that the gardenlet of a Seed needs for its own objects.
func writes() []operation {
	patch := func(name string, object func(seed string) client.Object) operation {
		return operation{name: "change " + name, send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Patch(g.Context(), object(seed), merge(annotate))
		}}
	}
	status := func(name, content string, object func(seed string) client.Object) operation {
		return operation{name: "change status of " + name, send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Status().Patch(g.Context(), object(seed), merge(content))
		}}
	}
	const observed = `{"status":{"observedGeneration":1}}`
	shoot := func(seed string) client.Object { return &corev1beta1.Shoot{ObjectMeta: in(project, "shoot", seed)} }
	bucketOf := func(seed string) client.Object { return &corev1beta1.BackupBucket{ObjectMeta: in("", "bucket", seed)} }
	entry := func(seed string) client.Object {
		return &corev1beta1.BackupEntry{ObjectMeta: in(project, "entry", seed)}
	}
	seedOf := func(seed string) client.Object { return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seed}} }
	state := func(seed string) client.Object {
		return &corev1beta1.ShootState{ObjectMeta: in(project, "shoot", seed)}
	}
	ca := func(seed string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "shoot-" + seed + constants.SuffixCACluster}}
	}
	clientCA := func(seed string) client.Object {
		return &corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "shoot-" + seed + constants.SuffixCAClient}}
	}
	generated := func(seed string) client.Object {
		return &corev1.Secret{ObjectMeta: in("garden", "generated-bucket-bucket", seed)}
	}
	remove := func(name string, object func(seed string) client.Object) operation {
		return operation{name: "delete " + name, send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Delete(g.Context(), object(seed))
		}}
	}
	bastion := func(seed string) client.Object {
		return &operationsv1alpha1.Bastion{ObjectMeta: in(project, "bastion", seed)}
	}
	return []operation{
		patch("Bastion", bastion), status("Bastion", observed, bastion),
		patch("Shoot", shoot), status("Shoot", observed, shoot), patch("BackupBucket", bucketOf), status("BackupBucket", observed, bucketOf), remove("BackupBucket", bucketOf),
		patch("BackupEntry", entry), status("BackupEntry", observed, entry), patch("Seed", seedOf), status("Seed", observed, seedOf),
		patch("ShootState", state), remove("ShootState", state), patch("CA bundle", ca), patch("client CA", clientCA),
		patch("generated credentials", generated), remove("generated credentials", generated),
		patch("finalizers of backup credentials", func(seed string) client.Object { return &corev1.Secret{ObjectMeta: in("garden", "backup", seed)} }),
		{name: "change ControllerInstallation", send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Patch(g.Context(), g.installation(seed), merge(annotate))
		}},
		{name: "change status of ControllerInstallation", send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Status().Patch(g.Context(), g.installation(seed), merge(`{"status":{"conditions":[]}}`))
		}},
		{name: "create BackupBucket", send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), bucket(g.uidOf(seed), seed, "backup-"+seed))
		}},
		{name: "create BackupEntry", send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), &corev1beta1.BackupEntry{
				ObjectMeta: in(project, "created", seed),
				Spec:       corev1beta1.BackupEntrySpec{BucketName: in("", "bucket", seed).Name, SeedName: &seed},
			})
		}},
		{name: "create lease", send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.SystemSeedLeaseNamespace, Name: seed}})
		}},
		{name: "write Secret in namespace of Seed", send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + seed, Name: "new"}})
		}},
	}
}

// grabs are requests that make a gardenlet more powerful. None may send them.
func grabs() []operation {
	never := func(name string, send func(g *gardenlets, as client.Client, seed string) error) operation {
		return operation{name: name, never: true, send: send}
	}
	return append(references(), []operation{
		never("trust a CA of its own", func(g *gardenlets, as client.Client, _ string) error {
			auth := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"}}
			return as.Patch(g.Context(), auth, merge(`{"data":{"client-ca-file":"evil"}}`))
		}),
		never("move Shoot", func(g *gardenlets, as client.Client, seed string) error {
			return as.Patch(g.Context(), &corev1beta1.Shoot{ObjectMeta: in(project, "shoot", seed)}, merge(`{"spec":{"seedName":"other"}}`))
		}),
		never("bind Shoot", func(g *gardenlets, as client.Client, seed string) error {
			return as.SubResource("binding").Patch(g.Context(), &corev1beta1.Shoot{ObjectMeta: in(project, "shoot", seed)}, merge(`{"spec":{"seedName":"other"}}`))
		}),
		never("create CA bundle before its Shoot exists", func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "later-" + seed + constants.SuffixCACluster}})
		}),
		never("create client CA before its Shoot exists", func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), &corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "later-" + seed + constants.SuffixCAClient}})
		}),
		never("create another Seed", func(g *gardenlets, as client.Client, _ string) error {
			seed := example(g.fixture, "seed.yaml", &corev1beta1.Seed{})
			seed.Name = "third"
			return as.Create(g.Context(), seed)
		}),
		never("create BackupEntry in the bucket of another Seed", func(g *gardenlets, as client.Client, seed string) error {
			other := map[string]string{seedName: evil, evil: seedName}[seed]
			return as.Create(g.Context(), &corev1beta1.BackupEntry{
				ObjectMeta: in(project, "created", seed),
				Spec:       corev1beta1.BackupEntrySpec{BucketName: in("", "bucket", other).Name, SeedName: &seed},
			})
		}),
		never("create another lease", func(g *gardenlets, as client.Client, _ string) error {
			return as.Create(g.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.SystemSeedLeaseNamespace, Name: "third"}})
		}),
		never("replace shared credentials", func(g *gardenlets, as client.Client, seed string) error {
			return as.Patch(g.Context(), &corev1.Secret{ObjectMeta: in("garden", "backup", seed)}, merge(`{"data":{"key":"ZXZpbA=="}}`))
		}),
		never("install another chart", func(g *gardenlets, as client.Client, seed string) error {
			return as.Patch(g.Context(), g.installation(seed), merge(`{"spec":{"deploymentRef":{"name":"extension-local","resourceVersion":"1"}}}`))
		}),
		never("create Secret in garden", func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), &corev1.Secret{ObjectMeta: in("garden", "new", seed)})
		}),
		never("request serving certificate", func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), certificateRequest(g, seed, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth))
		}),
	}...)
}

// references are changes of references of the own objects to objects of others, for which the controller-manager would grant
// rights.
func references() []operation {
	change := func(name string, object func(seed string) client.Object, content string) operation {
		return operation{name: "refer to others in " + name, never: true, send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Patch(g.Context(), object(seed), merge(content))
		}}
	}
	seedOf := func(seed string) client.Object { return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seed}} }
	const secret = `{"apiVersion":"v1","kind":"Secret","namespace":"garden","name":"pull-other"}`
	return []operation{
		change("Shoot", func(seed string) client.Object { return &corev1beta1.Shoot{ObjectMeta: in(project, "shoot", seed)} },
			`{"spec":{"resources":[{"name":"x","resourceRef":{"apiVersion":"v1","kind":"Secret","name":"infra-credentials"}}]}}`),
		change("Bastion", func(seed string) client.Object {
			return &operationsv1alpha1.Bastion{ObjectMeta: in(project, "bastion", seed)}
		}, `{"spec":{"ingress":[{"ipBlock":{"cidr":"0.0.0.0/0"}}]}}`),
		change("BackupBucket", func(seed string) client.Object { return &corev1beta1.BackupBucket{ObjectMeta: in("", "bucket", seed)} },
			`{"spec":{"credentialsRef":`+secret+`}}`),
		change("BackupEntry", func(seed string) client.Object {
			return &corev1beta1.BackupEntry{ObjectMeta: in(project, "entry", seed)}
		},
			`{"spec":{"bucketName":"bucket-local-other"}}`),
		change("backup of Seed", seedOf, `{"spec":{"backup":{"credentialsRef":`+secret+`}}}`),
		change("DNS of Seed", seedOf, `{"spec":{"dns":{"provider":{"credentialsRef":`+secret+`}}}}`),
		change("default domains of Seed", seedOf, `{"spec":{"dns":{"defaults":[{"type":"local","domain":"a.example.org","credentialsRef":`+secret+`}]}}}`),
		change("resources of Seed", seedOf, `{"spec":{"resources":[{"name":"x","resourceRef":{"apiVersion":"v1","kind":"Secret","name":"pull-other"}}]}}`),
		{name: "refer to others in new BackupBucket", never: true, send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), bucket(g.uidOf(seed), seed, "infra-credentials"))
		}},
		{name: "take the BackupBucket of another Seed", never: true, send: func(g *gardenlets, as client.Client, seed string) error {
			return as.Create(g.Context(), bucket(g.uidOf(seedName), seed, "backup-"+seed))
		}},
	}
}

// certificateRequest returns a request for a certificate of a Seed's gardenlet.
func certificateRequest(g *gardenlets, seed, signer string, usage certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	g.Helper()
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	kit.Must(g, err)
	private, err := keyutil.ParsePrivateKeyPEM(key)
	kit.Must(g, err)
	request, err := cert.MakeCSR(private, subjectOf(seed), nil, nil)
	kit.Must(g, err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "seed-csr-"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: signer, Usages: []certificatesv1.KeyUsage{usage}},
	}
}
