package apply

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// window is the number of consecutive bytes that a text has to share with a confidential value to be redacted.
	window = 16
	// minLength is the minimum length of confidential values that are redacted as a whole. Shorter values could be part of
	// any text.
	minLength = 8
	// maxMessage limits how many bytes of a message are processed. A condition contains far less.
	maxMessage = 32 << 10
	// redacted replaces the redacted parts.
	redacted = "…"
)

// redact returns the message of an API server about a manifest without the confidential values that it repeats: those
// of Secrets and ConfigMaps, environment variables, commands, and fields with a confidential name. Users who may read
// the status of a ManagedResource are not necessarily allowed to read its Secrets.
func redact(text string, manifest object.Manifest) string {
	values, err := confidentialIn(manifest)
	if err != nil {
		return "rejected by the API server; details are withheld, as the manifest cannot be read again"
	}
	text = text[:min(len(text), maxMessage)]
	var result strings.Builder
	end := 0
	for _, span := range shared(text, values) {
		result.WriteString(text[end:span.from])
		if !strings.HasSuffix(result.String(), redacted) {
			result.WriteString(redacted)
		}
		end = span.to
	}
	result.WriteString(text[end:])
	return strings.ToValidUTF8(result.String(), redacted)
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

// span is a part of a text.
type span struct{ from, to int }

// shared returns the parts of a text that are also in confidential values, in any of the encodings of these. The parts
// are sorted and do not overlap.
func shared(text string, confidential []string) []span {
	windows := map[string][]int{} // the positions of each part of this length
	for i := 0; i+window <= len(text); i++ {
		windows[text[i:i+window]] = append(windows[text[i:i+window]], i)
	}
	var spans []span
	for _, value := range confidential {
		for _, form := range encodings(value) {
			if len(form) < window {
				spans = append(spans, occurrences(text, form)...)
			}
			for i := 0; i+window <= len(form); i++ {
				for _, at := range windows[form[i:i+window]] {
					spans = append(spans, span{at, at + window})
				}
				delete(windows, form[i:i+window]) // once is enough
			}
		}
	}
	return joined(spans)
}

// encodings returns the representations of a value in messages: unchanged, quoted, in base64, in hexadecimal digits,
// and as a list of bytes.
func encodings(value string) []string {
	value = strings.TrimSpace(value)
	if len(value) < minLength {
		return nil
	}
	quoted, raw := strconv.Quote(value), []byte(value)
	result := []string{
		value, quoted[1 : len(quoted)-1], base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), strings.Trim(fmt.Sprintf("%d", raw), "[]"),
	}
	if encoded, err := json.Marshal(value); err == nil {
		result = append(result, string(encoded[1:len(encoded)-1]))
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// occurrences returns the positions of a short text in another one.
func occurrences(text, part string) []span {
	var spans []span
	for from := 0; ; {
		at := strings.Index(text[from:], part)
		if at < 0 {
			return spans
		}
		spans = append(spans, span{from + at, from + at + len(part)})
		from += at + len(part)
	}
}

// joined sorts spans and merges those that overlap or adjoin.
func joined(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var result []span
	for _, next := range spans {
		if last := len(result) - 1; last >= 0 && next.from <= result[last].to {
			result[last].to = max(result[last].to, next.to)
			continue
		}
		result = append(result, next)
	}
	return result
}
