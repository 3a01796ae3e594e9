package machine

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"
)

func TestHierarchies(t *testing.T) {
	const hybrid = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
42 31 0:38 / /mnt/elsewhere rw,relatime - cgroup cgroup rw,pids
`
	for name, test := range map[string]struct {
		cgroups, mounts string
		want            []Hierarchy
		unified         bool
	}{
		"v1 and v2": {"9:name=systemd:/\n4:memory:/group/inner\n2:cpu,cpuacct:/\n1:pids:/\n0::/\n", hybrid, []Hierarchy{
			{"name=systemd", "/sys/fs/cgroup/systemd", "/"}, {"memory", "/sys/fs/cgroup/memory", "/group/inner"},
			{"cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct", "/"}, {"", "/sys/fs/cgroup/unified", "/"},
		}, false},
		"v2 only": {"0::/user.slice\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", []Hierarchy{{"", "/sys/fs/cgroup", "/user.slice"}}, true},
		"none":    {"0::/\n", "", nil, false},
	} {
		got := hierarchies([]byte(test.cgroups), []byte(test.mounts))
		if !reflect.DeepEqual(got, test.want) || unifiedOnly(got) != test.unified {
			t.Errorf("%s: got %+v, v2 only: %t", name, got, unifiedOnly(got))
		}
	}
}

func TestFirstProcess(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\texe\nState:\tS (sleeping)\nNSpid:\t700\t1\n":      true,
		"Name:\texe\nState:\tZ (zombie)\nNSpid:\t700\t1\n":        false,
		"Name:\tetcd\nState:\tS (sleeping)\nNSpid:\t701\t8\n":     false,
		"Name:\tpause\nState:\tS (sleeping)\nNSpid:\t702\t9\t1\n": false,
		"Name:\tbash\nState:\tS (sleeping)\nNSpid:\t1\n":          false,
		"": false,
	} {
		if got := isFirst(status); got != want {
			t.Errorf("%q: %t, want %t", status, got, want)
		}
	}
}

func TestConfig(t *testing.T) {
	c := &Config{Name: "landscape-12345", Directory: t.TempDir(), Host: netip.MustParsePrefix("10.0.0.1/30"), Machine: netip.MustParsePrefix("10.0.0.2/30"),
		Services: []Service{{Name: "a", Args: []string{"b"}}}}
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	read, err := Read(c.Directory)
	if err != nil || !reflect.DeepEqual(read, c) {
		t.Errorf("read %+v, %v, want %+v", read, err, c)
	}
	if _, err := Read(filepath.Join(c.Directory, "missing")); err == nil {
		t.Error("no error for a missing configuration")
	}
}
