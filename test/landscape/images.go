package landscape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/hack/image/oci"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/test/landscape/build"
	"github.com/trellis-k8s/trellis/test/landscape/machine"
)

// registryName is the registry in the names of all images that the landscape creates.
const registryName = "trellis.local"

// overwrites is the file with the tags of the project's images. The tags depend on the contents of the images.
const overwrites = "images.yaml"

// recipe describes the content of an image.
type recipe struct {
	// program is the program, below the directory bin of the repository.
	program string
	// further are additional programs in the image, below the same directory.
	further []string
	// directory is the directory of the programs in the image, relative to the root directory.
	directory string
	// user is the user that the program runs as.
	user string
	// own is true for programs of the project. The tag of their image is derived from its content.
	own bool
	// tools adds Debian's shell and its programs that change nftables.
	tools bool
	// files is a directory below the directory config of this package. Its files are in the directory /config of the image.
	files string
}

const nobody = "65532:65532"

// kubernetes is the directory of the programs in Kubernetes' own images, relative to the root directory.
const kubernetes = "usr/local/bin"

// entrypoint returns the path of the program in the image.
func (r recipe) entrypoint() string { return r.path(r.program) }

func (r recipe) path(program string) string {
	return "/" + filepath.Join(r.directory, filepath.Base(program))
}

// recipes are the landscape's images that contain a program, by their names in pkg/images.
var recipes = map[string]recipe{
	"pause":                   {program: "landscape/pause", user: nobody},
	"probe":                   {program: "landscape/probe", own: true},
	"resource-manager":        {program: "landscape/resource-manager", user: nobody, own: true},
	"apiserver":               {program: "landscape/apiserver", user: nobody, own: true},
	"controller-manager":      {program: "landscape/controller-manager", user: nobody, own: true},
	"scheduler":               {program: "landscape/scheduler", user: nobody, own: true},
	"admission-controller":    {program: "landscape/admission-controller", user: nobody, own: true},
	"operator":                {program: "landscape/operator", user: nobody, own: true},
	"gardenlet":               {program: "landscape/gardenlet", user: nobody, own: true},
	"etcd-operator":           {program: "landscape/etcd-operator", user: nobody, own: true},
	"etcd-member":             {program: "landscape/etcd-member", further: []string{"etcd"}, user: nobody, own: true},
	"provider-local":          {program: "landscape/provider-local", user: nobody, own: true},
	"tunnel":                  {program: "landscape/tunnel", user: nobody, own: true},
	"gateway":                 {program: "landscape/gateway", user: nobody, own: true},
	"discovery-server":        {program: "landscape/discovery-server", user: nobody, own: true},
	"gardener-node-agent":     {program: "landscape/gardener-node-agent", own: true},
	"coredns":                 {program: "landscape/coredns", user: nobody},
	"etcd":                    {program: "etcd"},
	"kube-apiserver":          {program: "kube-apiserver", directory: kubernetes},
	"kube-controller-manager": {program: "kube-controller-manager", directory: kubernetes},
	"kube-scheduler":          {program: "kube-scheduler", directory: kubernetes},
	"kubelet":                 {program: "landscape/kubelet"},
	"kube-proxy":              {program: "landscape/kube-proxy", directory: kubernetes, tools: true},
	"node-agents":             {program: "landscape/node-agents", further: []string{"landscape/local-provisioner"}, own: true, tools: true},

	// Programs of other projects that the components of seeds and shoots run.
	"vpa-admission-controller": {program: "landscape/vpa-admission-controller", user: nobody},
	"vpa-recommender":          {program: "landscape/vpa-recommender", user: nobody},
	"vpa-updater":              {program: "landscape/vpa-updater", user: nobody},
	"metrics-server":           {program: "landscape/metrics-server", user: nobody},
	"node-problem-detector":    {program: "landscape/node-problem-detector", tools: true, files: "node-problem-detector"},
}

// essential are the images that the base cluster needs to start. containerd pulls all others from the landscape's registry.
var essential = []string{"pause", "coredns"}

func (l *Landscape) store() (*oci.Store, error) { return oci.Open(l.imagesDirectory()) }

func (l *Landscape) imagesDirectory() string {
	return filepath.Join(l.Root, build.Directory, "images")
}

