package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestKubeconfigs logs in to a real kube-apiserver that trusts the client CA of a Shoot, as an administrator and as a
// viewer.
func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, unique("garden-kubeconfigs"), "target")
	authority, key := newCA(t)
	config := startTarget(t, authority)

	request := &authenticationv1alpha1.AdminKubeconfigRequest{}
	if err := c.SubResource("adminkubeconfig").Create(t.Context(), shoot, request); !apierrors.IsNotFound(err) && !apierrors.IsInternalError(err) {
		t.Errorf("a kubeconfig of a Shoot without certificates: %v", err)
	}
	kit.Must(t, c.Create(t.Context(), &gardencorev1beta1.InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: "target.ca-client"}, Data: map[string][]byte{"ca.crt": authority, "ca.key": key},
	}))
	kit.Must(t, c.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: "target.ca-cluster"}, Data: map[string]string{"ca.crt": string(config.CAData)},
	}))
	if err := c.SubResource("adminkubeconfig").Create(t.Context(), shoot, request); !apierrors.IsInvalid(err) {
		t.Errorf("a kubeconfig of a Shoot without addresses: %v, want Invalid", err)
	}
	shoot.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://" + config.Host}, {Name: "other", URL: "https://other"}}
	kit.Must(t, c.Status().Update(t.Context(), shoot))

	request.Spec.ExpirationSeconds = ptr(int64(599))
	if err := c.SubResource("adminkubeconfig").Create(t.Context(), shoot, request); !apierrors.IsInvalid(err) {
		t.Errorf("a validity of 599 s: %v, want Invalid", err)
	}
	request.Spec.ExpirationSeconds = ptr(int64(1 << 31))
	kit.Must(t, c.SubResource("adminkubeconfig").Create(t.Context(), shoot, request))
	if left := time.Until(request.Status.ExpirationTimestamp.Time); left > 24*time.Hour || left < 23*time.Hour {
		t.Errorf("the validity is %s, want the longest allowed one", left)
	}
	dry := request.DeepCopy()
	dry.Status.Kubeconfig = nil
	kit.Must(t, c.SubResource("adminkubeconfig").Create(t.Context(), shoot, dry, client.DryRunAll))
	if len(dry.Status.Kubeconfig) > 0 || dry.Status.ExpirationTimestamp.IsZero() {
		t.Errorf("a dry run issues a kubeconfig of %d bytes that expires at %s", len(dry.Status.Kubeconfig), dry.Status.ExpirationTimestamp)
	}
	admin := login(t, request.Status.Kubeconfig)
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
	if _, err := admin.CoreV1().ConfigMaps("default").Create(t.Context(), probe, metav1.CreateOptions{}); err != nil {
		t.Errorf("an administrator cannot write: %v", err)
	}

	// An equal certificate whose validity has ended.
	old, err := kubeconfig.Sign(kubeconfig.Authority{Certificate: authority, Key: key},
		kubeconfig.Subject{User: "gardener.cloud:admin:late", Group: "gardener.cloud:system:admins"}, time.Hour, time.Now().Add(-time.Hour-time.Minute))
	kit.Must(t, err)
	encoded, err := kubeconfig.Build("late", []kubeconfig.Address{{Name: "external", URL: "https://" + config.Host, CA: config.CAData}}, old)
	kit.Must(t, err)
	if _, err := login(t, encoded).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("an expired certificate: %v, want Unauthorized", err)
	}

	asViewer := &authenticationv1alpha1.ViewerKubeconfigRequest{}
	kit.Must(t, c.SubResource("viewerkubeconfig").Create(t.Context(), shoot, asViewer))
	viewer := login(t, asViewer.Status.Kubeconfig)
	if _, err := viewer.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a viewer cannot read: %v", err)
	}
	if _, err := viewer.CoreV1().ConfigMaps("default").Create(t.Context(), probe, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer writes: %v, want Forbidden", err)
	}
}

func newCA(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(t, err)
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "ca-client"}, private)
	kit.Must(t, err)
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	kit.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw}), key
}

