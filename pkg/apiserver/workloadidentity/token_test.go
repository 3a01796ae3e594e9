package workloadidentity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

func encode(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestSign(t *testing.T) {
	t.Parallel()
	curve := func(c elliptic.Curve) crypto.Signer {
		key, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, key := range map[jose.SignatureAlgorithm]crypto.Signer{
		jose.RS256: rsaKey, jose.ES256: curve(elliptic.P256()), jose.ES384: curve(elliptic.P384()), jose.ES512: curve(elliptic.P521()),
	} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			signer, err := NewSigner("https://issuer.example.com", encode(t, key))
			if err != nil {
				t.Fatal(err)
			}
			issued := time.Unix(1_700_000_000, 0)
			seed := Reference{Name: "s", UID: "2"}
			text, err := signer.Sign(Claims{
				ID: "id", Subject: "gardener.cloud:workloadidentity:garden-a:w:1", Audience: []string{"a", "b"},
				Context:  Context{WorkloadIdentity: Reference{Name: "w", Namespace: "garden-a", UID: "1"}, Seed: &seed},
				IssuedAt: issued, Expires: issued.Add(time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{algorithm})
			if err != nil {
				t.Fatal(err)
			}
			if len(token.Headers) != 1 || token.Headers[0].KeyID == "" || token.Headers[0].ExtraHeaders["typ"] != "JWT" {
				t.Errorf("unexpected header %+v", token.Headers)
			}
			var claims jwt.Claims
			var context struct {
				Context Context `json:"gardener.cloud"`
			}
			if err := token.Claims(key.Public(), &claims, &context); err != nil {
				t.Fatal(err)
			}
			expected := jwt.Expected{Issuer: "https://issuer.example.com", Subject: "gardener.cloud:workloadidentity:garden-a:w:1", ID: "id",
				AnyAudience: jwt.Audience{"b"}, Time: issued.Add(59 * time.Minute)}
			if err := claims.ValidateWithLeeway(expected, 0); err != nil {
				t.Error(err)
			}
			if err := claims.ValidateWithLeeway(jwt.Expected{Time: issued.Add(2 * time.Hour)}, 0); err == nil {
				t.Error("the token does not expire")
			}
			if context.Context.Seed == nil || *context.Context.Seed != seed || context.Context.Shoot != nil || context.Context.WorkloadIdentity.UID != "1" {
				t.Errorf("unexpected context %+v", context.Context)
			}
		})
	}
}

func TestNewSignerRefusesKeys(t *testing.T) {
	t.Parallel()
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		pem  []byte
		want string
	}{
		"no key":          {[]byte("nothing"), "read the signing key"},
		"an Ed25519 key":  {encode(t, edwards), "signing key"},
		"a curve of P224": {encode(t, p224), "224 bits"},
	} {
		if _, err := NewSigner("https://x", row.pem); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}

func TestValidity(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		seconds int64
		want    time.Duration
	}{
		{600, time.Hour}, {3600, time.Hour}, {7200, 2 * time.Hour}, {1 << 32, 48 * time.Hour},
	} {
		if got := Validity(row.seconds, time.Hour, 48*time.Hour); got != row.want {
			t.Errorf("%d s: got %s, want %s", row.seconds, got, row.want)
		}
	}
}
