package landscape

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/landscape/build"
	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

func repository(t *testing.T) string {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestNetwork(t *testing.T) {
	n, err := ParseNetwork("10.99.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{n.Pods().String(), n.Services().String(), n.LoadBalancers().String(), n.Host().Masked().String()}
	if want := []string{"10.99.0.0/17", "10.99.128.0/18", "10.99.192.0/20", "10.99.255.0/30"}; !slices.Equal(parts, want) {
		t.Errorf("the networks are %v, want %v", parts, want)
	}
	if !n.Services().Contains(n.DNS()) || !n.Services().Contains(n.APIService()) || !n.Host().Contains(n.Machine().Addr()) {
		t.Error("an address is not in its network")
	}
	for _, block := range []string{"", "10.99.0.0/24", "10.99.1.0/16", "fd00::/16", "nonsense"} {
		if _, err := ParseNetwork(block); err == nil {
			t.Errorf("the block %q is accepted, want an error", block)
		}
	}
}

func TestPreflight(t *testing.T) {
	good := func() host {
		h := host{
			os: "linux", filesystems: "nodev\tsysfs\nnodev\toverlay\n", directory: "other", openFiles: 20000,
			exists: func(string) bool { return true }, program: func(string) bool { return true }, library: func(string) bool { return true },
		}
		for _, c := range []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids", "name=systemd", ""} {
			h.hierarchies = append(h.hierarchies, machine.Hierarchy{Controllers: c})
		}
		return h
	}
	for name, test := range map[string]struct {
		change       func(*host)
		distribution bool
		missing      []string
		packages     string
	}{
		"everything is there": {change: func(*host) {}},
		"another system":      {change: func(h *host) { h.os = "darwin" }, missing: []string{"needs Linux"}},
		"another user":        {change: func(h *host) { h.user = 1000 }, missing: []string{"root"}},
		"no cgroups":          {change: func(h *host) { h.hierarchies = nil }, missing: []string{"no cgroups"}},
		"cgroups v2":          {change: func(h *host) { h.hierarchies = []machine.Hierarchy{{}} }},
		"a controller":        {change: func(h *host) { h.hierarchies = slices.Delete(h.hierarchies, 3, 4) }, missing: []string{"controller memory"}},
		"file systems": {change: func(h *host) { h.filesystems, h.directory = "", "overlay" },
			missing: []string{"modprobe overlay", "--directory"}},
		"bridges": {change: func(h *host) { h.exists = func(path string) bool { return !strings.Contains(path, "bridge") } }, missing: []string{"br_netfilter"}},
		"files":   {change: func(h *host) { h.openFiles = 1024 }, missing: []string{"ulimit -n 8192"}},
		"programs": {change: func(h *host) { h.program = func(string) bool { return false } },
			packages: "nftables gcc pkg-config"},
		"programs of the distribution": {change: func(h *host) { h.program = func(string) bool { return false } }, distribution: true, packages: "nftables"},
		"a library":                    {change: func(h *host) { h.library = func(string) bool { return false } }, packages: "libseccomp-dev"},
	} {
		h := good()
		test.change(&h)
		missing, packages := check(h, test.distribution)
		if strings.Join(packages, " ") != test.packages || len(missing) != len(test.missing) {
			t.Errorf("%s: %q are missing, packages %v; want %q, %s", name, missing, packages, test.missing, test.packages)
			continue
		}
		for i, want := range test.missing {
			if !strings.Contains(missing[i], want) {
				t.Errorf("%s: %q is missing, want %q in it", name, missing[i], want)
			}
		}
	}
}

// TestImages checks that every image that the landscape creates is in the list, with the version that is built, and vice
// versa.
func TestImages(t *testing.T) {
	root := repository(t)
	vector, err := images.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range vector {
		_, made := recipes[source.Name]
		if local := strings.HasPrefix(*source.Repository, registryName+"/"); local && !made && source.Name != "machine" {
			t.Errorf("no recipe creates the image %s", source.Name)
		}
	}
	for name, pinned := range map[string][2]string{
		"coredns": {"test/landscape/binaries/coredns", "github.com/coredns/coredns"},
		"etcd":    {"test/controlplane/binaries", "go.etcd.io/etcd/server/v3"},

		"vpa-admission-controller": {"test/landscape/binaries/vpa", "k8s.io/autoscaler/vertical-pod-autoscaler"},
		"vpa-recommender":          {"test/landscape/binaries/vpa", "k8s.io/autoscaler/vertical-pod-autoscaler"},
		"vpa-updater":              {"test/landscape/binaries/vpa", "k8s.io/autoscaler/vertical-pod-autoscaler"},
		"metrics-server":           {"test/landscape/binaries/metricsserver", "sigs.k8s.io/metrics-server"},
		"node-problem-detector":    {"test/landscape/binaries/nodeproblemdetector", "k8s.io/node-problem-detector"},
	} {
		version, err := build.Version(root, pinned[0], pinned[1])
		if err != nil {
			t.Fatal(err)
		}
		if image, err := vector.Find(name, images.Options{}); err != nil || image.Version != version {
			t.Errorf("the image %s has the version %s, %s is built: %v", name, image.Version, version, err)
		}
	}
	for _, name := range Names() {
		if _, err := vector.Find(name, images.Options{TargetVersion: "1.37.1"}); err != nil {
			t.Error(err)
		}
	}
}

// TestNoImageElsewhere checks that no file except the list names an image.
func TestNoImageElsewhere(t *testing.T) {
	root := repository(t)
	// A registry with a path, or an image in a manifest that does not come from a template value.
	named := regexp.MustCompile(`(?m)trellis\.local/[a-z-]+:|\bimage: *["']?[a-z0-9][a-z0-9.-]*(/[a-z0-9./-]+)+[:@]|\bImage: *"[a-z0-9.-]+/`)
	for _, directory := range []string{"cmd", "pkg", "charts", "config", "test/landscape", "hack/landscape", "hack/image"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "images.yaml") || strings.Contains(path, "testdata") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if found := named.Find(content); found != nil && !bytes.HasPrefix(content, []byte("// Code generated")) {
				t.Errorf("%s names an image: %q; components take theirs from pkg/images", path, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestHasImage(t *testing.T) {
	const list = "REF TYPE DIGEST SIZE\ntrellis.local/a:v1 application/x sha256:abc 1 MiB\n"
	for _, test := range []struct {
		reference, digest string
		want              bool
	}{{"trellis.local/a:v1", "sha256:abc", true}, {"trellis.local/a:v1", "sha256:def", false}, {"trellis.local/a:v2", "sha256:abc", false}} {
		if got := hasImage(list, test.reference, test.digest); got != test.want {
			t.Errorf("%s, %s: %t", test.reference, test.digest, got)
		}
	}
}

// TestForeignDirectory checks that a directory with other files is neither used nor removed.
func TestForeignDirectory(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "important"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := New(Options{Root: repository(t), Directory: directory, Out: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.makeDirectory(); err == nil {
		t.Error("a directory with other files is used")
	}
	if err := l.removeIfEmpty(); err == nil {
		t.Error("a directory with other files is removed")
	}
}

// TestOlderIsMissing checks that the error names the command that builds the programs of another version of Kubernetes.
func TestOlderIsMissing(t *testing.T) {
	l, err := New(Options{Root: t.TempDir(), Directory: t.TempDir(), Out: new(bytes.Buffer)})
	if err != nil {
		t.Fatal(err)
	}
	const hint = "make controlplane-older VERSION=v1.36.0"
	if err := l.PushOlder(t.Context(), "v1.36.0"); err == nil || !strings.Contains(err.Error(), hint) {
		t.Errorf("the error %v does not name %q", err, hint)
	}
}
