package validation_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// TestTimeZonesAreBuiltIn checks that programs with this package know the time zones without files of the system. A machine
// that runs tests has these files, so that the result of a rule does not show whether a program needs them.
func TestTimeZonesAreBuiltIn(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range parsed.Imports {
			if one.Path.Value == `"time/tzdata"` {
				return
			}
		}
	}
	t.Error("no file imports time/tzdata")
}
