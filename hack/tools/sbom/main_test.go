package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestRun describes the program of this test.
func TestRun(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{program, "v1"}, &out); err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Type, Version, Purl string }
		}
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal([]byte(out.String()), &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Type != "application" || bom.Metadata.Component.Version != "v1" {
		t.Errorf("the described component is %+v", bom.Metadata)
	}
	found := 0
	for _, component := range bom.Components {
		if component.Purl != "pkg:golang/"+component.Name+"@"+component.Version || component.Version == "" {
			t.Errorf("found the component %+v", component)
		}
		if component.Name == "std" || component.Name == "github.com/CycloneDX/cyclonedx-go" {
			found++
		}
	}
	if found != 2 {
		t.Errorf("the components are %+v", bom.Components)
	}
	if run([]string{program + "x", "v1"}, &out) == nil || run(nil, &out) == nil {
		t.Error("got no error")
	}
}
