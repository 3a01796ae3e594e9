package installation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/helmchart"
	"github.com/trellis-k8s/trellis/pkg/helmchart/access"
	"github.com/trellis-k8s/trellis/pkg/seed"
)

const (
	// FlowName is the value of flow.LabelFlow on objects that the controller emits.
	FlowName = "controllerinstallation"
	// labelInstallation and labelRegistration are labels of ManagedResources with the names of the ControllerInstallation
	// and ControllerRegistration.
	labelInstallation = "controllerinstallation-name"
	labelRegistration = "controllerregistration-name"
	// class is the class of ManagedResources of the seed's resource-manager.
	class = "seed"
)

// Inputs are the inputs of an extension's bundle.
type Inputs struct {
	Installation *corev1beta1.ControllerInstallation
	Registration *corev1beta1.ControllerRegistration
	Deployment   *gardencorev1.ControllerDeployment
	Seed         *corev1beta1.Seed
	// Chart is the archive. Resources are the data of the objects to which the deployment refers, by their names in the
	// deployment. Confidential contains the names of those that are Secrets.
	Chart        []byte
	Resources    map[string]map[string]string
	Confidential map[string]bool

	// Version and FeatureGates of gardenlet.
	Version      string
	FeatureGates map[string]bool
	// Garden contains the address and CA of the garden. GardenIdentity is its identity, and GardenUID the UID of its namespace garden.
	Garden         clientcmdapi.Cluster
	GardenIdentity string
	GardenUID      string
	// SeedIsGarden is set if the seed is also the garden.
	SeedIsGarden bool
}

// invalid is the reason why an extension cannot be installed. reason is the reason of the condition Valid.
type invalid struct {
	reason string
	error
	// passes is set if a retry may succeed without a change.
	passes bool
}

// Unwrap returns the cause.
func (i *invalid) Unwrap() error { return i.error }

// keyOf returns the key of the bundle of an installation.
func keyOf(namespace, installation string) flow.Key {
	return flow.Key{Namespace: namespace, Name: installation}
}

// ownerOf returns the owner of the bundle of an installation.
func ownerOf(installation *corev1beta1.ControllerInstallation) flow.Owner {
	return flow.Owner{Flow: FlowName, UID: installation.UID, Name: installation.Name}
}

// Bundle returns the bundle of an extension. It contains all objects including the namespace, and depends only on the
// inputs. Errors are those of the chart and its values.
func (in Inputs) Bundle(ctx context.Context, key flow.Key) (flow.Bundle, error) {
	values, err := in.values()
	if err != nil {
		return flow.Bundle{}, &invalid{reason: reasonValues, error: err}
	}
	namespace := namespaceName(in.Installation.Name)
	release := helmchart.Release{Name: in.Registration.Name, Namespace: namespace}
	rendered, err := helmchart.Objects(ctx, in.Chart, release, values, ptr.Deref(in.Seed.Status.KubernetesVersion, ""))
	if err != nil {
		return flow.Bundle{}, &invalid{reason: reasonRender, error: err}
	}
	objects := []client.Object{in.namespace()}
	added, err := in.addAccess(rendered, namespace)
	if err != nil {
		return flow.Bundle{}, &invalid{reason: reasonRender, error: err}
	}
	objects = append(objects, added...)
	for _, object := range rendered {
		if object.GetKind() == "Namespace" && object.GetName() == namespace {
			return flow.Bundle{}, &invalid{reason: reasonRender, error: fmt.Errorf(
				"the chart contains the Namespace %s, which gardenlet creates: remove it from the chart", namespace)}
		}
		objects = append(objects, object)
	}
	labels := map[string]string{labelInstallation: in.Installation.Name, labelRegistration: in.Registration.Name}
	if seed.Requires(in.Seed, in.Registration) {
		labels[constants.LabelGardenRole] = constants.RoleSeedSystemComponent
	}
	return flow.Bundle{
		Key: key, Objects: objects, Labels: labels, Spec: resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To(class)},
	}, nil
}

// addAccess adds access to the garden to workloads, and returns the Secrets for it. If no workload uses the access, there
// is no Secret for a token.
func (in Inputs) addAccess(rendered []*unstructured.Unstructured, namespace string) ([]client.Object, error) {
	gets := access.Access{Namespace: namespace, SeedName: in.Seed.Name}
	if !in.injects() {
		_, err := gets.Inject(rendered)
		return nil, err
	}
	kubeconfig, err := in.kubeconfig()
	if err != nil {
		return nil, err
	}
	gets.Kubeconfig, gets.Token, gets.MountPath = kubeconfig.Name, accessSecretName, constants.GardenKubeconfigMountPath
	used, err := gets.Inject(rendered)
	if err != nil || !used {
		return []client.Object{kubeconfig}, err
	}
	return []client.Object{kubeconfig, in.access()}, nil
}

// deletion returns the plan for an installation that is being deleted. If it contains CustomResourceDefinitions,
// deletions are confirmed first, because definitions of extensions are protected.
func deletion(key flow.Key, live *resourcesv1alpha1.ManagedResource) flow.Plan {
	confirm := false
	if live != nil {
		for _, entry := range live.Status.Resources {
			confirm = confirm || entry.Kind == "CustomResourceDefinition"
		}
	}
	return flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: key, Confirm: confirm}}}
}
