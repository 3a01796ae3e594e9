package certificates

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"
)

// The keys of the Secret that holds the state. The keys of the CA and the server have their usual names in Kubernetes.
const (
	keyAuthority, keyAuthorityKey = "ca.crt", "ca.key"
	keyNext, keyNextKey           = "ca-next.crt", "ca-next.key"
	keyPrevious                   = "ca-previous.crt"
)

// state is the content of the Secret.
type state struct {
	// authority has signed server. next will sign the next server certificate. API servers trust next before it signs.
	authority, next, server *pair
	// previous are CAs whose keys are deleted, but whose server certificates a slow replica might still present to an API
	// server.
	previous []*x509.Certificate
}

func parse(data map[string][]byte) state {
	return state{
		authority: parsePair(data[keyAuthority], data[keyAuthorityKey]), next: parsePair(data[keyNext], data[keyNextKey]),
		server: parsePair(data[certificateFile], data[keyFile]), previous: parseCertificates(data[keyPrevious]),
	}
}

func (s state) encode() (map[string][]byte, error) {
	data := map[string][]byte{}
	for _, one := range []struct {
		pair             *pair
		certificate, key string
	}{{s.authority, keyAuthority, keyAuthorityKey}, {s.next, keyNext, keyNextKey}, {s.server, certificateFile, keyFile}} {
		if one.pair == nil {
			continue
		}
		certificate, key, err := one.pair.encode()
		if err != nil {
			return nil, err
		}
		data[one.certificate], data[one.key] = certificate, key
	}
	if len(s.previous) > 0 {
		data[keyPrevious] = encodeCertificates(s.previous...)
	}
	return data, nil
}

// bundle returns the CA bundle that API servers must trust, in PEM.
func (s state) bundle() []byte {
	var trusted []*x509.Certificate
	for _, one := range []*pair{s.authority, s.next} {
		if one != nil {
			trusted = append(trusted, one.certificate)
		}
	}
	return encodeCertificates(append(trusted, s.previous...)...)
}

// renewed returns the state that is due now. known reports whether all API servers know the bundle of s.
//
// A CA is replaced in two steps, so that clients with either the old or the new bundle trust the server. The next CA is
// added to the bundle first, and signs only when the bundle is known.
func (s state) renewed(names []string, now time.Time, known bool) (state, error) {
	var err error
	s.previous = slices.DeleteFunc(slices.Clone(s.previous), func(one *x509.Certificate) bool { return now.After(one.NotAfter) })
	switch {
	case s.authority == nil || now.After(s.authority.certificate.NotAfter):
		// No trusted CA is left.
		s.next, s.server = nil, nil
		s.authority, err = newAuthority(now)
	case s.next == nil && due(s.authority.certificate, authorityRenewal, now):
		s.next, err = newAuthority(now)
	case s.next != nil && known && now.After(s.next.certificate.NotBefore.Add(clockSkew+spread)):
		s.previous = append(s.previous, s.authority.certificate)
		s.authority, s.next = s.next, nil
	}
	if err != nil || s.serves(names, now) {
		return s, err
	}
	s.server, err = s.authority.issue(names, now)
	return s, err
}

// serves reports whether the server certificate is for names and does not have to be renewed.
func (s state) serves(names []string, now time.Time) bool {
	if s.server == nil || !slices.Equal(s.server.certificate.DNSNames, names) {
		return false
	}
	// A certificate that expires with its CA cannot be extended.
	if due(s.server.certificate, serverRenewal, now) && s.server.certificate.NotAfter.Before(s.authority.certificate.NotAfter) {
		return false
	}
	return s.server.certificate.CheckSignatureFrom(s.authority.certificate) == nil
}

// due reports whether a certificate expires soon and must be replaced.
func due(certificate *x509.Certificate, before time.Duration, now time.Time) bool {
	return now.Add(before).After(certificate.NotAfter)
}

// equal reports whether two Secrets have the same data.
func equal(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, found := b[key]; !found || !bytes.Equal(value, other) {
			return false
		}
	}
	return true
}
