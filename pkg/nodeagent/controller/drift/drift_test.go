package drift

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
)

func TestDifferences(t *testing.T) {
	inline := func(path string) extensionsv1alpha1.File {
		return extensionsv1alpha1.File{Path: path, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: "YQ=="}}}
	}
	config := &osc.Config{
		Files: []extensionsv1alpha1.File{
			inline("/etc/same"), inline("/etc/changed"), inline("/etc/gone"),
			{Path: "/opt/bin/kubelet", Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{}}},
		},
		Units: []extensionsv1alpha1.Unit{
			{Name: "a.service", Content: ptr.To("a"), Enable: ptr.To(true), DropIns: []extensionsv1alpha1.DropIn{{Name: "x.conf", Content: "x"}}},
			{Name: "b.service", Enable: ptr.To(false)}, {Name: "c.service"},
		},
	}
	states := []host.UnitState{{Enabled: "disabled"}, {Enabled: "enabled"}, {Enabled: "disabled"}}
	files := map[string]string{
		"/etc/same": "a", "/etc/changed": "b", "/opt/bin/kubelet": "whatever",
		"/etc/systemd/system/a.service": "other", "/etc/systemd/system/a.service.d/x.conf": "x",
	}
	read := func(path string) ([]byte, error) {
		content, found := files[path]
		if !found {
			return nil, fs.ErrNotExist
		}
		return []byte(content), nil
	}
	got, err := Differences(config, states, read)
	want := []string{
		"/etc/changed has another content", "/etc/gone does not exist", "/etc/systemd/system/a.service has another content",
		"a.service is disabled", "b.service is enabled",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q: %v", got, err)
	}
	if _, err := Differences(config, states, func(string) ([]byte, error) { return nil, errors.New("input/output error") }); err == nil {
		t.Error("a file that cannot be read counts as unchanged")
	}
}
