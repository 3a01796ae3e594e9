package apis_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is found to the golden files")

// TestFieldsStayTheSame checks that no field is renamed, removed, or gets another type, because that would change the API. If
// you add a field, run the test with -update and review the diff.
func TestFieldsStayTheSame(t *testing.T) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			var found []string
			for kind, object := range kindsOf(t, group.add) {
				found = append(found, paths(kind.Kind, reflect.TypeOf(object).Elem(), nil)...)
			}
			slices.Sort(found)
			file := "testdata/fields/" + group.name + ".txt"
			content := strings.Join(found, "\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) == content {
				return
			}
			wanted := strings.Split(strings.TrimSpace(string(want)), "\n")
			for _, path := range found {
				if !slices.Contains(wanted, path) {
					t.Errorf("new: %s", path)
				}
			}
			for _, path := range wanted {
				if !slices.Contains(found, path) {
					t.Errorf("removed: %s", path)
				}
			}
		})
	}
}

// paths returns the JSON paths of a type of this module with the types of their values, followed by an exclamation mark if the
// field is always written. It does not descend into types of other modules.
func paths(prefix string, of reflect.Type, above []reflect.Type) []string {
	if slices.Contains(above, of) {
		return nil
	}
	var found []string
	for field := range fieldsOf(of) {
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if strings.Contains(options, "inline") {
			found = append(found, paths(prefix, deref(field.Type), append(above, of))...)
			continue
		}
		if name == "metadata" && field.Anonymous {
			continue
		}
		path := prefix + "." + name
		required := ""
		if !strings.Contains(options, "omitempty") {
			required = "!"
		}
		below, list := element(field.Type)
		found = append(found, fmt.Sprintf("%s%s %s", path, required, strings.ReplaceAll(field.Type.String(), "interface {}", "any")))
		if below.Kind() == reflect.Struct && strings.Contains(below.PkgPath(), "/pkg/apis/") && !strings.HasPrefix(below.PkgPath(), "k8s.io/") {
			found = append(found, paths(path+list, below, append(above, of))...)
		}
	}
	return found
}

func fieldsOf(of reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range of.NumField() {
			if field := of.Field(i); field.IsExported() && field.Type.Name() != "TypeMeta" && !yield(field) {
				return
			}
		}
	}
}

func deref(of reflect.Type) reflect.Type {
	if of.Kind() == reflect.Pointer {
		return of.Elem()
	}
	return of
}

func element(of reflect.Type) (reflect.Type, string) {
	of = deref(of)
	if of.Kind() == reflect.Slice {
		below, list := element(of.Elem())
		return below, "[]" + list
	}
	return of, ""
}
