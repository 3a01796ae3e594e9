// Package secrets manages the certificates, keys and passwords of a control plane. The input is a list of pure
// [Config]s. From these, the declared rotations, the existing and saved Secrets and the time, [Resolve] determines the
// current and old Secrets, the bundles, the Secrets to generate or restore, and the unused ones. [Manager] generates
// and writes them. Names, labels and rotations are compatible with Gardener's secrets manager. Key bytes are never
// logged: see [Material]. docs/secrets.md describes how to declare configs.
package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Kind is the kind of content of a Secret.
type Kind string

// The kinds of Secrets.
const (
	// KindCA is a certificate authority: ca.crt and ca.key.
	KindCA Kind = "CertificateAuthority"
	// KindServer is a server certificate: tls.crt, tls.key, and ca.crt of its issuer.
	KindServer Kind = "ServerCertificate"
	// KindClient is a client certificate.
	KindClient Kind = "ClientCertificate"
	// KindServerClient is a certificate for both server and client, such as for a member of etcd.
	KindServerClient Kind = "ServerClientCertificate"
	// KindRSAKey is a private key: id_rsa. It has a bundle of the current and the old key.
	KindRSAKey Kind = "RSAKey"
	// KindSSHKeypair is an SSH key: id_rsa, and id_rsa.pub in the format of authorized_keys. It has no bundle.
	KindSSHKeypair Kind = "SSHKeypair"
	// KindBasicAuth is a user with a password: username, password, and auth in the format of htpasswd.
	KindBasicAuth Kind = "BasicAuth"
	// KindStaticToken is a static token file of kube-apiserver: static_tokens.csv.
	KindStaticToken Kind = "StaticToken"
	// KindEncryptionKey is a key with which kube-apiserver encrypts data in etcd: key, secret, encoding, provider.
	KindEncryptionKey Kind = "EncryptionKey"
	// KindVPNTLSAuth is a key that both ends of an OpenVPN connection share: vpn.tlsauth.
	KindVPNTLSAuth Kind = "VPNTLSAuth"
	// KindKubeconfig is a kubeconfig, and tls.crt, tls.key and ca.crt if it has its own certificate.
	KindKubeconfig Kind = "Kubeconfig"
)

// tenYears is the default validity of certificates.
const tenYears = 10 * 365 * 24 * time.Hour

