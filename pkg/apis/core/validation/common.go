package validation

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// labelName is the name of an object that becomes part of a label, a host name or another name.
func labelName(name string, prefix bool) []string { return apivalidation.NameIsDNSLabel(name, prefix) }

func withoutTwoHyphens(name string, path *field.Path) field.ErrorList {
	if strings.Contains(name, "--") {
		return field.ErrorList{field.Invalid(path, name, "must not contain two hyphens in a row")}
	}
	return nil
}

func required(value string, path *field.Path) field.ErrorList { return rules.Required(value, path) }

// notEmpty checks that an optional value is not empty if it is set.
func notEmpty(value *string, path *field.Path) field.ErrorList { return rules.NotEmpty(value, path) }

func oneOf[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	return rules.OneOf(value, path, allowed...)
}

func optionalOneOf[T ~string](value *T, path *field.Path, allowed ...T) field.ErrorList {
	return rules.OptionalOneOf(value, path, allowed...)
}

// messages converts the messages of a validation function of apimachinery to errors.
func messages(found []string, value any, path *field.Path) field.ErrorList {
	return rules.Messages(found, value, path)
}

func dnsLabel(value string, path *field.Path) field.ErrorList {
	return messages(validation.IsDNS1123Label(value), value, path)
}

func dnsSubdomain(value string, path *field.Path) field.ErrorList {
	return messages(validation.IsDNS1123Subdomain(value), value, path)
}

// unique returns an error for each item of a list with a duplicate key. Empty keys are ignored.
func unique[T any](items []T, path *field.Path, name string, key func(T) string) field.ErrorList {
	return rules.Unique(items, path, name, key)
}

func uniqueValues[T ~string](values []T, path *field.Path) field.ErrorList {
	return rules.UniqueValues(values, path)
}

func immutable(value, old any, path *field.Path) field.ErrorList {
	return rules.Immutable(value, old, path)
}

// immutableOnceSet checks an optional value, which may be set but neither changed nor removed.
func immutableOnceSet[T any](value, old *T, path *field.Path) field.ErrorList {
	if old == nil {
		return nil
	}
	return immutable(value, old, path)
}

func selector(value *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return rules.Selector(value, path)
}

// prefixOf parses a CIDR, whose address must not have bits after its prefix.
func prefixOf(value string, path *field.Path) (netip.Prefix, field.ErrorList) {
	prefix, err := netip.ParsePrefix(value)
	if err != nil {
		return prefix, field.ErrorList{field.Invalid(path, value, "must be a range of addresses in CIDR notation, such as 10.0.0.0/16")}
	}
	if prefix != prefix.Masked() {
		return prefix, field.ErrorList{field.Invalid(path, value,
			fmt.Sprintf("must begin at the first address of the range: %s", prefix.Masked()))}
	}
	return prefix, nil
}

// certificates checks PEM-encoded certificates.
func certificates(bundle *string, path *field.Path) field.ErrorList {
	if bundle == nil {
		return nil
	}
	rest, found := []byte(*bundle), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			return field.ErrorList{field.Invalid(path, "(certificates)", fmt.Sprintf("block %d is not a valid certificate", found+1))}
		}
		found++
	}
	if found == 0 {
		return field.ErrorList{field.Invalid(path, "(certificates)", "must have at least one certificate in PEM format")}
	}
	return nil
}

func notNegative[T int32 | int64](value *T, path *field.Path) field.ErrorList {
	return atLeast(value, 0, path)
}

func atLeast[T int32 | int64 | float64](value *T, least T, path *field.Path) field.ErrorList {
	if value != nil && *value < least {
		return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be at least %v", least))}
	}
	return nil
}

func between[T int32 | int64 | float64](value *T, least, most T, path *field.Path) field.ErrorList {
	if value != nil && (*value < least || *value > most) {
		return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be from %v to %v", least, most))}
	}
	return nil
}

func durationAtLeast(value *metav1.Duration, least time.Duration, path *field.Path) field.ErrorList {
	if value != nil && value.Duration < least {
		return field.ErrorList{field.Invalid(path, value.Duration.String(), fmt.Sprintf("must be at least %s", least))}
	}
	return nil
}

func quantityNotNegative(value resource.Quantity, path *field.Path) field.ErrorList {
	if value.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, value.String(), "must not be negative")}
	}
	return nil
}

func forbidden(is bool, path *field.Path, why string) field.ErrorList {
	if is {
		return field.ErrorList{field.Forbidden(path, why)}
	}
	return nil
}

func isSet(raw *runtime.RawExtension) bool { return raw != nil && len(raw.Raw) > 0 }
