package preview

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/cli/redact"
)

// contextLines is the number of unchanged lines that are shown around changed ones.
const contextLines = 3

// Line is a line of a diff. Its sign is '+', '-', ' ', or '@' for the header of a hunk.
type Line struct {
	Sign byte
	Text string
}

// serverFields are metadata fields that only the API server sets.
var serverFields = []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"}

// linesOf returns the YAML lines of an object. It returns none for nil.
func linesOf(obj map[string]any) ([]string, error) {
	if obj == nil {
		return nil, nil
	}
	text, err := yaml.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// shown returns an object without the status and the fields that only the API server sets. It returns nil for nil.
// The status is
// omitted, because it is not applied.
func shown(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	content := obj.DeepCopy().Object
	delete(content, "status")
	if meta, is := content["metadata"].(map[string]any); is {
		for _, field := range serverFields {
			delete(meta, field)
		}
	}
	return content
}

// Compare returns the diff of an object with redacted Secrets. It returns none if the objects are equal. Either may
// be nil.
func Compare(before, after *unstructured.Unstructured) ([]Line, error) {
	old, updated := shown(before), shown(after)
	redact.Both(old, updated)
	a, err := linesOf(old)
	if err != nil {
		return nil, err
	}
	b, err := linesOf(updated)
	if err != nil {
		return nil, err
	}
	if slices.Equal(a, b) {
		return nil, nil
	}
	return hunks(script(a, b)), nil
}

// script returns all lines of two texts with their signs. It is the shortest edit script, by the longest common
// subsequence.
// The common head and tail are removed first, because the rest needs time and memory in proportion to the product of
// the lengths.
func script(a, b []string) []Line {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var lines []Line
	for _, text := range a[:head] {
		lines = append(lines, Line{' ', text})
	}
	lines = append(lines, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, text := range a[len(a)-tail:] {
		lines = append(lines, Line{' ', text})
	}
	return lines
}

// maxProduct limits the time and memory of a comparison. Longer texts are shown as replaced as a whole.
const maxProduct = 25_000_000

func middle(a, b []string) []Line {
	var lines []Line
	if len(a)*len(b) > maxProduct {
		return append(signed('-', a), signed('+', b)...)
	}
	common := make([][]int32, len(a)+1) // common[i][j] is the length of the longest common subsequence of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			lines = append(lines, Line{' ', a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			lines = append(lines, Line{'-', a[i]})
			i++
		default:
			lines = append(lines, Line{'+', b[j]})
			j++
		}
	}
	return append(append(lines, signed('-', a[i:])...), signed('+', b[j:])...)
}

func signed(sign byte, texts []string) []Line {
	lines := make([]Line, 0, len(texts))
	for _, text := range texts {
		lines = append(lines, Line{sign, text})
	}
	return lines
}

// hunks removes unchanged lines far from changed ones. It adds a line with '@' before each hunk, with the line
// numbers in both texts.
func hunks(lines []Line) []Line {
	keep := make([]bool, len(lines))
	for i, line := range lines {
		if line.Sign == ' ' {
			continue
		}
		for near := max(i-contextLines, 0); near < min(i+contextLines+1, len(lines)); near++ {
			keep[near] = true
		}
	}
	var result []Line
	before, after := 1, 1
	for i, line := range lines {
		if keep[i] && (i == 0 || !keep[i-1]) {
			result = append(result, Line{'@', fmt.Sprintf("@ -%d +%d @@", before, after)})
		}
		if keep[i] {
			result = append(result, line)
		}
		if line.Sign != '+' {
			before++
		}
		if line.Sign != '-' {
			after++
		}
	}
	return result
}
