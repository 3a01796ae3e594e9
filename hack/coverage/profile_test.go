package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const example = `mode: atomic
github.com/trellis-k8s/trellis/pkg/a/a.go:1.2,3.4 3 0
github.com/trellis-k8s/trellis/pkg/a/a.go:5.2,6.4 1 7
github.com/trellis-k8s/trellis/pkg/a/a.go:1.2,3.4 3 1
github.com/trellis-k8s/trellis/pkg/b/b.go:20.1,22.2 2 0
github.com/trellis-k8s/trellis/pkg/b/b.go:3.1,4.2 2 0
github.com/trellis-k8s/trellis/pkg/b/b.go:5.1,5.2 0 0
github.com/trellis-k8s/trellis/pkg/b/zz_generated.deepcopy.go:1.1,2.2 100 0
github.com/trellis-k8s/trellis/pkg/b/c.go:3.1,4.2 4 1
`

func TestProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{"-uncovered", "pkg/b$", file}, &out, &out); err != nil {
		t.Fatal(err)
	}
	const want = `| package | statements | run | share |
|---|---|---|---|
| pkg/a | 4 | 4 | 100.0 % |
| pkg/b | 8 | 4 | 50.0 % |
| all | 12 | 8 | 66.7 % |

Not run:
pkg/b/b.go:3-4 (2)
pkg/b/b.go:20-22 (2)
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	for name, arguments := range map[string][]string{
		"no profile": nil, "none there": {file + "x"}, "a bad expression": {"-uncovered", "(", file},
	} {
		if run(arguments, &out, &out) == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if _, err := read(strings.NewReader("mode: set\nx\n")); err == nil {
		t.Error("an invalid line is accepted")
	}
}
