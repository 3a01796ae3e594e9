package extensionvalidation

import (
	"encoding/json"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// absurd matches quantities that take minutes to parse, such as 1e-2147483648, and have no use.
var absurd = regexp.MustCompile(`.{64}|[eE][+-]?\d{4}`)

// checkQuantity returns the quantity of a JSON string or number, or nil if the value is missing.
func checkQuantity(path *field.Path, value any) (*resource.Quantity, field.ErrorList) {
	if value == nil {
		return nil, nil
	}
	quantity := &resource.Quantity{}
	encoded, err := json.Marshal(value)
	if err == nil && absurd.Match(encoded) {
		err = resource.ErrFormatWrong
	}
	if err == nil {
		err = quantity.UnmarshalJSON(encoded)
	}
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, value, "must be a quantity, such as 2, 500m or 10Gi")}
	}
	return quantity, nil
}
