package secrets

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	defaultBits = 4096
	// passwordBytes of randomness are in passwords and tokens: 32 characters.
	passwordBytes = 24
	// keyBytes are in an encryption key.
	keyBytes = 32
	// clockSkew is how much earlier than it was issued a certificate is valid.
	clockSkew = time.Minute
)

// generate returns the Secret that was asked for. Keys of certificates are on the curve P-256: they take a thousandth of the time of RSA keys
// of the same strength.
func generate(request Request, now time.Time) (Secret, error) {
	secret := request.Secret
	if request.Adopted != nil {
		secret.Data = request.Adopted
	} else {
		var err error
		if secret.Data, err = data(request, now); err != nil {
			return Secret{}, fmt.Errorf("generate secret %s: %w", secret.Name, err)
		}
	}
	from, until, err := lifetime(request.Config, secret.Data, now)
	if err != nil {
		return Secret{}, fmt.Errorf("secret %s: %w", secret.Name, err)
	}
	if !until.IsZero() {
		secret.Labels[constants.LabelSecretsManagerIssuedAtTime] = strconv.FormatInt(from.Unix(), 10)
		secret.Labels[constants.LabelSecretsManagerValidUntilTime] = strconv.FormatInt(until.Unix(), 10)
	}
	secret.Created = now
	return secret, nil
}

func data(request Request, now time.Time) (Material, error) {
	config := request.Config
	switch config.Kind {
	case KindCA, KindServer, KindClient, KindServerClient:
		return certificate(request, now)
	case KindRSAKey:
		key, err := rsa.GenerateKey(rand.Reader, cmp.Or(config.Bits, defaultBits))
		if err != nil {
			return nil, err
		}
		return Material{KeyRSA: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})}, nil
	case KindBasicAuth:
		return Material{KeyUsername: []byte(config.Username), KeyPassword: password()}, nil
	case KindStaticToken:
		return Material{KeyStaticTokens: fmt.Appendf(nil, "%s,%s,%s,\n", password(), config.Username, config.Username)}, nil
	case KindEncryptionKey:
		return Material{
			KeyEncryptionName:   fmt.Appendf(nil, "key%d", cmp.Or(request.Rotated, now).Unix()),
			KeyEncryptionSecret: []byte(base64.StdEncoding.EncodeToString(random(keyBytes))), KeyEncryptionEncoding: []byte("base64"),
		}, nil
	}
	return nil, fmt.Errorf("the kind %q is not known", config.Kind)
}

func random(count int) []byte {
	bytes := make([]byte, count)
	_, _ = rand.Read(bytes) // never fails
	return bytes
}

func password() []byte {
	return []byte(base64.RawURLEncoding.EncodeToString(random(passwordBytes)))
}

// certificate returns a new key and its certificate.
func certificate(request Request, now time.Time) (Material, error) {
	config := request.Config
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(random(16)), BasicConstraintsValid: true,
		Subject:   pkix.Name{CommonName: config.CommonName, Organization: config.Organization},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(config.validity()),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, DNSNames: config.DNSNames,
	}
	for _, text := range config.IPAddresses {
		address := net.ParseIP(text)
		if address == nil {
			return nil, fmt.Errorf("%q is not an IP address", text)
		}
		template.IPAddresses = append(template.IPAddresses, address)
	}
	usages := map[Kind][]x509.ExtKeyUsage{
		KindServer: {x509.ExtKeyUsageServerAuth}, KindClient: {x509.ExtKeyUsageClientAuth},
		KindServerClient: {x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	template.ExtKeyUsage = usages[config.Kind]
	parent, signer := template, any(key)
	if config.Kind == KindCA {
		template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign|x509.KeyUsageDigitalSignature
		template.Subject = pkix.Name{CommonName: request.Secret.Name}
	} else if parent, signer, err = authority(request.Signer.Data); err != nil {
		return nil, fmt.Errorf("sign with secret %s: %w", request.Signer.Name, err)
	}
	if config.Kind != KindCA && template.NotAfter.After(parent.NotAfter) {
		template.NotAfter = parent.NotAfter
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	encodedKey, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encodedKey})
	if config.Kind == KindCA {
		return Material{KeyCACert: certificatePEM, KeyCAKey: keyPEM}, nil
	}
	return Material{
		corev1.TLSCertKey: certificatePEM, corev1.TLSPrivateKeyKey: keyPEM, KeyCACert: request.Signer.Data[KeyCACert],
	}, nil
}

// authority reads the certificate and the key of an authority, which may have been adopted.
func authority(of Material) (*x509.Certificate, any, error) {
	certificate, err := parse(of[KeyCACert])
	if err != nil {
		return nil, nil, fmt.Errorf("key %s: %w", KeyCACert, err)
	}
	block, _ := pem.Decode(of[KeyCAKey])
	if block == nil {
		return nil, nil, fmt.Errorf("key %s is not a PEM block", KeyCAKey)
	}
	for _, parseKey := range []func([]byte) (any, error){
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) }, x509.ParsePKCS8PrivateKey,
	} {
		if key, err := parseKey(block.Bytes); err == nil {
			return certificate, key, nil
		}
	}
	return nil, nil, fmt.Errorf("key %s is not a supported private key", KeyCAKey)
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it has no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

// lifetime returns the validity of a Secret; a zero time means no limit.
func lifetime(config Config, data Material, now time.Time) (from, until time.Time, err error) {
	key := corev1.TLSCertKey
	switch {
	case config.Kind == KindCA:
		key = KeyCACert
	case !config.isCertificate():
		if config.validity() == 0 {
			return time.Time{}, time.Time{}, nil
		}
		return now, now.Add(config.validity()), nil
	}
	certificate, err := parse(data[key])
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("key %s: %w", key, err)
	}
	return certificate.NotBefore, certificate.NotAfter, nil
}
