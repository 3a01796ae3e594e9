package extensionvalidation

import (
	"math"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	recordTypeA     = "A"
	recordTypeAAAA  = "AAAA"
	recordTypeCNAME = "CNAME"
	recordTypeTXT   = "TXT"
)

type dnsRecordSpec struct {
	Type       string          `json:"type"`
	SecretRef  secretReference `json:"secretRef"`
	Region     *string         `json:"region"`
	Zone       *string         `json:"zone"`
	Name       string          `json:"name"`
	RecordType string          `json:"recordType"`
	Values     []string        `json:"values"`
	TTL        *int64          `json:"ttl"`
}

func checkDNSRecord(record *object[dnsRecordSpec]) field.ErrorList {
	spec := &record.Spec
	errs := required(
		text{specPath.Child("type"), spec.Type},
		text{specPath.Child("secretRef", "name"), spec.SecretRef.Name},
	)
	errs = append(errs, checkNotEmpty(specPath.Child("region"), spec.Region)...)
	errs = append(errs, checkNotEmpty(specPath.Child("zone"), spec.Zone)...)
	errs = append(errs, checkRecordName(spec)...)
	switch spec.RecordType {
	case recordTypeA, recordTypeAAAA, recordTypeCNAME, recordTypeTXT:
	default:
		errs = append(errs, field.NotSupported(specPath.Child("recordType"), spec.RecordType,
			[]string{recordTypeA, recordTypeAAAA, recordTypeCNAME, recordTypeTXT}))
	}
	errs = append(errs, checkRecordValues(spec)...)
	if spec.TTL != nil && (*spec.TTL < 0 || *spec.TTL > math.MaxInt32) {
		errs = append(errs, field.Invalid(specPath.Child("ttl"), *spec.TTL, validation.InclusiveRangeError(0, math.MaxInt32)))
	}
	return errs
}

// checkNotEmpty rejects a value that is set but empty.
func checkNotEmpty(path *field.Path, value *string) field.ErrorList {
	if value == nil || *value != "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, "", "must not be empty: leave it out, or give a value")}
}

// checkRecordName allows wildcards. For TXT records, it also allows names that begin with an underscore, as in ACME
// challenges.
func checkRecordName(spec *dnsRecordSpec) field.ErrorList {
	name := strings.TrimPrefix(spec.Name, "*.")
	if spec.RecordType == recordTypeTXT {
		name = strings.TrimPrefix(name, "_")
	}
	return validation.IsFullyQualifiedDomainName(specPath.Child("name"), name)
}

func checkRecordValues(spec *dnsRecordSpec) field.ErrorList {
	path := specPath.Child("values")
	if len(spec.Values) == 0 {
		return field.ErrorList{missing(path)}
	}
	var errs field.ErrorList
	if spec.RecordType == recordTypeCNAME && len(spec.Values) > 1 {
		errs = append(errs, field.Invalid(path, len(spec.Values), "must be one value: a CNAME record names one other domain"))
	}
	return append(errs, each(spec.Values, path, func(path *field.Path, value *string) field.ErrorList {
		switch spec.RecordType {
		case recordTypeA, recordTypeAAAA:
			return checkIP(path, *value)
		case recordTypeCNAME:
			return validation.IsFullyQualifiedDomainName(path, *value)
		default:
			return nil
		}
	})...)
}

// checkIP accepts IPv4 and IPv6 addresses.
func checkIP(path *field.Path, value string) field.ErrorList {
	if net.ParseIP(value) == nil {
		return field.ErrorList{field.Invalid(path, value, "must be an IP address, such as 10.9.8.7 or 2001:db8::ffff")}
	}
	return nil
}

func compareDNSRecords(spec, old *dnsRecordSpec) field.ErrorList {
	return immutable(
		change{specPath.Child("type"), spec.Type, old.Type},
		change{specPath.Child("name"), spec.Name, old.Name},
		change{specPath.Child("recordType"), spec.RecordType, old.RecordType},
	)
}
