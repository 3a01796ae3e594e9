package apply

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/confidential"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// Permanent marks an error that a retry cannot resolve until the object or the configuration of the cluster changes.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// decidedError is an error with a part that determines whether a retry is pointless. The other parts are its history.
type decidedError struct {
	error
	decisive error
}

func (e *decidedError) Unwrap() error { return e.error }

// Terminal reports whether it is pointless to send the same request again until the object or the configuration of the
// cluster changes, for example because the object violates the schema of its kind.
func Terminal(err error) bool {
	var decided *decidedError
	if errors.As(err, &decided) {
		return Terminal(decided.decisive)
	}
	var permanent *permanentError
	if errors.As(err, &permanent) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true
	case http.StatusInternalServerError:
		// The API server returns 500 if an object has fields that are not in the schema of its kind.
		return strings.Contains(status.Status().Message, "failed to create typed patch object")
	}
	return false
}

// explain adds the name of the object to an error, and withholds data of a Secret and other confidential values that
// the message of the API server repeats. Exists is set if the object existed before.
func explain(manifest object.Manifest, exists bool, err error) error {
	if errors.Is(err, target.ErrKindNotServed) {
		return fmt.Errorf("%s: %w: install its CustomResourceDefinition or API, or remove the object", manifest.Ref, err)
	}
	if isSecret(manifest.Ref) {
		if err = redactWebhookMessage(manifest.Ref, exists, err); repeats(err, manifest) {
			err = &withheldError{err: err}
		}
	}
	text := brief(inOrder(err))
	if aboutContent(err) {
		text = redact(text, manifest)
	}
	if text != err.Error() {
		err = &briefError{text: text, err: err}
	}
	return fmt.Errorf("%s: %w", manifest.Ref, err)
}

// unauthorized matches messages of the authorization of Kubernetes, which contain only names.
var unauthorized = regexp.MustCompile(`cannot \S+ resource "`)

// aboutContent reports whether an error may repeat content of an object: an API server returned it, and not because of
// missing permissions. Connection errors name the API server, which may also occur in a kubeconfig or an environment
// variable.
func aboutContent(err error) bool {
	text := err.Error()
	return len(statusesOf(err)) > 0 && (!unauthorized.MatchString(text) || strings.Contains(text, "webhook"))
}

func isSecret(ref object.Ref) bool { return ref.Group == "" && ref.Kind == "Secret" }

// redactWebhookMessage removes the message of a webhook about an existing Secret: the webhook also receives the current
// data, which is not known here.
func redactWebhookMessage(ref object.Ref, exists bool, err error) error {
	if err == nil || !exists || !isSecret(ref) || !webhookMessage.MatchString(err.Error()) {
		return err
	}
	return &withheldError{err: err}
}

// webhookMessage matches messages of kube-apiserver that repeat the message of a webhook.
var webhookMessage = regexp.MustCompile(`admission webhook "[^"]*" denied|` +
	`failed calling webhook "[^"]*".*an error on the server|failed calling webhook "[^"]*".*unexpected`)

// inOrder returns the text of an error with the causes of API servers in sorted order. API servers validate maps, such
// as labels, in random order.
func inOrder(err error) string {
	text := err.Error()
	for _, status := range statusesOf(err) {
		if status.Details == nil {
			continue
		}
		var given, ordered []string
		for _, cause := range status.Details.Causes {
			// The format of field.Error in k8s.io/apimachinery, which apierrors.NewInvalid splits.
			part := cause.Field + ": " + cause.Message
			if !slices.Contains(given, part) {
				given = append(given, part)
				ordered = append(ordered, brief(part))
			}
		}
		slices.Sort(ordered)
		text = strings.Replace(text, strings.Join(given, ", "), strings.Join(ordered, ", "), 1)
	}
	return text
}

// statusesOf returns the statuses of API servers in an error.
func statusesOf(err error) []metav1.Status {
	switch err := err.(type) { //nolint:errorlint // it unwraps the error itself
	case apierrors.APIStatus:
		return []metav1.Status{err.Status()}
	case interface{ Unwrap() error }:
		return statusesOf(err.Unwrap())
	case interface{ Unwrap() []error }:
		var statuses []metav1.Status
		for _, part := range err.Unwrap() {
			statuses = append(statuses, statusesOf(part)...)
		}
		return statuses
	}
	return nil
}

// wholeValue matches a structure that the validation of the API server repeats as a whole, such as a pod template with
// all its environment variables.
var wholeValue = regexp.MustCompile(`Invalid value: [{\[].*[}\]]: `)

