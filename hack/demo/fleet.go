package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/examples"
	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/hack/demo/controlplanes"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/podprocess"
)

const (
	// gardenIdentity is the identity of the demo's garden.
	gardenIdentity = "demo"
	// internalDomain is the domain of the API servers of Shoots.
	internalDomain = "internal.example.org"

	apiServerProgram = "apiserver"
	// proxyName is the file with the address of the proxy to the API servers of Shoots.
	proxyName = "proxy"
	// managerKubeconfig is the file with the kubeconfig of the Seed's resource-manager.
	managerKubeconfig = "seed-resource-manager.kubeconfig"

	stopGrace = 10 * time.Second
)

// configs are the configuration files of the programs. In them, $GARDEN and $SEED are the kubeconfigs of both clusters.
//
//go:embed config
var configs embed.FS

// programs run next to the clusters, in this order. Their configuration file and their log have the same name.
var programs = []struct{ name, binary, does string }{
	{"resource-manager", "resource-manager", "applies ManagedResources in the garden"},
	{"controller-manager", "controller-manager", "runs the garden's controllers"},
	{"scheduler", "scheduler", "finds Seeds for Shoots"},
	{"seed-resource-manager", "resource-manager", "applies ManagedResources in the Seed"},
	{"gardenlet", "gardenlet", "makes the Seed and the control planes of Shoots"},
}

// fleet is the running demo.
type fleet struct {
	*demo

	garden    *garden.Garden
	seed      *controlplane.ControlPlane
	proxy     string
	processes []*controlplane.Process
	ended     <-chan error
	progress  io.Writer
}

// startFleet starts the garden, the cluster of the Seed, and all programs. The fleet must be stopped even if there is an error.
func (d *demo) startFleet(ctx context.Context, options controlplane.Options, progress io.Writer) (*fleet, error) {
	f := &fleet{demo: d, progress: progress}
	for _, step := range []struct {
		says string
		do   func(context.Context) error
	}{
		{"", func(ctx context.Context) error { return f.startGarden(ctx, options) }},
		{"Starting the cluster of a Seed, also with simulated nodes.", f.startSeed},
		{"Starting the programs, this takes a few seconds.", f.prepare},
		{"", f.writeAccess},
		{"", f.runControlPlanes},
		{"", f.startPrograms},
	} {
		if step.says != "" {
			if _, err := fmt.Fprintln(progress, step.says); err != nil {
				return f, fmt.Errorf("reporting progress: %w", err)
			}
		}
		if err := step.do(ctx); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *fleet) stop() error {
	var errs []error
	for _, process := range slices.Backward(f.processes) { // an API server waits for its watches to end
		errs = append(errs, process.Stop(stopGrace))
	}
	if f.seed != nil {
		errs = append(errs, f.seed.Stop())
	}
	if f.garden != nil {
		errs = append(errs, f.garden.Stop())
	}
	return errors.Join(errs...)
}

func (f *fleet) startGarden(ctx context.Context, options controlplane.Options) (err error) {
	f.garden, err = garden.Start(ctx, garden.Options{
		ControlPlane: options, APIServer: f.program(apiServerProgram), Identity: gardenIdentity, Dir: f.path("garden"),
		ShootRules: true, References: true,
	})
	return err
}

// startSeed starts the cluster of the Seed. Its API server calls no webhooks: the Seed registers those of a Service whose Pods are simulated.
func (f *fleet) startSeed(ctx context.Context) (err error) {
	f.seed, err = controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Scheduler: true, Nodes: nodes, AvailableAtOnce: true, HeldPods: controlplanes.HeldPods, Dir: f.path("seed"), Log: f.progress,
		APIServerArgs: map[string][]string{"disable-admission-plugins": {"MutatingAdmissionWebhook,ValidatingAdmissionWebhook"}},
	})
	return err
}

