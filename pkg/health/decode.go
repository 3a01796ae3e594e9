package health

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// decoded returns a rule that decodes the content of an object into a T and checks that.
func decoded[T any](check func(*T) Verdict) rule {
	return func(content map[string]any) Verdict {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
			return Verdict{Err: explainMismatch(err, content, new(T))}
		}
		return check(object)
	}
}

// explainMismatch names the field that does not fit the type. The JSON decoder names it, the converter does not.
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
