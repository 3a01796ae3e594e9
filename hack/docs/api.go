package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// field is a field of a kind, by its path.
type field struct{ Path, Type, What string }

// fields returns the fields of a struct of a package and of its nested structs. The names of lists end in [].
func (c code) fields(directory, structName, prefix string) ([]field, error) {
	s := c[directory]
	body, err := s.structOf(structName)
	if err != nil {
		return nil, err
	}
	var found []field
	for _, member := range body.Fields.List {
		name, optional := jsonName(member)
		if name == "" || len(member.Names) == 0 {
			continue
		}
		of, list, text := typeOf(member.Type)
		path := prefix + name
		what := withoutName(sentence(member.Doc.Text()), member.Names[0].Name)
		if !optional {
			what += " Required."
		}
		found = append(found, field{path, text, capital(what)})
		if _, err := s.structOf(of); err == nil {
			below, err := c.fields(directory, of, path+list+".")
			if err != nil {
				return nil, err
			}
			found = append(found, below...)
		}
	}
	return found, nil
}

func (s *sources) structOf(name string) (*ast.StructType, error) {
	for declaration := range s.declarations(token.TYPE) {
		for _, spec := range declaration.Specs {
			if definition, is := spec.(*ast.TypeSpec); is && definition.Name.Name == name {
				if body, is := definition.Type.(*ast.StructType); is {
					return body, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("struct %s not found", name)
}

// jsonName returns the JSON name of a field, which is empty if it has none, and whether the field is optional.
func jsonName(member *ast.Field) (name string, optional bool) {
	if member.Tag == nil {
		return "", false
	}
	tag, _ := strconv.Unquote(member.Tag.Value)
	name, _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name, strings.Contains(member.Doc.Text(), "+optional") || strings.Contains(tag, "omitempty")
}

// typeOf returns the name of the struct or basic type in a type, the brackets of its lists, and a description of the
// type.
func typeOf(expression ast.Expr) (of, list, text string) {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return typeOf(e.X)
	case *ast.ArrayType:
		of, list, text = typeOf(e.Elt)
		return of, "[]" + list, "list of " + text
	case *ast.MapType:
		_, _, text = typeOf(e.Value)
		return "", "", "map of " + text
	case *ast.SelectorExpr:
		return "", "", strings.ToLower(e.Sel.Name)
	case *ast.Ident:
		if e.IsExported() {
			return e.Name, "", e.Name
		}
		return "", "", strings.TrimRight(e.Name, "3264")
	}
	return "", "", "object"
}

// withoutName removes the name of the described object from the beginning of a comment.
func withoutName(comment, name string) string {
	rest, _ := strings.CutPrefix(comment, name+" ")
	if strings.HasPrefix(rest, "of ") || strings.HasPrefix(rest, "that ") {
		return comment
	}
	rest, _ = strings.CutPrefix(rest, "are ")
	rest, _ = strings.CutPrefix(rest, "is ")
	return rest
}

func fieldsTable(fields []field) string {
	var out strings.Builder
	out.WriteString("| field | type | what |\n|---|---|---|\n")
	for _, one := range fields {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", one.Path, one.Type, cell(one.What))
	}
	return out.String()
}

// isKey matches names of labels and annotations.
var isKey = regexp.MustCompile(`^(Annotation|Label)([A-Z].*)$`)

// keysTable returns the table of labels and annotations in the package of the ManagedResource.
func (c code) keysTable() string {
	var rows []string
	for declaration := range c[resourcesAPI].declarations(token.CONST) {
		for _, spec := range declaration.Specs {
			for constant, value := range stringsOf(spec) {
				kind := isKey.FindStringSubmatch(constant)
				about, _ := spec.(*ast.ValueSpec)
				what := withoutName(sentence(about.Doc.Text()), constant)
				if kind == nil || what == "" {
					continue
				}
				rows = append(rows, "| `"+value+"` | "+strings.ToLower(kind[1])+" | "+cell(c.named(capital(what)))+" |\n")
			}
		}
	}
	slices.Sort(rows)
	return "| key | | what |\n|---|---|---|\n" + strings.Join(rows, "")
}

var identifier = regexp.MustCompile(`\b(Annotation|Label|Mode|Operation|Purpose|Class)[A-Z]\w*`)

// named replaces the names of constants in a text with their values.
func (c code) named(text string) string {
	return identifier.ReplaceAllStringFunc(text, func(name string) string {
		if value, is := c[resourcesAPI].constants[name]; is {
			return "`" + value + "`"
		}
		return name
	})
}
