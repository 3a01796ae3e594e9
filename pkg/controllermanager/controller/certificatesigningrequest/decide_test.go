package certificatesigningrequest

import (
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	ours, theirs = "gardener.cloud:system:seed:one", "gardener.cloud:system:seed:two"
	group        = "gardener.cloud:system:seeds"
)

type spec = certificatesv1.CertificateSigningRequestSpec

// TestDecide checks which requests are approved, denied with which reason, or left to others.
func TestDecide(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const ignored, approved = "ignored", ""
	content := requests(t)
	token := func(s *spec) { s.Username, s.Groups = "system:bootstrap:abcdef", []string{tokensGroup} }
	account := func(name string) func(*spec) {
		return func(s *spec) {
			s.Username, s.Groups = "system:serviceaccount:"+name, []string{"system:serviceaccounts"}
		}
	}
	with := func(change func(*pkix.Name), names ...string) func(*spec) {
		return func(s *spec) { s.Request = content(change, names...) }
	}
	seed := func(expiry time.Duration) *corev1beta1.Seed {
		return &corev1beta1.Seed{Status: corev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: ptr.To(metav1.NewTime(now.Add(expiry)))}}
	}
	forOne := Facts{Description: "Bootstrap token for the gardenlet of Seed one"}
	for name, test := range map[string]struct {
		change func(*spec)
		facts  Facts
		want   string
	}{
		"renewal":                      {change: func(*spec) {}, want: approved},
		"administrator":                {change: func(s *spec) { s.Username, s.Groups = "admin", []string{"system:masters"} }, want: approved},
		"another gardenlet":            {change: func(s *spec) { s.Username = theirs }, want: "is not the gardenlet of Seed one"},
		"another user of the group":    {change: func(s *spec) { s.Username = "eve" }, want: "is not the gardenlet"},
		"another signer":               {change: func(s *spec) { s.SignerName = certificatesv1.KubeletServingSignerName }, want: ignored},
		"another user's certificate":   {change: with(func(n *pkix.Name) { n.CommonName = "admin" }), want: ignored},
		"no Seed":                      {change: with(func(n *pkix.Name) { n.CommonName = "gardener.cloud:system:seed:" }), want: ignored},
		"no request":                   {change: func(s *spec) { s.Request = []byte("a") }, want: ignored},
		"two requests":                 {change: func(s *spec) { s.Request = append(s.Request, s.Request...) }, want: "more than a PEM block"},
		"another group":                {change: with(func(n *pkix.Name) { n.Organization = []string{"system:masters"} }), want: "organization"},
		"two groups":                   {change: with(func(n *pkix.Name) { n.Organization = append(n.Organization, "system:masters") }), want: "organization"},
		"a unit":                       {change: with(func(n *pkix.Name) { n.OrganizationalUnit = []string{"a"} }), want: "more than a common name"},
		"a DNS name":                   {change: with(func(*pkix.Name) {}, "kubernetes.default.svc"), want: "DNS names"},
		"an additional usage":          {change: func(s *spec) { s.Usages = append(s.Usages, certificatesv1.UsageServerAuth) }, want: "usages"},
		"a missing usage":              {change: func(s *spec) { s.Usages = s.Usages[:2] }, want: "usages"},
		"token":                        {change: token, facts: forOne, want: approved},
		"token without description":    {change: token, want: "does not name Seed one"},
		"token of another Seed":        {change: token, facts: Facts{Description: "for Seed two"}, want: "does not name Seed one"},
		"token with a longer name":     {change: token, facts: Facts{Description: "for Seed one-two"}, want: "does not name Seed one"},
		"token of two Seeds":           {change: token, facts: Facts{Description: "for Seed one and Seed two"}, want: "does not name Seed one"},
		"token with the form of docs":  {change: token, facts: Facts{Description: "Token to be used by the gardenlet for Seed `one`."}, want: approved},
		"token of a ManagedSeed":       {change: token, facts: Facts{Description: "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/one."}, want: approved},
		"token of a Gardenlet":         {change: token, facts: Facts{Description: "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/one."}, want: approved},
		"token of another ManagedSeed": {change: token, facts: Facts{Description: "…ManagedSeed resource garden/two."}, want: "does not name Seed one"},
		"token of another namespace":   {change: token, facts: Facts{Description: "…ManagedSeed resource garden-dev/one."}, want: "does not name Seed one"},
		"token without its group":      {change: func(s *spec) { token(s); s.Groups = nil }, facts: forOne, want: "not those of a bootstrap token"},
		"the group without a token":    {change: func(s *spec) { token(s); s.Username = "eve" }, facts: forOne, want: "not those of a bootstrap token"},
		"a new Seed":                   {change: token, facts: Facts{forOne.Description, &corev1beta1.Seed{}, false}, want: approved},
		"an expired certificate":       {change: token, facts: Facts{forOne.Description, seed(-time.Second), false}, want: approved},
		"a valid certificate":          {change: token, facts: Facts{forOne.Description, seed(time.Hour), false}, want: "valid until 2030-01-01T01:00:00Z"},
		"a requested renewal":          {change: token, facts: Facts{forOne.Description, seed(time.Hour), true}, want: approved},
		"renewal of a valid one":       {change: func(*spec) {}, facts: Facts{Seed: seed(time.Hour)}, want: approved},
		"account":                      {change: account("garden:gardenlet-bootstrap-one"), want: approved},
		"account of another Seed":      {change: account("garden:gardenlet-bootstrap-two"), want: "for another Seed"},
		"account, valid certificate":   {change: account("garden:gardenlet-bootstrap-one"), facts: Facts{Seed: seed(time.Hour)}, want: "valid until"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec{
				Username: ours, Groups: []string{group}, SignerName: certificatesv1.KubeAPIServerClientSignerName, Request: content(func(*pkix.Name) {}),
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
			}
			test.change(&s)
			got := ignored
			if request, is := Read(&s); is {
				got = Decide(request, test.facts, now)
			}
			if got != test.want && (test.want == approved || test.want == ignored || !strings.Contains(got, test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// requests returns a function that makes requests for the certificate of Seed one, with changes and DNS names.
func requests(t *testing.T) func(change func(*pkix.Name), names ...string) []byte {
	t.Helper()
	encoded, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return func(change func(*pkix.Name), names ...string) []byte {
		subject := &pkix.Name{CommonName: ours, Organization: []string{group}}
		change(subject)
		request, err := cert.MakeCSR(key, subject, names, nil)
		if err != nil {
			t.Fatal(err)
		}
		return request
	}
}
