package workloadidentity

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/client-go/util/keyutil"
)

// PathKeys is the path of the public keys below the URL of the issuer.
const PathKeys = "/jwks"

// Documents are what those who accept tokens read from the issuer, as JSON: its configuration (OpenID Connect Discovery 1.0, section 3) and its
// public keys (RFC 7517).
type Documents struct {
	Configuration, Keys string
}

// NewDocuments returns the documents of an issuer whose tokens are signed with one of the private keys in PEM. It fails for keys that NewSigner
// refuses.
func NewDocuments(issuer string, keysPEM ...[]byte) (Documents, error) {
	var set jose.JSONWebKeySet
	var algorithms []string
	for _, keyPEM := range keysPEM {
		key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
		if err != nil {
			return Documents{}, fmt.Errorf("read a signing key of workload identity tokens: %w", err)
		}
		algorithm, public, err := algorithmOf(key)
		if err != nil {
			return Documents{}, err
		}
		id, err := keyID(public)
		if err != nil {
			return Documents{}, err
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: public, KeyID: id, Algorithm: string(algorithm), Use: "sig"})
		algorithms = append(algorithms, string(algorithm))
	}
	slices.Sort(algorithms)
	configuration, err := json.Marshal(map[string]any{
		"issuer": issuer, "jwks_uri": issuer + PathKeys, "response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": slices.Compact(algorithms),
	})
	if err != nil {
		return Documents{}, fmt.Errorf("encode the configuration of the issuer of workload identity tokens: %w", err)
	}
	keys, err := json.Marshal(set)
	if err != nil {
		return Documents{}, fmt.Errorf("encode the public keys of workload identity tokens: %w", err)
	}
	return Documents{Configuration: string(configuration), Keys: string(keys)}, nil
}
