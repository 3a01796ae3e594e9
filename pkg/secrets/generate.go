package secrets

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	defaultBits = 4096
	// passwordBytes is the number of random bytes in passwords and tokens: 32 characters.
	passwordBytes = 24
	// keyBytes is the length of an encryption key.
	keyBytes = 32
	// tlsAuthBytes and tlsAuthLine are the key and line length of an OpenVPN static key of version 1.
	tlsAuthBytes, tlsAuthLine = 256, 16
	// encodingBase64 marks an encryption key with the encoding of an EncryptionConfiguration.
	encodingBase64 = "base64"
)

// generate returns the requested Secret.
func generate(request Request, now time.Time) (Secret, error) {
	secret := request.Secret
	data := request.Adopted
	if data == nil {
		var err error
		if data, err = primary(request, now); err != nil {
			return Secret{}, fmt.Errorf("generate secret %s: %w", secret.Name, err)
		}
	}
	var err error
	if secret.Data, err = derived(request, data); err != nil {
		return Secret{}, fmt.Errorf("generate secret %s: %w", secret.Name, err)
	}
	from, until, err := lifetime(request.Config, secret.Data, now)
	if err != nil {
		return Secret{}, fmt.Errorf("secret %s: %w", secret.Name, err)
	}
	secret.Labels = maps.Clone(secret.Labels)
	if !until.IsZero() {
		secret.Labels[constants.LabelSecretsManagerIssuedAtTime] = strconv.FormatInt(from.Unix(), 10)
		secret.Labels[constants.LabelSecretsManagerValidUntilTime] = strconv.FormatInt(until.Unix(), 10)
	}
	secret.Created = now
	return secret, nil
}

// primary returns the data that are not derived from other data.
func primary(request Request, now time.Time) (Material, error) {
	config := request.Config
	switch config.Kind {
	case KindCA, KindServer, KindClient, KindServerClient:
		return certificate(request, now)
	case KindRSAKey, KindSSHKeypair:
		key, err := rsa.GenerateKey(rand.Reader, cmp.Or(config.Bits, defaultBits))
		if err != nil {
			return nil, err
		}
		return Material{KeyRSA: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})}, nil
	case KindBasicAuth:
		if previous := request.Previous[KeyPassword]; len(previous) > 0 && string(request.Previous[KeyUsername]) == config.Username {
			return Material{KeyUsername: []byte(config.Username), KeyPassword: previous}, nil
		}
		return Material{KeyUsername: []byte(config.Username), KeyPassword: password()}, nil
	case KindStaticToken:
		return staticTokens(config.Users, request.Previous)
	case KindEncryptionKey:
		return Material{
			KeyEncryptionName:   fmt.Appendf(nil, "key%d", cmp.Or(request.Rotated, now).Unix()),
			KeyEncryptionSecret: []byte(base64.StdEncoding.EncodeToString(random(keyBytes))), KeyEncryptionEncoding: []byte(encodingBase64),
		}, nil
	case KindVPNTLSAuth:
		return Material{KeyVPNTLSAuth: tlsAuth()}, nil
	case KindKubeconfig:
		if config.SignedBy == "" {
			return Material{}, nil
		}
		return certificate(request, now)
	}
	return nil, fmt.Errorf("unknown kind %q", config.Kind)
}

// derived adds data that are computed from the primary data, which may be adopted.
func derived(request Request, primary Material) (Material, error) {
	data, config := maps.Clone(primary), request.Config
	switch config.Kind {
	case KindSSHKeypair:
		key, err := rsaKey(data[KeyRSA])
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", KeyRSA, err)
		}
		public, err := ssh.NewPublicKey(key.Public())
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", KeyRSA, err)
		}
		data[KeyRSAPublic] = ssh.MarshalAuthorizedKey(public)
	case KindBasicAuth:
		// The password is long and random, so that even a hash with minimum cost cannot be reversed.
		hash, err := bcrypt.GenerateFromPassword(data[KeyPassword], bcrypt.MinCost)
		if err != nil {
			return nil, fmt.Errorf("hash the password: %w", err)
		}
		data[KeyAuth] = fmt.Appendf(nil, "%s:%s", data[KeyUsername], hash)
	case KindEncryptionKey:
		if len(data[KeyEncryptionProvider]) == 0 {
			data[KeyEncryptionProvider] = []byte(cmp.Or(config.Provider, corev1beta1.EncryptionProviderTypeAESCBC))
		}
	case KindKubeconfig:
		text, err := kubeconfigOf(request, data)
		if err != nil {
			return nil, err
		}
		data[KeyKubeconfig] = text
	}
	return data, nil
}

func random(count int) []byte {
	bytes := make([]byte, count)
	_, _ = rand.Read(bytes) // never fails
	return bytes
}

func password() []byte {
	return []byte(base64.RawURLEncoding.EncodeToString(random(passwordBytes)))
}

// staticTokens returns a token file. Users in the previous file keep their tokens, so that adding a user does not
// invalidate any.
func staticTokens(users []User, previous Material) (Material, error) {
	var text bytes.Buffer
	writer := csv.NewWriter(&text)
	for _, user := range users {
		token, err := tokenOf(previous, user.Name)
		if err != nil {
			token = string(password())
		}
		row := []string{token, user.Name, cmp.Or(user.UID, user.Name)}
		if len(user.Groups) > 0 {
			row = append(row, strings.Join(user.Groups, ","))
		}
		if err := writer.Write(row); err != nil {
			return nil, err
		}
	}
	writer.Flush()
	return Material{KeyStaticTokens: text.Bytes()}, writer.Error()
}

// tokenOf returns the token of a user of KindStaticToken.
func tokenOf(data Material, user string) (string, error) {
	reader := csv.NewReader(bytes.NewReader(data[KeyStaticTokens]))
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		return "", fmt.Errorf("key %s is not a file of tokens", KeyStaticTokens) // the wrapped error might contain a token
	}
	for _, row := range rows {
		if len(row) >= 3 && row[1] == user {
			return row[0], nil
		}
	}
	return "", fmt.Errorf("key %s has no token of user %q", KeyStaticTokens, user)
}

// Token returns the token of a user of KindStaticToken, for example for a probe.
func (i Item) Token(user string) (string, error) {
	token, err := tokenOf(i.Current.Data, user)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", i.Current.Name, err)
	}
	return token, nil
}

// tlsAuth returns a new key in OpenVPN's format.
func tlsAuth() []byte {
	var text strings.Builder
	text.WriteString(tlsAuthBegin)
	for key := random(tlsAuthBytes); len(key) > 0; key = key[tlsAuthLine:] {
		text.WriteString(hex.EncodeToString(key[:tlsAuthLine]) + "\n")
	}
	text.WriteString(tlsAuthEnd)
	return []byte(text.String())
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
