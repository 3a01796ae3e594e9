package secrets

import (
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// held is what a server and a client use: what it shows, and what it trusts.
type held struct{ shows, trusts []byte }

// verify returns why one does not accept what the other one shows.
func verify(shown, trusted []byte, usage x509.ExtKeyUsage, now time.Time) error {
	certificate, err := parse(shown)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

// TestADecade goes through ten years in which certificates are renewed and authorities rotated three times. Servers get what is new before
// clients do; at each instant of that, a server and a client accept each other.
func TestADecade(t *testing.T) {
	p := newPlace(t)
	rotated := []string{"ca", "ca-client"}
	phases := map[int]corev1beta1.CredentialsRotationPhase{}
	for _, first := range []int{60, 200, 400} {
		phases[first], phases[first+3] = corev1beta1.RotationPreparing, corev1beta1.RotationPrepared
		phases[first+8], phases[first+11] = corev1beta1.RotationCompleting, corev1beta1.RotationCompleted
	}
	var server, kubectl held
	generated := map[string]bool{}
	for week := range 519 {
		now := start.Add(time.Duration(week) * 7 * day)
		p.clock.SetTime(now)
		if phase := phases[week]; phase != "" {
			p.rotate(phase, rotated...)
		}
		result := p.ensure(configs())
		next := func(item string, trusts string) held {
			generated[result.Items[item].Current.Name] = true
			return held{result.Items[item].Current.Data[corev1.TLSCertKey], result.Items[trusts].Bundle.Data[KeyBundleCert]}
		}
		newServer, newKubectl := next("kube-apiserver", "ca-client"), next("kubectl", "ca")
		if week == 0 {
			server, kubectl = newServer, newKubectl
		}
		for _, pair := range [][2]held{{server, kubectl}, {newServer, kubectl}, {newServer, newKubectl}} {
			if err := verify(pair[0].shows, pair[1].trusts, x509.ExtKeyUsageServerAuth, now); err != nil {
				t.Fatalf("week %d (%s): the client does not accept the server: %v", week, phases[week], err)
			}
			if err := verify(pair[1].shows, pair[0].trusts, x509.ExtKeyUsageClientAuth, now); err != nil {
				t.Fatalf("week %d (%s): the server does not accept the client: %v", week, phases[week], err)
			}
		}
		server, kubectl = newServer, newKubectl
		if err := p.manager.Delete(t.Context(), Deletable(result, nil, func(string) bool { return false })); err != nil {
			t.Fatal(err)
		}
	}
	if len(generated) < 80 {
		t.Errorf("%d certificates were generated in ten years", len(generated))
	}
}
