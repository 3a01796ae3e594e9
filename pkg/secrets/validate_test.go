package secrets

import (
	"strings"
	"testing"
)

func TestResolveRefuses(t *testing.T) {
	kubeconfig := Config{Name: "a", Kind: KindKubeconfig, Server: "https://here", Trusts: "ca", TokenFile: "token"}
	change := func(change func(*Config)) []Config {
		config := kubeconfig
		change(&config)
		return []Config{{Name: "ca", Kind: KindCA}, config}
	}
	for name, test := range map[string]struct {
		configs []Config
		want    string
	}{
		"configured twice":     {[]Config{{Name: "a", Kind: KindCA}, {Name: "a", Kind: KindVPNTLSAuth}}, "configured twice"},
		"an unknown authority": {[]Config{{Name: "a", Kind: KindServer, SignedBy: "ca"}}, `signed by "ca", which is not configured`},
		"no authority":         {[]Config{{Name: "a", Kind: KindServer}}, "signedBy must name an authority"},
		"a signer that is not an authority": {
			[]Config{{Name: "b", Kind: KindVPNTLSAuth}, {Name: "a", Kind: KindServer, SignedBy: "b"}}, `signed by "b", which is not configured`},
		"no name":             {[]Config{{Kind: KindCA}}, "has no name"},
		"an unknown kind":     {[]Config{{Name: "a", Kind: "b"}}, `unknown kind "b"`},
		"a bad address":       {[]Config{{Name: "a", Kind: KindCA, IPAddresses: []string{"1.2.3"}}}, `"1.2.3" is not an IP address`},
		"too few bits":        {[]Config{{Name: "a", Kind: KindRSAKey, Bits: 512}}, "512 bits are less than 1024"},
		"a bad username":      {[]Config{{Name: "a", Kind: KindBasicAuth, Username: "a:b"}}, `the username "a:b"`},
		"no users":            {[]Config{{Name: "a", Kind: KindStaticToken}}, "needs a user"},
		"a user twice":        {[]Config{{Name: "a", Kind: KindStaticToken, Users: []User{{Name: "b"}, {Name: "b"}}}}, "used twice"},
		"a group with comma":  {[]Config{{Name: "a", Kind: KindStaticToken, Users: []User{{Name: "b", Groups: []string{"c,d"}}}}}, "contains a comma"},
		"an unknown provider": {[]Config{{Name: "a", Kind: KindEncryptionKey, Provider: "rot13"}}, `the provider "rot13"`},
		"a negative validity": {[]Config{{Name: "a", Kind: KindCA, Validity: -1}}, "must not be negative"},
		"no server":           {change(func(c *Config) { c.Server = "here" }), `the server "here"`},
		"no trust":            {change(func(c *Config) { c.Trusts = "" }), "trusts must name"},
		"an unknown trust":    {change(func(c *Config) { c.Trusts = "b" }), `trusts "b", which is not configured`},
		"two credentials":     {change(func(c *Config) { c.SignedBy = "ca" }), "exactly one of"},
		"unknown tokens":      {change(func(c *Config) { c.TokenFile, c.TokensOf, c.Username = "", "b", "c" }), `has a token of "b", which is not configured`},
		"a token of no user":  {change(func(c *Config) { c.TokenFile, c.TokensOf = "", "b" }), "tokensOf needs a username"},
	} {
		if _, err := Resolve(test.configs, State{Now: start}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
