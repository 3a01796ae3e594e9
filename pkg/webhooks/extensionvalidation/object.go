package extensionvalidation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// object is an object whose spec has type S.
type object[S any] struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              S `json:"spec"`
	// Status has the fields that rules read. Only an OperatingSystemConfig has them.
	Status struct {
		ExtensionFiles []operatingSystemFile `json:"extensionFiles"`
	} `json:"status"`
}

// anyObject is an object with an arbitrary spec.
type anyObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              any `json:"spec"`
}

// secretReference names a Secret.
type secretReference struct {
	Name string `json:"name"`
}

// decode decodes an object. The error is a refusal that names the wrong field but does not quote its value.
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

// words returns the name of a JSON type for messages.
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

// equal reports whether two JSON values are equal, ignoring fields whose values absent accepts.
func equal(a, b any, absent func(any) bool) bool {
	return reflect.DeepEqual(pruned(a, absent), pruned(b, absent))
}

// pruned returns a JSON value without absent fields. It prunes nested values first.
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

// isEmpty reports whether a value is empty. Go clients may omit such a value or write it explicitly.
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
