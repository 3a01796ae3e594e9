package shoot

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// managedURL is the managed issuer of the Shoot of the tests.
const managedURL = "https://discovery.example.org/projects/dev/shoots/2f4c5f6a/issuer"

// withIssuer makes a Shoot request the managed issuer.
func withIssuer(in *Inputs) {
	in.IssuerHost = "discovery.example.org"
	metav1.SetMetaDataAnnotation(&in.Shoot.ObjectMeta, constants.AnnotationAuthenticationIssuer, issuer.Managed)
}

// accountKey returns a new key for tokens, and its ID.
func accountKey(t *testing.T) (secrets.Secret, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	id, err := issuer.KeyID(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return secrets.Secret{Name: "service-account-key-1", Data: secrets.Material{secrets.KeyRSA: text}}, id
}

// setKeys sets the keys of tokens: those that are accepted, the current one first.
func (in *Inputs) setKeys(accepted ...secrets.Secret) {
	item := in.Secrets[constants.SecretNameServiceAccountKey]
	item.Current, item.Active, item.Old = accepted[0], accepted[0], nil
	if len(accepted) > 1 {
		item.Active, item.Old = accepted[1], &accepted[1]
	}
	in.Secrets[constants.SecretNameServiceAccountKey] = item
}

// keyIDs returns the IDs of the keys in a Secret with documents.
func keyIDs(t *testing.T, secret *corev1.Secret) (ids []string) {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(secret.Data[issuer.KeyKeys], &set); err != nil {
		t.Fatal(err)
	}
	for _, key := range set.Keys {
		ids = append(ids, key.KeyID)
	}
	return ids
}

// TestManagedIssuer checks that the API server issues tokens for the managed issuer and accepts those of earlier issuers, and that users see it.
func TestManagedIssuer(t *testing.T) {
	in := up(t, withIssuer, func(in *Inputs) {
		in.Shoot.Spec.Kubernetes.KubeAPIServer.ServiceAccountConfig = &corev1beta1.ServiceAccountConfig{AcceptedIssuers: []string{"https://old.example.org"}}
	})
	var flags []string
	for _, bundle := range planOf(t, in).Bundles {
		for _, object := range bundle.Objects {
			if deployment, is := object.(*appsv1.Deployment); is && bundle.Name == bundleAPIServer {
				flags = slices.DeleteFunc(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args), func(flag string) bool {
					return !strings.HasPrefix(flag, "--service-account-issuer=") && !strings.HasPrefix(flag, "--service-account-jwks-uri=")
				})
			}
		}
	}
	if want := []string{
		"--service-account-issuer=" + managedURL, "--service-account-issuer=https://old.example.org",
		"--service-account-issuer=https://api.one.dev.internal.example.org", "--service-account-jwks-uri=" + managedURL + "/jwks",
	}; !slices.Equal(flags, want) {
		t.Errorf("the flags are %q, want %q", flags, want)
	}
	if address := in.advertised()[1]; address.Name != constants.AdvertisedAddressServiceAccountIssuer || address.URL != managedURL {
		t.Errorf("the address is %v", address)
	}
	for name, change := range map[string]func(*Inputs){
		"another value": func(in *Inputs) { in.Shoot.Annotations[constants.AnnotationAuthenticationIssuer] = "other" },
		"no annotation": func(in *Inputs) { in.Shoot.Annotations = nil },
	} {
		if in := up(t, withIssuer, change); in.managedIssuer() != "" || in.lacksIssuer() != "" {
			t.Errorf("%s: the issuer is %q, %s", name, in.managedIssuer(), in.lacksIssuer())
		}
	}
}

