// Package extension installs the extensions that Extensions of the operator describe: in the runtime cluster if that needs them, their
// admission controllers, and their registration in the virtual garden. Everything is a ManagedResource: those with the class seed are
// applied by the resource-manager of the runtime cluster, those without a class by that of the virtual garden.
package extension

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/helmchart"
	"github.com/trellis-k8s/trellis/pkg/helmchart/access"
	"github.com/trellis-k8s/trellis/pkg/helmchart/values"
)

const (
	// FlowName is the value of flow.LabelFlow on objects that the controller emits.
	FlowName = "operator-extension"
	// class is the class of ManagedResources of the runtime cluster.
	class = "seed"
	// labelOrigin and originOperator mark ManagedResources of the operator, as in Gardener.
	labelOrigin, originOperator = "origin", "gardener-operator"
)

// Inputs are what the plan depends on.
type Inputs struct {
	Extension *operatorv1alpha1.Extension
	// Namespace of the ManagedResources: garden.
	Namespace string
	// Deleting is set if the Extension or the Garden is being deleted.
	Deleting bool
	// Reconciled is set once the Garden was reconciled, so that there is a virtual garden.
	Reconciled bool
	// Required is set if the runtime cluster needs the extension.
	Required bool
	// Zones are the zones of the runtime cluster, joined by commas.
	Zones string
	// Kubeconfig is the name of the Secret with the generic kubeconfig for the virtual garden.
	Kubeconfig string
	// Charts are the archives of the charts by their keys. Those that are not needed may be absent.
	Charts map[flow.Key][]byte
	// Resources are the data to which values may refer.
	Resources values.Resources
	// Copies are the Secrets and ConfigMaps that the registration needs in the virtual garden, by kind and name.
	Copies []client.Object
	// Definitions are the ManagedResources with CustomResourceDefinitions, whose deletion is confirmed because they are protected.
	Definitions map[flow.Key]bool
}

// ownerOf returns the owner of the bundles of an Extension.
func ownerOf(extension *operatorv1alpha1.Extension) flow.Owner {
	return flow.Owner{Flow: FlowName, UID: extension.UID, Name: extension.Name}
}

// The keys of the bundles of an Extension. Their names are those of Gardener.
func runtimeKey(namespace, name string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "extension-" + name + "-garden"}
}

func admissionRuntimeKey(namespace, name string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "extension-admission-runtime-" + name}
}

func admissionVirtualKey(namespace, name string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "extension-admission-virtual-" + name}
}

func registrationKey(namespace, name string) flow.Key {
	return flow.Key{Namespace: namespace, Name: "extension-registration-" + name}
}

// wantsRuntime reports whether the extension can run in the runtime cluster: it has a chart, and values for it.
func wantsRuntime(extension *operatorv1alpha1.Extension) bool {
	one := deploymentOf(extension).ExtensionDeployment
	return one != nil && one.Helm != nil && one.RuntimeClusterValues != nil
}

func wantsRegistration(extension *operatorv1alpha1.Extension) bool {
	one := deploymentOf(extension).ExtensionDeployment
	return one != nil && one.Helm != nil
}

// admissionCharts returns the charts of the admission controller in the runtime cluster and in the virtual garden, nil if there are none.
func admissionCharts(extension *operatorv1alpha1.Extension) (runtime, virtual *operatorv1alpha1.ExtensionHelm) {
	one := deploymentOf(extension).AdmissionDeployment
	if one == nil {
		return nil, nil
	}
	if one.RuntimeCluster != nil {
		runtime = one.RuntimeCluster.Helm
	}
	if one.VirtualCluster != nil {
		virtual = one.VirtualCluster.Helm
	}
	return runtime, virtual
}

func deploymentOf(extension *operatorv1alpha1.Extension) *operatorv1alpha1.Deployment {
	if extension.Spec.Deployment == nil {
		return &operatorv1alpha1.Deployment{}
	}
	return extension.Spec.Deployment
}

// Plan returns the bundles of an Extension. Until the virtual garden exists, what belongs into it stays as it is.
func (in Inputs) Plan(ctx context.Context) (flow.Plan, error) {
	name := in.Extension.Name
	runtime, admission := runtimeKey(in.Namespace, name), admissionRuntimeKey(in.Namespace, name)
	virtual, registration := admissionVirtualKey(in.Namespace, name), registrationKey(in.Namespace, name)
	plan := flow.Plan{Deleting: in.Deleting}
	if err := in.addRuntime(ctx, &plan, runtime); err != nil {
		return plan, err
	}
	helmRuntime, helmVirtual := admissionCharts(in.Extension)
	if in.Deleting {
		in.remove(&plan, registration)
		in.remove(&plan, virtual)
		in.remove(&plan, admission, virtual) // the API server calls its webhooks until they are gone
		return plan, nil
	}
	if !in.Reconciled {
		return plan, nil
	}
	for _, one := range []struct {
		key    flow.Key
		wanted bool
		bundle func(context.Context, flow.Key) (flow.Bundle, error)
		after  []flow.Key
	}{
		{registration, wantsRegistration(in.Extension), in.registration, nil},
		{virtual, helmVirtual != nil, in.admissionVirtual, nil},
		{admission, helmRuntime != nil, in.admissionRuntime, []flow.Key{virtual}},
	} {
		if !one.wanted {
			in.remove(&plan, one.key, one.after...)
			continue
		}
		bundle, err := one.bundle(ctx, one.key)
		if err != nil {
			return plan, err
		}
		plan.Bundles = append(plan.Bundles, bundle)
	}
	return plan, nil
}

