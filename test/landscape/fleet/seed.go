package fleet

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// installResourceManager installs the first resource-manager of the seed. The flow of the Seed adopts it and updates it
// from then on.
func (f *Fleet) installResourceManager(ctx context.Context) error {
	config, err := f.landscape.Helm(constants.GardenNamespace)
	if err != nil {
		return err
	}
	if exists, err := installed(config, "resource-manager"); exists || err != nil {
		return err
	}
	repository, tag, err := f.image("resource-manager")
	if err != nil {
		return err
	}
	return f.install(ctx, "resource-manager", "resource-manager", constants.GardenNamespace,
		fmt.Sprintf(`
image: {repository: %q, tag: %q}
priorityClass: {create: true, name: gardener-system-critical, value: 999998950}
config: {controllers: {resourceClass: seed}}`, repository, tag))
}

// installGardenlet creates gardenlet's permissions in the garden and a bootstrap token, and installs gardenlet.
func (f *Fleet) installGardenlet(ctx context.Context) error {
	if !f.virtual { // there, the operator and the controllers of the garden create them
		if err := f.install(ctx, "gardenlet-garden", "gardenlet", constants.GardenNamespace,
			fmt.Sprintf("{mode: garden, seeds: [{name: %s, bootstrapTokenID: %s}]}", SeedName, tokenID)); err != nil {
			return err
		}
	}
	values, err := f.gardenletValues(ctx)
	if err != nil {
		return err
	}
	if err := f.install(ctx, "gardenlet", "gardenlet", constants.GardenNamespace, values); err != nil {
		return err
	}
	return wait(ctx, func() error {
		return f.Get(ctx, client.ObjectKey{Name: SeedName}, &corev1beta1.Seed{})
	})
}

func (f *Fleet) gardenletValues(ctx context.Context) (string, error) {
	repository, tag, err := f.image("gardenlet")
	if err != nil {
		return "", err
	}
	overwrites, err := f.landscape.ImageOverwrites()
	if err != nil {
		return "", err
	}
	kubeconfig, err := f.bootstrapKubeconfig(ctx)
	if err != nil {
		return "", err
	}
	network := f.landscape.Network
	nodes := network.Machine().Masked().String()
	if f.machines {
		nodes = ""
	}
	return render("gardenlet.yaml", map[string]any{
		"Repository": repository, "Tag": tag, "ImageVector": string(overwrites), "BootstrapKubeconfig": kubeconfig,
		"Virtual": f.virtual, "Seed": SeedName, "Zones": strings.Join(f.zones, ", "),
		"Nodes": nodes, "Pods": network.Pods(), "Services": network.Services(),
	})
}

func (f *Fleet) bootstrapKubeconfig(ctx context.Context) (string, error) {
	token, err := f.bootstrapToken(ctx)
	if err != nil {
		return "", err
	}
	garden, err := f.gardenInside(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: garden
contexts: [{name: garden, context: {cluster: garden, user: bootstrap}}]
clusters: [{name: garden, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: bootstrap, user: {token: %s}}]`, garden.Server, base64.StdEncoding.EncodeToString(garden.CertificateAuthorityData), token), nil
}

// gardenInside returns the address of the garden for Pods of the base cluster, and the CA bundle that verifies it.
func (f *Fleet) gardenInside(ctx context.Context) (*clientcmdapi.Cluster, error) {
	if f.virtual {
		return f.virtualInside(ctx)
	}
	roots := &corev1.ConfigMap{}
	if err := f.base.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"}, roots); err != nil {
		return nil, fmt.Errorf("read the CA bundle of the base cluster: %w", err)
	}
	return &clientcmdapi.Cluster{Server: "https://kubernetes.default.svc", CertificateAuthorityData: []byte(roots.Data["ca.crt"])}, nil
}

// awaitSeed waits until all objects that the Seed's flow emits are applied and healthy.
func (f *Fleet) awaitSeed(ctx context.Context) error {
	return wait(ctx, func() error { return f.seedIsReady(ctx) })
}

func (f *Fleet) seedIsReady(ctx context.Context) error {
	seed := &corev1beta1.Seed{}
	if err := f.Get(ctx, client.ObjectKey{Name: SeedName}, seed); err != nil {
		return err
	}
	last := seed.Status.LastOperation
	if last == nil || seed.Status.ObservedGeneration != seed.Generation {
		return fmt.Errorf("the Seed %s has not been reconciled yet", SeedName)
	}
	if last.State != corev1beta1.LastOperationStateSucceeded {
		return fmt.Errorf("the Seed %s: %s %s, %d %%: %s", SeedName, last.Type, last.State, last.Progress, last.Description)
	}
	for _, wanted := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		for _, condition := range seed.Status.Conditions {
			if condition.Type == wanted && condition.Status != corev1beta1.ConditionTrue {
				return fmt.Errorf("the Seed %s: %s is %s: %s", SeedName, wanted, condition.Status, condition.Message)
			}
		}
	}
	return nil
}
