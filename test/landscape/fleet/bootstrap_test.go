package fleet

import (
	"crypto/x509/pkix"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// TestApproved checks that only requests of the gardenlet of a Seed for its own client certificate are approved, whatever
// their names are.
func TestApproved(t *testing.T) {
	encoded, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(encoded)
	if err != nil {
		t.Fatal(err)
	}
	type spec = certificatesv1.CertificateSigningRequestSpec
	content := func(subject pkix.Name, names ...string) []byte {
		request, err := cert.MakeCSR(key, &subject, names, nil)
		if err != nil {
			t.Fatal(err)
		}
		return request
	}
	own := pkix.Name{CommonName: "gardener.cloud:system:seed:local", Organization: []string{"gardener.cloud:system:seeds"}}
	for name, test := range map[string]struct {
		change   func(*spec)
		approved bool
	}{
		"bootstrap":      {func(*spec) {}, true},
		"renewal":        {func(s *spec) { s.Username = "gardener.cloud:system:seed:local" }, true},
		"another token":  {func(s *spec) { s.Username = "system:bootstrap:other1" }, false},
		"another Seed":   {func(s *spec) { s.Username = "gardener.cloud:system:seed:other" }, false},
		"another signer": {func(s *spec) { s.SignerName = certificatesv1.KubeletServingSignerName }, false},
		"another usage":  {func(s *spec) { s.Usages = append(s.Usages, certificatesv1.UsageServerAuth) }, false},
		"another user":   {func(s *spec) { s.Request = content(pkix.Name{CommonName: "admin", Organization: own.Organization}) }, false},
		"system:masters": {func(s *spec) {
			s.Request = content(pkix.Name{CommonName: own.CommonName, Organization: []string{"system:masters"}})
		}, false},
		"a second group": {func(s *spec) {
			s.Request = content(pkix.Name{CommonName: own.CommonName, Organization: append([]string{"system:masters"}, own.Organization...)})
		}, false},
		"another name of user": {func(s *spec) {
			s.Request = content(pkix.Name{CommonName: own.CommonName, Organization: own.Organization, OrganizationalUnit: []string{"a"}})
		}, false},
		"a DNS name":   {func(s *spec) { s.Request = content(own, "kubernetes.default.svc") }, false},
		"no request":   {func(s *spec) { s.Request = []byte("a") }, false},
		"two requests": {func(s *spec) { s.Request = append(s.Request, s.Request...) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "seed-csr-a"}, Spec: spec{
				Username: "system:bootstrap:" + tokenID, SignerName: certificatesv1.KubeAPIServerClientSignerName, Request: content(own),
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
			}}
			test.change(&request.Spec)
			if err := refusal(request, "local", tokenID); test.approved != (err == nil) {
				t.Errorf("got %v", err)
			}
		})
	}
}
