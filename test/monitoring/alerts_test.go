package monitoring

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/nodeagentauthorizer"
	"github.com/trellis-k8s/trellis/test/kit"
)

// unprovoked are alerts that no trouble triggers, with the reason.
var unprovoked = map[string]string{
	"ResourceManagerWebhookPanics": "no input is known that makes a webhook panic; promtool tests the rule",
}

// lasting matches how long an alert is pending before it fires.
var lasting = regexp.MustCompile(`(?m)^(    for: )\S+$`)

// TestAlertsFire causes every kind of trouble for resource-managers, and waits until each alert fires. The rules
// are those of the repository, except for their pending times.
func TestAlertsFire(t *testing.T) {
	cp, c := monitored(t)
	rules, err := os.ReadFile("../../config/monitoring/alerts.yaml")
	kit.Must(t, err)
	hasty := filepath.Join(t.TempDir(), "alerts.yaml")
	kit.Must(t, os.WriteFile(hasty, lasting.ReplaceAll(rules, []byte("${1}4s")), 0o600))

	objects := newSite(t, cp, c, "objects", "", nil)
	refusing := newSite(t, cp, c, "refusing", "", func(r *http.Request) (time.Duration, int) {
		if asks(r, http.MethodGet, "/services") {
			return 0, http.StatusForbidden
		}
		return 0, 0
	})
	statuses := newSite(t, cp, c, "statuses", "", nil)
	slow := newSite(t, cp, c, "slow", "controllers: {managedResource: {concurrentSyncs: 1}}\n", func(r *http.Request) (time.Duration, int) {
		if asks(r, http.MethodPatch, "/configmaps") {
			return 20 * time.Second, 0
		}
		return 0, 0
	})
	others := newSite(t, cp, c, "others", otherParts, otherTrouble)
	lease := holdLease(t, c)
	waiting := newSite(t, cp, c, "waiting", "leaderElection: {leaderElect: true, resourceNamespace: "+lease.Namespace+"}\n", nil)
	all := []*site{objects, refusing, statuses, slow, others, waiting}
	addresses := make([]string, 0, len(all))
	for _, each := range all {
		addresses = append(addresses, each.process.Metrics)
	}
	p := startPrometheus(t, hasty, addresses...)

	objects.fail()
	refusing.refuse()
	statuses.loseStatuses()
	slow.crawl()
	others.ask(cp.Config())
	fired, begin := map[string]bool{}, time.Now()
	round := func() string {
		elapsed := time.Since(begin)
		objects.fight()
		others.post(nodeagentauthorizer.Path, nodeAgentReview)
		others.disturbWebhook()
		keepLease(t, c, lease)
		if elapsed > 75*time.Second {
			refusing.has(nil)
		}
		if elapsed > 140*time.Second {
			statuses.has(nil)
		}
		return strings.Join(p.silent(fired), ", ")
	}
	kit.EventuallyWithin(t, 15*time.Minute, "all alerts but one fire", func() string {
		if left := round(); left != "ResourceManagerAbsent" {
			return "these do not fire: " + left
		}
		return ""
	})
	for _, each := range all {
		_ = each.process.Command.Process.Kill()
	}
	kit.Eventually(t, "the last one fires", func() string { return strings.Join(p.silent(fired), ", ") })
	t.Logf("all %d alerts fired within %s, but for %v", len(fired), time.Since(begin).Round(time.Second), unprovoked)
}

// silent records the firing alerts in fired, and returns those that have not fired yet.
func (p *prometheus) silent(fired map[string]bool) (left []string) {
	rules, err := p.rules()
	if err != nil {
		return []string{err.Error()}
	}
	for _, rule := range rules {
		if rule.State == "firing" {
			fired[rule.Name] = true
		}
		if !fired[rule.Name] && unprovoked[rule.Name] == "" && !slices.Contains(left, rule.Name) {
			left = append(left, rule.Name)
		}
	}
	return left
}

