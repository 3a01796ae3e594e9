package extensionvalidation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-k8s/trellis/pkg/webhooks/admit"
)

// object is one whose spec has type S.
type object[S any] struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              S `json:"spec"`
	// Status has what rules read of it, which only an OperatingSystemConfig has.
	Status struct {
		ExtensionFiles []operatingSystemFile `json:"extensionFiles"`
	} `json:"status"`
}

// anyObject is one whose spec may be anything.
type anyObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              any `json:"spec"`
}

// secretReference names a Secret.
type secretReference struct {
	Name string `json:"name"`
}

// decode reads an object. The error is a refusal that names the field that is wrong, and nothing of its content.
func decode[T any](kind Kind, raw []byte) (*T, error) {
	decoded := new(T)
	err := utiljson.Unmarshal(raw, decoded)
	if err == nil {
		return decoded, nil
	}
	text := fmt.Sprintf("the object is not a valid %s of version %s: ", kind.Kind, kind.GroupVersion())
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return nil, admit.Refuse(http.StatusBadRequest, "%s%s must be %s", text, wrong.Field, words(wrong.Type))
	}
	return nil, admit.Refuse(http.StatusBadRequest, "%sits fields do not have the types of the API", text)
}

// words returns how people call a type in JSON.
func words(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d bits", t.Bits())
	case reflect.Slice:
		return "a list"
	default:
		return "a mapping"
	}
}

// equal reports whether two values from JSON are the same apart from fields whose values are absent by the given function.
func equal(a, b any, absent func(any) bool) bool {
	return reflect.DeepEqual(pruned(a, absent), pruned(b, absent))
}

// pruned returns a value from JSON without the fields that are absent, from the innermost ones outwards.
func pruned(value any, absent func(any) bool) any {
	switch whole := value.(type) {
	case map[string]any:
		rest := make(map[string]any, len(whole))
		for key, field := range whole {
			if kept := pruned(field, absent); kept != nil {
				rest[key] = kept
			}
		}
		value = rest
	case []any:
		items := make([]any, 0, len(whole))
		for _, item := range whole {
			items = append(items, pruned(item, absent))
		}
		value = items
	}
	if absent(value) {
		return nil
	}
	return value
}

func isNull(value any) bool { return value == nil }

// isEmpty is for values that clients written in Go may leave out or write although they were not there.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return value == nil || reflect.ValueOf(value).IsZero()
	}
}
