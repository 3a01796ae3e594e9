package seed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/images"
)

func TestImagesOfComponents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "components.yaml")
	t.Setenv(images.ComponentsOverwriteVariable, path)
	if _, err := imagesOfComponents(); err == nil {
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
	vector, err := imagesOfComponents()
	if err != nil {
		t.Fatal(err)
	}
	in := Inputs{Images: vector, KubernetesVersion: "1.37.1"}
	if image, err := in.image(etcdoperator.ImageMember); err != nil || image != "mirror.example.org/etcd-member:v2" {
		t.Errorf("members of etcd clusters use %q, %v", image, err)
	}
	for _, name := range []string{"pause", etcdoperator.Image} {
		if image, err := in.image(name); err != nil || image == "mirror.example.org/"+name+":v2" {
			t.Errorf("%s is replaced with %q, %v", name, image, err)
		}
	}
}
