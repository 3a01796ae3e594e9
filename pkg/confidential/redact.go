// Package confidential removes confidential values from texts, such as messages of API servers and of template engines, which quote
// their input.
package confidential

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// window is the number of consecutive bytes that a text has to share with a confidential value to be redacted.
	window = 16
	// maxText limits how many bytes of a text are processed. A condition contains far less.
	maxText = 32 << 10
	// maxStructured limits how many bytes of a value are parsed.
	maxStructured = 64 << 10
	// Mark replaces the redacted parts.
	Mark = "…"
)

// Text returns a text of at most 32 KiB without the confidential values that it repeats: as a whole, in parts of at least 16
// bytes, line by line, and in the encodings that are common in messages. Of a value that is YAML or JSON, each scalar counts.
// Values shorter than shortest bytes are kept, because they could be part of any text.
func Text(text string, confidential []string, shortest int) string {
	text = text[:min(len(text), maxText)]
	var result strings.Builder
	end := 0
	for _, span := range shared(text, partsOf(confidential), shortest) {
		result.WriteString(text[end:span.from])
		if !strings.HasSuffix(result.String(), Mark) {
			result.WriteString(Mark)
		}
		end = span.to
	}
	result.WriteString(text[end:])
	return strings.ToValidUTF8(result.String(), Mark)
}

// Contains reports whether a text of at most 32 KiB repeats one of the values, as a whole, in parts of at least 16 bytes, or
// encoded.
func Contains(text string, confidential []string, shortest int) bool {
	return len(shared(text[:min(len(text), maxText)], confidential, shortest)) > 0
}

// partsOf returns values with their lines, and with the scalars of those that are YAML or JSON.
func partsOf(confidential []string) []string {
	parts := slices.Clone(confidential)
	for _, value := range confidential {
		if lines := strings.Split(strings.TrimSpace(value), "\n"); len(lines) > 1 {
			parts = append(parts, lines...)
		}
		var structure any
		if len(value) <= maxStructured && strings.ContainsAny(value, ":{[") && yaml.Unmarshal([]byte(value), &structure) == nil {
			parts = appendScalars(parts, structure)
		}
	}
	return parts
}

// appendScalars appends the texts and numbers of a structure. A value that is a scalar itself has none.
func appendScalars(parts []string, structure any) []string {
	children := []any{}
	switch structure := structure.(type) {
	case map[string]any:
		for _, child := range structure {
			children = append(children, child)
		}
	case []any:
		children = structure
	}
	for _, child := range children {
		switch child := child.(type) {
		case string:
			parts = append(parts, child)
		case float64:
			parts = append(parts, strconv.FormatFloat(child, 'f', -1, 64))
		default:
			parts = appendScalars(parts, child)
		}
	}
	return parts
}

// span is a part of a text.
type span struct{ from, to int }

// shared returns the parts of a text that are also in confidential values, in any of the encodings of these. The parts
// are sorted and do not overlap.
func shared(text string, confidential []string, shortest int) []span {
	windows := map[string][]int{} // the positions of each part of this length
	for i := 0; i+window <= len(text); i++ {
		windows[text[i:i+window]] = append(windows[text[i:i+window]], i)
	}
	var spans []span
	for _, value := range confidential {
		for _, form := range encodingsOf(value, shortest) {
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

// encodingsOf returns the encodings of a value that is not too short.
func encodingsOf(value string, shortest int) []string {
	value = strings.TrimSpace(value)
	if len(value) < shortest {
		return nil
	}
	return Encodings(value)
}

// Encodings returns the representations of a value in messages: unchanged, quoted once and twice, in base64, alone and within
// other data, in hexadecimal digits, as part of a URL, and as a list of bytes.
func Encodings(value string) []string {
	raw := []byte(value)
	digits := hex.EncodeToString(raw)
	result := []string{
		value, quoted(value), quoted(quoted(value)), base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		digits, strings.ToUpper(digits), url.QueryEscape(value), url.PathEscape(value), strings.Trim(fmt.Sprintf("%d", raw), "[]"),
	}
	for skipped := 1; skipped < 3 && len(raw) > window; skipped++ { // the value follows other bytes
		whole := raw[skipped:]
		whole = whole[:len(whole)-len(whole)%3]
		result = append(result, base64.RawStdEncoding.EncodeToString(whole), base64.RawURLEncoding.EncodeToString(whole))
	}
	if encoded, err := json.Marshal(value); err == nil {
		result = append(result, string(encoded[1:len(encoded)-1]))
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// quoted returns a text as Go quotes it, without the quotation marks.
func quoted(text string) string {
	text = strconv.Quote(text)
	return text[1 : len(text)-1]
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
