package v1alpha1

import (
	"flag"
	"os"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the files in testdata")

// TestDefaults compares the defaults of an empty configuration, and of one with an ExposureClassHandler and logging, with the
// files in testdata. These files were compared with Gardener's defaults by hand.
func TestDefaults(t *testing.T) {
	enabled := true
	for name, c := range map[string]*GardenletConfiguration{
		"empty": {},
		"handler": {
			ExposureClassHandlers: []ExposureClassHandler{{Name: "internet"}},
			Logging:               &Logging{Enabled: &enabled},
		},
	} {
		SetDefaults(c)
		got, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + name + ".yaml"
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		again := c.DeepCopy()
		if SetDefaults(again); !reflect.DeepEqual(c, again) {
			t.Errorf("%s: setting the defaults again changes\n%+v\nto\n%+v", name, c, again)
		}
	}
}
