package conformance

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/hack/image/oci"
)

// TestSpecs checks which references become images, and what is in those that tests depend on.
func TestSpecs(t *testing.T) {
	sources := Sources{Debian: "debian.tar", Programs: "programs", Busybox: "busybox", Shell: "bash", Applets: []string{"busybox", "sh", "wget"}, Module: "module"}
	specs, missing := Specs(sources, "local", []string{
		"local/e2e-test-images/agnhost:2.55", "local/e2e-test-images/agnhost:2.66.1", "local/e2e-test-images/busybox:1", "local/e2e-test-images/perl:5",
		"local/kubernetes/pause:3", "other/agnhost:2", "local/e2e-test-images/nonewprivs:1", "local/agnhost",
	})
	if want := []string{"local/e2e-test-images/perl:5", "other/agnhost:2", "local/agnhost"}; !slices.Equal(missing, want) {
		t.Errorf("missing are %v, want %v", missing, want)
	}
	byReference := map[string]oci.Spec{}
	for _, spec := range specs {
		byReference[spec.Reference] = spec
		if len(spec.Entrypoint)+len(spec.Command) == 0 || len(spec.Layers) == 0 {
			t.Errorf("%s has nothing to run", spec.Reference)
		}
	}
	if len(byReference) != 5 {
		t.Fatalf("the images are %v", byReference)
	}
	files := func(reference string) map[string]oci.File {
		files := map[string]oci.File{}
		for _, layer := range byReference[reference].Layers {
			for _, f := range layer.Files {
				files[f.Path] = f
			}
		}
		return files
	}
	agnhost := files("local/e2e-test-images/agnhost:2.66.1")
	if group := string(agnhost["/etc/group"].Content); !strings.Contains(group, "group-defined-in-image:x:50000:user-defined-in-image\n") {
		t.Errorf("the groups of agnhost are %q", group)
	}
	if agnhost["/agnhost-2"].Link != "agnhost" || agnhost["/localhost.crt"].Source != "module/test/images/agnhost/porter/localhost.crt" {
		t.Errorf("the files of agnhost are %+v", agnhost)
	}
	if busybox := files("local/e2e-test-images/busybox:1"); busybox["/bin/wget"].Link != "/bin/busybox" || busybox["/bin/busybox"].Source != "busybox" || busybox["/bin/sh"].Source != "bash" {
		t.Errorf("the files of busybox are %+v", busybox)
	}
	if program := files("local/e2e-test-images/nonewprivs:1")["/usr/local/bin/nnp"]; program.Mode&fs.ModeSetuid == 0 {
		t.Error("the program of nonewprivs does not run as root")
	}
}

// TestRepositories checks that images that must not exist keep their registry.
func TestRepositories(t *testing.T) {
	content := string(Repositories("local"))
	if !strings.Contains(content, "promoterE2eRegistry: local/e2e-test-images\n") || strings.Contains(content, "invalid") || strings.Contains(content, "private") {
		t.Errorf("the registries are\n%s", content)
	}
}

// TestBusybox checks that the program is found in an archive, whose directory bin is a link to usr/bin in later releases.
func TestBusybox(t *testing.T) {
	for _, name := range []string{"./bin/busybox", "usr/bin/busybox"} {
		directory := t.TempDir()
		archive, target := filepath.Join(directory, "debian.tar"), filepath.Join(directory, "busybox")
		write(t, archive, map[string]string{"./bin/other": "", name: "#!/bin/sh\necho sh\necho wget\n"})
		for range 2 { // the second time, the file exists
			if applets, err := Busybox(t.Context(), archive, target); err != nil || !slices.Equal(applets, []string{"sh", "wget"}) {
				t.Errorf("%s: the commands are %v, error %v", name, applets, err)
			}
		}
	}
	archive := filepath.Join(t.TempDir(), "debian.tar")
	write(t, archive, map[string]string{"bin/sh": "", "bin/bash-static": "#!/bin/sh\n"})
	for range 2 {
		if err := Shell(archive, archive+".bash"); err != nil {
			t.Error(err)
		}
	}
	if _, err := Busybox(t.Context(), archive, archive+".busybox"); err == nil || !strings.Contains(err.Error(), "does not contain bin/busybox") {
		t.Errorf("without busybox: error %v", err)
	}
}

func write(t *testing.T, path string, files map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(f)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
