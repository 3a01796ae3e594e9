package gardenletdeployer

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

const parent = `{"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration", "logLevel": "debug",
"gardenClientConnection": {"qps": 100, "kubeconfig": "/a/file", "kubeconfigSecret": {"name": "mine", "namespace": "garden"},
  "bootstrapKubeconfig": {"name": "mine-bootstrap", "namespace": "garden"}},
"seedClientConnection": {"burst": 50, "kubeconfig": "/another/file"},
"controllers": {"shoot": {"concurrentSyncs": 7}}, "exposureClassHandlers": [{"name": "a"}, {"name": "b"}],
"seedConfig": {"metadata": {"name": "parent"}, "spec": {"provider": {"type": "local"}}}}`

func example() Inputs {
	return Inputs{
		Name: "blue", Namespace: "garden", Bootstrap: v1alpha1.BootstrapToken, Image: "registry.example.org/gardenlet:1.0.0", APIServerHost: "api.blue.example.org",
		Config: []byte(`{"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration", "resources": {"capacity": {"shoots": 100}},
"exposureClassHandlers": [{"name": "c"}], "seedConfig": {"metadata": {"labels": {"environment": "evaluation"}}, "spec": {"provider": {"type": "local", "region": "here"}}}}`),
		Deployment: v1alpha1.GardenletDeployment{
			ReplicaCount: ptr.To[int32](1), PodLabels: map[string]string{"example.org/tier": "control"}, Env: []corev1.EnvVar{{Name: "GOGC", Value: "50"}},
		},
		PodAnnotations: map[string]string{"checksum/seed-backup-secret": "backup-0123"},
	}
}

// TestValues compares the values of the chart, for each way in which a gardenlet is deployed, with golden files.
func TestValues(t *testing.T) {
	for name, change := range map[string]func(*Inputs){
		"own":    func(*Inputs) {},
		"merged": func(in *Inputs) { in.Parent = []byte(parent) },
		"none":   func(in *Inputs) { in.Bootstrap, in.GardenKubeconfig = v1alpha1.BootstrapNone, []byte("kubeconfig") },
		"overwrites": func(in *Inputs) {
			in.ImageOverwrites, in.ComponentImageOverwrites, in.GardenAddress = "images: []", "components: []", "https://api.garden.example.org"
			in.Deployment.Env = []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "other"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := example()
			change(&in)
			values, err := in.Values()
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			golden.CheckText(t, "values-"+name+".yaml", string(text))
		})
	}
}

// TestObjects compares the objects of the chart with golden files. Those that the gardenlet takes over are apart.
func TestObjects(t *testing.T) {
	in := example()
	in.Bootstrap, in.GardenKubeconfig = v1alpha1.BootstrapNone, []byte("kubeconfig")
	objects, err := in.Objects(t.Context(), nil, "1.33.0")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "objects", objects.Managed)
	golden.Check(t, "objects-once", objects.Once)
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*Inputs){
		"has no seedConfig":        func(in *Inputs) { in.Config = []byte(`{}`) },
		"is not a JSON object":     func(in *Inputs) { in.Config = []byte(`null`) },
		"decode the configuration": func(in *Inputs) { in.Config = []byte(`[]`) },
		"names the file /seed.config": func(in *Inputs) {
			in.Config = []byte(`{"seedConfig": {"spec": {}}, "seedClientConnection": {"kubeconfig": "/seed.config"}}`)
		},
		"the configuration: ": func(in *Inputs) { in.Config = []byte(`{"seedConfig": {"metadata": "text"}}`) },
	} {
		in := example()
		change(&in)
		if _, err := in.Values(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	in := example()
	if _, err := in.Objects(t.Context(), []byte("not an archive"), ""); err == nil || !strings.Contains(err.Error(), "not a chart") {
		t.Errorf("a broken archive: %v", err)
	}
}

// TestImage checks that a deployment overrides the default image, and that what it leaves out is that of the default.
func TestImage(t *testing.T) {
	const reference = "registry.example.org:5000/gardenlet:1.0.0"
	text := func(image *v1alpha1.Image) string {
		return ptr.Deref(image.Ref, "-") + " " + ptr.Deref(image.Repository, "-") + " " + ptr.Deref(image.Tag, "-")
	}
	for name, test := range map[string]struct {
		given     *v1alpha1.Image
		reference string
		want      string
	}{
		"nothing":    {nil, reference, reference + " - -"},
		"no default": {nil, "", "- - -"},
		"ref":        {&v1alpha1.Image{Ref: ptr.To("other:2")}, reference, "other:2 - -"},
		"tag":        {&v1alpha1.Image{Tag: ptr.To("2")}, reference, "- registry.example.org:5000/gardenlet 2"},
		"repository": {&v1alpha1.Image{Repository: ptr.To("other")}, reference, "- other 1.0.0"},
		"digest":     {&v1alpha1.Image{Repository: ptr.To("other")}, "gardenlet@sha256:0", "- other sha256:0"},
	} {
		if got := text(image(test.given, test.reference)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	for reference, want := range map[string]string{
		"gardenlet": "gardenlet:v1", "host:5000/gardenlet": "host:5000/gardenlet:v1", "gardenlet:v2": "gardenlet:v2", "gardenlet@sha256:0": "gardenlet@sha256:0",
	} {
		if got := Reference(reference, "v1"); got != want {
			t.Errorf("%s: got %s, want %s", reference, got, want)
		}
	}
}