// KubernetesVersion returns the version of Kubernetes that all programs are built from.
func (l *Landscape) KubernetesVersion() (string, error) {
	return build.Version(l.Root, "test/controlplane/binaries", "k8s.io/kubernetes")
}

// Images returns the list of images, with the tags of this landscape.
func (l *Landscape) Images() (images.Vector, error) {
	path := l.path(overwrites)
	if _, err := os.Stat(path); err != nil {
		path = ""
	}
	return images.Load(path)
}

// ImageOverwrites returns the entries that replace images in the list of images with the tags of this landscape, in YAML.
func (l *Landscape) ImageOverwrites() ([]byte, error) {
	content, err := os.ReadFile(l.path(overwrites))
	if err != nil {
		return nil, fmt.Errorf("reading the images of the landscape: %w", err)
	}
	return content, nil
}

// reference returns the reference of the image with this name.
func (l *Landscape) reference(name string) (string, error) {
	vector, err := l.Images()
	if err != nil {
		return "", err
	}
	version, err := l.KubernetesVersion()
	if err != nil {
		return "", err
	}
	image, err := vector.Find(name, images.Options{RuntimeVersion: version, TargetVersion: version})
	return image.Reference, err
}

// Image returns the reference of an image of the landscape by its name in pkg/images.
func (l *Landscape) Image(name string) (string, error) { return l.reference(name) }

// makeImages creates images, and records the tags that are derived from the content.
func (l *Landscape) makeImages(names []string) error {
	store, err := l.store()
	if err != nil {
		return err
	}
	defaults, err := images.Load("")
	if err != nil {
		return err
	}
	version, err := l.KubernetesVersion()
	if err != nil {
		return err
	}
	tags := images.Vector{}
	slices.Sort(names)
	for _, name := range names {
		r, known := recipes[name]
		if !known {
			return fmt.Errorf("no recipe creates the image %q: choose one of %s", name, strings.Join(Names(), ", "))
		}
		image, err := defaults.Find(name, images.Options{RuntimeVersion: version, TargetVersion: version})
		if err != nil {
			return err
		}
		spec := oci.Spec{Reference: image.Reference, Entrypoint: []string{r.entrypoint()}, User: r.user}
		if r.own {
			spec.Reference = untagged(image) + ":" + oci.ContentTag
		}
		if spec.Layers, err = l.layers(r); err != nil {
			return err
		}
		reference, changed, err := store.Write(spec)
		if err != nil {
			return err
		}
		if r.own {
			tags = append(tags, tagged(name, reference))
		}
		if changed {
			l.say("  image %s", reference)
		}
	}
	return l.writeTags(tags)
}

// removeOldImages removes images whose tag has changed, unless another landscape might use them.
func (l *Landscape) removeOldImages() error {
	if others, err := l.others(); err != nil || others {
		return err
	}
	vector, err := l.Images()
	if err != nil {
		return err
	}
	current := map[string]bool{}
	for _, source := range vector {
		reference, err := l.reference(source.Name)
		if err != nil {
			return err
		}
		current[reference] = true
	}
	store, err := l.store()
	if err != nil {
		return err
	}
	return store.Remove(func(reference string) bool { return current[reference] })
}

func untagged(image images.Image) string {
	return strings.TrimSuffix(image.Reference, ":"+image.Version)
}

func tagged(name, reference string) images.Source {
	repository, tag, _ := strings.Cut(reference, ":")
	return images.Source{Name: name, Repository: &repository, Tag: &tag}
}

func (l *Landscape) layers(r recipe) ([]oci.Layer, error) {
	files := []oci.File{
		{Path: "/tmp", Directory: true, Mode: os.ModeSticky | 0o777},
		{Path: "/etc/passwd", Content: []byte("root:x:0:0:root:/:/\nnonroot:x:65532:65532:nonroot:/:/\n")},
	}
	for _, name := range append([]string{r.program}, r.further...) {
		program, err := filepath.EvalSymlinks(filepath.Join(l.Root, "bin", name))
		if err != nil {
			return nil, fmt.Errorf("finding a program: %w", err)
		}
		files = append(files, oci.File{Path: r.path(name), Source: program})
	}
	configuration, err := r.configuration()
	if err != nil {
		return nil, err
	}
	files = append(files, configuration...)
	if !r.tools {
		return []oci.Layer{{Files: files}}, nil
	}
	// Debian's files include /tmp and /etc/passwd, and have links in place of some directories.
	return []oci.Layer{{Archive: l.toolsArchive()}, {Files: files[2:]}}, nil
}

