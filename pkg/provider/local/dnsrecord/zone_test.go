package dnsrecord

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

func recordObject(name, kind string, values ...string) *extensionsv1alpha1.DNSRecord {
	object := &extensionsv1alpha1.DNSRecord{}
	object.Spec.Name, object.Spec.RecordType, object.Spec.Values = name, extensionsv1alpha1.DNSRecordType(kind), values
	return object
}

func TestRecord(t *testing.T) {
	for _, test := range []struct {
		object *extensionsv1alpha1.DNSRecord
		want   string
	}{
		{recordObject("api.a.example", "A", "10.0.0.2", "10.0.0.1", "10.0.0.2"), "api.a.example. A 10.0.0.1,10.0.0.2"},
		{recordObject("*.A.example.", "AAAA", "2001:DB8::1"), "*.a.example. AAAA 2001:db8::1"},
		{recordObject("b.a.example", "CNAME", "Other.example"), "b.a.example. CNAME other.example."},
		{recordObject("b.a.example", "TXT", `say "a\b"`, "ä"), `b.a.example. TXT "\195\164","say \"a\\b\""`},
		{recordObject("b.a.example", "TXT", strings.Repeat("x", 300)), `b.a.example. TXT "` + strings.Repeat("x", 255) + `" "` + strings.Repeat("x", 45) + `"`},
		{recordObject("b.a.example", "TXT", ""), `b.a.example. TXT ""`},
		{recordObject("a", "A", "2001:db8::1"), "an address of its family is required"},
		{recordObject("a", "AAAA", "10.0.0.1"), "an address of its family is required"},
		{recordObject("a", "A", "name"), "an address of its family is required"},
		{recordObject("a", "CNAME", "b", "c"), "has one value"},
		{recordObject("a", "CNAME", "b\nc A 10.0.0.1"), "a domain name is required"},
		{recordObject("a", "MX", "b"), "are not supported"},
	} {
		record, err := recordOf(test.object)
		got := record.Name + " " + record.Type + " " + strings.Join(record.Values, ",")
		if err != nil {
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%+v: %s, want %s", test.object.Spec, got, test.want)
		}
	}
}

func TestZone(t *testing.T) {
	zones := []string{"example", "a.example", "other"}
	for _, test := range []struct{ name, zone, want string }{
		{"api.a.example", "", "a.example"}, {"a.example.", "", "a.example"}, {"b.example", "", "example"}, {"api.a.example", "example.", "example"},
		{"xa.example", "", "example"}, {"api.a.elsewhere", "", ""}, {"api.a.example", "other", ""}, {"api.a.example", "elsewhere", ""},
	} {
		object := recordObject(test.name, "A")
		if test.zone != "" {
			object.Spec.Zone = ptr.To(test.zone)
		}
		if got, err := zoneOf(object, zones); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s in %q: %q, %v, want %q", test.name, test.zone, got, err, test.want)
		}
	}
}

// TestReplace checks that a set of records is replaced and removed, that other records remain, and that the serial number
// changes only with the zone.
func TestReplace(t *testing.T) {
	record := func(name, kind string, values ...string) Record {
		return Record{Name: name, Type: kind, Values: values, TTL: 60}
	}
	head := func(file string) string { return strings.Join(strings.SplitAfter(file, "\n")[:3], "") }
	first := replace("a.example", "", record("b.a.example.", "A", "10.0.0.1", "10.0.0.2"))
	want := "b.a.example. 60 IN A 10.0.0.1\nb.a.example. 60 IN A 10.0.0.2\n"
	if !strings.HasPrefix(first, "$ORIGIN a.example.\n@ 120 IN SOA ns.a.example. hostmaster.a.example. ") || strings.TrimPrefix(first, head(first)) != want {
		t.Fatalf("the zone is %s", first)
	}
	if again := replace("a.example", first, record("b.a.example.", "A", "10.0.0.2", "10.0.0.1")); again != first {
		t.Errorf("the same record results in %s", again)
	}
	second := replace("a.example", first, record("b.a.example.", "TXT", `"x y z"`))
	third := replace("a.example", second, record("b.a.example.", "A", "10.0.0.3"))
	if got := strings.TrimPrefix(third, head(third)); got != "b.a.example. 60 IN A 10.0.0.3\nb.a.example. 60 IN TXT \"x y z\"\n" {
		t.Errorf("after a change: %s", got)
	}
	if head(third) == head(second) {
		t.Error("the serial number is the same after a change")
	}
	if back := replace("a.example", second, record("b.a.example.", "TXT")); back != first {
		t.Errorf("after a removal: %s, want %s", back, first)
	}
}
