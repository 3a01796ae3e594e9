package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"testing"
	"time"
)

var names = []string{"resource-manager.garden.svc", "*.example.org"}

// trusts checks that an API server with a bundle accepts the certificate of a server.
func trusts(bundle []byte, server *pair, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := server.certificate.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: names[0], CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

// TestFiveYears checks certificates every 31 hours for five years, through the Secret. API servers get a new bundle late, and
// replicas serve a new certificate late. Every API server must trust every certificate that is served.
func TestFiveYears(t *testing.T) {
	const step, late = 31 * time.Hour, 3
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	data, bundles, servers, authorities := map[string][]byte{}, [][]byte{}, []*pair{}, map[string]bool{}
	for now := begin; now.Before(begin.AddDate(5, 0, 0)); now = now.Add(step) {
		kept := parse(data)
		// The webhook configurations have the bundle of the previous iteration.
		known := len(bundles) > 0 && bytes.Equal(kept.bundle(), bundles[len(bundles)-1]) && (len(bundles) < late || bytes.Equal(kept.bundle(), bundles[len(bundles)-late]))
		state, err := kept.renewed(names, now, known)
		if err != nil {
			t.Fatal(err)
		}
		if data, err = state.encode(); err != nil {
			t.Fatal(err)
		}
		bundles, servers = append(bundles, state.bundle()), append(servers, state.server)
		authorities[state.authority.certificate.SerialNumber.String()] = true
		for _, bundle := range bundles[max(0, len(bundles)-late):] {
			for _, server := range servers[max(0, len(servers)-late):] {
				if err := trusts(bundle, server, now); err != nil {
					t.Fatalf("after %s: %v", now.Sub(begin), err)
				}
			}
		}
	}
	if len(authorities) < 3 {
		t.Errorf("there were %d authorities", len(authorities))
	}
	t.Logf("%d authorities, %d iterations", len(authorities), len(bundles))
}

func TestRenewal(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	fresh, err := state{}.renewed(names, now, true)
	if err != nil {
		t.Fatal(err)
	}
	data, err := fresh.encode()
	if err != nil {
		t.Fatal(err)
	}
	other, err := state{}.renewed(names, now, true)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.encode()
	if err != nil {
		t.Fatal(err)
	}
	with := func(key string, value []byte) map[string][]byte {
		changed := map[string][]byte{}
		for key, value := range data {
			changed[key] = value
		}
		changed[key] = value
		return changed
	}
	for name, test := range map[string]struct {
		data                 map[string][]byte
		names                []string
		after                time.Duration
		sameServer, sameRoot bool
	}{
		"nothing is due":                   {data, names, 59 * 24 * time.Hour, true, true},
		"the server's is due":              {data, names, 61 * 24 * time.Hour, false, true},
		"the server's has expired":         {data, names, 91 * 24 * time.Hour, false, true},
		"the authority has expired":        {data, names, 3 * 366 * 24 * time.Hour, false, false},
		"another name":                     {data, []string{"other"}, 0, false, true},
		"a broken certificate":             {with(certificateFile, []byte("broken")), names, 0, false, true},
		"a key of another certificate":     {with(keyFile, foreign[keyFile]), names, 0, false, true},
		"no key of the authority":          {with(keyAuthorityKey, nil), names, 0, false, false},
		"another authority":                {with(keyAuthority, foreign[keyAuthority]), names, 0, false, false},
		"something else among what is old": {with(keyPrevious, []byte("text")), names, 0, true, true},
	} {
		got, err := parse(test.data).renewed(test.names, now.Add(test.after), true)
		if err != nil {
			t.Fatal(err)
		}
		sameServer := got.server.certificate.Equal(fresh.server.certificate)
		sameRoot := got.authority.certificate.Equal(fresh.authority.certificate)
		if sameServer != test.sameServer || sameRoot != test.sameRoot || !slices.Equal(got.server.certificate.DNSNames, test.names) {
			t.Errorf("%s: same server certificate: %t, same authority: %t, names %v", name, sameServer, sameRoot, got.server.certificate.DNSNames)
		}
		encoded, err := got.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tls.X509KeyPair(encoded[certificateFile], encoded[keyFile]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
