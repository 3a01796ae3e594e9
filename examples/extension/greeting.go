// Package extension is an example of an extension, and the way to write one: docs/writing-extensions.md goes through it. It answers Extensions
// of the type greeting: it puts a text into a ConfigMap in the Shoot, and notes in the seed that it has done so.
package extension

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/extension/validation"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

const (
	// Name of the extension.
	Name = "extension-greeting"
	// Type of the Extensions that it answers.
	Type = "greeting"
	// bundleShoot is the ManagedResource with what it puts into the Shoot, and bundleSeed that with what stays in the seed.
	bundleShoot, bundleSeed = "extension-greeting-shoot", "extension-greeting-seed"
)

// configVersion is the version of the configuration of users.
var configVersion = schema.GroupVersion{Group: "greeting.example.org", Version: "v1alpha1"}

// Config is the configuration of users, in spec.extensions[].providerConfig of a Shoot.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// Text is what the ConfigMap says.
	Text string `json:"text"`
}

// DeepCopyObject implements runtime.Object.
func (c *Config) DeepCopyObject() runtime.Object {
	copied := *c
	return &copied
}

// decoder decodes strictly: a field that is not known is an error, and not ignored.
var decoder = func() *validation.Decoder {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(configVersion.WithKind("GreetingConfig"), &Config{})
	return validation.NewDecoder(scheme, configVersion)
}()

// ParseConfig returns the configuration of an Extension. Admission and controller use it.
func ParseConfig(raw *runtime.RawExtension, path *field.Path) (*Config, field.ErrorList) {
	config := &Config{}
	if all := decoder.Decode(raw, config, path); len(all) > 0 {
		return nil, all
	}
	if config.Text == "" {
		return nil, field.ErrorList{field.Required(path.Child("text"), "it is what the ConfigMap says")}
	}
	return config, nil
}

// Plan computes what has to exist for an Extension.
func Plan(_ context.Context, object *extensionsv1alpha1.Extension, cluster *extension.Cluster) (flow.Plan, error) {
	config, all := ParseConfig(object.Spec.ProviderConfig, field.NewPath("spec", "providerConfig"))
	if len(all) > 0 {
		return flow.Plan{}, extension.ConfigurationProblem(all.ToAggregate())
	}
	shoot := bundles.Shoot(object.Namespace, bundleShoot)
	shoot.Objects = []client.Object{configMap("kube-system", map[string]string{
		"text": config.Text, "for": fmt.Sprintf("%s/%s", cluster.Shoot.Namespace, cluster.Shoot.Name),
	})}
	seed := bundles.Seed(object.Namespace, bundleSeed)
	seed.Objects = []client.Object{configMap(object.Namespace, map[string]string{"greeted": cluster.Shoot.Name})}
	seed.Spec.DependsOn = []resourcesv1alpha1.Dependency{flow.On(shoot.Key)}
	return flow.Plan{Bundles: []flow.Bundle{shoot, seed}}, nil
}

func configMap(namespace string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "greeting"}, Data: data}
}