// addRuntime adds or removes the extension in the runtime cluster. While that needs it, it stays, also if the Extension is being deleted.
func (in Inputs) addRuntime(ctx context.Context, plan *flow.Plan, key flow.Key) error {
	switch {
	case in.Required && in.Deleting && in.Charts[key] == nil:
		plan.Keeps = append(plan.Keeps, key)
	case in.Required && wantsRuntime(in.Extension):
		bundle, err := in.runtime(ctx, key)
		if err != nil {
			return err
		}
		plan.Bundles = append(plan.Bundles, bundle)
	default:
		in.remove(plan, key)
	}
	return nil
}

// remove adds the tombstone of a bundle.
func (in Inputs) remove(plan *flow.Plan, key flow.Key, after ...flow.Key) {
	tombstone := flow.Tombstone{Key: key, Confirm: in.Definitions[key], After: after}
	if after == nil {
		tombstone.After = []flow.Key{}
	}
	plan.Tombstones = append(plan.Tombstones, tombstone)
}

// runtime returns the extension in the runtime cluster, with its namespace.
func (in Inputs) runtime(ctx context.Context, key flow.Key) (flow.Bundle, error) {
	namespace := runtimeNamespace(in.Extension.Name)
	objects, err := in.render(ctx, key, helmchart.Release{Name: in.Extension.Name, Namespace: namespace},
		deploymentOf(in.Extension).ExtensionDeployment.RuntimeClusterValues, map[string]any{"runtimeCluster": map[string]any{
			"enabled": "true", "priorityClassName": constants.PriorityClassGardenSystem200,
		}})
	if err != nil {
		return flow.Bundle{}, fmt.Errorf("the chart for the runtime cluster: %w", err)
	}
	return in.bundle(key, ptr.To(class), append([]client.Object{in.runtimeNamespace(namespace)}, typed(objects)...)), nil
}

// admissionVirtual returns the part of the admission controller in the virtual garden: its rights, and the namespace that owns its webhooks.
func (in Inputs) admissionVirtual(ctx context.Context, key flow.Key) (flow.Bundle, error) {
	namespace := virtualNamespace(in.Extension.Name)
	objects, err := in.render(ctx, key, helmchart.Release{Name: in.Extension.Name, Namespace: namespace},
		deploymentOf(in.Extension).AdmissionDeployment.Values, map[string]any{"virtualCluster": map[string]any{
			"enabled": true, "serviceAccount": map[string]any{"name": accountName(in.Extension.Name), "namespace": accountNamespace},
		}})
	if err != nil {
		return flow.Bundle{}, fmt.Errorf("the chart of the admission controller for the virtual garden: %w", err)
	}
	return in.bundle(key, nil, append([]client.Object{in.virtualNamespace(namespace)}, typed(objects)...)), nil
}

// admissionRuntime returns the part of the admission controller in the runtime cluster, with access to the virtual garden.
func (in Inputs) admissionRuntime(ctx context.Context, key flow.Key) (flow.Bundle, error) {
	objects, err := in.render(ctx, key, helmchart.Release{Name: in.Extension.Name, Namespace: in.Namespace},
		deploymentOf(in.Extension).AdmissionDeployment.Values, map[string]any{
			"runtimeCluster": map[string]any{"priorityClassName": constants.PriorityClassGardenSystem400},
			"virtualCluster": map[string]any{"enabled": true, "namespace": virtualNamespace(in.Extension.Name)},
		})
	if err != nil {
		return flow.Bundle{}, fmt.Errorf("the chart of the admission controller for the runtime cluster: %w", err)
	}
	token := in.access()
	gets := access.Access{
		Namespace: in.Namespace, Kubeconfig: in.Kubeconfig, Token: token.Name, MountPath: constants.KubeconfigMountPath,
	}
	if _, err := gets.Inject(objects); err != nil {
		return flow.Bundle{}, fmt.Errorf("the access of the admission controller to the virtual garden: %w", err)
	}
	bundle := in.bundle(key, ptr.To(class), append([]client.Object{token}, typed(objects)...))
	if _, virtual := admissionCharts(in.Extension); virtual != nil {
		bundle.DeleteAfter = []flow.Key{admissionVirtualKey(in.Namespace, in.Extension.Name)}
	}
	return bundle, nil
}

func (in Inputs) bundle(key flow.Key, class *string, objects []client.Object) flow.Bundle {
	return flow.Bundle{
		Key: key, Objects: objects, Labels: map[string]string{labelOrigin: originOperator},
		Spec: resourcesv1alpha1.ManagedResourceSpec{Class: class},
	}
}

func typed(objects []*unstructured.Unstructured) []client.Object {
	all := make([]client.Object, 0, len(objects))
	for _, object := range objects {
		all = append(all, object)
	}
	return all
}