// startTarget starts a kube-apiserver that trusts a client CA, with the permissions that gardenlet grants to the groups. It
// has its own data. With the data of the garden, it would find the garden's APIServices, which it cannot reach, and report
// them as unavailable.
func startTarget(t *testing.T, authority []byte) *rest.Config {
	t.Helper()
	g := shared.Get(t)
	own, err := os.ReadFile(filepath.Join(g.Dir(), "certs", "client-cert-auth-ca.crt"))
	kit.Must(t, err)
	bundle := filepath.Join(t.TempDir(), "clients.crt")
	kit.Must(t, os.WriteFile(bundle, append(own, authority...), 0o600))
	server, err := g.ControlPlane.StartAPIServer(t.Context(), "target", g.EtcdURL(), map[string][]string{
		"client-ca-file": {bundle}, "etcd-prefix": {"/target"},
	})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, server.Kill()) })
	c, err := client.New(server.Config(), client.Options{})
	kit.Must(t, err)
	// Without a controller manager, the role view is empty, because it aggregates this role.
	for group, role := range map[string]string{
		"gardener.cloud:system:admins": "cluster-admin", "gardener.cloud:system:viewers": "system:aggregate-to-view",
	} {
		kit.Must(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: group}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}))
	}
	return server.Config()
}

func login(t *testing.T, encoded []byte) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(encoded)
	kit.Must(t, err)
	c, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	return c
}

type tokenClaims struct {
	jwt.Claims

	Named map[string]any `json:"gardener.cloud"`
}

func TestWorkloadIdentityTokens(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, "garden-identities", "user")
	project := exampleOf(t, "Project", "", "ident", &gardencorev1beta1.Project{})
	project.Spec.Namespace = ptr("garden-identities")
	kit.Must(t, c.Create(t.Context(), project))
	identity := exampleOf(t, "WorkloadIdentity", "garden-identities", "identity", &securityv1alpha1.WorkloadIdentity{})
	kit.Must(t, c.Create(t.Context(), identity))
	if want := "gardener.cloud:workloadidentity:garden-identities:identity:" + string(identity.UID); identity.Status.Sub != want {
		t.Errorf("sub %q, want %q", identity.Status.Sub, want)
	}

	reference := &securityv1alpha1.ContextObject{
		APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: &shoot.Namespace, Name: shoot.Name, UID: shoot.UID,
	}
	request := func(c client.Client, object *securityv1alpha1.ContextObject) (*tokenClaims, error) {
		asked := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ContextObject: object, ExpirationSeconds: ptr(int64(7200))}}
		if err := c.SubResource("token").Create(t.Context(), identity, asked); err != nil {
			return nil, err
		}
		token, err := jwt.ParseSigned(asked.Status.Token, []jose.SignatureAlgorithm{jose.ES256})
		kit.Must(t, err)
		claims := &tokenClaims{}
		kit.Must(t, token.UnsafeClaimsWithoutVerification(claims)) // the tests of the signer cover the signature
		return claims, nil
	}
	dry := &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: ptr(int64(7200))}}
	kit.Must(t, c.SubResource("token").Create(t.Context(), identity, dry, client.DryRunAll))
	if dry.Status.Token != "" || dry.Status.ExpirationTimestamp.IsZero() {
		t.Errorf("a dry run issues a token of %d bytes that expires at %s", len(dry.Status.Token), dry.Status.ExpirationTimestamp)
	}
	claims, err := request(c, reference)
	kit.Must(t, err)
	if claims.Issuer != garden.Issuer || claims.Subject != identity.Status.Sub || *claims.Expiry-*claims.IssuedAt != 7200 {
		t.Errorf("claims %v", claims)
	}
	if named := claims.Named; len(named) != 1 {
		t.Errorf("only gardenlets may name an object, but the token names %v", named)
	}

	config := shared.Get(t).Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "gardener.cloud:system:seed:local", Groups: []string{"gardener.cloud:system:seeds", "system:masters"}}
	gardenlet, err := client.New(config, client.Options{Scheme: c.Scheme()})
	kit.Must(t, err)
	claims, err = request(gardenlet, reference)
	kit.Must(t, err)
	named := claims.Named
	if named["shoot"] == nil || named["project"] == nil || named["seed"] != nil {
		t.Errorf("the token of a gardenlet names %v", named)
	}
	reference.UID = "another"
	if _, err := request(gardenlet, reference); !apierrors.IsBadRequest(err) {
		t.Errorf("another UID: %v, want BadRequest", err)
	}
}
