package apply

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/confidential"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// minLength is the minimum length of confidential values that are redacted as a whole. Shorter values could be part of any
// text.
const minLength = 8

// redacted replaces the redacted parts.
const redacted = confidential.Mark

// redact returns the message of an API server about a manifest without the confidential values that it repeats: those
// of Secrets and ConfigMaps, environment variables, commands, and fields with a confidential name. Users who may read
// the status of a ManagedResource are not necessarily allowed to read its Secrets.
func redact(text string, manifest object.Manifest) string {
	values, err := confidentialIn(manifest)
	if err != nil {
		return "rejected by the API server; details are withheld, as the manifest cannot be read again"
	}
	return confidential.Text(text, values, minLength)
}

// confidentialIn returns the confidential values of a manifest.
func confidentialIn(manifest object.Manifest) ([]string, error) {
	var obj map[string]any
	body := manifest.Body
	if manifest.Initial != nil {
		body = manifest.Initial
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // keeps the notation of numbers, in which messages repeat them
	if err := decoder.Decode(&obj); err != nil {
		return nil, err
	}
	var found values
	for field, value := range obj {
		switch field {
		case "data", "stringData", "binaryData":
			found.addAll(value)
		case "status":
			if manifest.Status != nil {
				found.addAll(value) // the state of a controller may contain any confidential value
			} else {
				found.search(field, value)
			}
		case "metadata":
			meta, _ := value.(map[string]any)
			annotations, _ := meta["annotations"].(map[string]any)
			found.addAll(annotations[corev1.LastAppliedConfigAnnotation])
		default:
			found.search(field, value)
		}
	}
	return found, nil
}

// values are confidential texts.
type values []string

// confidentialName matches the names of confidential fields, in lower case.
var confidentialName = regexp.MustCompile(`(password|passwd|passphrase|token|secret|secretkey|credentials|` +
	`privatekey|apikey|accesskey|kubeconfig|connectionstring)$`)

// search adds the confidential values of a field and of its descendants.
func (v *values) search(field string, value any) {
	name := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(field))
	switch name {
	case "command", "args":
		v.addAll(value)
	case "env":
		v.addEnvironment(value)
	}
	switch value := value.(type) {
	case string, json.Number: // descendants of such a field contain names, as in secret: {secretName: …}
		if confidentialName.MatchString(name) {
			v.addAll(value)
		}
	case map[string]any:
		for field, child := range value {
			v.search(field, child)
		}
	case []any:
		for _, item := range value {
			v.search("", item)
		}
	}
}

// addEnvironment adds the values of environment variables.
func (v *values) addEnvironment(value any) {
	variables, _ := value.([]any)
	for _, variable := range variables {
		if fields, is := variable.(map[string]any); is {
			v.addAll(fields["value"])
		}
	}
}

// addAll adds all strings and numbers of a field and of its descendants.
func (v *values) addAll(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			v.addAll(child)
		}
	case []any:
		for _, item := range value {
			v.addAll(item)
		}
	case string:
		*v = append(*v, value)
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil {
			*v = append(*v, string(plain))
		}
	case json.Number:
		*v = append(*v, value.String())
	}
}
