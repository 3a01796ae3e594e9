package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

const (
	// compromised is a Seed whose gardenlet acts for someone else. It has no Shoots.
	compromised = "compromised"
	// neighbor is a Seed without a gardenlet, so that nothing acts on its backups.
	neighbor = "neighbor"
)

// isolated checks that the gardenlet of another Seed, which has the rights that gardenlet's chart grants, gets nothing of the fleet's Shoot
// and of the backups of a third Seed.
func (c *cluster) isolated(f *fleet.Fleet) {
	c.t.Helper()
	must(c.t, securityv1alpha1.AddToScheme(f.Scheme()))
	shoot := c.shoot(f)
	victims := c.victims(f, shoot)
	own, evil := c.gardenlet(f, fleet.SeedName), c.gardenlet(f, compromised)
	must(c.t, own.Get(c.ctx, client.ObjectKeyFromObject(victims.authority), &corev1beta1.InternalSecret{}))
	for _, attack := range victims.attacks(c.ctx, evil) {
		err := attack.try()
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			c.t.Errorf("%s: %v", attack.what, err)
			continue
		}
		c.t.Logf("refused: %s: %v", attack.what, err)
	}
	c.unknownAuthority(f)
}

// victims are the objects of others.
type victims struct {
	shoot     *corev1beta1.Shoot
	authority *corev1beta1.InternalSecret
	identity  *securityv1alpha1.WorkloadIdentity
	// secret is a Secret of the Shoot's project that no Shoot uses.
	secret *corev1.Secret
	// bucket is empty; entry is in another one.
	bucket *corev1beta1.BackupBucket
	entry  *corev1beta1.BackupEntry
}

// victims creates those objects that the fleet does not have, until the test ends.
func (c *cluster) victims(f *fleet.Fleet, shoot *corev1beta1.Shoot) *victims {
	c.t.Helper()
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	v := &victims{
		shoot: shoot, authority: &corev1beta1.InternalSecret{ObjectMeta: in(shoot.Namespace, shoot.Name+constants.SuffixCAClient)},
		identity: &securityv1alpha1.WorkloadIdentity{ObjectMeta: in(shoot.Namespace, "cloud"), Spec: securityv1alpha1.WorkloadIdentitySpec{
			Audiences: []string{"cloud"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"},
		}},
		secret: &corev1.Secret{ObjectMeta: in(shoot.Namespace, "account")},
		bucket: &corev1beta1.BackupBucket{ObjectMeta: in("", "spare"), Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, SeedName: ptr.To(neighbor),
			CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: shoot.Namespace, Name: "account"},
		}},
		entry: &corev1beta1.BackupEntry{ObjectMeta: in(shoot.Namespace, "entry"), Spec: corev1beta1.BackupEntrySpec{
			BucketName: "bucket", SeedName: ptr.To(neighbor),
		}},
	}
	used, seed := v.bucket.DeepCopy(), &corev1beta1.Seed{}
	used.Name = v.entry.Spec.BucketName
	must(c.t, f.Get(c.ctx, client.ObjectKey{Name: fleet.SeedName}, seed))
	for _, object := range []client.Object{
		&corev1beta1.Seed{ObjectMeta: in("", compromised), Spec: seed.Spec}, &corev1beta1.Seed{ObjectMeta: in("", neighbor), Spec: seed.Spec}, v.identity, v.secret, v.bucket, used, v.entry,
	} {
		must(c.t, client.IgnoreAlreadyExists(f.Create(c.ctx, object)))
		c.t.Cleanup(func() { must(c.t, client.IgnoreNotFound(f.Delete(context.Background(), object))) })
	}
	return v
}

// attack is something that the gardenlet of another Seed must not be able to do.
type attack struct {
	what string
	try  func() error
}

// attacks returns what someone with the credentials of another gardenlet tries first.
func (v *victims) attacks(ctx context.Context, evil client.Client) []attack {
	key := client.ObjectKeyFromObject(v.shoot)
	state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	trust := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"}}
	merge := func(object client.Object, patch string) func() error {
		return func() error {
			return evil.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))
		}
	}
	return []attack{
		{"read the authority of the Shoot's clients", func() error {
			return evil.Get(ctx, client.ObjectKeyFromObject(v.authority), &corev1beta1.InternalSecret{})
		}},
		{"read the state of the Shoot", func() error { return evil.Get(ctx, key, state) }},
		{"delete the state of the Shoot", func() error { return evil.Delete(ctx, state) }},
		{"delete a BackupEntry", func() error { return evil.Delete(ctx, v.entry) }},
		{"delete a BackupBucket", func() error { return evil.Delete(ctx, v.bucket) }},
		{"list the Secrets of the garden", func() error { return evil.List(ctx, &corev1.SecretList{}, client.InNamespace("garden")) }},
		{"get a token of the Shoot's identity", func() error {
			return evil.SubResource("token").Create(ctx, v.identity, &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{
				ContextObject: &securityv1alpha1.ContextObject{
					Kind: "Shoot", APIVersion: corev1beta1.SchemeGroupVersion.String(), Name: key.Name, Namespace: &key.Namespace, UID: v.shoot.UID,
				},
			}})
		}},
		{"move the Shoot to its Seed", merge(v.shoot.DeepCopy(), `{"spec":{"seedName":"`+compromised+`"}}`)},
		{"let the Shoot name a Secret", merge(v.shoot.DeepCopy(),
			`{"spec":{"resources":[{"name":"account","resourceRef":{"apiVersion":"v1","kind":"Secret","name":"account"}}]}}`)},
		{"read a Secret of the Shoot's project", func() error { return evil.Get(ctx, client.ObjectKeyFromObject(v.secret), &corev1.Secret{}) }},
		{"add an authority that the garden trusts", merge(trust, `{"data":{"client-ca-file":""}}`)},
	}
}

// gardenlet returns the client of a gardenlet in the garden.
func (c *cluster) gardenlet(f *fleet.Fleet, seed string) client.Client {
	c.t.Helper()
	config, err := base.Config()
	must(c.t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: constants.PrefixSeedUser + seed, Groups: []string{constants.SeedsGroup, "system:authenticated"}}
	gardenlet, err := client.New(config, client.Options{Scheme: f.Scheme(), Mapper: f.RESTMapper()})
	must(c.t, err)
	return gardenlet
}

// unknownAuthority connects to the garden's API server without its proxy, as a Pod of the garden's cluster can, with a certificate of
// system:masters that no trusted authority has signed.
func (c *cluster) unknownAuthority(f *fleet.Fleet) {
	c.t.Helper()
	service := &corev1.Service{}
	must(c.t, f.Get(c.ctx, client.ObjectKey{Namespace: "garden-system", Name: "gardener-apiserver"}, service))
	authority, err := landscape.NewAuthority("unknown")
	must(c.t, err)
	issued, err := authority.Issue("admin", []string{"system:masters"}, nil)
	must(c.t, err)
	pair, err := tls.X509KeyPair(issued.Certificate, issued.Key)
	must(c.t, err)
	direct := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true,
	}}}
	response, err := direct.Get(fmt.Sprintf("https://%s/apis/core.gardener.cloud/v1beta1/internalsecrets", service.Spec.ClusterIP))
	must(c.t, err)
	must(c.t, response.Body.Close())
	if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
		c.t.Errorf("a certificate of an unknown authority gets the status %d", response.StatusCode)
	}
	c.t.Logf("refused: list InternalSecrets with a certificate of an unknown authority: %s", response.Status)
}
