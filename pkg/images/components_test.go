package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoComponents has the format that Gardener documents.
const twoComponents = `
components:
- name: etcd-druid
  imageVectorOverwrite: |
    images:
    - name: etcd-wrapper
      sourceRepository: github.com/gardener/etcd-wrapper
      repository: mirror.example.org/etcd-wrapper
      tag: v0.6.0
- name: other
  imageVectorOverwrite: "images: [{name: tool, ref: mirror.example.org/tool@sha256:abc}]"
`

func TestComponents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "components.yaml")
	if err := os.WriteFile(path, []byte(twoComponents), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(ComponentsOverwriteVariable, path)
	components, err := ComponentsFromEnvironment()
	if err != nil || len(components) != 2 {
		t.Fatalf("got %v, %v, want two components", components, err)
	}
	image, err := components["etcd-druid"].Find("etcd-wrapper", Options{})
	if err != nil || image.Reference != "mirror.example.org/etcd-wrapper:v0.6.0" {
		t.Errorf("the component finds %+v, %v", image, err)
	}
	// Overwrites of a component do not change the images of others.
	vector, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if image, err := vector.Find("etcd-wrapper", Options{}); err == nil {
		t.Errorf("another component finds %+v", image)
	}
}

func TestNoComponents(t *testing.T) {
	t.Setenv(ComponentsOverwriteVariable, "")
	components, err := ComponentsFromEnvironment()
	if err != nil || len(components) != 0 {
		t.Errorf("got %v, %v", components, err)
	}
}

func TestInvalidComponents(t *testing.T) {
	for content, want := range map[string]string{
		"components: {": "yaml",
		"components: [{imageVectorOverwrite: 'images: [{name: a}]'}]":                                               "components[0] (\"\"): name is missing",
		"components: [{name: a}]":                                                                                   "components[0] (\"a\"): imageVectorOverwrite has no images",
		"components: [{name: a, imageVectorOverwrite: 'images: {'}]":                                                "imageVectorOverwrite: error converting YAML",
		"components: [{name: a, imageVectorOverwrite: 'images: [{repository: b}]'}]":                                "images[0] (\"\"): name is missing",
		"components: [{name: a, imageVectorOverwrite: 'images: [{name: b}]'}, {name: a, imageVectorOverwrite: ''}]": "components[1] (\"a\"): the component occurs twice",
	} {
		if components, err := ParseComponents([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want the error %q", content, components, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "components.yaml")
	if _, err := LoadComponents(path); err == nil || !strings.Contains(err.Error(), "overwrites of component images") {
		t.Errorf("for a missing file: %v", err)
	}
	if err := os.WriteFile(path, make([]byte, maxFileSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadComponents(path); err == nil || !strings.Contains(err.Error(), "the limit is 1048576 bytes") {
		t.Errorf("for a file that is too large: %v", err)
	}
}