// fail creates objects that are refused, that are unhealthy, and that are being deleted forever, and an inventory
// that is almost full.
func (s *site) fail() {
	var refused, many strings.Builder
	for i := range 12 {
		refused.WriteString(configMap(fmt.Sprintf("Bad_Name_%d", i), "x"))
	}
	for i := range 10001 {
		fmt.Fprintf(&many, "---\napiVersion: example.org/v1\nkind: Unknown\nmetadata: {name: o-%d, namespace: %s}\n", i, s.namespace)
	}
	s.deliver("refused", refused.String())
	s.deliver("many", many.String())
	for i := range 8 {
		s.deliver(fmt.Sprintf("unhealthy-%d", i), deployment(fmt.Sprintf("unhealthy-%d", i), 1))
	}
	var drifting strings.Builder
	for i := range 80 {
		drifting.WriteString(configMap(fmt.Sprintf("a-%d", i), "good"))
	}
	s.deliver("drifting", drifting.String()+configMap("b-0", "good"))
	held := strings.Replace(configMap("held", "x"), "namespace:", "finalizers: [example.org/never], namespace:", 1)
	s.deliver("held", held)
	kit.EventuallyTrue(s, "the object is held by its finalizer", func() bool {
		return s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "held"}, &corev1.ConfigMap{}) == nil
	})
	s.deliver("held", "# nothing")
}

// fight changes many objects, one of them repeatedly, and makes two ManagedResources claim the same object.
func (s *site) fight() {
	s.round++
	s.change(fmt.Sprintf("a-%d", s.round%80), "kubectl-edit")
	s.change("b-0", "rival")
	s.deliver("conflict", configMap("a-1", fmt.Sprint("round-", s.round)))
}

// refuse changes objects that cannot be corrected, and adds one whose kind cannot be watched.
func (s *site) refuse() {
	var manifests strings.Builder
	for i := range 10 {
		manifests.WriteString(configMap(fmt.Sprintf("a-%d", i), "good"))
	}
	s.deliver("drifting", manifests.String())
	s.deliver("unwatched", "---\napiVersion: v1\nkind: Service\nmetadata: {name: unwatched, namespace: $NS}\nspec: {ports: [{port: 80}]}\n")
	s.eventuallyApplied("drifting")
	before := s.trouble
	s.has(func(r *http.Request) (time.Duration, int) {
		if asks(r, http.MethodPatch, "/configmaps") {
			return 0, http.StatusServiceUnavailable
		}
		return before(r)
	})
	for i := range 10 {
		s.change(fmt.Sprintf("a-%d", i), "kubectl-edit")
	}
}

func (s *site) eventuallyApplied(name string) {
	s.Helper()
	kit.Eventually(s, name+" is applied", func() string {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, mr); err != nil {
			return err.Error()
		}
		if is := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy); is.Status != resourcesv1alpha1.ConditionTrue {
			return fmt.Sprintf("%+v", is)
		}
		return ""
	})
}

// loseStatuses changes manifests and removes the addresses of load balancers while no status can be written.
func (s *site) loseStatuses() {
	for i := range 12 {
		s.deliver(fmt.Sprintf("shop-%d", i), configMap(fmt.Sprintf("shop-%d", i), "first"))
		s.deliver(fmt.Sprintf("balancer-%d", i), fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {name: balancer-%d, namespace: $NS}\n"+
			"spec: {type: LoadBalancer, ports: [{port: 80}]}\n", i))
	}
	for i := range 12 {
		kit.EventuallyTrue(s, "the load balancer exists", func() bool { return s.balance(i, `[{"ip":"192.0.2.1"}]`) == nil })
		s.eventuallyApplied(fmt.Sprintf("shop-%d", i))
		s.eventuallyApplied(fmt.Sprintf("balancer-%d", i))
	}
	s.has(func(r *http.Request) (time.Duration, int) {
		if strings.HasSuffix(r.URL.Path, "/status") {
			return 0, http.StatusInternalServerError
		}
		return 0, 0
	})
	for i := range 12 {
		kit.Must(s, s.balance(i, "null"))
		s.deliver(fmt.Sprintf("shop-%d", i), configMap(fmt.Sprintf("shop-%d", i), "second"))
	}
}

