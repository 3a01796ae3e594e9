package etcdoperator

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/images"
)

func TestImages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "components.yaml")
	t.Setenv(images.ComponentsOverwriteVariable, path)
	if _, err := Images(); err == nil {
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
	vector, err := Images()
	if err != nil {
		t.Fatal(err)
	}
	options := images.Options{RuntimeVersion: "1.37.1", TargetVersion: "1.37.1"}
	if image, err := vector.Find(ImageMember, options); err != nil || image.Reference != "mirror.example.org/etcd-member:v2" {
		t.Errorf("members of etcd clusters use %q, %v", image.Reference, err)
	}
	for _, name := range []string{"pause", Image} {
		if image, err := vector.Find(name, options); err != nil || image.Reference == "mirror.example.org/"+name+":v2" {
			t.Errorf("%s is replaced with %q, %v", name, image.Reference, err)
		}
	}
}
