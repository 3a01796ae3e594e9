package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

const (
	// GardenName is the name of the Garden.
	GardenName = "local"
	// gardenDomain is the domain of its API server. Nothing resolves it.
	gardenDomain = "garden.example.org"
	// nodeZone is the zone of the node of the base cluster.
	nodeZone = "base"
)

// gardenSteps install a garden with the operator.
var gardenSteps = []step{
	{"images", (*Fleet).pushGardenImages, buildTimeout},
	{"operator", (*Fleet).installOperator, timeout},
	{"Garden " + GardenName, (*Fleet).createGarden, shootTimeout},
}

// gardenImages are the images of the operator, and of what the flow of a Garden emits.
var gardenImages = []string{
	"operator", "resource-manager", "etcd-operator", "etcd-member", "kube-apiserver", "kube-controller-manager",
	"apiserver", "controller-manager", "scheduler", "admission-controller",
	"vpa-admission-controller", "vpa-recommender", "vpa-updater",
}

// UpGarden installs the operator and a Garden on the base cluster, or updates them, and returns when the virtual garden and its programs run.
func (f *Fleet) UpGarden(ctx context.Context) error { return f.execute(ctx, gardenSteps) }

func (f *Fleet) pushGardenImages(ctx context.Context) error { return f.push(ctx, gardenImages) }

// installOperator installs the operator with its chart, in the namespace garden.
func (f *Fleet) installOperator(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	namespace.Name = constants.GardenNamespace
	if err := client.IgnoreAlreadyExists(f.base.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("create the namespace %s: %w", namespace.Name, err)
	}
	repository, tag, err := f.image("operator")
	if err != nil {
		return err
	}
	overwrites, err := f.landscape.ImageOverwrites()
	if err != nil {
		return err
	}
	values, err := render("operator.yaml", map[string]any{"Repository": repository, "Tag": tag, "ImageVector": string(overwrites)})
	if err != nil {
		return err
	}
	if err := f.install(ctx, "operator", "operator", constants.GardenNamespace, values); err != nil {
		return err
	}
	return f.rolledOut(ctx, constants.GardenNamespace, "gardener-operator")
}

// createGarden applies the Garden, and waits until its last operation has succeeded.
func (f *Fleet) createGarden(ctx context.Context) error {
	network := f.landscape.Network
	if err := wait(ctx, func() error {
		return f.apply(ctx, f.base, "garden.yaml", map[string]any{
			"Name": GardenName, "Zone": nodeZone, "Domain": gardenDomain, "Version": f.version,
			"Nodes": network.Machine().Masked().String(), "Pods": network.Pods(), "Services": network.Services(),
		})
	}); err != nil {
		return err
	}
	return wait(ctx, func() error { return f.GardenIsReady(ctx) })
}

// GardenIsReady returns an error unless the last operation of the Garden has succeeded for its current generation.
func (f *Fleet) GardenIsReady(ctx context.Context) error {
	garden := &operatorv1alpha1.Garden{}
	if err := f.base.Get(ctx, client.ObjectKey{Name: GardenName}, garden); err != nil {
		return err
	}
	last := garden.Status.LastOperation
	if last == nil || garden.Status.ObservedGeneration != garden.Generation {
		return fmt.Errorf("the Garden %s has not been reconciled yet", GardenName)
	}
	if last.State != corev1beta1.LastOperationStateSucceeded {
		return fmt.Errorf("the Garden %s: %s %s, %d %%: %s", GardenName, last.Type, last.State, last.Progress, last.Description)
	}
	return nil
}

// VirtualGarden returns a client for the virtual garden with all rights.
func (f *Fleet) VirtualGarden(ctx context.Context) (client.Client, error) {
	kubeconfig, err := f.gardenKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the garden: %w", err)
	}
	return client.New(config, client.Options{Scheme: f.Scheme()})
}

