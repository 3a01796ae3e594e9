// Package secrets keeps the certificates, keys and passwords of a control plane. What is asked for is a list of pure [Config]s. [Resolve]
// decides, from them, the rotations that are declared, the Secrets that exist or were saved, and the time, what is current, what is old,
// which bundles there are, what has to be generated or restored, and what is unused. [Manager] generates and writes. Names, labels and
// rotations are those of Gardener's secrets manager. Bytes of keys reach no log: see [Material]. How to declare configs is in docs/secrets.md.
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

// Kind is what a Secret holds.
type Kind string

// The kinds of Secrets.
const (
	// KindCA is a certificate authority: ca.crt and ca.key.
	KindCA Kind = "CertificateAuthority"
	// KindServer is a certificate of a server: tls.crt, tls.key, and ca.crt of who signed it.
	KindServer Kind = "ServerCertificate"
	// KindClient is a certificate of a client.
	KindClient Kind = "ClientCertificate"
	// KindServerClient is a certificate of one that is both, such as a member of etcd.
	KindServerClient Kind = "ServerClientCertificate"
	// KindRSAKey is a private key: id_rsa. It has a bundle of the current and the old key.
	KindRSAKey Kind = "RSAKey"
	// KindSSHKeypair is a key for SSH: id_rsa, and id_rsa.pub as in authorized_keys. It has no bundle.
	KindSSHKeypair Kind = "SSHKeypair"
	// KindBasicAuth is a user with a password: username, password, and auth as in a file of htpasswd.
	KindBasicAuth Kind = "BasicAuth"
	// KindStaticToken is a file of tokens of kube-apiserver: static_tokens.csv.
	KindStaticToken Kind = "StaticToken"
	// KindEncryptionKey is a key of kube-apiserver for what it writes into etcd: key, secret, encoding, provider.
	KindEncryptionKey Kind = "EncryptionKey"
	// KindVPNTLSAuth is a key that both ends of an OpenVPN connection share: vpn.tlsauth.
	KindVPNTLSAuth Kind = "VPNTLSAuth"
	// KindKubeconfig is a kubeconfig, and tls.crt, tls.key and ca.crt if it has a certificate of its own.
	KindKubeconfig Kind = "Kubeconfig"
)

// tenYears is how long certificates are valid unless something else is said.
const tenYears = 10 * 365 * 24 * time.Hour

// User is a user of KindStaticToken.
type User struct {
	Name string `json:"name"`
	// UID of the user; empty for the name.
	UID    string   `json:"uid,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Config asks for a Secret. Fields that what is generated depends on are in its checksum.
type Config struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// CommonName of a certificate. That of an authority is the name of its Secret.
	CommonName string `json:"commonName,omitempty"`
	// Organization of a certificate.
	Organization []string `json:"organization,omitempty"`
	// DNSNames and IPAddresses of a server.
	DNSNames    []string `json:"dnsNames,omitempty"`
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// Username of KindBasicAuth, or the user whose token KindKubeconfig has: see TokensOf.
	Username string `json:"username,omitempty"`
	// Users of KindStaticToken.
	Users []User `json:"users,omitempty"`
	// Bits of KindRSAKey and KindSSHKeypair; 0 for 4096.
	Bits int `json:"bits,omitempty"`
	// Provider of KindEncryptionKey, which uses the key; empty for aescbc. Another one is used from the next rotation on.
	Provider corev1beta1.EncryptionProviderType `json:"provider,omitempty"`
	// Server of KindKubeconfig is the URL of the API server.
	Server string `json:"server,omitempty"`
	// TokenFile of KindKubeconfig is the path of the file with the client's token.
	TokenFile string `json:"tokenFile,omitempty"`
	// Validity of a certificate, 10 years if it is 0, or of a password, which does not expire if it is 0.
	Validity time.Duration `json:"validity,omitempty"`

	// SignedBy is the name of the authority of a certificate, which for KindKubeconfig is that of the client.
	SignedBy string `json:"-"`
	// Trusts is the name of the authority of the server of KindKubeconfig.
	Trusts string `json:"-"`
	// TokensOf is the name of the config of KindStaticToken that KindKubeconfig takes its token from.
	TokensOf string `json:"-"`
	// ByOther has a server's certificate signed by the current authority as soon as that is distributed, or a client's by the old one.
	ByOther bool `json:"-"`
	// KeepOld keeps the Secret before the last rotation until that is being completed.
	KeepOld bool `json:"-"`
	// IgnoreOldAfter is how long after the current Secret was issued the old one is dropped without a rotation that says so; 0 for never.
	IgnoreOldAfter time.Duration `json:"-"`
	// RenewAfter is the share of the validity, in percent, after which a certificate is renewed; 0 for 80.
	RenewAfter int `json:"-"`
	// RenewAuthority has an authority renewed, too.
	RenewAuthority bool `json:"-"`
	// AlwaysChecksum gives an authority's Secret a name with a checksum before its first rotation, too.
	AlwaysChecksum bool `json:"-"`
	// Persist has the Secret saved with the state of the Shoot.
	Persist bool `json:"-"`
	// RestoreOnly refuses to generate a Secret except for a rotation that begins: one must have been lost. It is set once what the Secret
	// encrypts or is trusted by exists. What was saved is restored.
	RestoreOnly bool `json:"-"`
}

// Rotation is what is declared of a rotation of a Secret.
type Rotation struct {
	// Initiated is when it was started last.
	Initiated time.Time
	Phase     corev1beta1.CredentialsRotationPhase
	// Distributed says that all servers have rolled out what Preparing added beside the old: they accept what is signed or encrypted with the
	// current Secret. It is false when a rotation starts, and is a fact for the ledger.
	Distributed bool
}

// dropsOld reports whether the old Secret is not accepted any more.
func (r Rotation) dropsOld() bool {
	return r.Phase == corev1beta1.RotationCompleting || r.Phase == corev1beta1.RotationCompleted
}

// begins reports whether the current Secret may not exist yet.
func (r Rotation) begins() bool {
	switch r.Phase {
	case "", corev1beta1.RotationPreparing, corev1beta1.RotationPreparingWithoutWorkersRollout:
		return true
	}
	return false
}

// keepsOld reports whether the old Secret has to exist.
func (r Rotation) keepsOld() bool { return r.Phase != "" && !r.dropsOld() }

// isCertificate reports whether an authority signs what the Secret has.
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

// hasBundle reports whether current and old Secret are handed out together.
func (c Config) hasBundle() bool { return c.Kind == KindCA || c.Kind == KindRSAKey }

// outlivesChanges reports whether a Secret that was generated from another config stays the current one until the next rotation: others
// trust what it has, or data are encrypted with it. So no new version of a program rotates it, and those of Gardener's secrets manager,
// which computes other checksums, are taken over.
func (c Config) outlivesChanges() bool {
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

// checksum is that of all that the generated data depend on, as a decimal number. The data are those of other Secrets.
func (c Config) checksum(others ...Material) (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("the checksum of the config of secret %s: %w", c.Name, err)
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
