package seed

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// renderedVersion is the Kubernetes version for rendering a Seed without a status.
const renderedVersion = minimumVersion + ".0"

// Renderer renders Seeds from files, for `kubectl mr render`.
func Renderer() flow.Renderer {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, extensionsv1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			panic(err) // the registered types of this program conflict
		}
	}
	kind := corev1beta1.SchemeGroupVersion.WithKind("Seed")
	return flow.Renderer{
		Flow: FlowName, Declares: "Seeds", ClusterScoped: true, Plan: renderedPlan, Scheme: all,
		IsDeclaration: func(u *unstructured.Unstructured) bool { return u.GroupVersionKind() == kind },
	}
}

// renderedPlan returns the plan for a Seed in a file. Observed objects are taken from the files. If there are none,
// required extensions count as installed, and Secrets have the names of their configs.
func renderedPlan(given flow.RenderInputs) (flow.Owner, flow.Plan, error) {
	in, err := renderedInputs(given)
	if err != nil {
		return flow.Owner{}, flow.Plan{}, err
	}
	plan, err := Plan(in)
	return in.Owner, plan, err
}

func renderedInputs(given flow.RenderInputs) (Inputs, error) {
	seed := &corev1beta1.Seed{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given.Declaration.Object, seed); err != nil {
		return Inputs{}, fmt.Errorf("read the Seed: %w", err)
	}
	config := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(config)
	vector, err := images.FromEnvironmentWith(etcdoperator.ComponentName, etcdoperator.ImageMember)
	if err != nil {
		return Inputs{}, err
	}
	in := Inputs{
		Owner: flow.Owner{Flow: FlowName, UID: seed.UID, Name: seed.Name}, Namespace: constants.GardenNamespace, Class: given.Class,
		Seed: seed, Config: config, Version: given.Version, Emitted: given.Emitted, Images: vector,
		KubernetesVersion: renderedVersion, Now: given.Now,
		HasVerticalPodAutoscaler: ptr.To(true), Extensions: &Extensions{}, References: map[string]Reference{},
		Bucket: &corev1beta1.BackupBucket{Status: corev1beta1.BackupBucketStatus{
			LastOperation: &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded},
		}},
	}
	if in.Class == "" {
		in.Class = classSeed
	}
	if version := ptr.Deref(seed.Status.KubernetesVersion, ""); version != "" {
		in.KubernetesVersion = version[1:]
	}
	in.Identity = ptr.Deref(seed.Status.ClusterIdentity, "")
	if err := in.readOthers(given.Others); err != nil {
		return Inputs{}, err
	}
	if len(in.Extensions.Installations) == 0 {
		in.Extensions.assume(in)
	}
	err = in.renderedSecrets(given)
	return in, err
}

// assume adds a ready installation of all required extensions.
func (e *Extensions) assume(in Inputs) {
	registration := corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "assumed"}}
	for _, required := range in.required() {
		kind, typ, _ := strings.Cut(required, "/")
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: typ})
	}
	installation := corev1beta1.ControllerInstallation{
		Spec: corev1beta1.ControllerInstallationSpec{RegistrationRef: corev1.ObjectReference{Name: "assumed"}},
	}
	for _, kind := range []corev1beta1.ConditionType{
		corev1beta1.ControllerInstallationValid, corev1beta1.ControllerInstallationInstalled, corev1beta1.ControllerInstallationHealthy,
	} {
		condition := corev1beta1.Condition{Type: kind, Status: corev1beta1.ConditionTrue}
		installation.Status.Conditions = append(installation.Status.Conditions, condition)
	}
	installation.Status.Conditions = append(installation.Status.Conditions, corev1beta1.Condition{
		Type: corev1beta1.ControllerInstallationProgressing, Status: corev1beta1.ConditionFalse,
	})
	e.Registrations, e.Installations = append(e.Registrations, registration), append(e.Installations, installation)
}

// readOthers reads observed objects from the files.
func (in *Inputs) readOthers(others []*unstructured.Unstructured) error {
	var endpoints []discoveryv1.EndpointSlice
	for _, other := range others {
		into, keep := in.target(other, &endpoints)
		if into == nil {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(other.Object, into); err != nil {
			return fmt.Errorf("read %s %s: %w", other.GetKind(), other.GetName(), err)
		}
		keep()
	}
	in.APIServers = networkpolicies.APIServers(endpoints)
	slices.SortFunc(in.APIServers, netip.AddrPort.Compare)
	return nil
}

// target returns an empty object of the type of other and a function that stores it once it is filled. It returns nil
// if the flow does not read this type.
func (in *Inputs) target(other *unstructured.Unstructured, endpoints *[]discoveryv1.EndpointSlice) (client.Object, func()) {
	refer := func(reference Reference) func() {
		return func() {
			for _, named := range in.Seed.Spec.Resources {
				if named.ResourceRef.Kind == other.GetKind() && named.ResourceRef.Name == other.GetName() &&
					other.GetNamespace() == constants.GardenNamespace {
					in.References[named.Name] = reference
				}
			}
		}
	}
	switch other.GroupVersionKind().GroupKind() {
	case corev1beta1.Kind("ControllerRegistration"):
		object := &corev1beta1.ControllerRegistration{}
		return object, func() { in.Extensions.Registrations = append(in.Extensions.Registrations, *object) }
	case corev1beta1.Kind("ControllerInstallation"):
		object := &corev1beta1.ControllerInstallation{}
		return object, func() { in.Extensions.Installations = append(in.Extensions.Installations, *object) }
	case schema.GroupKind{Group: discoveryv1.GroupName, Kind: "EndpointSlice"}:
		object := &discoveryv1.EndpointSlice{}
		return object, func() { *endpoints = append(*endpoints, *object) }
	case schema.GroupKind{Kind: "Secret"}:
		object := &corev1.Secret{}
		return object, refer(Reference{Secret: object})
	case schema.GroupKind{Kind: "ConfigMap"}:
		object := &corev1.ConfigMap{}
		return object, refer(Reference{ConfigMap: object})
	case securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity").GroupKind():
		object := &securityv1alpha1.WorkloadIdentity{}
		return object, refer(Reference{WorkloadIdentity: object})
	}
	return nil, nil
}

// renderedSecrets takes certificates from the Secrets in the files. Missing Secrets have the names of their configs.
func (in *Inputs) renderedSecrets(given flow.RenderInputs) error {
	state := secrets.State{Identity: identity, Now: given.Now}
	for _, other := range given.Others {
		if other.GetKind() != "Secret" || other.GetNamespace() != in.Namespace ||
			other.GetLabels()[constants.LabelSecretsManagerIdentity] != identity {
			continue
		}
		var secret corev1.Secret
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(other.Object, &secret); err != nil {
			return fmt.Errorf("read Secret %s: %w", other.GetName(), err)
		}
		state.Existing = append(state.Existing, secrets.Secret{
			Name: secret.Name, Labels: secret.Labels, Data: secret.Data, Created: secret.CreationTimestamp.Time, UID: &secret.UID,
		})
	}
	result, err := secrets.Resolve(in.secretConfigs(), state)
	if err != nil {
		return err
	}
	in.Secrets = result.Items
	for _, config := range in.secretConfigs() {
		if _, found := in.Secrets[config.Name]; !found {
			in.Secrets[config.Name] = secrets.Item{Config: config, Current: secrets.Secret{Name: config.Name}}
		}
	}
	return nil
}
