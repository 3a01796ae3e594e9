package bootstrap

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

func TestFind(t *testing.T) {
	const size = 50 << 30
	disk := device{Path: "/dev/b", Type: "disk", Size: size, MountPoints: []*string{nil}}
	with := func(change func(*device)) device {
		other := disk
		change(&other)
		return other
	}
	for name, test := range map[string]struct {
		devices    []device
		want, fail string
	}{
		"one":                {[]device{with(func(d *device) { d.Path, d.Size = "/dev/a", 1 }), disk}, "/dev/b", ""},
		"none of the size":   {[]device{with(func(d *device) { d.Size-- })}, "", "no disk without partitions"},
		"two":                {[]device{disk, with(func(d *device) { d.Path = "/dev/c" })}, "", `["/dev/b" "/dev/c"]`},
		"a partition":        {[]device{with(func(d *device) { d.Type = "part" })}, "", "no disk"},
		"with partitions":    {[]device{with(func(d *device) { d.Children = []device{{Type: "part"}} })}, "", "no disk"},
		"with a table":       {[]device{with(func(d *device) { d.PTType = ptr.To("gpt") })}, "", "no disk"},
		"with a file system": {[]device{with(func(d *device) { d.FSType = ptr.To("xfs") })}, "", "no disk"},
		"mounted":            {[]device{with(func(d *device) { d.MountPoints = []*string{ptr.To("/data")} })}, "", "no disk"},
		"formatted before":   {[]device{disk, with(func(d *device) { d.Label, d.FSType = ptr.To("KUBEDEV"), ptr.To("ext4") })}, "", ""},
	} {
		got, err := find(test.devices, size)
		if got != test.want || (err == nil) != (test.fail == "") || err != nil && !strings.Contains(err.Error(), test.fail) {
			t.Errorf("%s: got %q: %v", name, got, err)
		}
	}
}

// commands records commands, and answers some.
type commands struct {
	ran     []string
	answers map[string]string
}

func (c *commands) Run(_ context.Context, name string, args ...string) ([]byte, error) {
	c.ran = append(c.ran, strings.Join(append([]string{name}, args...), " "))
	answer, found := c.answers[name]
	if found && answer == "fails" {
		return nil, errors.New(name + " fails")
	}
	return []byte(answer), nil
}

const listed = `{"blockdevices":[{"path":"/dev/b","size":100,"type":"disk","fstype":null,"label":null,"pttype":null,"mountpoints":[null]}]}`

func TestDataDisk(t *testing.T) {
	for name, test := range map[string]struct {
		answers map[string]string
		want    []string
		fail    string
	}{
		"empty disk": {map[string]string{"lsblk": listed}, []string{"lsblk", "wipefs", "mkfs.ext4", "mount", "cp", "umount", "mount"}, ""},
		"a disk with data that udev does not know": {
			map[string]string{"lsblk": listed, "wipefs": "sdb 0x0 ext4"}, []string{"lsblk", "wipefs"}, "has data",
		},
		"no copy": {map[string]string{"lsblk": listed, "cp": "fails"}, []string{"lsblk", "wipefs", "mkfs.ext4", "mount", "cp", "umount"}, "cp fails"},
		"no list": {map[string]string{"lsblk": "{"}, []string{"lsblk"}, "read the output of lsblk"},
	} {
		run := &commands{answers: test.answers}
		m := Machine{Files: host.Files{Root: t.TempDir(), NoSync: true}, Commands: run, Log: logr.Discard()}
		err := m.dataDisk(t.Context(), 100)
		var names []string
		for _, each := range run.ran {
			names = append(names, strings.Fields(each)[0])
		}
		if !slices.Equal(names, test.want) || (err == nil) != (test.fail == "") || err != nil && !strings.Contains(err.Error(), test.fail) {
			t.Errorf("%s: ran %q: %v", name, run.ran, err)
		}
		if name == "empty disk" && !strings.HasSuffix(run.ran[6], "/dev/b "+m.Files.Real(paths.Kubelet)) {
			t.Errorf("mounted by %q", run.ran[6])
		}
	}
}