// wholeObject matches an object that a webhook repeats as a whole, as JSON or in the notation of Go.
var wholeObject = regexp.MustCompile(`(?s)[{\[].*(apiVersion|metadata|ObjectMeta)\\?"?:.*[}\]]`)

// encoded matches text that is longer than any name and may be an object in base64, in hexadecimal digits or as a list
// of bytes.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/_=-]{100,}|(\d{1,3}[ ,]+){32,}\d{1,3}`)

// otherType matches the message of server-side apply about a value of another type, with the notation of its structure.
var otherType = regexp.MustCompile(`expected (\w+), got &value\.valueUnstructured\{Value:([^{}\[\]]*)\}`)

// brief removes unreadable and confidential parts from a message, and sorts the parts that the API server returns in
// random order, so that the same failure always has the same message.
func brief(text string) string {
	text = otherType.ReplaceAllString(text, "expected $1, got $2")
	text = wholeValue.ReplaceAllString(text, "Invalid value: …: ")
	text = wholeObject.ReplaceAllString(text, redacted)
	text = encoded.ReplaceAllString(text, redacted)
	head, list, found := strings.Cut(text, "errors:\n")
	if !found {
		return text
	}
	lines := strings.Split(strings.TrimSpace(list), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	slices.Sort(lines)
	return head + strings.Join(lines, ", ")
}

// briefError is an error with a shorter text than its cause.
type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.err }

// withheldError hides the text of an error, but not its type.
type withheldError struct{ err error }

// webhookName matches the name of a webhook in a message.
var webhookName = regexp.MustCompile(`webhook "[-\w./]+"`)

func (e *withheldError) Error() string {
	who := "API server"
	if webhook := webhookName.FindString(e.err.Error()); webhook != "" {
		who = "admission " + webhook
	}
	text := "rejected by the " + who + "; details are withheld, as they repeat the Secret's data"
	if reason := apierrors.ReasonForError(e.err); reason != metav1.StatusReasonUnknown {
		return string(reason) + ": " + text
	}
	return text
}

func (e *withheldError) Unwrap() error { return e.err }

// repeats reports whether a text contains a value of the data of a Secret, or a part of one, in any encoding. It
// returns true if the body cannot be decoded.
func repeats(err error, manifest object.Manifest) bool {
	text := err.Error()
	var secret struct {
		Data       any `json:"data"`
		StringData any `json:"stringData"`
	}
	decoder := json.NewDecoder(bytes.NewReader(manifest.Body))
	decoder.UseNumber() // keeps the notation of numbers, in which messages repeat them
	if decoder.Decode(&secret) != nil {
		return true
	}
	if repeatsValue(text, secret.Data, true) || repeatsValue(text, secret.StringData, true) {
		return true
	}
	if !aboutContent(err) {
		return false
	}
	values, unreadable := confidentialIn(manifest)
	return unreadable != nil || confidential.Contains(withoutNames(text, manifest.Ref), values, minLength)
}

// withoutNames returns a text without the names of an object, which may also occur in its data, such as in a
// kubeconfig.
func withoutNames(text string, ref object.Ref) string {
	for _, name := range []string{ref.Name, ref.Namespace} {
		if name != "" {
			text = strings.ReplaceAll(text, name, redacted)
		}
	}
	return text
}

// repeatsValue reports whether a text contains a value in a JSON value. The top-level keys of the data of a Secret are
// not confidential, but nested keys may be.
func repeatsValue(text string, value any, top bool) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if !top && containsWord(text, key) || repeatsValue(text, field, false) {
				return true
			}
		}
	case []any:
		for _, item := range value {
			if repeatsValue(text, item, false) {
				return true
			}
		}
	case json.Number:
		return containsWord(text, value.String())
	case string:
		plain, _ := base64.StdEncoding.DecodeString(value)
		return containsWord(text, value) || containsWord(text, string(plain))
	}
	return false
}

// containsWord reports whether a text contains a value, either unchanged or quoted as in Go or JSON. Short values are
// matched only as whole words, because they may be part of any text.
func containsWord(text, value string) bool {
	const short = 4
	value = strings.TrimSpace(value)
	if value == "" {
		return false
	}
	quoted := strings.Trim(strconv.Quote(value), `"`)
	if len(value) >= short {
		return strings.Contains(text, value) || strings.Contains(text, quoted)
	}
	word, err := regexp.Compile(`(^|\W)` + regexp.QuoteMeta(value) + `(\W|$)`)
	return err != nil || word.MatchString(text)
}
