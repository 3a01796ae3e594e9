package conformance

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/hack/image/oci"
)

// Sources are the files that images are made of.
type Sources struct {
	// Debian is an archive with the root file system that most images are based on.
	Debian string
	// Programs is the directory of agnhost, nonewprivs and sample-apiserver.
	Programs string
	// Pause, Etcd, Busybox and Shell are the paths of programs. Shell is bash.
	Pause, Etcd, Busybox, Shell string
	// Applets are the commands of Busybox.
	Applets []string
	// Module is the directory of the module k8s.io/kubernetes, which has the files that some images serve.
	Module string
}

// Specs returns the images for those references that begin with the registry and that can be made, and the other references. The
// references are the lines of `e2e.test --list-images`.
func Specs(s Sources, registry string, references []string) (specs []oci.Spec, missing []string) {
	for _, reference := range references {
		name, found := strings.CutPrefix(reference, registry+"/")
		name, _, tagged := strings.Cut(name, ":")
		recipe, known := recipes[path.Base(name)]
		if !found || !tagged || !known {
			missing = append(missing, reference)
			continue
		}
		spec := recipe(s)
		spec.Reference = reference
		spec.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		specs = append(specs, spec)
	}
	return specs, missing
}

// Names returns the names of the images that can be made.
func Names() []string { return slices.Sorted(maps.Keys(recipes)) }

// recipes are the images by the last element of their names, as in test/images of k8s.io/kubernetes.
var recipes = map[string]func(Sources) oci.Spec{
	"agnhost": func(s Sources) oci.Spec {
		return oci.Spec{Layers: s.agnhost(), Entrypoint: []string{"/agnhost"}, Command: []string{"pause"}}
	},
	"kitten":   func(s Sources) oci.Spec { return s.webserver("kitten") },
	"nautilus": func(s Sources) oci.Spec { return s.webserver("nautilus") },
	"busybox": func(s Sources) oci.Spec {
		return oci.Spec{Layers: []oci.Layer{s.busybox()}, Command: []string{"sh"}}
	},
	"etcd":              func(s Sources) oci.Spec { return only("/usr/local/bin/etcd", s.Etcd) },
	"pause":             func(s Sources) oci.Spec { return only("/pause", s.Pause) },
	"sample-apiserver":  func(s Sources) oci.Spec { return only("/sample-apiserver", s.program("sample-apiserver")) },
	"glibc-dns-testing": func(s Sources) oci.Spec { return oci.Spec{Layers: []oci.Layer{s.debian()}, Command: []string{"bash"}} },
	"nonroot":           func(s Sources) oci.Spec { return oci.Spec{Layers: []oci.Layer{s.debian()}, User: "1234"} },
	"nginx": func(s Sources) oci.Spec {
		return oci.Spec{Layers: []oci.Layer{s.debian()}, Command: []string{"nginx", "-g", "daemon off;"}, StopSignal: "SIGQUIT"}
	},
	"nonewprivs": func(s Sources) oci.Spec {
		program := oci.File{Path: "/usr/local/bin/nnp", Source: s.program("nonewprivs"), Mode: fs.ModeSetuid}
		return oci.Spec{Layers: []oci.Layer{s.debian(), {Files: []oci.File{program}}}, Command: []string{"nnp"}}
	},
}

func (s Sources) program(name string) string { return filepath.Join(s.Programs, name) }

func (s Sources) debian() oci.Layer { return oci.Layer{Archive: s.Debian} }

// file returns a file of the directory test/images of k8s.io/kubernetes.
func (s Sources) file(target, source string) oci.File {
	return oci.File{Path: target, Source: filepath.Join(s.Module, "test", "images", source)}
}

// agnhost returns the layers of agnhost. A test of supplemental groups depends on its users and groups.
func (s Sources) agnhost() []oci.Layer {
	return []oci.Layer{s.debian(), {Files: []oci.File{
		{Path: "/agnhost", Source: s.program("agnhost")},
		{Path: "/agnhost-2", Link: "agnhost"},
		{Path: "/uploads", Directory: true},
		s.file("/localhost.crt", "agnhost/porter/localhost.crt"),
		s.file("/localhost.key", "agnhost/porter/localhost.key"),
		{Path: "/etc/passwd", Content: []byte(users + "user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n")},
		{Path: "/etc/group", Content: []byte(groups +
			"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n")},
	}}}
}

// webserver returns an image that serves a picture with agnhost.
func (s Sources) webserver(name string) oci.Spec {
	return oci.Spec{
		Layers: append(s.agnhost(), oci.Layer{Files: []oci.File{
			s.file("/"+name+".jpg", name+"/html/"+name+".jpg"), s.file("/data.json", name+"/html/data.json"),
		}}),
		Entrypoint: []string{"/agnhost"}, Command: []string{"test-webserver"},
	}
}

const (
	users  = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n"
	groups = "root:x:0:\nnobody:x:65534:\n"
)

// busybox returns the program with all its commands, except that bash is the shell: Debian's busybox removes variables from the environment
// whose names contain a dash or a dot, which tests of ConfigMaps and Secrets use.
func (s Sources) busybox() oci.Layer {
	const program = "/bin/busybox"
	files := []oci.File{
		{Path: program, Source: s.Busybox}, {Path: "/bin/sh", Source: s.Shell}, temporary(),
		{Path: "/root", Directory: true}, {Path: "/home", Directory: true}, {Path: "/usr/bin/env", Link: program},
		{Path: "/etc/passwd", Content: []byte(users)}, {Path: "/etc/group", Content: []byte(groups)},
	}
	for _, applet := range s.Applets {
		if applet != "busybox" && applet != "sh" {
			files = append(files, oci.File{Path: "/bin/" + applet, Link: program})
		}
	}
	return oci.Layer{Files: files}
}

// only returns an image with one program.
func only(target, source string) oci.Spec {
	return oci.Spec{Layers: []oci.Layer{{Files: []oci.File{{Path: target, Source: source}, temporary()}}}, Entrypoint: []string{target}}
}

func temporary() oci.File {
	return oci.File{Path: "/tmp", Directory: true, Mode: os.ModeSticky | 0o777}
}

// Repositories returns the file for `e2e.test --kube-test-repo-list` that replaces the registries of images by repositories in a registry.
// Two registries stay: that of images that must not exist, and one that needs an account.
func Repositories(registry string) []byte {
	return fmt.Appendf(nil, `promoterE2eRegistry: %[1]s/e2e-test-images
buildImageRegistry: %[1]s/build-image
gcEtcdRegistry: %[1]s/kubernetes
gcRegistry: %[1]s/kubernetes
sigStorageRegistry: %[1]s/sig-storage
dockerLibraryRegistry: %[1]s/library
cloudProviderGcpRegistry: %[1]s/cloud-provider-gcp
`, registry)
}