// prepare creates what the programs need in both clusters.
func (f *fleet) prepare(ctx context.Context) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(corev1beta1.AddToScheme(scheme))
	provider, err := f.registerProvider()
	if err != nil {
		return err
	}
	namespace := func(name string) client.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	// The labels allow the Project garden to use the namespace.
	own := namespace(constants.GardenNamespace)
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}
	project.Spec.Namespace = ptr.To(constants.GardenNamespace)
	own.SetLabels(map[string]string{constants.LabelGardenRole: constants.RoleProject, constants.LabelProjectName: constants.GardenNamespace})
	for _, cluster := range []struct {
		plane   *controlplane.ControlPlane
		objects []client.Object
	}{
		{f.garden.ControlPlane, append(provider, own, project, namespace(constants.SystemPublicNamespace))},
		// The chart of gardenlet has the priority class.
		{f.seed, []client.Object{namespace(constants.GardenNamespace), &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: constants.PriorityClassSystemCritical}, Value: 999998950,
		}}},
	} {
		config := cluster.plane.Config()
		for _, directory := range []string{".", "druid"} { // controlplanes.Start watches Etcds
			if err := installCRDs(ctx, config, filepath.Join(f.root, "config", "crd", directory)); err != nil {
				return err
			}
		}
		c, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			return fmt.Errorf("preparing the clusters: %w", err)
		}
		for _, object := range cluster.objects {
			if err := client.IgnoreAlreadyExists(c.Create(ctx, object)); err != nil {
				return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
			}
		}
	}
	return nil
}

// writeAccess writes the kubeconfig of the Seed's resource-manager. Policies of the Seed know it by its ServiceAccount.
func (f *fleet) writeAccess(ctx context.Context) error {
	c, err := client.New(f.seed.Config(), client.Options{})
	if err != nil {
		return fmt.Errorf("making a kubeconfig: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: resourcemanager.Account}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "demo-resource-manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, object := range []client.Object{account, binding} {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	kubeconfig, err := podprocess.KubeconfigOf(ctx, c, f.seed.Kubeconfig(), account, controlplanes.TokenValidity)
	if err != nil {
		return err
	}
	return os.WriteFile(f.path(managerKubeconfig), kubeconfig, 0o600)
}

// runControlPlanes runs the programs of the control planes of Shoots in the background.
func (f *fleet) runControlPlanes(ctx context.Context) (err error) {
	f.proxy, f.ended, err = controlplanes.Start(ctx, controlplanes.Options{
		Cluster: f.seed, Program: f.program, Dir: f.path("shoots"), Domain: internalDomain,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(f.path(proxyName), []byte("http://"+f.proxy), 0o600)
}

func (f *fleet) startPrograms(ctx context.Context) error {
	for _, program := range programs {
		if err := f.startProgram(ctx, program.name, program.binary, program.does); err != nil {
			return err
		}
	}
	return nil
}

// startProgram starts a program with a configuration for the kubeconfigs and its ports, and waits until it is ready.
func (f *fleet) startProgram(ctx context.Context, name, binary, does string) error {
	start := time.Now()
	healthPort, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	metricsPort, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	config, err := configs.ReadFile("config/" + name + ".yaml")
	if err != nil {
		return fmt.Errorf("reading the configuration of %s: %w", name, err)
	}
	config = []byte(strings.NewReplacer("$GARDEN", f.path("kubeconfig"), "$SEED", f.path("seed/kubeconfig"), "$DOMAIN", internalDomain,
		"$RESOURCE_MANAGER", f.path(managerKubeconfig),
		"$HEALTH_PORT", strconv.Itoa(healthPort), "$METRICS_PORT", strconv.Itoa(metricsPort)).Replace(string(config)))
	file := f.path(name + ".yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return fmt.Errorf("writing the configuration of %s: %w", name, err)
	}
	// A Shoot's API server has a host that exists in the Seed's cluster only.
	process, err := f.garden.StartProcessWith([]string{"HTTPS_PROXY=http://" + f.proxy}, name, f.program(binary), "--config", file)
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, process, name, fmt.Sprintf("http://127.0.0.1:%d/readyz", healthPort)); err != nil {
		return err
	}
	f.processes = append(f.processes, process)
	_, err = fmt.Fprintf(f.progress, "%s ready (%.1fs): %s (metrics at http://127.0.0.1:%d/metrics)\n", name, time.Since(start).Seconds(), does, metricsPort)
	return err
}

// registerProvider registers the extension for the infrastructure, with its chart. Its Pod is simulated: Shoots without workers do not use it.
func (f *fleet) registerProvider() ([]client.Object, error) {
	chart, err := generate.Packed(filepath.Join(f.root, "charts", "provider-local"))
	if err != nil {
		return nil, err
	}
	text, err := examples.Files.ReadFile("provider-local/registration.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the example: %w", err)
	}
	var objects []client.Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("decoding the example: %w", err)
		}
		if object.GetKind() == "ControllerDeployment" {
			object.Object["helm"] = map[string]any{"rawChart": chart}
		}
		objects = append(objects, object)
	}
	return objects, nil
}
