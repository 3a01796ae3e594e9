package explain

import (
	"fmt"
	"strings"
)

// withoutReported removes the paragraphs about objects that were already reported from the message of a condition. It
// keeps the
// rest: the resource-manager may have found it with a check of its configuration, which this program does not know.
// Each object
// has a paragraph that begins with its kind and name, as written by health.Healthy and health.Progressing.
func withoutReported(message string, reported []trouble) string {
	var kept []string
	keep := true
	for line := range strings.SplitSeq(message, "\n") {
		if begins(line) {
			keep = true
			for i := range reported {
				if isAbout(line, &reported[i]) {
					keep = false
				}
			}
		}
		if keep {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// begins reports whether a line begins a paragraph about an object, or about the number of omitted ones.
func begins(line string) bool {
	return strings.HasPrefix(line, "Required ") || strings.HasPrefix(line, "and ") ||
		strings.Contains(line, `" is unhealthy: `) || strings.Contains(line, `" is progressing: `) ||
		strings.Contains(line, `" could not be checked: `)
}

func isAbout(line string, t *trouble) bool {
	return strings.HasPrefix(line, fmt.Sprintf("%s %q ", t.Kind, t.Namespace+"/"+t.Name)) ||
		strings.HasPrefix(line, fmt.Sprintf("Required %s %q in namespace %q ", t.Kind, t.Name, t.Namespace))
}
