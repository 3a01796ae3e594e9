package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// maxDepth is far above the depth of the deepest field and far below what recursion supports.
	maxDepth = 100
	// maxExpandedBytes limits the size of the file after aliases are expanded.
	maxExpandedBytes = 4 * maxFileBytes
)

// readTree parses the file's only document into maps, lists and scalars. It reports duplicate keys, which such a tree
// cannot represent. The last value of a duplicate key counts.
func readTree(data []byte) (map[string]any, field.ErrorList, error) {
	node, err := readNode(data)
	if err != nil {
		return nil, nil, err
	}
	// The values come from the parser that the rest of Kubernetes uses, so that scalars have the same meaning as in
	// gardener-resource-manager. For example, "yes" is a boolean there, but not in newer versions of YAML.
	jsonData, err := sigsyaml.YAMLToJSON(data)
	if err != nil {
		return nil, nil, notYAML(err)
	}
	var value any
	if err := json.UnmarshalCaseSensitivePreserveInts(jsonData, &value); err != nil {
		return nil, nil, notYAML(err)
	}
	tree, ok := value.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("not a configuration: the file must be a mapping that begins with %q and %q",
			"apiVersion: "+SchemeGroupVersion.String(), "kind: "+Kind)
	}
	return tree, duplicateKeys(node, nil), nil
}

// readNode returns the root of the only document. It rejects documents that are too deep or too large.
func readNode(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, next yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, notYAML(err)
	}
	if isEmpty(&document) {
		return nil, fmt.Errorf("empty: the file must begin with %q and %q",
			"apiVersion: "+SchemeGroupVersion.String(), "kind: "+Kind)
	}
	if err := decoder.Decode(&next); err != nil && !errors.Is(err, io.EOF) {
		return nil, notYAML(err)
	}
	if !isEmpty(&next) {
		return nil, errors.New("more than one YAML document: only the first would be used; remove the others")
	}
	budget := maxExpandedBytes
	if !fits(document.Content[0], maxDepth, &budget) {
		return nil, fmt.Errorf("too deep or too large: at most %d levels and, with aliases replaced, %d bytes are read",
			maxDepth, maxExpandedBytes)
	}
	return document.Content[0], nil
}

func isEmpty(document *yaml.Node) bool {
	return len(document.Content) == 0 || document.Content[0].Tag == "!!null"
}

func notYAML(err error) error {
	return fmt.Errorf("not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// fits reports whether node, with all aliases expanded, stays within depth and budget. Without this check, a file of a
// few kilobytes could exhaust the memory or contain an infinite recursion.
func fits(node *yaml.Node, depth int, budget *int) bool {
	*budget -= len(node.Value) + 1
	if depth == 0 || *budget < 0 {
		return false
	}
	if node.Kind == yaml.AliasNode {
		return fits(node.Alias, depth-1, budget)
	}
	for _, child := range node.Content {
		if !fits(child, depth-1, budget) {
			return false
		}
	}
	return true
}

// duplicateKeys reports keys that occur twice in one mapping. It does not follow aliases, because duplicates are
// reported where the alias is defined.
func duplicateKeys(node *yaml.Node, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch node.Kind {
	case yaml.SequenceNode:
		for i, child := range node.Content {
			errs = append(errs, duplicateKeys(child, path.Index(i))...)
		}
	case yaml.MappingNode:
		lines := map[string]int{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, child := node.Content[i], path.Child(node.Content[i].Value)
			if line, seen := lines[key.Value]; seen {
				errs = append(errs, field.Forbidden(child,
					fmt.Sprintf("set in line %d and again in line %d: keep one of them", line, key.Line)))
			}
			lines[key.Value] = key.Line
			errs = append(errs, duplicateKeys(node.Content[i+1], child)...)
		}
	}
	return errs
}
