package v1alpha1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// documentedRow matches a row of the tables: field, type, default.
var documentedRow = regexp.MustCompile("(?m)^\\| `([\\w.]+)` \\| ([^|]+) \\| ([^|]*) \\|")

// TestDocumentedTypesAndDefaults checks that the documentation has the same type and default for every field as the code.
func TestDocumentedTypesAndDefaults(t *testing.T) {
	plain, enabled := &ResourceManagerConfiguration{}, &ResourceManagerConfiguration{}
	enableAll(reflect.ValueOf(enabled).Elem())
	enabled.Server.UI = &UIServer{}
	SetDefaults(plain)
	SetDefaults(enabled)
	without, with := tree(t, plain), tree(t, enabled)
	types := leafTypes(reflect.TypeFor[ResourceManagerConfiguration](), "")
	rows := 0
	for _, row := range documentedRow.FindAllStringSubmatch(readFile(t, documentationPath), -1) {
		path, typeName, value := row[1], strings.TrimSpace(row[2]), strings.TrimSpace(row[3])
		rows++
		if is := types[path]; is != nil && !typeFits(is, typeName) {
			t.Errorf("%s is documented as %q, but is a %s", path, typeName, is)
		}
		if strings.Contains(path, "selfManaged") { // has no defaults unless it is set
			continue
		}
		value, ifEnabled := strings.CutSuffix(value, " if enabled")
		if ifEnabled && !isNothing(at(without, path)) {
			t.Errorf("%s has the default %v even if it is not enabled", path, at(without, path))
		}
		got := at(with, path)
		if strings.HasSuffix(path, ".enabled") {
			got = at(without, path)
		}
		if !defaultFits(got, strings.Trim(value, "`")) {
			t.Errorf("%s has the documented default %s, but is %v", path, value, got)
		}
	}
	if rows < 80 {
		t.Errorf("found only %d rows", rows)
	}
}

// enableAll sets all fields with the name Enabled to true.
func enableAll(value reflect.Value) {
	for i := range value.NumField() {
		switch field := value.Field(i); {
		case field.Kind() == reflect.Struct:
			enableAll(field)
		case value.Type().Field(i).Name == "Enabled":
			field.SetBool(true)
		}
	}
}

func tree(t *testing.T, config *ResourceManagerConfiguration) map[string]any {
	t.Helper()
	content, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	if err := yaml.Unmarshal(content, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func at(tree map[string]any, path string) any {
	name, rest, more := strings.Cut(path, ".")
	if !more {
		return tree[name]
	}
	child, _ := tree[name].(map[string]any)
	return at(child, rest)
}

func isNothing(value any) bool {
	switch fmt.Sprint(value) {
	case "<nil>", "", "0", "[]", "map[]", "false", "0s":
		return true
	}
	return false
}

func defaultFits(got any, documented string) bool {
	switch documented {
	case "–", "", `""`, "[]", "{}", "false", "0s":
		return isNothing(got)
	}
	if wanted, err := time.ParseDuration(documented); err == nil {
		is, err := time.ParseDuration(fmt.Sprint(got))
		return err == nil && is == wanted
	}
	return fmt.Sprint(got) == strings.ReplaceAll(documented, ", ", " ")
}

// leafTypes returns the type of every field, by its path.
func leafTypes(of reflect.Type, prefix string) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for name, fieldType := range jsonFields(of) {
		if fieldType.Kind() == reflect.Pointer {
			fieldType = fieldType.Elem()
		}
		found[prefix+name] = fieldType
		if fieldType.Kind() == reflect.Struct && strings.Contains(fieldType.PkgPath(), "/config/v1alpha1") {
			for path, below := range leafTypes(fieldType, prefix+name+".") {
				found[path] = below
			}
		}
	}
	return found
}

func typeFits(is reflect.Type, documented string) bool {
	switch documented {
	case "bool", "string":
		return is.Kind().String() == documented
	case "int":
		return is.Kind() >= reflect.Int && is.Kind() <= reflect.Uint64
	case "number":
		return is.Kind() == reflect.Float32 || is.Kind() == reflect.Float64
	case "duration", "quantity", "label selector":
		return strings.EqualFold(is.Name(), strings.ReplaceAll(documented, " ", ""))
	}
	if strings.HasPrefix(documented, "list of ") {
		return is.Kind() == reflect.Slice
	}
	return strings.HasPrefix(documented, "map of ") && is.Kind() == reflect.Map
}
