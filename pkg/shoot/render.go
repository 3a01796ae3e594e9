package shoot

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

// Placeholders for values that exist only in a cluster, used when a Shoot is rendered from files.
const (
	renderedToken   = "token-of-the-health-check"
	renderedAddress = "192.0.2.1"
	renderedKey     = "bm90IGEga2V5LCBidXQgYXMgbG9uZyBhcyBvbmUgaXM="
)

// Renderer renders Shoots from files, for `kubectl mr render`.
func Renderer() flow.Renderer {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, extensionsv1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			panic(err) // the types of this program are inconsistent
		}
	}
	kind := corev1beta1.SchemeGroupVersion.WithKind("Shoot")
	return flow.Renderer{
		Flow: FlowName, Declares: "Shoots", Plan: renderedPlan, Scheme: all,
		IsDeclaration: func(u *unstructured.Unstructured) bool { return u.GroupVersionKind() == kind },
	}
}

// renderedPlan returns the plan of a Shoot in a file. It applies the defaults to the Shoot, and reads the other inputs
// from the files: the Seed, the CloudProfile, the Project, and the referenced ConfigMaps and Secrets. Secrets with
// certificates and keys have the names of their configs.
func renderedPlan(given flow.RenderInputs) (flow.Owner, flow.Plan, error) {
	in, err := renderedInputs(given)
	if err != nil {
		return flow.Owner{}, flow.Plan{}, err
	}
	plan, err := Plan(in)
	return in.Owner, plan, err
}

func renderedInputs(given flow.RenderInputs) (Inputs, error) {
	shoot := &corev1beta1.Shoot{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given.Declaration.Object, shoot); err != nil {
		return Inputs{}, fmt.Errorf("read the Shoot: %w", err)
	}
	corev1beta1.SetDefaultsShootSpec(&shoot.Spec, shoot.Namespace, shoot.Name)
	config := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(config)
	vector, err := images.FromEnvironment()
	if err != nil {
		return Inputs{}, err
	}
	in := Inputs{
		Owner:           flow.Owner{Flow: FlowName, UID: shoot.UID, Namespace: shoot.Namespace, Name: shoot.Name},
		GardenNamespace: constants.GardenNamespace, Shoot: shoot, Config: config, Version: given.Version, Images: vector, NamespaceExists: true,
		Project: projectOf(shoot.Namespace), Seed: &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: ptr.Deref(shoot.Spec.SeedName, "")}},
		CloudProfile: &corev1beta1.CloudProfile{}, UserFiles: userfiles.Files{}, References: map[string]Referenced{},
		Registrations: []corev1beta1.ControllerRegistration{}, Addresses: []string{renderedAddress}, ServiceIPs: []string{renderedAddress}, Asked: given.Now,
		ClusterOf: strconv.FormatInt(shoot.Generation, 10), Emitted: given.Emitted, Now: given.Now, Tokens: map[string]time.Time{
			accessSecret(resourcemanager.Account): given.Now, accessSecret(kubecontrollermanager.Name): given.Now,
		},
	}
	if profile := shoot.Spec.CloudProfile; profile != nil {
		in.CloudProfile.Name = profile.Name
	}
	for _, other := range given.Others {
		if err := in.take(other); err != nil {
			return Inputs{}, fmt.Errorf("read %s %s: %w", other.GetKind(), other.GetName(), err)
		}
	}
	in.Namespace = TechnicalID(shoot, in.Project)
	in.ClusterIdentity = cmp.Or(ptr.Deref(shoot.Status.ClusterIdentity, ""), in.Namespace)
	if in.backedUp() {
		in.Entry = in.entry()
		in.Entry.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
	}
	in.Placement = &Placement{Tolerance: in.tolerance(), Zones: in.zones()}
	in.Secrets = in.renderedSecrets()
	return in, nil
}

