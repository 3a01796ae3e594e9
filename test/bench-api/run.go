package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
)

// oneWriterShare is the share of the objects that one writer creates. Many writers create the others.
const oneWriterShare = 10

// bench is one run.
type bench struct {
	options  options
	progress io.Writer
	began    time.Time
	results  results
}

// run measures, and reports to out.
func run(ctx context.Context, opts options, out, progress io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	b := &bench{options: opts, progress: progress, began: time.Now(), results: results{Options: opts}}
	if opts.Binary == "" {
		b.say("building the API server")
		var err error
		if b.options.Binary, err = garden.Binary(); err != nil {
			return err
		}
	}
	if err := b.measureSpeed(ctx); err != nil {
		return err
	}
	if opts.Memory {
		if err := b.measureMemory(ctx); err != nil {
			return err
		}
	}
	return b.results.publish(opts.Output, out)
}

// say prints progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// measureSpeed measures both sides alternately on one control plane.
func (b *bench) measureSpeed(ctx context.Context) (err error) {
	b.say("starting a garden")
	g, err := garden.Start(ctx, garden.Options{APIServer: b.options.Binary})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	served, err := prepareServed(ctx, g.Config())
	if err != nil {
		return err
	}
	custom, err := prepareCustom(ctx, g.Config(), served)
	if err != nil {
		return err
	}
	profiler := profiler{directory: b.options.Profile, servers: map[string]*rest.Config{"kube-apiserver": g.Config(), "apiserver": g.Direct()}}
	sides := [2]*side{served, custom}
	for _, phase := range b.phases() {
		b.say("%s", phase.name)
		measured, err := phase.byTurns(ctx, sides, b.options.Turns, profiler)
		if err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		b.results.add(phase, measured)
	}
	return nil
}

// prepareServed returns the side of the garden's API server. Its object is the example Shoot with its defaults, so
// that both sides store the same content.
func prepareServed(ctx context.Context, config *rest.Config) (*side, error) {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "core", "shoot.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the example Shoot: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &object.Object); err != nil {
		return nil, fmt.Errorf("read the example Shoot: %w", err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	if err := createNamespace(ctx, config); err != nil {
		return nil, err
	}
	// Admission plugins look up the Project of a Shoot, and would read all Projects live if it had none.
	project := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"namespace": namespace}}}
	project.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Project"))
	project.SetName("bench")
	if err := c.Create(ctx, project); err != nil {
		return nil, fmt.Errorf("create a Project: %w", err)
	}
	delete(object.Object, "status")
	object.SetName(placeholder)
	object.SetNamespace(namespace)
	if err := c.Create(ctx, object, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("set the defaults of the example Shoot: %w", err)
	}
	annotations := object.GetAnnotations()
	object.Object["metadata"] = map[string]any{"name": placeholder, "namespace": namespace}
	object.SetAnnotations(annotations)
	delete(object.Object, "status")
	s, err := newSide(apiServer, config, gardencorev1beta1.SchemeGroupVersion.String(), object.Object)
	if err != nil {
		return nil, err
	}
	_, err = s.createMore(ctx, 1, 1)
	return s, err
}

// prepareCustom installs the CustomResourceDefinition and returns its side, with the objects of the other side.
func prepareCustom(ctx context.Context, config *rest.Config, served *side) (*side, error) {
	wanted, err := definition()
	if err != nil {
		return nil, err
	}
	toInstall := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{wanted}}
	if _, err := envtest.InstallCRDs(config, toInstall); err != nil {
		return nil, fmt.Errorf("install the CustomResourceDefinition: %w", err)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal(served.object, &object); err != nil {
		return nil, err
	}
	s, err := newSide(customResource, config, customGroup+"/"+gardencorev1beta1.SchemeGroupVersion.Version, object)
	if err != nil {
		return nil, err
	}
	// kube-apiserver delays the first objects of a new CustomResourceDefinition for some seconds.
	_, err = s.createMore(ctx, 1, 1)
	return s, err
}

func createNamespace(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the control plane: %w", err)
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, object)); err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	return nil
}
