package workloadidentity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TestDocuments checks that tokens of each key can be verified with the published keys, and that these have nothing private.
func TestDocuments(t *testing.T) {
	t.Parallel()
	const issuer = "https://issuer.example.com/garden"
	first, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := [][]byte{encode(t, first), encode(t, second)}
	documents, err := NewDocuments(issuer, keys...)
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
		signer, err := NewSigner(issuer, key)
		if err != nil {
			t.Fatal(err)
		}
		text, err := signer.Sign(Claims{Subject: "one", IssuedAt: time.Unix(1, 0), Expires: time.Unix(2, 0)})
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
		if err := token.Claims(found[0].Key, &claims); err != nil || claims.Subject != "one" || claims.Issuer != issuer {
			t.Errorf("key %d: %+v, %v", i, claims, err)
		}
	}
	if _, err := NewDocuments(issuer, []byte("none")); err == nil || !strings.Contains(err.Error(), "read a signing key") {
		t.Errorf("a wrong key: %v", err)
	}
}