// projectOf returns the name of the Project that usually has a namespace.
func projectOf(namespace string) string {
	if namespace == constants.GardenNamespace {
		return namespace
	}
	return namespace[min(len(namespace), len(constants.PrefixProjectNamespace)):]
}

// take adds an object from a file to the inputs.
func (in *Inputs) take(other *unstructured.Unstructured) error {
	read := func(into any) error { return runtime.DefaultUnstructuredConverter.FromUnstructured(other.Object, into) }
	switch other.GroupVersionKind().GroupKind() {
	case corev1beta1.Kind("Seed"):
		return read(in.Seed)
	case corev1beta1.Kind("CloudProfile"):
		return read(in.CloudProfile)
	case corev1beta1.Kind("ExposureClass"):
		class := &corev1beta1.ExposureClass{}
		err := read(class)
		if class.Name == ptr.Deref(in.Shoot.Spec.ExposureClassName, "") {
			in.ExposureClass = class
		}
		return err
	case corev1beta1.Kind("ControllerRegistration"):
		registration := corev1beta1.ControllerRegistration{}
		err := read(&registration)
		corev1beta1.SetDefaultsControllerRegistration(&registration)
		in.Registrations = append(in.Registrations, registration)
		return err
	case corev1beta1.Kind("Project"):
		project := &corev1beta1.Project{}
		err := read(project)
		if ptr.Deref(project.Spec.Namespace, "") == in.Shoot.Namespace {
			in.Project = project.Name
		}
		return err
	case corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind(), corev1.SchemeGroupVersion.WithKind("Secret").GroupKind():
		if err := in.takeReferenced(other); err != nil || other.GetNamespace() != in.Shoot.Namespace {
			return err
		}
		given := userfiles.File{ConfigMap: &corev1.ConfigMap{}}
		into := any(given.ConfigMap)
		if other.GetKind() == "Secret" {
			given = userfiles.File{Secret: &corev1.Secret{}}
			into = given.Secret
		}
		in.UserFiles[other.GetKind()+"/"+other.GetName()] = given
		return read(into)
	}
	return nil
}

// takeReferenced adds a Secret or ConfigMap from a file to the references of the Shoot.
func (in *Inputs) takeReferenced(other *unstructured.Unstructured) error {
	found := Referenced{ConfigMap: &corev1.ConfigMap{}}
	into := any(found.ConfigMap)
	if other.GetKind() == kindSecret {
		found = Referenced{Secret: &corev1.Secret{}}
		into = found.Secret
	}
	in.References[reference{other.GetKind(), other.GetNamespace(), other.GetName()}.String()] = found
	return runtime.DefaultUnstructuredConverter.FromUnstructured(other.Object, into)
}

// renderedSecrets returns Secrets that are named after their configs. Their data, where manifests contain it, are placeholders.
func (in Inputs) renderedSecrets() map[string]secrets.Item {
	items := map[string]secrets.Item{}
	for _, config := range in.secretConfigs() {
		secret := secrets.Secret{Name: config.Name}
		switch config.Kind {
		case secrets.KindEncryptionKey:
			secret.Data = secrets.Material{
				secrets.KeyEncryptionName: []byte("key"), secrets.KeyEncryptionSecret: []byte(renderedKey),
				secrets.KeyEncryptionEncoding: []byte("base64"),
				secrets.KeyEncryptionProvider: []byte(in.encryptionProvider()),
			}
		case secrets.KindStaticToken:
			secret.Data = secrets.Material{
				secrets.KeyStaticTokens: []byte(renderedToken + "," + kubeapiserver.HealthCheckUser + "," + kubeapiserver.HealthCheckUser + "\n"),
			}
		}
		item := secrets.Item{Config: config, Current: secret, Active: secret}
		if config.Kind == secrets.KindCA || config.Kind == secrets.KindRSAKey {
			item.Bundle = &secrets.Secret{Name: config.Name + "-bundle"}
		}
		items[config.Name] = item
	}
	return items
}
