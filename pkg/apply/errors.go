package apply

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// Terminal tells whether sending the same request again is pointless until the object or the cluster's configuration
// changes, as for an object that violates its kind's schema.
func Terminal(err error) bool {
	if apierrors.IsInternalError(err) {
		// The API server answers 500 when an object has fields that its kind does not.
		return strings.Contains(err.Error(), "failed to create typed patch object")
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// explain names the object and, for Secrets, takes out whatever of its data the API server's message repeats.
func explain(manifest object.Manifest, err error) error {
	if errors.Is(err, target.ErrKindNotServed) {
		return fmt.Errorf("%s: %w: install its CustomResourceDefinition or API, or remove the object", manifest.Ref, err)
	}
	if manifest.Group == "" && manifest.Kind == "Secret" {
		err = redact(manifest.Body, err)
	}
	return fmt.Errorf("%s: %w", manifest.Ref, err)
}

// redactedError hides an error's text but not its nature.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// redact takes out of an error's text every value of a Secret's data, plain and in base64, whatever its shape.
func redact(body []byte, err error) error {
	var secret struct {
		Data any `json:"data"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // numbers are to be found as they are written
	if decoder.Decode(&secret) != nil {
		return &redactedError{text: "rejected by the API server (details withheld)", err: err}
	}
	values := leaves(nil, secret.Data)
	// Longest first, so that a value that is part of another one does not leave the rest of it behind.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	text := err.Error()
	for _, value := range values {
		if value != "" {
			text = strings.ReplaceAll(text, value, "<redacted>")
		}
	}
	return &redactedError{text: text, err: err}
}

// leaves appends all values in a JSON value, and what they are in base64, to values. The keys of a Secret's data are no
// secrets, but those below them may be.
func leaves(values []string, value any) []string {
	fields, isMap := value.(map[string]any)
	for _, field := range fields {
		values = leavesBelow(values, field)
	}
	if isMap {
		return values
	}
	return leavesBelow(values, value)
}

func leavesBelow(values []string, value any) []string {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			values = leavesBelow(append(values, key), field)
		}
	case []any:
		for _, item := range value {
			values = leavesBelow(values, item)
		}
	case json.Number:
		values = append(values, value.String())
	case string:
		plain, err := base64.StdEncoding.DecodeString(value)
		if err == nil {
			values = append(values, string(plain))
		}
		values = append(values, value)
	}
	return values
}