// gardenKubeconfig returns the kubeconfig for the virtual garden that the operator keeps in the Secret garden/gardener, with the address of the
// load balancer, because the names of the landscape are not resolved outside of it.
func (f *Fleet) gardenKubeconfig(ctx context.Context) (*clientcmdapi.Config, error) {
	config, err := f.accessSecret(ctx, "gardener")
	if err != nil {
		return nil, err
	}
	service := &corev1.Service{}
	if err := f.base.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: "virtual-garden-kube-apiserver"}, service); err != nil {
		return nil, fmt.Errorf("read the Service of the garden's API server: %w", err)
	}
	if len(service.Status.LoadBalancer.Ingress) == 0 {
		return nil, errors.New("the Service of the garden's API server has no load balancer yet")
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.TLSServerName = "https://"+service.Status.LoadBalancer.Ingress[0].IP, "api."+gardenDomain
	}
	return config, nil
}

// WriteGardenKubeconfig writes a kubeconfig for the virtual garden with all rights to a file, and returns its path.
func (f *Fleet) WriteGardenKubeconfig(ctx context.Context) (string, error) {
	config, err := f.gardenKubeconfig(ctx)
	if err != nil {
		return "", err
	}
	file := filepath.Join(f.landscape.Directory, "garden.kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// accessSecret returns the kubeconfig of a Secret that the operator keeps.
func (f *Fleet) accessSecret(ctx context.Context, name string) (*clientcmdapi.Config, error) {
	secret := &corev1.Secret{}
	if err := f.base.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the garden: %w", err)
	}
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the garden: %w", err)
	}
	return config, nil
}

// virtualInside returns the address of the virtual garden for Pods of the base cluster, and the CA bundle that verifies it.
func (f *Fleet) virtualInside(ctx context.Context) (*clientcmdapi.Cluster, error) {
	config, err := f.accessSecret(ctx, "gardener-internal")
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		return cluster, nil
	}
	return nil, errors.New("the kubeconfig in the Secret garden/gardener-internal has no cluster")
}

// seedSteps make the base cluster a Seed of the virtual garden, and create a Shoot on it. The operator has installed what both need.
var seedSteps = []step{
	{"images", (*Fleet).pushImages, buildTimeout},
	{"registration of " + provider, (*Fleet).registerProvider, timeout},
	{"CloudProfile", (*Fleet).createCloudProfile, timeout},
	{"credentials of the DNS service", (*Fleet).createCredentials, timeout},
	{"gardenlet", (*Fleet).installGardenlet, timeout},
	{"Seed " + SeedName, (*Fleet).awaitSeed, timeout},
	{"Project", (*Fleet).createProject, timeout},
	{"Shoot " + shootKey.String(), (*Fleet).createShoot, timeout},
	{"kubeconfig of the Shoot", (*Fleet).WriteShootKubeconfig, timeout},
}

// InVirtualGarden returns the fleet whose garden is the virtual garden of [Fleet.UpGarden].
func (f *Fleet) InVirtualGarden(ctx context.Context) (*Fleet, error) {
	virtual, err := f.VirtualGarden(ctx)
	if err != nil {
		return nil, err
	}
	inside := *f
	inside.Client, inside.virtual = virtual, true
	return &inside, nil
}

// UpSeed installs a gardenlet for a fleet in the virtual garden, and returns when its Seed and a Shoot are ready. With nodes, it also does what
// [Fleet.UpWithNodes] does: a Shoot with two nodes, and a response of a program in it.
func (f *Fleet) UpSeed(ctx context.Context, withNodes bool) error {
	if !withNodes {
		return f.execute(ctx, seedSteps)
	}
	return f.execute(ctx, slices.Concat(machineSteps, seedSteps, nodeSteps))
}

// UninstallSeed removes gardenlet after the Seed has been deleted, and the kubeconfig that gardenlet has created.
func (f *Fleet) UninstallSeed(ctx context.Context) error {
	if err := f.uninstall("gardenlet", constants.GardenNamespace); err != nil {
		return err
	}
	kubeconfig := &corev1.Secret{}
	kubeconfig.Namespace, kubeconfig.Name = constants.GardenNamespace, "gardenlet-kubeconfig"
	if err := client.IgnoreNotFound(f.base.Delete(ctx, kubeconfig)); err != nil {
		return fmt.Errorf("delete the kubeconfig of gardenlet: %w", err)
	}
	return nil
}

// UninstallOperator removes the operator and its namespace after the Garden has been deleted.
func (f *Fleet) UninstallOperator(ctx context.Context) error {
	if err := f.uninstall("operator", constants.GardenNamespace); err != nil {
		return err
	}
	return f.deleteNamespaces(ctx, constants.GardenNamespace)
}
