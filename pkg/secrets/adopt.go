package secrets

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Markers of an OpenVPN static key of version 1.
const (
	tlsAuthBegin = "-----BEGIN OpenVPN Static key V1-----\n"
	tlsAuthEnd   = "-----END OpenVPN Static key V1-----\n"
)

// adopt returns the data of an external Secret that are marked for a config; nil if there are none. Data that a Secret
// of this config already contains are not adopted again, because a rotation would otherwise have no effect.
func (r *resolver) adopt(config Config) (Material, error) {
	adoptable := r.state.Adoptable[config.Name]
	switch len(adoptable) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("several Secrets are marked as the source of secret %s: %s and %s",
			config.Name, adoptable[0].Name, adoptable[1].Name)
	}
	data := adoptable[0].Data
	for _, secret := range r.named(config.Name) {
		if sameAs(secret.Data, data) {
			return nil, nil
		}
	}
	if err := checkAdopted(config, data); err != nil {
		return nil, fmt.Errorf("the data of Secret %s cannot be used for secret %s: %w", adoptable[0].Name, config.Name, err)
	}
	return data, nil
}

// sameAs reports whether data contains all values of adopted.
func sameAs(data, adopted Material) bool {
	if len(adopted) == 0 {
		return false
	}
	for key, value := range adopted {
		if !bytes.Equal(data[key], value) {
			return false
		}
	}
	return true
}

// checkAdopted returns an error if data do not match the kind of a config.
func checkAdopted(config Config, data Material) error {
	switch config.Kind {
	case KindCA:
		_, _, err := authority(data)
		return err
	case KindServer, KindClient, KindServerClient:
		if _, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err != nil {
			return fmt.Errorf("keys %s and %s: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
		}
		return nil
	case KindRSAKey, KindSSHKeypair:
		if _, err := rsaKey(data[KeyRSA]); err != nil {
			return fmt.Errorf("key %s: %w", KeyRSA, err)
		}
		return nil
	case KindBasicAuth:
		return required(data, KeyUsername, KeyPassword)
	case KindStaticToken:
		for _, user := range config.Users {
			if _, err := tokenOf(data, user.Name); err != nil {
				return err
			}
		}
		return nil
	case KindEncryptionKey:
		_, err := encryptionKey(Secret{Data: data})
		return err
	case KindVPNTLSAuth:
		if !bytes.Contains(data[KeyVPNTLSAuth], []byte(tlsAuthBegin)) {
			return fmt.Errorf("key %s is not an OpenVPN static key", KeyVPNTLSAuth)
		}
		return nil
	}
	return errors.New("data of this kind are derived from other Secrets")
}

func required(data Material, keys ...string) error {
	var errs []error
	for _, key := range keys {
		if len(data[key]) == 0 {
			errs = append(errs, fmt.Errorf("key %s is missing", key))
		}
	}
	return errors.Join(errs...)
}
