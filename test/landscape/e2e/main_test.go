package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/landscape"
)

var (
	enabled      = flag.Bool("landscape", false, "run the tests that need root and a landscape: make test-landscape")
	distribution = flag.Bool("landscape.distribution", false, "run the tests on a landscape with Debian's containerd, runc and CNI plugins")
	updates      = flag.Bool("landscape.updates", false, "also roll out the API servers of a Shoot while users write and read, which takes minutes")
	older        = flag.String("landscape.older", "", "the same, with an update from this version of Kubernetes, whose programs make controlplane-older has built")
	shoots       = flag.Int("landscape.shoots", 0, "also create this number of Shoots, which takes minutes and gigabytes")
	schedules    = flag.Bool("landscape.schedules", false, "also wait for times of hibernation and a window of maintenance, which takes half an hour")
	changing     = flag.Duration("landscape.changing", 0, "also create, change and delete Shoots for this time")
	zones        = flag.Bool("landscape.zones", false, "also spread a Shoot over three zones, one of which fails, which takes minutes")
	extensions   = flag.Bool("landscape.extensions", false, "also create an object of each kind of extension resource in TestFleet, with machines, which takes a minute")
	nodes        = flag.Bool("landscape.nodes", false, "also create a Shoot whose machines become nodes, which takes minutes")
	virtual      = flag.Bool("landscape.virtual", false, "also create a Seed and a Shoot in the virtual garden of TestGarden, which takes minutes")
	gateway      = flag.Bool("landscape.gateway", false, "also create a neighbour of the Shoot, attack it, and replace the gateway, which takes minutes")
	emulator     = flag.Bool("landscape.emulator", false, "also boot the root file system of machines in an emulator, which takes minutes")
)

const timeout = 2 * time.Minute

// base is the landscape that the tests share.
var base *landscape.Landscape

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	if !*enabled || testing.Short() {
		os.Exit(m.Run()) // all tests are skipped
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

// run starts the landscape if it is not running, and removes it if it started it.
func run(m *testing.M) (code int, err error) {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return 1, err
	}
	base, err = landscape.New(landscape.Options{
		Root: root, Directory: filepath.Join(root, ".run", "landscape"), Distribution: *distribution, InstallPackages: true, Out: os.Stdout,
	})
	if err != nil {
		return 1, err
	}
	was, err := base.Running()
	if err != nil {
		return 1, err
	}
	ctx := context.Background()
	if err := base.Up(ctx); err != nil {
		return 1, err
	}
	code = m.Run()
	if was {
		return code, nil
	}
	return code, base.Down(ctx)
}

func needsLandscape(t *testing.T) {
	t.Helper()
	if !*enabled {
		t.Skip("needs a landscape: make test-landscape runs it")
	}
}

// cluster is the cluster of a landscape with a namespace for one test.
type cluster struct {
	client.Client
	t         *testing.T
	ctx       context.Context
	landscape *landscape.Landscape
	namespace string
	// kubeconfig is set for a cluster that runs on the landscape.
	kubeconfig string
}

func onBase(t *testing.T) *cluster {
	t.Helper()
	needsLandscape(t)
	t.Parallel()
	return on(t, base)
}

// on creates a namespace on a landscape. The test does not run in parallel with others.
func on(t *testing.T, l *landscape.Landscape) *cluster {
	t.Helper()
	c, err := l.Client()
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, c.Create(ctx, namespace))
	t.Cleanup(func() { must(t, c.Delete(context.Background(), namespace)) })
	return &cluster{Client: c, t: t, ctx: ctx, landscape: l, namespace: namespace.Name}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until try returns no error.
func (c *cluster) eventually(what string, try func() error) {
	c.t.Helper()
	c.within(timeout, what, try)
}

// within is like eventually, with a timeout.
func (c *cluster) within(limit time.Duration, what string, try func() error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

func (c *cluster) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.namespace, Name: name}
}

func (c *cluster) create(objects ...client.Object) {
	c.t.Helper()
	for _, o := range objects {
		o.SetNamespace(c.namespace)
		must(c.t, c.Create(c.ctx, o))
	}
}

// image returns the reference of an image in the list of images.
func (c *cluster) image(name string) string {
	c.t.Helper()
	reference, err := c.landscape.Image(name)
	must(c.t, err)
	return reference
}
