package dnsrecord

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// defaultTTL is the default time to live of records, in seconds.
const defaultTTL = 120

// maxText is the maximum length of a string in a TXT record, in bytes (RFC 1035).
const maxText = 255

// Record is a record of a zone.
type Record struct {
	Name, Type string
	Values     []string
	TTL        int64
}

// recordOf returns the record that a DNSRecord declares. It returns an error if a value does not match the type.
func recordOf(object *extensionsv1alpha1.DNSRecord) (Record, error) {
	record := Record{Name: fqdn(object.Spec.Name), Type: string(object.Spec.RecordType), TTL: defaultTTL}
	if object.Spec.TTL != nil {
		record.TTL = *object.Spec.TTL
	}
	for _, value := range object.Spec.Values {
		encoded, err := encode(object.Spec.RecordType, value)
		if err != nil {
			return Record{}, err
		}
		record.Values = append(record.Values, encoded)
	}
	slices.Sort(record.Values)
	record.Values = slices.Compact(record.Values)
	if object.Spec.RecordType == extensionsv1alpha1.DNSRecordTypeCNAME && len(record.Values) != 1 {
		return Record{}, fmt.Errorf("a CNAME record has one value, spec.values has %d", len(record.Values))
	}
	return record, nil
}

// encode returns a value in the format of zone files.
func encode(kind extensionsv1alpha1.DNSRecordType, value string) (string, error) {
	switch kind {
	case extensionsv1alpha1.DNSRecordTypeA, extensionsv1alpha1.DNSRecordTypeAAAA:
		address, err := netip.ParseAddr(value)
		if err != nil || address.Is4() != (kind == extensionsv1alpha1.DNSRecordTypeA) || address.Zone() != "" {
			return "", fmt.Errorf("%q is not a value for a record of type %s: an address of its family is required", value, kind)
		}
		return address.String(), nil
	case extensionsv1alpha1.DNSRecordTypeCNAME:
		if value == "" || strings.ContainsAny(value, " \t\r\n;()\"\\$@") {
			return "", fmt.Errorf("%q is not a value for a record of type %s: a domain name is required", value, kind)
		}
		return fqdn(value), nil
	case extensionsv1alpha1.DNSRecordTypeTXT:
		return quoteText(value), nil
	}
	return "", fmt.Errorf("records of type %q are not supported: use A, AAAA, CNAME or TXT", kind)
}

// quoteText returns a text as quoted strings of the allowed length.
func quoteText(text string) string {
	var parts []string
	for part := range slices.Chunk([]byte(text), maxText) {
		var quoted strings.Builder
		quoted.WriteByte('"')
		for _, c := range part {
			switch {
			case c == '"' || c == '\\':
				quoted.WriteByte('\\')
				quoted.WriteByte(c)
			case c < ' ' || c > '~':
				fmt.Fprintf(&quoted, `\%03d`, c)
			default:
				quoted.WriteByte(c)
			}
		}
		quoted.WriteByte('"')
		parts = append(parts, quoted.String())
	}
	if len(parts) == 0 {
		return `""`
	}
	return strings.Join(parts, " ")
}

// fqdn returns a name in lower case with a trailing dot.
func fqdn(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, ".")) + "."
}

// zoneOf returns the zone of a record: the declared one, if it is served and contains the name, otherwise the longest one
// that contains it. Zones have no trailing dot.
func zoneOf(object *extensionsv1alpha1.DNSRecord, zones []string) (string, error) {
	name := strings.TrimSuffix(fqdn(object.Spec.Name), ".")
	found := ""
	for _, zone := range zones {
		if object.Spec.Zone != nil && strings.TrimSuffix(*object.Spec.Zone, ".") != zone {
			continue
		}
		if (name == zone || strings.HasSuffix(name, "."+zone)) && len(zone) > len(found) {
			found = zone
		}
	}
	if found == "" && object.Spec.Zone != nil {
		return "", fmt.Errorf("the zone %q is not served, or does not contain the name %s: served zones are %s",
			*object.Spec.Zone, name, strings.Join(zones, ", "))
	}
	if found == "" {
		return "", fmt.Errorf("no zone contains the name %s: served zones are %s", name, strings.Join(zones, ", "))
	}
	return found, nil
}

// replace returns a zone file with the values of a record replaced. Without values, the record is removed.
func replace(zone, file string, record Record) string {
	sorted := slices.Collect(func(yield func(string) bool) {
		for line := range strings.Lines(file) {
			if fields := strings.Fields(line); isRecord(fields) && (fields[0] != record.Name || fields[3] != record.Type) && !yield(line) {
				return
			}
		}
		for _, value := range record.Values {
			if !yield(fmt.Sprintf("%s %d IN %s %s\n", record.Name, record.TTL, record.Type, value)) {
				return
			}
		}
	})
	slices.Sort(sorted)
	return render(zone, strings.Join(slices.Compact(sorted), ""))
}

// isRecord reports whether the fields of a line are those of a record, not of the header of the file.
func isRecord(fields []string) bool {
	return len(fields) > 4 && fields[0] != "@" && fields[0] != "$ORIGIN"
}

// render returns a zone file in the format of RFC 1035. Its serial number is derived from its content, because servers
// only reload a file if the number differs.
func render(zone, records string) string {
	sum := sha256.Sum256([]byte(records))
	serial := binary.BigEndian.Uint32(sum[:])
	return fmt.Sprintf("$ORIGIN %s\n@ %d IN SOA ns.%s hostmaster.%s %d 60 60 3600 60\n@ %d IN NS ns.%s\n%s",
		fqdn(zone), defaultTTL, fqdn(zone), fqdn(zone), serial, defaultTTL, fqdn(zone), records)
}
