package health

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// decoded returns the rule that checks what of an object's content is in T.
func decoded[T any](check func(*T) Verdict) rule {
	return func(content map[string]any) Verdict {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
			return Verdict{Err: explainMismatch(err, content, new(T))}
		}
		return check(object)
	}
}

// explainMismatch says which field does not fit into the type. The converter does not name it, the JSON decoder does.
func explainMismatch(err error, content map[string]any, target any) string {
	body, marshalErr := json.Marshal(content)
	if marshalErr != nil {
		return err.Error()
	}
	var mismatch *json.UnmarshalTypeError
	if decodeErr := json.Unmarshal(body, target); errors.As(decodeErr, &mismatch) && mismatch.Field != "" {
		return fmt.Sprintf("the field %s has to be of type %s, but is a JSON %s", mismatch.Field, mismatch.Type, mismatch.Value)
	}
	return err.Error()
}
