package why

import (
	"fmt"
	"strings"
)

// untold returns what a condition says of objects other than those that were told of already: the resource-manager may have found
// something by a check of its configuration, of which this program knows nothing. Each object has a paragraph that begins with its
// kind and name, as health.Healthy and health.Progressing write it.
func untold(message string, told []trouble) string {
	var kept []string
	keep := true
	for line := range strings.SplitSeq(message, "\n") {
		if begins(line) {
			keep = true
			for i := range told {
				if isAbout(line, &told[i]) {
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

// begins tells whether a line begins what is said of an object, or of how many others.
func begins(line string) bool {
	return strings.HasPrefix(line, "Required ") || strings.HasPrefix(line, "and ") ||
		strings.Contains(line, `" is unhealthy: `) || strings.Contains(line, `" is progressing: `) || strings.Contains(line, `" could not be checked: `)
}

func isAbout(line string, t *trouble) bool {
	return strings.HasPrefix(line, fmt.Sprintf("%s %q ", t.Kind, t.Namespace+"/"+t.Name)) ||
		strings.HasPrefix(line, fmt.Sprintf("Required %s %q in namespace %q ", t.Kind, t.Name, t.Namespace))
}
