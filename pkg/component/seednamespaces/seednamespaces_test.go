package seednamespaces

import (
	"testing"

	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	for name, values := range map[string]Values{
		"seed":           {Zones: []string{"a", "b"}},
		"seed-is-garden": {Zones: []string{"a", "b"}, SeedIsGarden: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(values)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, objects)
		})
	}
}
