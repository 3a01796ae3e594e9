package apply

import (
	"errors"
	"slices"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestUnknownFields(t *testing.T) {
	err := errors.New(`strict decoding error: unknown field "spec.a", unknown field "spec.b[0].\"c\"", duplicate field "d"`)
	if got := unknownFields(err); !slices.Equal(got, []string{"spec.a", `spec.b[0]."c"`}) {
		t.Errorf("got %q", got)
	}
}

func TestWithoutFields(t *testing.T) {
	const start = `{"metadata":{`
	for name, test := range map[string]struct {
		path, rest string
		found      bool
	}{
		"a field":               {"spec.a", start + `"name":"x"},"apiVersion":"v1","kind":"K","spec":{"a.b":{"c":1},"l":[{"m":1,"n":[[{"o":1}]]}]}}`, true},
		"below a key with dots": {"spec.a.b.c", start + `"name":"x"},"apiVersion":"v1","kind":"K","spec":{"a":1,"a.b":{},"l":[{"m":1,"n":[[{"o":1}]]}]}}`, true},
		"in a list":             {"spec.l[0].m", start + `"name":"x"},"apiVersion":"v1","kind":"K","spec":{"a":1,"a.b":{"c":1},"l":[{"n":[[{"o":1}]]}]}}`, true},
		"in a list of lists":    {"spec.l[0].n[0][0].o", start + `"name":"x"},"apiVersion":"v1","kind":"K","spec":{"a":1,"a.b":{"c":1},"l":[{"m":1,"n":[[{}]]}]}}`, true},
		"beyond a list":         {path: "spec.l[1].m"},
		"nowhere":               {path: "spec.z"},
		"malformed":             {path: "spec.l[0"},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(start + `"name":"x"},"apiVersion":"v1","kind":"K","spec":{"a":1,"a.b":{"c":1},"l":[{"m":1,"n":[[{"o":1}]]}]}}`)
			task, dropped, err := withoutFields(Task{Manifest: object.Manifest{Body: body, Initial: body}}, []string{test.path})
			if err != nil || (len(dropped) == 1) != test.found {
				t.Fatalf("dropped %v, %v", dropped, err)
			}
			if test.found && (string(task.Body) != test.rest || string(task.Initial) != test.rest) {
				t.Errorf("got  %s\nwant %s", task.Body, test.rest)
			}
		})
	}
}