// TestIssuerDocuments checks when documents are written, and that they have all keys whose tokens are valid: during a rotation, they have the new
// key before tokens are signed with it.
func TestIssuerDocuments(t *testing.T) {
	first, firstID := accountKey(t)
	second, secondID := accountKey(t)
	for name, test := range map[string]struct {
		change func(*Inputs)
		keys   []secrets.Secret
		want   []string
	}{
		"running":      {func(*Inputs) {}, []secrets.Secret{first}, []string{firstID}},
		"rotating":     {func(*Inputs) {}, []secrets.Secret{second, first}, []string{secondID, firstID}},
		"rotated":      {func(*Inputs) {}, []secrets.Secret{second}, []string{secondID}},
		"restored":     {func(in *Inputs) { in.Phase = phaseRestore }, []secrets.Secret{first}, []string{firstID}},
		"hibernated":   {hibernate, []secrets.Secret{first}, nil},
		"deleting":     {func(in *Inputs) { in.Deleting = true }, []secrets.Secret{first}, nil},
		"leaving":      {func(in *Inputs) { in.Phase = phaseMigrate }, []secrets.Secret{first}, nil},
		"no host":      {func(in *Inputs) { in.IssuerHost = "" }, []secrets.Secret{first}, nil},
		"its own":      {func(in *Inputs) { in.Shoot.Annotations = nil }, []secrets.Secret{first}, nil},
		"keys unknown": {func(in *Inputs) { in.NamespaceExists = false }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := up(t, withIssuer, test.change)
			if test.keys == nil {
				in.Secrets = nil
			} else {
				in.setKeys(test.keys...)
			}
			secret, err := in.issuerDocuments()
			if err != nil {
				t.Fatal(err)
			}
			if test.want == nil {
				if secret != nil {
					t.Errorf("documents are written: %s", secret.Data)
				}
				return
			}
			if secret == nil {
				t.Fatal("no documents are written")
			}
			if ids := keyIDs(t, secret); !slices.Equal(ids, test.want) {
				t.Errorf("the keys are %q, want %q", ids, test.want)
			}
			if _, path, err := issuer.OfSecret(secret); err != nil || "https://discovery.example.org"+path != managedURL {
				t.Errorf("the discovery server would not serve %s: %q, %v", secret.Name, path, err)
			}
			if strings.Contains(string(secret.Data[issuer.KeyKeys]), `"d":`) {
				t.Error("the documents have a private key")
			}
		})
	}
}

// TestPublishIssuer checks that the documents are written once, corrected, and deleted with the Shoot.
func TestPublishIssuer(t *testing.T) {
	in, writes := up(t, withIssuer), 0
	first, _ := accountKey(t)
	second, secondID := accountKey(t)
	in.setKeys(first)
	store := fake.NewClientBuilder().WithScheme(newScheme(t)).Build()
	garden := interceptor.NewClient(store, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			t.Error("the Secret is read without a watch")
			return nil
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			writes++
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, object, patch, options...)
		},
	})
	r := &reconciler{garden: garden, copies: shownBy{client: store}}
	key := client.ObjectKey{Namespace: "gardener-system-shoot-issuer", Name: "dev--2f4c5f6a"}
	stored := func() *corev1.Secret {
		t.Helper()
		secret := &corev1.Secret{}
		if err := store.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	publish := func(what string, want int) {
		t.Helper()
		writes = 0
		if err := r.publishTo(t.Context(), in); err != nil || writes != want {
			t.Errorf("%s: %d writes, want %d, %v", what, writes, want, err)
		}
	}
	publish("new", 1)
	publish("nothing has changed", 0)
	if requests := shootOfDocuments(stored()); len(requests) != 1 || requests[0].String() != "garden-dev/one" {
		t.Errorf("a change triggers %v", requests)
	}
	changed := stored()
	changed.Labels, changed.Data["jwks"], changed.Data["more"] = nil, []byte("forged"), []byte("data")
	if err := store.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	in.setKeys(second, first)
	publish("changed by hand, and a new key", 1)
	secret := stored()
	if _, _, err := issuer.OfSecret(secret); err != nil || len(secret.Data) != 2 || !slices.Contains(keyIDs(t, secret), secondID) {
		t.Errorf("the Secret is not corrected: %v, %v", secret, err)
	}
	for range 2 { // a second attempt finds nothing
		if err := r.withdrawIssuer(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Get(t.Context(), key, secret); !apierrors.IsNotFound(err) {
		t.Errorf("the documents of a deleted Shoot remain: %v", err)
	}
}

// TestObserveIssuer checks that the host is read from the Secret with its role, and that this Secret is not taken for a default domain.
func TestObserveIssuer(t *testing.T) {
	with := func(name, role string, annotations map[string]string, data map[string][]byte) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "seed-local", Name: name, Labels: map[string]string{constants.LabelGardenRole: role}, Annotations: annotations,
		}, Data: data}
	}
	domain := map[string]string{constants.AnnotationDNSDomain: "example.org", constants.AnnotationDNSProvider: "local"}
	in := known(t)
	in.readGarden([]corev1.Secret{
		with("domain", constants.RoleDefaultDomain, domain, nil),
		with("issuer", constants.RoleShootServiceAccountIssuer, domain, map[string][]byte{"hostname": []byte("discovery.example.org")}),
	})
	if in.IssuerHost != "discovery.example.org" || in.IssuerProblem != "" || len(in.DefaultDomains) != 1 {
		t.Errorf("the host is %q, %q, and the domains are %v", in.IssuerHost, in.IssuerProblem, in.DefaultDomains)
	}
}
