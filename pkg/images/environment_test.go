package images

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFromEnvironmentWith replaces one image of one component, and no other.
func TestFromEnvironmentWith(t *testing.T) {
	path := filepath.Join(t.TempDir(), "components.yaml")
	t.Setenv(ComponentsOverwriteVariable, path)
	if _, err := FromEnvironmentWith("etcd-druid", "etcd-member"); err == nil {
		t.Error("no error for a missing file")
	}
	const overwrites = `
components:
- name: etcd-druid
  imageVectorOverwrite: |
    images:
    - {name: etcd-member, ref: mirror.example.org/etcd-member:v2}
    - {name: pause, ref: mirror.example.org/pause:v2}
- name: other
  imageVectorOverwrite: "images: [{name: etcd-operator, ref: mirror.example.org/etcd-operator:v2}]"
`
	if err := os.WriteFile(path, []byte(overwrites), 0o600); err != nil {
		t.Fatal(err)
	}
	vector, err := FromEnvironmentWith("etcd-druid", "etcd-member")
	if err != nil {
		t.Fatal(err)
	}
	options := Options{RuntimeVersion: "1.37.1", TargetVersion: "1.37.1"}
	if image, err := vector.Find("etcd-member", options); err != nil || image.Reference != "mirror.example.org/etcd-member:v2" {
		t.Errorf("members of etcd clusters use %q, %v", image.Reference, err)
	}
	for _, name := range []string{"pause", "etcd-operator"} {
		if image, err := vector.Find(name, options); err != nil || image.Reference == "mirror.example.org/"+name+":v2" {
			t.Errorf("%s is replaced with %q, %v", name, image.Reference, err)
		}
	}
}
