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
	// window is how many bytes in a row a text may share with a confidential value by chance.
	window = 16
	// shortest is how long a confidential value is at least that is looked for as a whole. Shorter ones are parts of any text.
	shortest = 8
	// longest is how much of a message is looked at. A condition holds far less.
	longest = 32 << 10
	// redacted stands for what is left out.
	redacted = "…"
)

// redact returns what an API server said about a manifest without what it repeats of confidential values: those of ConfigMaps,
// environment variables, commands and fields that have the name of something confidential. Users who may read the status of
// a ManagedResource need not be allowed to read its Secrets.
func redact(text string, manifest object.Manifest) string {
	values, err := confidentialIn(manifest)
	if err != nil {
		return "rejected by the API server; details are withheld, as the manifest cannot be read again"
	}
	text = text[:min(len(text), longest)]
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
	decoder.UseNumber() // numbers are to be found as they are written
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
				found.addAll(value) // the state of a controller may hold anything
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

// values are texts.
type values []string

// confidentialName matches names of fields that hold what is confidential, in lower case.
var confidentialName = regexp.MustCompile(`(password|passwd|passphrase|token|secret|secretkey|credentials|privatekey|apikey|accesskey|kubeconfig|connectionstring)$`)

// search adds confidential values at and below a field.
func (v *values) search(field string, value any) {
	name := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(field))
	switch name {
	case "command", "args":
		v.addAll(value)
	case "env":
		v.addEnvironment(value)
	}
	switch value := value.(type) {
	case string, json.Number: // what is below such a field, such as secret: {secretName: …}, are names
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

// addAll adds all texts and numbers at and below a field.
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

// shared returns the parts of a text that it shares with confidential values, in any of the forms in which they are written, in order
// and without overlaps.
func shared(text string, confidential []string) []span {
	windows := map[string][]int{} // where each part of that length is
	for i := 0; i+window <= len(text); i++ {
		windows[text[i:i+window]] = append(windows[text[i:i+window]], i)
	}
	var spans []span
	for _, value := range confidential {
		for _, form := range forms(value) {
			if len(form) < window {
				spans = append(spans, wholes(text, form)...)
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

// forms returns how a value may be written in a message: as it is, quoted, in base64, in hexadecimal digits, as a list of bytes.
func forms(value string) []string {
	value = strings.TrimSpace(value)
	if len(value) < shortest {
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

// wholes returns where a short text is in another one.
func wholes(text, part string) []span {
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

// joined sorts spans and joins those that touch each other.
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
