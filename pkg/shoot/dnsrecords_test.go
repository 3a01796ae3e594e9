package shoot

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
)

// TestRecords checks which extension serves the DNS names of a Shoot.
func TestRecords(t *testing.T) {
	seedDomain := func(kind string) *corev1beta1.SeedDNSProviderConfig {
		return &corev1beta1.SeedDNSProviderConfig{Type: kind, Domain: "example.org", Zone: ptr.To("Z"), CredentialsRef: corev1.ObjectReference{Kind: "Secret", Namespace: "garden", Name: "dns"}}
	}
	domain := func(name string, providers ...corev1beta1.DNSProvider) func(*Inputs) {
		return func(in *Inputs) {
			in.Seed.Spec.DNS.Internal = nil
			in.Shoot.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To(name), Providers: providers}
		}
	}
	primary := func(kind, secret string) corev1beta1.DNSProvider {
		provider := corev1beta1.DNSProvider{Primary: ptr.To(true), Type: &kind}
		if secret != "" {
			provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{Kind: "Secret", Name: secret}
		}
		return provider
	}
	both := func(changes ...func(*Inputs)) func(*Inputs) {
		return func(in *Inputs) {
			for _, change := range changes {
				change(in)
			}
		}
	}
	defaults := func(in *Inputs) {
		in.DefaultDomains = []Domain{
			{Name: "example.com", Type: "cloud", Secret: client.ObjectKey{Namespace: "garden", Name: "default"}},
			{Name: "dev.example.com", Type: "other", Secret: client.ObjectKey{Namespace: "garden", Name: "dev"}},
		}
	}
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   string
	}{
		"internal":              {func(in *Inputs) { in.Seed.Spec.DNS.Internal = seedDomain("cloud") }, "internal api.one.dev.internal.example.org cloud Z Secret garden/dns"},
		"internal, not managed": {func(in *Inputs) { in.Seed.Spec.DNS.Internal = seedDomain("unmanaged") }, ""},
		"no domain":             {func(in *Inputs) { in.Seed.Spec.DNS.Internal = nil }, ""},
		"primary provider":      {domain("a.example.com", primary("cloud", "login")), "external api.a.example.com cloud  Secret garden-dev/login"},
		"primary provider, not managed": {
			domain("a.example.com", primary("unmanaged", "")), "",
		},
		"primary provider with a Secret's name": {domain("a.example.com", corev1beta1.DNSProvider{Primary: ptr.To(true), Type: ptr.To("cloud"), SecretName: ptr.To("old"),
			Zones: &corev1beta1.DNSIncludeExclude{Include: []string{"Y"}}}), "external api.a.example.com cloud Y Secret garden-dev/old"},
		"primary provider without credentials": {domain("a.example.com", primary("cloud", "")), "problem spec.dns.providers[0] needs"},
		"another provider only":                {domain("a.example.com", corev1beta1.DNSProvider{Type: ptr.To("cloud")}), "problem spec.dns.domain is not in a default domain"},
		"default domain of the garden":         {both(domain("a.example.com"), defaults), "external api.a.example.com cloud  Secret garden/default"},
		"the longest default domain":           {both(domain("a.dev.example.com"), defaults), "external api.a.dev.example.com other  Secret garden/dev"},
		"not a part of a label":                {both(domain("a.myexample.com", primary("cloud", "login")), defaults), "external api.a.myexample.com cloud  Secret garden-dev/login"},
		"default domain of the Seed": {both(domain("a.example.org"), defaults, func(in *Inputs) {
			in.Seed.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{*seedDomain("seeds")}
		}), "external api.a.example.org seeds Z Secret garden/dns"},
		"not those of the garden if the Seed has some": {both(domain("a.example.com"), defaults, func(in *Inputs) {
			in.Seed.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{*seedDomain("seeds")}
		}), "problem spec.dns.domain is not in a default domain"},
	} {
		t.Run(name, func(t *testing.T) {
			in := known(t, test.change)
			var got []string
			for _, record := range in.records() {
				text := fmt.Sprintf("%s %s %s %s %s", record.Purpose, record.Host, record.Type, ptr.Deref(record.Zone, ""), record.Credentials)
				if record.Problem != "" {
					text = "problem " + record.Problem
				}
				got = append(got, text)
				advertised := slices.ContainsFunc(in.advertised(), func(address corev1beta1.ShootAdvertisedAddress) bool {
					return address.Name == record.Purpose && address.URL == "https://"+record.Host
				})
				if !advertised {
					t.Errorf("the record %s is not one of the advertised addresses %v", record.Host, in.advertised())
				}
			}
			if text := strings.Join(got, "; "); (text == "") != (test.want == "") || !strings.HasPrefix(text, test.want) {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}

// TestRecordValues checks the type and the values of a record.
func TestRecordValues(t *testing.T) {
	for want, service := range map[string]corev1.Service{
		"A [10.0.0.1]":            {Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIPs: []string{"10.0.0.1", "fd00::1"}}},
		"AAAA [fd00::1]":          {Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIPs: []string{"fd00::1"}}},
		"CNAME []":                {Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIPs: []string{"None"}}},
		"A [192.0.2.1 192.0.2.2]": loadBalancer(corev1.LoadBalancerIngress{IP: "192.0.2.2"}, corev1.LoadBalancerIngress{IP: "192.0.2.1"}),
		"CNAME [lb.example.net]":  loadBalancer(corev1.LoadBalancerIngress{Hostname: "lb.example.net"}),
		"A [192.0.2.9]":           loadBalancer(corev1.LoadBalancerIngress{Hostname: "lb.example.net"}, corev1.LoadBalancerIngress{IP: "192.0.2.9"}),
		"CNAME [one.example.net]": loadBalancer(corev1.LoadBalancerIngress{Hostname: "one.example.net"}, corev1.LoadBalancerIngress{Hostname: "two.example.net"}),
	} {
		kind, values := dnsvalues.Of(dnsvalues.AddressesOf(&service))
		if got := fmt.Sprintf("%s %v", kind, values); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if pending := loadBalancer(); len(dnsvalues.AddressesOf(&pending)) > 0 {
		t.Error("got an address for a load balancer without one")
	}
}

func loadBalancer(ingress ...corev1.LoadBalancerIngress) corev1.Service {
	return corev1.Service{
		Spec:   corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIPs: []string{"10.0.0.1"}},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}},
	}
}

// TestCredentialsOfRecords checks that changed credentials request an operation of the extension, and that the record does not
// reveal them.
func TestCredentialsOfRecords(t *testing.T) {
	in := extendedUp(t)
	first := texts(t, planOf(t, in))[bundleInternalRecord]
	in.References["Secret garden/dns"].Secret.Data["user"] = []byte("another")
	objects, err := in.record(in.records()[0])()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(objects[1].GetAnnotations()), "another") || texts(t, planOf(t, in))[bundleInternalRecord] == first {
		t.Errorf("the record has the annotations %v", objects[1].GetAnnotations())
	}
}
