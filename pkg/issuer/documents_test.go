package issuer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apiserver/workloadidentity"
	"github.com/trellis-k8s/trellis/pkg/issuer"
)

func encode(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestDocuments checks that tokens of each key can be verified with the published keys, and that these have nothing private.
func TestDocuments(t *testing.T) {
	t.Parallel()
	const url = "https://issuer.example.com/garden"
	first, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := [][]byte{encode(t, first), encode(t, second)}
	documents, err := issuer.NewDocuments(url, keys...)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id_token_signing_alg_values_supported":["ES256","RS256"],"issuer":"https://issuer.example.com/garden",` +
		`"jwks_uri":"https://issuer.example.com/garden/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"]}`
	if documents.Configuration != want {
		t.Errorf("the configuration is %s", documents.Configuration)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(documents.Keys), &set); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		signer, err := workloadidentity.NewSigner(url, key)
		if err != nil {
			t.Fatal(err)
		}
		text, err := signer.Sign(workloadidentity.Claims{Subject: "one", IssuedAt: time.Unix(1, 0), Expires: time.Unix(2, 0)})
		if err != nil {
			t.Fatal(err)
		}
		token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		found := set.Key(token.Headers[0].KeyID)
		if len(found) != 1 || !found[0].IsPublic() || found[0].Use != "sig" {
			t.Fatalf("key %d: found %+v in %s", i, found, documents.Keys)
		}
		var claims jwt.Claims
		if err := token.Claims(found[0].Key, &claims); err != nil || claims.Subject != "one" || claims.Issuer != url {
			t.Errorf("key %d: %+v, %v", i, claims, err)
		}
	}
	if _, err := issuer.NewDocuments(url, []byte("none")); err == nil || !strings.Contains(err.Error(), "read a signing key") {
		t.Errorf("a wrong key: %v", err)
	}
}

// published returns the documents of an issuer with a new key, and this key as a JSON Web Key with its private part.
func published(t *testing.T, url string) (issuer.Documents, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := issuer.NewDocuments(url, encode(t, key))
	if err != nil {
		t.Fatal(err)
	}
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: "one", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	return documents, string(private)
}

// TestCheck checks what is refused, above all private keys, and that no error quotes a document.
func TestCheck(t *testing.T) {
	t.Parallel()
	const url = "https://issuer.example.com/garden"
	good, private := published(t, url)
	replaced := func(old, by string) issuer.Documents {
		return issuer.Documents{Configuration: strings.ReplaceAll(good.Configuration, old, by), Keys: good.Keys}
	}
	keys := func(text string) issuer.Documents {
		return issuer.Documents{Configuration: good.Configuration, Keys: text}
	}
	for name, test := range map[string]struct {
		documents issuer.Documents
		want      string
	}{
		"valid":                {good, ""},
		"nothing":              {issuer.Documents{}, "not JSON"},
		"a large document":     {keys(strings.Repeat(" ", 1<<17) + good.Keys), "bytes"},
		"without TLS":          {replaced("https://", "http://"), "https URL"},
		"a query":              {replaced("/garden", "/garden?a=b"), "https URL"},
		"keys of another host": {replaced(`"jwks_uri":"`+url, `"jwks_uri":"https://other.example.com`), "jwks_uri"},
		"no algorithms":        {replaced(`["ES256"]`, `[]`), "id_token_signing_alg_values_supported"},
		"no keys":              {keys(`{"keys":[]}`), "empty"},
		"keys that are none":   {keys(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":""}]}`), "not a JSON Web Key Set"},
		"a private key":        {keys(private), "not a public key"},
		"a symmetric key":      {keys(`{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"a"}]}`), "key 0 is not"},
	} {
		found, err := test.documents.Check()
		if test.want == "" && (err != nil || found != url) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %q, %v, want %q", name, found, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: the error quotes a key: %v", name, err)
		}
	}
}

// TestOfSecret checks that documents are read only from a Secret whose name, labels and issuer belong together.
func TestOfSecret(t *testing.T) {
	t.Parallel()
	const uid = "2f4c5f6a-0000-4000-8000-000000000001"
	url := issuer.URL("discovery.example.com", "dev", uid)
	good, _ := published(t, url)
	for name, test := range map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"valid":                     {func(*corev1.Secret) {}, ""},
		"of another Project":        {func(s *corev1.Secret) { s.Labels["project.gardener.cloud/name"] = "prod" }, "its name is not"},
		"without a Project":         {func(s *corev1.Secret) { delete(s.Labels, "project.gardener.cloud/name") }, "its name is not"},
		"without a Shoot":           {func(s *corev1.Secret) { delete(s.Labels, "shoot.gardener.cloud/name") }, "lacks the label"},
		"without a namespace":       {func(s *corev1.Secret) { delete(s.Labels, "shoot.gardener.cloud/namespace") }, "lacks the label"},
		"not public":                {func(s *corev1.Secret) { s.Labels["discovery.gardener.cloud/public"] = "shoot-ca" }, "lacks the label"},
		"with the name of another":  {func(s *corev1.Secret) { s.Name = "dev--other" }, "does not end with"},
		"with the issuer of others": {func(s *corev1.Secret) { s.Name, s.Labels["project.gardener.cloud/name"] = "prod--"+uid, "prod" }, "does not end with"},
		"with a name without a UID": {func(s *corev1.Secret) { s.Name = "dev" }, "its name is not"},
		"without keys":              {func(s *corev1.Secret) { delete(s.Data, "jwks") }, "not a JSON Web Key Set"},
	} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: issuer.SecretName("dev", uid), Labels: issuer.Labels("dev", "garden-dev", "one")},
			Data:       map[string][]byte{"openid-config": []byte(good.Configuration), "jwks": []byte(good.Keys)},
		}
		test.change(secret)
		documents, path, err := issuer.OfSecret(secret)
		if test.want == "" && (err != nil || documents != good || path != "/projects/dev/shoots/"+uid+"/issuer") {
			t.Errorf("%s: %q, %v", name, path, err)
		}
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestHost checks which Secrets of a garden name the host of managed issuers.
func TestHost(t *testing.T) {
	t.Parallel()
	with := func(host string) corev1.Secret {
		return corev1.Secret{Data: map[string][]byte{"hostname": []byte(host)}}
	}
	for name, test := range map[string]struct {
		secrets    []corev1.Secret
		host, want string
	}{
		"one":     {[]corev1.Secret{with("discovery.example.com")}, "discovery.example.com", ""},
		"none":    {nil, "", "has no managed issuer"},
		"two":     {[]corev1.Secret{with("a.example.com"), with("b.example.com")}, "", "has 2 Secrets"},
		"a URL":   {[]corev1.Secret{with("https://discovery.example.com")}, "", "is not a host name"},
		"no host": {[]corev1.Secret{{}}, "", "is not a host name"},
	} {
		host, problem := issuer.Host(test.secrets)
		if host != test.host || (problem == "") != (test.want == "") || !strings.Contains(problem, test.want) {
			t.Errorf("%s: %q, %q, want %q", name, host, problem, test.want)
		}
	}
}
