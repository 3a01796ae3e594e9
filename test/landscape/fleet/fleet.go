// Package fleet installs a garden and a seed on a base cluster with their charts, as an operator of a fleet would.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/landscape"
)

const (
	// SeedName is the name of the Seed.
	SeedName = "local"
	// system is the namespace of the garden's own etcd and API server.
	system = "garden-system"
	// fieldOwner owns the fields that the fleet applies.
	fieldOwner = client.FieldOwner("landscape-fleet")
	// timeout is how long one step may take on a busy machine, and shootTimeout the creation, change or deletion of one of many Shoots.
	// buildTimeout is how long the build of the programs of images may take.
	timeout      = 5 * time.Minute
	shootTimeout = 15 * time.Minute
	buildTimeout = 30 * time.Minute
	poll         = 200 * time.Millisecond
)

// Fleet is the garden and the seed on a base cluster.
type Fleet struct {
	// Client is for the garden. The garden is the base cluster, unless the operator has installed it.
	client.Client
	// base is for the base cluster, which is also the seed.
	base client.Client

	landscape *landscape.Landscape
	// version is the Kubernetes version of the landscape's programs. shootVersion is the version that the Shoot is created
	// with.
	version, shootVersion string
	// zones are the zones of the Seed.
	zones []string
	// virtual is set if the garden is the virtual garden that the operator has installed.
	virtual bool
	// machines is set if machines can become nodes of the base cluster.
	machines bool
	say      func(format string, arguments ...any)
}

// New returns the fleet of a running base cluster. The fleet may be installed or not. say prints a line of progress.
func New(l *landscape.Landscape, say func(format string, arguments ...any)) (*Fleet, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme, served.AddToScheme, operatorv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering the API types of the fleet: %w", err)
		}
	}
	config, err := l.Config()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the base cluster: %w", err)
	}
	version, err := l.KubernetesVersion()
	if err != nil {
		return nil, err
	}
	version = strings.TrimPrefix(version, "v")
	return &Fleet{Client: c, base: c, landscape: l, version: version, shootVersion: version, say: say}, nil
}

// BeginWith makes Up create the Shoot with another version of Kubernetes. The landscape must have its images. The
// CloudProfile offers both versions.
func (f *Fleet) BeginWith(version string) { f.shootVersion = strings.TrimPrefix(version, "v") }

// AllowMachines makes Up leave the network of nodes out of the configuration of the Seed, so that machines can become nodes
// of the base cluster: they are Pods, and gardenlet refuses to run with nodes that have addresses of another network.
func (f *Fleet) AllowMachines() { f.machines = true }

// SetZones makes Up set the zones of the Seed. Nodes of the base cluster are in these zones.
func (f *Fleet) SetZones(zones ...string) { f.zones = zones }

// step is one step of the installation. It can be repeated.
type step struct {
	name    string
	run     func(*Fleet, context.Context) error
	timeout time.Duration
}

var steps = []step{
	{"images", (*Fleet).pushImages, buildTimeout},
	{"namespaces of the garden", (*Fleet).createNamespaces, timeout},
	{"etcd of the garden", (*Fleet).installEtcd, timeout},
	{"API server of the garden", (*Fleet).installAPIServer, timeout},
	{"controller-manager", (*Fleet).installControllerManager, timeout},
	{"scheduler", (*Fleet).installScheduler, timeout},
	{"resource-manager of the seed", (*Fleet).installResourceManager, timeout},
	{"registration of " + provider, (*Fleet).registerProvider, timeout},
	{"CloudProfile", (*Fleet).createCloudProfile, timeout},
	{"credentials of the DNS service", (*Fleet).createCredentials, timeout},
	{"gardenlet", (*Fleet).installGardenlet, timeout},
	{"Seed " + SeedName, (*Fleet).awaitSeed, timeout},
	{"Project", (*Fleet).createProject, timeout},
	{"Shoot " + shootKey.String(), (*Fleet).createShoot, timeout},
	{"kubeconfig of the Shoot", (*Fleet).WriteShootKubeconfig, timeout},
}

// Up installs missing parts, updates existing ones, and returns when the Seed is ready. It continues an interrupted
// installation.
func (f *Fleet) Up(ctx context.Context) error { return f.execute(ctx, steps) }

// execute executes steps one after the other, and prints the duration of each.
func (f *Fleet) execute(ctx context.Context, steps []step) error {
	began := time.Now()
	for i, step := range steps {
		started := time.Now()
		stepCtx, cancel := context.WithTimeoutCause(ctx, step.timeout, fmt.Errorf("%s took longer than %s", step.name, step.timeout))
		err := step.run(f, stepCtx)
		cancel()
		if err != nil {
			return fmt.Errorf("installing the fleet, step %d of %d, %s: %w", i+1, len(steps), step.name, err)
		}
		f.say("  %d/%d  %-30s %6.1f s", i+1, len(steps), step.name, time.Since(started).Seconds())
	}
	f.say("The fleet is ready after %.1f s.", time.Since(began).Seconds())
	return nil
}

// imageNames are the images of the installed components, and of the objects that the Seed's flow emits.
var imageNames = []string{
	"etcd", "apiserver", "controller-manager", "scheduler", "gardenlet", "resource-manager", "etcd-operator", "etcd-member", provider,
	"kube-apiserver", "kube-controller-manager", "tunnel", "gateway",
	"vpa-admission-controller", "vpa-recommender", "vpa-updater",
}

func (f *Fleet) pushImages(ctx context.Context) error { return f.push(ctx, imageNames) }

// push offers images in the registry of the landscape.
func (f *Fleet) push(ctx context.Context, names []string) error {
	for _, name := range names {
		if _, err := f.landscape.Push(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) createNamespaces(ctx context.Context) error {
	for _, name := range []string{system, constants.GardenNamespace, constants.SystemPublicNamespace} {
		// One of a fleet that was removed just before may still be being deleted, with what is created in it.
		if err := wait(ctx, func() error { return f.createNamespace(ctx, name) }); err != nil {
			return fmt.Errorf("creating the namespace %s: %w", name, err)
		}
	}
	return nil
}

// createNamespace creates a namespace unless it exists. The error says that it is being deleted.
func (f *Fleet) createNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{}
	namespace.Name = name
	if err := f.base.Create(ctx, namespace); !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := f.base.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
		return err
	}
	if namespace.DeletionTimestamp != nil {
		return errors.New("it is being deleted")
	}
	return nil
}

// wait retries until try succeeds or the context ends. The error contains the last one.
func wait(ctx context.Context, try func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