// User is a user of KindStaticToken.
type User struct {
	Name string `json:"name"`
	// UID of the user; empty to use the name.
	UID    string   `json:"uid,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Config declares a Secret. Its checksum covers the fields that determine the generated data.
type Config struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// CommonName of a certificate. For an authority it is always the name of its Secret.
	CommonName string `json:"commonName,omitempty"`
	// Organization of a certificate.
	Organization []string `json:"organization,omitempty"`
	// DNSNames and IPAddresses of a server.
	DNSNames    []string `json:"dnsNames,omitempty"`
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// Username of KindBasicAuth, or the user whose token KindKubeconfig contains: see TokensOf.
	Username string `json:"username,omitempty"`
	// Users of KindStaticToken.
	Users []User `json:"users,omitempty"`
	// Bits of KindRSAKey and KindSSHKeypair; 0 for 4096.
	Bits int `json:"bits,omitempty"`
	// Provider of KindEncryptionKey that uses the key; empty for aescbc. A change takes effect with the next rotation.
	Provider corev1beta1.EncryptionProviderType `json:"provider,omitempty"`
	// Server of KindKubeconfig is the URL of the API server.
	Server string `json:"server,omitempty"`
	// TokenFile of KindKubeconfig is the path of the client's token file.
	TokenFile string `json:"tokenFile,omitempty"`
	// Validity of a certificate, where 0 means 10 years, or of a password, where 0 means that it does not expire.
	Validity time.Duration `json:"validity,omitempty"`

	// SignedBy is the name of the authority that signs the certificate. For KindKubeconfig it signs the client
	// certificate.
	SignedBy string `json:"-"`
	// Trusts is the name of the authority that verifies the server of KindKubeconfig.
	Trusts string `json:"-"`
	// TokensOf is the name of the config of KindStaticToken that contains the token for KindKubeconfig.
	TokensOf string `json:"-"`
	// ByOther signs a server certificate with the current authority as soon as that is distributed, or a client
	// certificate with the old one.
	ByOther bool `json:"-"`
	// KeepOld keeps the Secret from before the last rotation until that rotation is being completed.
	KeepOld bool `json:"-"`
	// IgnoreOldAfter is how long after the issue of the current Secret the old one is dropped without an explicit
	// rotation; 0 for never.
	IgnoreOldAfter time.Duration `json:"-"`
	// RenewAfter is the percentage of the validity after which a certificate is renewed; 0 for 80.
	RenewAfter int `json:"-"`
	// RenewAuthority also enables the renewal of an authority.
	RenewAuthority bool `json:"-"`
	// AlwaysChecksum adds a checksum to the name of an authority's Secret even before its first rotation.
	AlwaysChecksum bool `json:"-"`
	// Persist saves the Secret in the state of the Shoot.
	Persist bool `json:"-"`
	// RestoreOnly prevents the generation of a Secret except at the start of a rotation, because a missing Secret must
	// have been lost. It is set once data exist that the Secret encrypts, or clients that trust it. A saved Secret is
	// restored.
	RestoreOnly bool `json:"-"`
}

// Rotation is the declared state of a rotation of a Secret.
type Rotation struct {
	// Initiated is the time of the last start.
	Initiated time.Time
	Phase     corev1beta1.CredentialsRotationPhase
	// Distributed is set if all servers have rolled out the additions of the phase Preparing, so that they accept objects
	// that are signed or encrypted with the current Secret. It is false when a rotation starts, and is recorded in the
	// ledger.
	Distributed bool
}

// dropsOld reports whether the old Secret is no longer accepted.
func (r Rotation) dropsOld() bool {
	return r.Phase == corev1beta1.RotationCompleting || r.Phase == corev1beta1.RotationCompleted
}

// begins reports whether the current Secret might not exist yet.
func (r Rotation) begins() bool {
	switch r.Phase {
	case "", corev1beta1.RotationPreparing, corev1beta1.RotationPreparingWithoutWorkersRollout:
		return true
	}
	return false
}

// keepsOld reports whether the old Secret must exist.
func (r Rotation) keepsOld() bool { return r.Phase != "" && !r.dropsOld() }

// isCertificate reports whether the Secret contains a certificate that an authority signs.
func (c Config) isCertificate() bool {
	switch c.Kind {
	case KindServer, KindClient, KindServerClient:
		return true
	case KindKubeconfig:
		return c.SignedBy != ""
	}
	return false
}

func (c Config) isServer() bool { return c.Kind == KindServer || c.Kind == KindServerClient }

// hasBundle reports whether the current and the old Secret are distributed in a bundle.
func (c Config) hasBundle() bool { return c.Kind == KindCA || c.Kind == KindRSAKey }

// retainedOnChange reports whether a Secret that was generated from a different config stays current until the next
// rotation, because clients trust it or data are encrypted with it. New versions of the program therefore do not rotate
// it, and Secrets of Gardener's secrets manager, which computes other checksums, are taken over.
func (c Config) retainedOnChange() bool {
	switch c.Kind {
	case KindCA, KindRSAKey, KindSSHKeypair, KindEncryptionKey, KindVPNTLSAuth:
		return true
	}
	return false
}

func (c Config) validity() time.Duration {
	if c.Validity == 0 && (c.Kind == KindCA || c.isCertificate()) {
		return tenYears
	}
	return c.Validity
}

// checksum returns a checksum of all inputs of the generated data as a decimal number. others are the data of other
// Secrets that are inputs.
func (c Config) checksum(others ...Material) (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("compute the checksum of the config of secret %s: %w", c.Name, err)
	}
	for _, other := range others {
		text = append(text, other.checksum()...)
	}
	return decimal(text), nil
}

func decimal(text []byte) string {
	hash := fnv.New64a()
	_, _ = hash.Write(text) // never fails
	return strconv.FormatUint(hash.Sum64(), 10)
}

// secretName returns the name of the Secret of a config.
func (c Config) secretName(checksumOfConfig, checksumOfCA string, rotated time.Time) string {
	name := c.Name
	if c.Kind != KindCA || c.AlwaysChecksum || !rotated.IsZero() {
		name += "-" + hexDigits(8, checksumOfConfig+checksumOfCA)
	}
	if !rotated.IsZero() {
		name += "-" + hexDigits(5, strconv.FormatInt(rotated.Unix(), 10))
	}
	return name
}

func hexDigits(count int, text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:count]
}
