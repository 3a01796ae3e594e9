// Package issuer makes and checks the documents by which others verify tokens: the configuration of an issuer and its public keys. It has
// the rules for the managed issuers of Shoots, too: their URLs, and the Secrets of the garden with their documents.
package issuer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/client-go/util/keyutil"
)

// Paths below the URL of an issuer.
const (
	PathConfiguration = "/.well-known/openid-configuration"
	PathKeys          = "/jwks"
)

// maxDocument is the largest document that is accepted, in bytes. A document with two RSA keys of 4096 bits has 2 KiB.
const maxDocument = 64 << 10

// Documents are what those who accept tokens read from the issuer, as JSON: its configuration (OpenID Connect Discovery 1.0, section 3) and its
// public keys (RFC 7517).
type Documents struct {
	Configuration, Keys string
}

// configuration contains the fields of the configuration that are checked.
type configuration struct {
	Issuer     string   `json:"issuer"`
	KeysURI    string   `json:"jwks_uri"`
	Responses  []string `json:"response_types_supported"`
	Subjects   []string `json:"subject_types_supported"`
	Algorithms []string `json:"id_token_signing_alg_values_supported"`
}

// NewDocuments returns the documents of an issuer whose tokens are signed with one of the private keys in PEM. It fails for keys that
// AlgorithmOf refuses.
func NewDocuments(issuer string, keysPEM ...[]byte) (Documents, error) {
	var set jose.JSONWebKeySet
	var algorithms []string
	for _, keyPEM := range keysPEM {
		key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
		if err != nil {
			return Documents{}, fmt.Errorf("read a signing key of tokens: %w", err)
		}
		algorithm, public, err := AlgorithmOf(key)
		if err != nil {
			return Documents{}, err
		}
		id, err := KeyID(public)
		if err != nil {
			return Documents{}, err
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: public, KeyID: id, Algorithm: string(algorithm), Use: "sig"})
		algorithms = append(algorithms, string(algorithm))
	}
	slices.Sort(algorithms)
	text, err := json.Marshal(map[string]any{
		"issuer": issuer, "jwks_uri": issuer + PathKeys, "response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": slices.Compact(algorithms),
	})
	if err != nil {
		return Documents{}, fmt.Errorf("encode the configuration of the issuer of tokens: %w", err)
	}
	keys, err := json.Marshal(set)
	if err != nil {
		return Documents{}, fmt.Errorf("encode the public keys of tokens: %w", err)
	}
	return Documents{Configuration: string(text), Keys: string(keys)}, nil
}

// Check checks documents before they are published: they are complete, belong together, and contain only valid public keys. It returns the
// issuer. An error says what is wrong, and contains nothing of the keys.
func (d Documents) Check() (issuer string, err error) {
	if len(d.Configuration) > maxDocument || len(d.Keys) > maxDocument {
		return "", fmt.Errorf("a document has more than %d bytes", maxDocument)
	}
	var config configuration
	if err := json.Unmarshal([]byte(d.Configuration), &config); err != nil {
		return "", errors.New("the configuration is not JSON of the expected form")
	}
	if location, err := url.Parse(config.Issuer); err != nil || location.Scheme != "https" || location.Host == "" || location.RawQuery != "" || location.Fragment != "" || location.User != nil {
		return "", errors.New("the issuer in the configuration is not an https URL without a query and a fragment")
	}
	if config.KeysURI != config.Issuer+PathKeys {
		return "", fmt.Errorf("jwks_uri in the configuration is not the issuer followed by %s", PathKeys)
	}
	if len(config.Responses) == 0 || len(config.Subjects) == 0 || len(config.Algorithms) == 0 {
		return "", errors.New("the configuration lacks response_types_supported, subject_types_supported or id_token_signing_alg_values_supported")
	}
	return config.Issuer, checkKeys(d.Keys)
}

// checkKeys refuses sets without keys, and with keys that are not public.
func checkKeys(text string) error {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return errors.New("the keys are not a JSON Web Key Set")
	}
	if len(set.Keys) == 0 {
		return errors.New("the set of keys is empty")
	}
	for i, key := range set.Keys {
		switch {
		case !key.Valid():
			return fmt.Errorf("key %d is not valid", i)
		case !key.IsPublic():
			return fmt.Errorf("key %d is not a public key", i)
		case key.KeyID == "":
			return fmt.Errorf("key %d has no kid", i)
		}
	}
	return nil
}
