package secrets

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// unit is a part of the control plane that gets new Secrets at one time. uses are the kinds of material that it has.
type unit struct {
	name string
	uses []string
}

// pair is a client and a server, by the prefixes of their names, with the certificates that they present and the authorities
// that they trust.
type pair struct{ client, server, clientShows, serverTrusts, serverShows, clientTrusts string }

// chain is the period in which a certificate is accepted.
type chain struct{ from, until time.Time }

// cluster is the material that the units of a control plane have.
type cluster struct {
	*place
	held map[string]map[string][]byte
	// waiting are the units that do not get new material yet.
	waiting []string
	// written are the names of the keys that encrypt objects in etcd.
	written map[string]bool
	// chains and signatures cache the ones that were verified before.
	chains           map[string]chain
	signatures       map[string]bool
	checks, verified int
}

// have returns the material for a use.
func (c *cluster) have(result Result, use string) []byte {
	kind, name, _ := strings.Cut(use, ":")
	key := result.Items["service-account-key"]
	ssh := result.Items["ssh-keypair"]
	switch kind {
	case "show":
		return result.Items[name].Current.Data[corev1.TLSCertKey]
	case "trust":
		return result.bundle(name)
	case "kubeconfig":
		config, err := clientcmd.Load(result.Items["generic-token-kubeconfig"].Current.Data[KeyKubeconfig])
		if err != nil {
			c.Fatal(err)
		}
		return config.Clusters["generic-token-kubeconfig"].CertificateAuthorityData
	case "sign":
		return key.Active.Data[KeyRSA]
	case "verify":
		return key.Bundle.Data[KeyBundleKey]
	case "token": // signed by an API server
		return c.held["kube-apiserver-0"]["sign"]
	case "encryption":
		secret, err := Encryption{Name: "configuration", Resources: []string{"secrets"}}.Secret(result.Items["kube-apiserver-etcd-encryption-key"])
		if err != nil {
			c.Fatal(err)
		}
		return secret.Data[KeyEncryptionConfiguration]
	case "tokens":
		return result.Items["kube-apiserver-static-token"].Current.Data[KeyStaticTokens]
	case "authorized":
		keys := bytes.Clone(ssh.Current.Data[KeyRSAPublic])
		if ssh.Old != nil {
			keys = append(keys, ssh.Old.Data[KeyRSAPublic]...)
		}
		return keys
	case "private": // identified by its public part
		return ssh.Current.Data[KeyRSAPublic]
	case "tlsauth":
		return result.Items["vpn-seed-server-tlsauth"].Current.Data[KeyVPNTLSAuth]
	case "users", "admin":
		data := result.Items[map[string]string{"users": "observability-ingress-users", "admin": "plutono-admin"}[kind]].Current.Data
		return append(append(bytes.Clone(data[KeyPassword]), ' '), data[KeyAuth]...)
	}
	c.Fatalf("the use %q is not known", use)
	return nil
}

