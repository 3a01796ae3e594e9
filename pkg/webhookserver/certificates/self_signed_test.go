package certificates

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	testingclock "k8s.io/utils/clock/testing"
)

// TestOwnCertificate checks that a certificate is served until it must be replaced, and never after it has expired.
func TestOwnCertificate(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	own := NewOwn(clock, logr.Discard())
	serials := map[string]bool{}
	for range 4 * 365 {
		shown, err := own.Get(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf := leafOf(shown)
		if now := clock.Now(); now.Before(leaf.NotBefore) || leaf.NotAfter.Sub(now) < serverRenewal {
			t.Fatalf("at %s a certificate is served that is valid from %s to %s", now, leaf.NotBefore, leaf.NotAfter)
		}
		if err := leaf.VerifyHostname("localhost"); err != nil || leaf.IsCA {
			t.Fatalf("the certificate is not valid for a server on localhost: %v", err)
		}
		serials[leaf.SerialNumber.String()] = true
		clock.SetTime(clock.Now().Add(24 * time.Hour))
	}
	if most := 4*365/60 + 1; len(serials) < 4*365/90 || len(serials) > most {
		t.Errorf("%d certificates in four years, at most %d are needed", len(serials), most)
	}
}
