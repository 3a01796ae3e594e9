package osc

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

func TestDecode(t *testing.T) {
	c, err := Decode([]byte(`
spec:
  newField: of a newer gardenlet
  units:
  - {name: a.service, content: a, enable: true, filePaths: [/a], dropIns: [{name: x.conf, content: "1"}]}
  files:
  - {path: /a, content: {inline: {encoding: "", data: a}}}
  - {path: /host, hostName: one, content: {inline: {encoding: "", data: one}}}
  - {path: /host, hostName: two, content: {inline: {encoding: "", data: two}}}
status:
  extensionUnits:
  - {name: a.service, content: b, command: stop, filePaths: [/b], dropIns: [{name: x.conf, content: "2"}, {name: y.conf, content: "3"}]}
  - {name: b.service}
  extensionFiles:
  - {path: /b, content: {imageRef: {image: i, filePathInImage: /b}}}
`), "two")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Files) != 3 || c.Files[1].Content.Inline.Data != "two" {
		t.Errorf("files are %+v", c.Files)
	}
	a := c.Units[0]
	if len(c.Units) != 2 || *a.Content != "b" || !*a.Enable || *a.Command != "stop" || strings.Join(a.FilePaths, " ") != "/a /b" ||
		len(a.DropIns) != 2 || a.DropIns[0].Content != "2" {
		t.Errorf("units are %+v", c.Units)
	}
}

func TestMistakes(t *testing.T) {
	_, err := Decode([]byte(`
spec:
  criConfig: {name: containerd, containerd: {sandboxImage: a, registries: [{upstream: ../../etc}]}}
  units: [{name: ../a.service}, {name: a}, {name: a.service, dropIns: [{name: ../b, content: a}]}]
  files:
  - {path: a, content: {inline: {encoding: "", data: a}}}
  - {path: /a/../b, content: {inline: {encoding: "", data: a}}}
  - {path: /c, permissions: 4096, content: {inline: {encoding: "", data: a}}}
  - {path: /c, content: {}}
`), "")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"files[0].path", "files[1].path", "files[2].permissions", "files[3].path: Duplicate", "files[3].content", "units[0].name", "units[1].name",
		"units[2].dropIns[0].name", "registries[0].upstream",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if _, err := Decode([]byte("a: b: c"), ""); err == nil || !strings.Contains(err.Error(), "not valid YAML") {
		t.Errorf("got %v", err)
	}
}

func inline(path, data string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: data}}}
}

func TestPlan(t *testing.T) {
	a := extensionsv1alpha1.Unit{Name: "a.service", Content: ptr.To("a"), FilePaths: []string{"/a"}}
	system := extensionsv1alpha1.Unit{Name: "system.service", FilePaths: []string{"/a"}}
	before := &Config{Units: []extensionsv1alpha1.Unit{a, system}, Files: []extensionsv1alpha1.File{inline("/a", "1"), inline("/b", "1")}}
	cri := func(image string, registries ...string) *extensionsv1alpha1.CRIConfig {
		c := &extensionsv1alpha1.CRIConfig{Name: "containerd", Containerd: &extensionsv1alpha1.ContainerdConfig{SandboxImage: image}}
		for _, registry := range registries {
			c.Containerd.Registries = append(c.Containerd.Registries, extensionsv1alpha1.RegistryConfig{Upstream: registry})
		}
		return c
	}
	stopped := a
	stopped.Command = ptr.To(extensionsv1alpha1.CommandStop)
	for name, test := range map[string]struct {
		wanted, applied, attempted *Config
		want                       string
	}{
		"nothing changed": {before, before, nil, ""},
		"nothing applied": {before, nil, nil, "write /a, write /b, write /etc/systemd/system/a.service, reload systemd, enable a.service, restart a.service, restart system.service"},
		"a file without unit": {
			&Config{Units: before.Units, Files: []extensionsv1alpha1.File{inline("/a", "1"), inline("/b", "2")}}, before, nil, "write /b",
		},
		"a file of units": {
			&Config{Units: before.Units, Files: []extensionsv1alpha1.File{inline("/a", "2"), inline("/b", "1")}}, before, nil,
			"write /a, write /etc/systemd/system/a.service, reload systemd, enable a.service, restart a.service, restart system.service",
		},
		"a file is gone": {&Config{Units: before.Units, Files: before.Files[:1]}, before, nil, "remove /b"},
		"a unit is gone": {
			&Config{Units: before.Units[1:], Files: before.Files}, before, nil,
			"disable a.service, stop a.service, remove /etc/systemd/system/a.service, remove /etc/systemd/system/a.service.d, reload systemd",
		},
		"a unit is stopped": {
			&Config{Units: []extensionsv1alpha1.Unit{stopped, system}, Files: before.Files}, before, nil,
			"write /etc/systemd/system/a.service, reload systemd, enable a.service, stop a.service",
		},
		"a file was attempted": {before, before, &Config{Files: []extensionsv1alpha1.File{inline("/b", "1"), inline("/c", "1")}}, "write /b, remove /c"},
		"a registry changes nothing else": {
			&Config{CRI: cri("1", "a", "b")}, &Config{CRI: cri("1", "a", "c")}, nil, "write registry b, remove /etc/containerd/certs.d/c",
		},
		"the sandbox image": {
			&Config{CRI: cri("2")}, &Config{CRI: cri("1")}, nil, "configure containerd containerd, reload systemd, restart containerd.service",
		},
		"the node agent": {
			&Config{Units: []extensionsv1alpha1.Unit{{Name: "gardener-node-agent.service", Content: ptr.To("a")}, a}, Files: before.Files[:1]},
			&Config{Files: before.Files[:1]}, nil,
			"write /etc/systemd/system/gardener-node-agent.service, write /etc/systemd/system/a.service, reload systemd, " +
				"enable gardener-node-agent.service, enable a.service, restart the node agent, restart a.service",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, step := range Plan(test.wanted, test.applied, test.attempted) {
				got = append(got, step.String())
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), test.want)
			}
		})
	}
}