// check verifies the connections of all units that communicate with each other.
func (c *cluster) check(moment string) {
	c.Helper()
	if len(c.held) < len(units()) {
		return // not all units have been created yet
	}
	c.checks++
	now := c.clock.Now()
	fail := func(format string, arguments ...any) {
		c.Helper()
		c.Fatalf("%s (phase %q), %s: "+format, append([]any{now.Format(time.DateTime), c.rotations["ca"].Phase, moment}, arguments...)...)
	}
	for _, pair := range pairs {
		for _, client := range c.matching(pair.client) {
			for _, server := range c.matching(pair.server) {
				if err := c.accepts(c.held[server][pair.serverShows], c.held[client][pair.clientTrusts], x509.ExtKeyUsageServerAuth, now); err != nil {
					fail("%s does not accept the server %s: %v", client, server, err)
				}
				if pair.clientShows == "" {
					continue
				}
				if err := c.accepts(c.held[client][pair.clientShows], c.held[server][pair.serverTrusts], x509.ExtKeyUsageClientAuth, now); err != nil {
					fail("%s does not accept the client %s: %v", server, client, err)
				}
			}
		}
	}
	apiservers := c.matching("kube-apiserver-")
	for _, apiserver := range apiservers {
		for name, held := range c.held {
			for _, use := range []string{"token", "sign"} {
				if signs := held[use]; signs != nil && !c.verifies(signs, c.held[apiserver]["verify"]) {
					fail("%s does not accept a token of %s", apiserver, name)
				}
			}
		}
		c.written[c.encryptionKeys(apiserver)[0]] = true
		if _, err := tokenOf(Material{KeyStaticTokens: c.held[apiserver]["tokens"]}, "health-check"); err != nil {
			fail("the probe of %s has no token: %v", apiserver, err)
		}
	}
	for _, apiserver := range apiservers {
		known := strings.Join(c.encryptionKeys(apiserver), " ")
		for key := range c.written {
			if !strings.Contains(known, key) {
				fail("%s cannot read data that was encrypted with %s", apiserver, key)
			}
		}
	}
	for _, node := range c.matching("kubelet-") {
		if !bytes.Contains(c.held[node]["authorized"], c.held["user"]["private"]) {
			fail("%s does not accept the SSH key of the user", node)
		}
	}
	for _, use := range []string{"users", "admin"} {
		if !c.opens(c.held["observability"][use]) {
			fail("the password of %s is not accepted", use)
		}
	}
	if !bytes.Equal(c.held["vpn-shoot"]["tlsauth"], c.held["vpn-seed-server"]["tlsauth"]) {
		fail("the ends of the VPN have different keys")
	}
}

// rewrite writes all objects in etcd again, with the key of the first API server.
func (c *cluster) rewrite() {
	c.written = map[string]bool{c.encryptionKeys("kube-apiserver-0")[0]: true}
}

// encryptionKeys returns the names of the keys of an API server. The first one encrypts writes.
func (c *cluster) encryptionKeys(apiserver string) []string {
	var configuration apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict(c.held[apiserver]["encryption"], &configuration); err != nil {
		c.Fatal(err)
	}
	var names []string
	for _, key := range configuration.Resources[0].Providers[0].AESCBC.Keys {
		names = append(names, fmt.Sprintf("%s=%x", key.Name, sha256.Sum256([]byte(key.Secret))))
	}
	return names
}

// accepts verifies a chain, unless it was verified before and is valid at the given time.
func (c *cluster) accepts(shown, trusted []byte, usage x509.ExtKeyUsage, now time.Time) error {
	key := fmt.Sprintf("%s %s %d", shown, trusted, usage)
	if known, found := c.chains[key]; found && !now.Before(known.from) && !now.After(known.until) {
		return nil
	}
	certificate, err := parse(shown)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	chains, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return err
	}
	c.verified++
	valid := chain{certificate.NotBefore, certificate.NotAfter}
	for _, link := range chains[0] {
		if link.NotBefore.After(valid.from) {
			valid.from = link.NotBefore
		}
		if link.NotAfter.Before(valid.until) {
			valid.until = link.NotAfter
		}
	}
	c.chains[key] = valid
	return nil
}

// verifies signs data with a key and verifies the signature with a bundle.
func (c *cluster) verifies(signs, bundle []byte) bool {
	memory := string(signs) + " " + string(bundle)
	if c.signatures[memory] {
		return true
	}
	private, err := rsaKey(signs)
	if err != nil {
		c.Fatal(err)
	}
	digest := sha256.Sum256([]byte("a token"))
	signature, err := rsa.SignPKCS1v15(nil, private, crypto.SHA256, digest[:])
	if err != nil {
		c.Fatal(err)
	}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err == nil && rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature) == nil {
			c.signatures[memory] = true
		}
	}
	return c.signatures[memory]
}

// opens compares a password with an htpasswd file.
func (c *cluster) opens(text []byte) bool {
	if !c.signatures[string(text)] {
		password, auth, _ := bytes.Cut(text, []byte(" "))
		_, hash, _ := bytes.Cut(auth, []byte(":"))
		c.signatures[string(text)] = bcrypt.CompareHashAndPassword(hash, password) == nil
	}
	return c.signatures[string(text)]
}

// verify returns the reason why a client that trusts the bundle does not accept a certificate, or nil.
func verify(shown, trusted []byte, now time.Time) error {
	c := cluster{chains: map[string]chain{}}
	return c.accepts(shown, trusted, x509.ExtKeyUsageAny, now)
}
