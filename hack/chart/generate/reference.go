package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// The page with the table of values, and the markers around the table.
const (
	page  = "docs/installation.md"
	begin = "<!-- begin of the values -->\n"
	end   = "<!-- end of the values -->\n"
)

// schema has the fields of a JSON schema that the table needs.
type schema struct {
	Type        string            `json:"type"`
	Description string            `json:"description"`
	Enum        []string          `json:"enum"`
	Properties  map[string]schema `json:"properties"`
}

// reference returns the page with the table of values, generated from the schema and the default values.
func reference(root string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, fmt.Errorf("read the page with the table of values: %w", err)
	}
	before, rest, found := bytes.Cut(text, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("%s: the table must be between %q and %q", page, begin, end)
	}
	loaded, err := Load(root)
	if err != nil {
		return nil, err
	}
	table, err := valuesTable(loaded)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{page: slices.Concat(before, []byte(begin), table, []byte(end), after)}, nil
}

func valuesTable(loaded *chart.Chart) ([]byte, error) {
	var top schema
	if err := json.Unmarshal(loaded.Schema, &top); err != nil {
		return nil, fmt.Errorf("read the schema of the values: %w", err)
	}
	var table bytes.Buffer
	table.WriteString("\n| value | type | default | meaning |\n|---|---|---|---|\n")
	var missing []string
	var walk func(path []string, node schema, values any)
	walk = func(path []string, node schema, values any) {
		fields, isMap := values.(map[string]any)
		if len(node.Properties) == 0 {
			name := strings.Join(path, ".")
			if values == nil {
				missing = append(missing, name)
			}
			written, err := json.Marshal(values)
			if err != nil {
				missing = append(missing, name)
			}
			fmt.Fprintf(&table, "| `%s` | %s | `%s` | %s |\n", name, node.Type, written, node.Description)
			return
		}
		for _, key := range order(loaded, path, node.Properties) {
			if isMap && key != "global" {
				walk(append(slices.Clone(path), key), node.Properties[key], fields[key])
			}
		}
	}
	walk(nil, top, loaded.Values)
	if len(missing) > 0 {
		return nil, fmt.Errorf("values.yaml lacks %s of the schema", strings.Join(missing, ", "))
	}
	table.WriteString("\n")
	return table.Bytes(), nil
}

// order returns keys in the order of values.yaml.
func order(loaded *chart.Chart, path []string, properties map[string]schema) []string {
	var text string
	for _, file := range loaded.Raw {
		if file.Name == "values.yaml" {
			text = string(file.Data)
		}
	}
	// Each level is indented by two spaces. A key is searched after its parent keys.
	from := 0
	for depth, key := range path {
		from += strings.Index(text[from:], "\n"+strings.Repeat("  ", depth)+key+":") + 1
	}
	indent := "\n" + strings.Repeat("  ", len(path))
	keys := make([]string, 0, len(properties))
	for key := range properties {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return strings.Index(text[from:], indent+a+":") - strings.Index(text[from:], indent+b+":")
	})
	return keys
}