// balance sets the addresses of a load balancer, as a provider does.
func (s *site) balance(number int, addresses string) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("balancer-%d", number)}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"loadBalancer":{"ingress":`+addresses+`}}}`))
	return s.client.Status().Patch(s.Context(), service, patch, client.FieldOwner("provider"))
}

// crawl makes one ManagedResource take more than a minute, and more than a hundred others wait for it.
func (s *site) crawl() {
	var waves strings.Builder
	for i := range 4 {
		waves.WriteString(strings.Replace(configMap(fmt.Sprintf("wave-%d", i), "x"), "namespace:",
			fmt.Sprintf("annotations: {argocd.argoproj.io/sync-wave: \"%d\"}, namespace:", i), 1))
	}
	s.deliver("slow", waves.String())
	for i := range 130 {
		s.deliver(fmt.Sprintf("waiting-%d", i), configMap(fmt.Sprintf("waiting-%d", i), "x"))
	}
}

// otherParts configures the webhooks and all controllers that have alerts, except that of ManagedResources.
const otherParts = `
controllers:
  garbageCollector: {enabled: true, syncPeriod: 15s}
  csrApprover: {enabled: true}
  tokenRequestor: {enabled: true}
webhooks:
  highAvailabilityConfig: {enabled: true}
  nodeAgentAuthorizer: {enabled: true}
`

// otherTrouble fails lists of the garbage collector, tokens and reads of webhooks. The last fail with a delay.
func otherTrouble(r *http.Request) (time.Duration, int) {
	switch {
	case r.Method == http.MethodGet && strings.Contains(r.URL.RawQuery, "garbage-collectable"):
		return 0, http.StatusInternalServerError
	case asks(r, http.MethodPost, "/token"):
		return 0, http.StatusInternalServerError
	case asks(r, http.MethodGet, "/nodes/m"):
		return 0, http.StatusInternalServerError
	case asks(r, http.MethodGet, "/namespaces/gone"):
		return 1500 * time.Millisecond, http.StatusInternalServerError
	}
	return 0, 0
}

// ask creates Secrets that request tokens, one with an expired token, and certificate requests that are denied.
func (s *site) ask(config *rest.Config) {
	encode := base64.RawURLEncoding.EncodeToString
	expired := encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(`{"iat":1000000000,"exp":1000003600,"sub":"system:serviceaccount:default:expired"}`)) + "." + encode([]byte("x"))
	for name, data := range map[string]map[string][]byte{"new": nil, "expired": {"token": []byte(expired)}} {
		kit.Must(s, s.client.Create(s.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.namespace, Name: name,
				Labels: map[string]string{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot},
				Annotations: map[string]string{
					resourcesv1alpha1.AnnotationServiceAccountName: name, resourcesv1alpha1.AnnotationServiceAccountNamespace: s.namespace,
				},
			},
			Data: data,
		}))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(s, err)
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:nowhere", Organization: []string{"system:nodes"}}, DNSNames: []string{"elsewhere.example.org"},
	}, key)
	kit.Must(s, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:nowhere", Groups: []string{"system:nodes", "system:authenticated", "system:masters"}}
	kubelet, err := client.New(config, client.Options{Scheme: s.client.Scheme()})
	kit.Must(s, err)
	for range 30 {
		kit.Must(s, kubelet.Create(s.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "kubelet-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}),
				SignerName: certificatesv1.KubeletServingSignerName,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			},
		}))
		<-time.After(scraped / 4)
	}
}

// holdLease acquires the lease in the name of a client that does nothing else.
func holdLease(t *testing.T, c client.Client) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: kit.NewNamespace(t, c, "lease", nil), Name: "gardener-resource-manager"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("nobody"), LeaseDurationSeconds: ptr.To[int32](3600),
			AcquireTime: &metav1.MicroTime{Time: time.Now()}, RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	}
	kit.Must(t, c.Create(t.Context(), lease))
	return lease
}

// keepLease renews the lease.
func keepLease(t *testing.T, c client.Client, lease *coordinationv1.Lease) {
	t.Helper()
	kit.Change(t, c, lease, func() { lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()} })
}
