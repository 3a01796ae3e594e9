// Package workloadidentity issues JSON Web Tokens for workload identities.
package workloadidentity

import (
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/keyutil"

	"github.com/trellis-k8s/trellis/pkg/issuer"
)

// Reference names an object in the claims of a token.
type Reference struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace,omitempty"`
	UID       types.UID `json:"uid"`
}

// Context is the claim gardener.cloud with the workload identity and the context objects of a token.
type Context struct {
	WorkloadIdentity Reference  `json:"workloadIdentity"`
	Shoot            *Reference `json:"shoot,omitempty"`
	Project          *Reference `json:"project,omitempty"`
	Seed             *Reference `json:"seed,omitempty"`
	BackupBucket     *Reference `json:"backupBucket,omitempty"`
	BackupEntry      *Reference `json:"backupEntry,omitempty"`
}

// Claims are the claims of a token.
type Claims struct {
	// ID is unique for each token.
	ID string
	// Subject is the status.sub of the workload identity. Audience is its spec.audiences.
	Subject  string
	Audience []string
	Context  Context
	// IssuedAt and Expires limit the validity, in whole seconds.
	IssuedAt, Expires time.Time
}

// Signer signs the tokens of an issuer.
type Signer struct {
	issuer string
	signer jose.Signer
}

// NewSigner returns a signer for an RSA or ECDSA private key in PEM. The key determines the algorithm: RS256, ES256,
// ES384 or ES512. NewSigner fails for other keys.
func NewSigner(issuerURL string, keyPEM []byte) (*Signer, error) {
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read the signing key of workload identity tokens: %w", err)
	}
	algorithm, public, err := issuer.AlgorithmOf(key)
	if err != nil {
		return nil, err
	}
	id, err := issuer.KeyID(public)
	if err != nil {
		return nil, err
	}
	signingKey := jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}
	signer, err := jose.NewSigner(signingKey, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, fmt.Errorf("use the signing key of workload identity tokens: %w", err)
	}
	return &Signer{issuer: issuerURL, signer: signer}, nil
}

// Sign returns a token with the claims.
func (s *Signer) Sign(claims Claims) (string, error) {
	standard := jwt.Claims{
		Issuer:    s.issuer,
		Subject:   claims.Subject,
		Audience:  claims.Audience,
		ID:        claims.ID,
		IssuedAt:  jwt.NewNumericDate(claims.IssuedAt),
		NotBefore: jwt.NewNumericDate(claims.IssuedAt),
		Expiry:    jwt.NewNumericDate(claims.Expires),
	}
	context := struct {
		Context Context `json:"gardener.cloud"`
	}{claims.Context}
	token, err := jwt.Signed(s.signer).Claims(standard).Claims(context).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign a workload identity token: %w", err)
	}
	return token, nil
}

// Validity returns the validity of a token for a requested number of seconds, limited by the bounds.
func Validity(seconds int64, least, most time.Duration) time.Duration {
	asked := time.Duration(seconds) * time.Second
	return min(max(asked, least), most)
}
