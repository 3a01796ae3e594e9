package shoot

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// withDomain gives the Shoot a domain whose records an extension makes.
func withDomain(in *Inputs) {
	in.Shoot.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To("one.example.com")}
	in.DefaultDomains = []Domain{{Name: "example.com", Type: "local", Secret: client.ObjectKey{Namespace: "garden", Name: "default"}}}
	in.References["Secret garden/default"] = Referenced{Secret: &corev1.Secret{Data: map[string][]byte{"user": []byte("dns")}}}
}

// reachedAt sets the addresses of the ingress controller.
func reachedAt(addresses ...string) func(*Inputs) {
	return func(in *Inputs) { in.ingressAddresses = addresses }
}

// TestIngressRecord checks when the addon with the ingress controller has a DNS record, and to what it points.
func TestIngressRecord(t *testing.T) {
	for name, test := range map[string]struct {
		change []func(*Inputs)
		want   string
	}{
		"an address":           {[]func(*Inputs){withAddons, withDomain, reachedAt("192.0.2.7")}, "*.ingress.one.example.com A 192.0.2.7"},
		"a host name":          {[]func(*Inputs){withAddons, withDomain, reachedAt("lb.example.org")}, "*.ingress.one.example.com CNAME lb.example.org"},
		"no address yet":       {[]func(*Inputs){withAddons, withDomain}, ""},
		"no addon":             {[]func(*Inputs){withDomain, reachedAt("192.0.2.7")}, ""},
		"no domain":            {[]func(*Inputs){withAddons, reachedAt("192.0.2.7")}, ""},
		"a domain of the user": {[]func(*Inputs){withAddons, withDomain, reachedAt("192.0.2.7"), func(in *Inputs) { in.DefaultDomains[0].Type = corev1beta1.DNSUnmanaged }}, ""},
	} {
		plan, got := planOf(t, upWithWorkers(t, test.change...)), ""
		for _, bundle := range plan.Bundles {
			for _, object := range bundle.Objects {
				if record, is := object.(*extensionsv1alpha1.DNSRecord); is && bundle.Name == bundleIngressRecord {
					got = record.Spec.Name + " " + string(record.Spec.RecordType) + " " + strings.Join(record.Spec.Values, ",")
				}
			}
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		for _, wait := range plan.Waits {
			if slices.ContainsFunc(wait.Holds, func(key flow.Key) bool { return key.Name == bundleIngressRecord }) {
				t.Errorf("%s: the operation waits for the record: %s", name, wait.Reason)
			}
		}
	}
}

// TestIngressRecordEnds checks what happens to an existing record.
func TestIngressRecordEnds(t *testing.T) {
	exists := func(in *Inputs) {
		withAddons(in)
		withDomain(in)
		reachedAt("192.0.2.7")(in)
	}
	made := func(in *Inputs) {
		in.RecordsMade = map[string]string{bundleIngressRecord: "A *.ingress.one.example.com"}
	}
	for name, test := range map[string]struct {
		change func(*Inputs)
		// deleted and written are what the plan does.
		deleted, written bool
	}{
		"nothing changes":          {func(*Inputs) {}, false, true},
		"another address":          {reachedAt("192.0.2.8"), false, true},
		"a host name":              {reachedAt("lb.example.org"), true, false},
		"the address is not known": {reachedAt(), false, false},
		"the addon is disabled":    {func(in *Inputs) { in.Shoot.Spec.Addons = nil }, true, false},
		"the Shoot is deleted": {func(in *Inputs) {
			in.Deleting, in.ingressAddresses = true, nil // objects in the cluster are deleted first
			in.Emitted = slices.DeleteFunc(slices.Clone(in.Emitted), func(key flow.Key) bool { return isOfShoot(key.Name) })
		}, true, false},
		"the Shoot hibernates":           {func(in *Inputs) { hibernate(in); in.Shoot.Status.IsHibernated = true }, true, false},
		"the Shoot begins to hibernate":  {hibernate, false, false},
		"the Shoot loses all its domain": {func(in *Inputs) { in.Shoot.Spec.DNS = nil }, true, false},
	} {
		in := upWithWorkers(t, exists, emittedAll(t, exists), cleaned, made, test.change)
		plan := planOf(t, in)
		deleted := slices.ContainsFunc(plan.Tombstones, func(one flow.Tombstone) bool { return one.Name == bundleIngressRecord && one.Confirm })
		written := slices.ContainsFunc(plan.Bundles, func(one flow.Bundle) bool { return one.Name == bundleIngressRecord })
		if deleted != test.deleted || written != test.written {
			t.Errorf("%s: deleted %t, written %t", name, deleted, written)
		}
	}
}
