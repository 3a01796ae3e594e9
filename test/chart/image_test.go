package chart

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/test/kit"
)

var long = flag.Bool("chart.long", false, "also run the tests that take minutes")

// needsTime skips a long test unless the flag for long tests is set.
func needsTime(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("takes long: make chart runs it")
	}
}

// TestImage builds the files of the image twice, from sources in two places, and checks that all bytes are the
// same. The files are a static program, its components (SBOM), and the licence.
func TestImage(t *testing.T) {
	needsTime(t)
	build := func(sources string) string {
		made := filepath.Join(t.TempDir(), "image")
		command := exec.Command("make", "-C", sources, "image-root", "IMAGE_ROOT="+made, "VERSION=v0.0.0-test", "SOURCE_DATE_EPOCH=1000000000")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return made
	}
	copied := filepath.Join(t.TempDir(), "elsewhere")
	kit.Must(t, os.Mkdir(copied, 0o755))
	archive := exec.Command("tar", "-C", root(t), "--exclude=./bin", "--exclude=./.git", "--exclude=./.run", "-cf", copied+".tar", ".")
	kit.Must(t, archive.Run())
	kit.Must(t, exec.Command("tar", "-C", copied, "-xf", copied+".tar").Run())

	one, other := build(root(t)), build(copied)
	first, err := os.ReadFile(one + ".tar")
	kit.Must(t, err)
	second, err := os.ReadFile(other + ".tar")
	kit.Must(t, err)
	if !bytes.Equal(first, second) {
		t.Error("two builds differ")
	}
	listed, err := exec.Command("tar", "-tvf", one+".tar", "--numeric-owner").CombinedOutput()
	kit.Must(t, err)
	t.Logf("%s", listed)
	if lines := strings.Count(string(listed), "\n"); lines != 4 {
		t.Errorf("found %d entries, want the directory, the program, the SBOM and the licence", lines)
	}
	version, err := exec.Command(filepath.Join(one, "resource-manager"), "--version").CombinedOutput()
	if err != nil || string(version) != "v0.0.0-test\n" {
		t.Errorf("the output of the program is %q: %v", version, err)
	}
	program, err := os.ReadFile(filepath.Join(one, "resource-manager"))
	kit.Must(t, err)
	for what, text := range map[string]string{"a path of this machine": root(t), "a dynamic loader": "/lib64/ld-linux"} {
		if bytes.Contains(program, []byte(text)) {
			t.Errorf("the program contains %s: %s", what, text)
		}
	}
}
