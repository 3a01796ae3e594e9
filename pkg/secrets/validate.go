package secrets

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// providers are the encryption providers for which keys can be generated.
var providers = []corev1beta1.EncryptionProviderType{
	corev1beta1.EncryptionProviderTypeAESCBC, corev1beta1.EncryptionProviderTypeAESGCM, corev1beta1.EncryptionProviderTypeSecretbox,
}

// minBits is the minimum length of an RSA key.
const minBits = 1024

// validate returns an error if a Secret cannot be generated from a config. It detects all errors of the generation
// before anything is written.
func (c Config) validate() error {
	if c.Name == "" {
		return errors.New("a secret has no name")
	}
	var errs []error
	refuse := func(format string, arguments ...any) {
		errs = append(errs, fmt.Errorf("secret %s: "+format, append([]any{c.Name}, arguments...)...))
	}
	switch c.Kind {
	case KindCA, KindVPNTLSAuth:
	case KindServer, KindClient, KindServerClient:
		if c.SignedBy == "" {
			refuse("signedBy must name an authority")
		}
	case KindRSAKey, KindSSHKeypair:
		if c.Bits != 0 && c.Bits < minBits {
			refuse("%d bits are less than %d", c.Bits, minBits)
		}
	case KindBasicAuth:
		if c.Username == "" || strings.ContainsAny(c.Username, ":\n") {
			refuse("the username %q must not be empty, or contain a colon or a line break", c.Username)
		}
	case KindStaticToken:
		c.validateUsers(refuse)
	case KindEncryptionKey:
		if c.Provider != "" && !slices.Contains(providers, c.Provider) {
			refuse("the provider %q is not one of %v", c.Provider, providers)
		}
	case KindKubeconfig:
		c.validateKubeconfig(refuse)
	default:
		refuse("unknown kind %q", c.Kind)
	}
	for _, text := range c.IPAddresses {
		if net.ParseIP(text) == nil {
			refuse("%q is not an IP address", text)
		}
	}
	if c.Validity < 0 || c.RenewAfter < 0 || c.RenewAfter > 100 || c.IgnoreOldAfter < 0 {
		refuse("validity, renewAfter and ignoreOldAfter must not be negative, nor renewAfter above 100 percent")
	}
	return errors.Join(errs...)
}

func (c Config) validateUsers(refuse func(string, ...any)) {
	if len(c.Users) == 0 {
		refuse("a static token needs a user")
	}
	names := map[string]bool{}
	for _, user := range c.Users {
		if user.Name == "" || names[user.Name] {
			refuse("the name of user %q is empty or used twice", user.Name)
		}
		names[user.Name] = true
		if slices.ContainsFunc(user.Groups, func(group string) bool { return group == "" || strings.Contains(group, ",") }) {
			refuse("a group of user %q is empty or contains a comma", user.Name)
		}
	}
}

func (c Config) validateKubeconfig(refuse func(string, ...any)) {
	if server, err := url.Parse(c.Server); err != nil || server.Scheme != "https" || server.Host == "" {
		refuse("the server %q is not the URL of an HTTPS server", c.Server)
	}
	if c.Trusts == "" {
		refuse("trusts must name the authority of the server")
	}
	ways := 0
	for _, way := range []string{c.TokenFile, c.SignedBy, c.TokensOf} {
		if way != "" {
			ways++
		}
	}
	if ways != 1 {
		refuse("a kubeconfig needs exactly one of tokenFile, signedBy and tokensOf, it has %d", ways)
	}
	if c.TokensOf != "" && c.Username == "" {
		refuse("tokensOf needs a username")
	}
}
