package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// AlgorithmOf returns the algorithm of a private key and its public key: RS256, ES256, ES384 or ES512. It fails for other keys.
func AlgorithmOf(key any) (jose.SignatureAlgorithm, crypto.PublicKey, error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256, key.Public(), nil
	case *ecdsa.PrivateKey:
		switch size := key.Curve.Params().BitSize; size {
		case 256:
			return jose.ES256, key.Public(), nil
		case 384:
			return jose.ES384, key.Public(), nil
		case 521:
			return jose.ES512, key.Public(), nil
		default:
			return "", nil, fmt.Errorf("the signing key of tokens has a curve of %d bits: use P-256, P-384 or P-521", size)
		}
	default:
		return "", nil, fmt.Errorf("the signing key of tokens is a %T: use an RSA or ECDSA key", key)
	}
}

// KeyID returns the SHA-256 of the public key in PKIX form, in URL-safe Base64. kube-apiserver names its keys in the same way, in the header
// of tokens.
func KeyID(public crypto.PublicKey) (string, error) {
	encoded, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("encode the public key of tokens: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}
