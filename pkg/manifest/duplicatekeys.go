package manifest

import (
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// duplicateKeys returns the paths and lines of keys that occur twice in a mapping of a YAML document. Keys that override
// those of a merge ("<<") do not count.
func duplicateKeys(content []byte) []string {
	var root yamlv3.Node
	if yamlv3.Unmarshal(content, &root) != nil {
		return nil // the document was parsed before, so this is about its form
	}
	var found []string
	addDuplicateKeys(&root, "", &found)
	return found
}

func addDuplicateKeys(node *yamlv3.Node, path string, found *[]string) {
	switch node.Kind {
	case yamlv3.DocumentNode:
		for _, child := range node.Content {
			addDuplicateKeys(child, path, found)
		}
	case yamlv3.SequenceNode:
		for i, child := range node.Content {
			addDuplicateKeys(child, fmt.Sprintf("%s[%d]", path, i), found)
		}
	case yamlv3.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			field := strings.TrimPrefix(path+"."+key.Value, ".")
			if seen[key.Value] && key.Tag != "!!merge" {
				*found = append(*found, fmt.Sprintf("%s, line %d", field, key.Line))
			}
			seen[key.Value] = true
			addDuplicateKeys(node.Content[i+1], field, found)
		}
	}
}

// describeDuplicates returns a text with the location of a document and the keys that occur twice in it.
func describeDuplicates(source string, paths []string) string {
	const shown = 5
	if len(paths) > shown {
		paths = append(paths[:shown:shown], "…")
	}
	return source + ": " + strings.Join(paths, "; ")
}