// configuration returns the files in the directory /config of the image.
func (r recipe) configuration() ([]oci.File, error) {
	if r.files == "" {
		return nil, nil
	}
	directory := "config/" + r.files
	entries, err := configFiles.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("reading the files of an image: %w", err)
	}
	var files []oci.File
	for _, entry := range entries {
		content, err := configFiles.ReadFile(directory + "/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading a file of an image: %w", err)
		}
		files = append(files, oci.File{Path: "/config/" + entry.Name(), Content: content})
	}
	return files, nil
}

// Names returns the names of the images that the landscape creates from a program.
func Names() []string {
	var names []string
	for name := range recipes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// writeTags writes tags to the file of overwrites, and keeps its tags of other images.
func (l *Landscape) writeTags(tags images.Vector) error {
	if err := l.makeDirectory(); err != nil { // images can be created before the landscape starts
		return err
	}
	existing := images.Vector{}
	if content, err := os.ReadFile(l.path(overwrites)); err == nil {
		if existing, err = images.Parse(content); err != nil {
			return fmt.Errorf("reading the tags of images: %w", err)
		}
	}
	var content bytes.Buffer
	content.WriteString("# Tags that are derived from the contents of images. Load this file with " + images.OverwriteVariable +
		".\nimages:\n")
	for _, s := range existing.Overwrite(tags) {
		fmt.Fprintf(&content, "- {name: %s, repository: %q, tag: %q}\n", s.Name, *s.Repository, *s.Tag)
	}
	return os.WriteFile(l.path(overwrites), content.Bytes(), 0o644) //nolint:gosec // no secret
}

// ctr runs ctr, the command line of containerd, on the containerd of the machine.
func (l *Landscape) ctr(ctx context.Context, input io.Reader, arguments ...string) ([]byte, error) {
	pid, err := machine.Process(l.name)
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, errors.New("the base cluster is not running: start it with `make base-cluster`")
	}
	socket := fmt.Sprintf("/proc/%d/root%s", pid, containerd)
	arguments = append([]string{"--address", socket, "--namespace", "k8s.io"}, arguments...)
	command := exec.CommandContext(ctx, filepath.Join(l.programs(), "ctr"), arguments...) //nolint:gosec // a program of the landscape
	command.Stdin = input
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("ctr %s: %w: %s", strings.Join(arguments[4:], " "), err, strings.TrimSpace(failure.String()))
	}
	return output, nil
}

// importImages imports images into containerd. It skips images and layers that containerd already has.
func (l *Landscape) importImages(ctx context.Context, names []string) error {
	store, err := l.store()
	if err != nil {
		return err
	}
	list, err := l.ctr(ctx, nil, "image", "ls")
	if err != nil {
		return err
	}
	digests, err := store.Images()
	if err != nil {
		return err
	}
	var missing []string
	for _, name := range names {
		reference, err := l.reference(name)
		if err != nil {
			return err
		}
		if !hasImage(string(list), reference, digests[reference]) {
			missing = append(missing, reference)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	blobs, err := l.ctr(ctx, nil, "content", "ls", "--quiet")
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for digest := range strings.FieldsSeq(string(blobs)) {
		known[digest] = true
	}
	var sent, skipped int
	has := func(digest string) bool {
		if known[digest] {
			skipped++
		} else {
			sent++
		}
		return known[digest]
	}
	reader, writer := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		writer.CloseWithError(store.Archive(writer, missing, has))
	}()
	_, err = l.ctr(ctx, reader, "image", "import", "-")
	_ = reader.Close() // ends the writer if ctr has ended before it
	<-written
	if err != nil {
		return err
	}
	l.say("  imported %s: %d blobs sent, %d already there", strings.Join(missing, ", "), sent, skipped)
	return nil
}

// hasImage searches ctr's list of images, which has the columns reference, type and digest.
func hasImage(list, reference, digest string) bool {
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == reference && fields[2] == digest {
			return true
		}
	}
	return false
}
