package installation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// archive returns a chart with the given files.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var content bytes.Buffer
	zipped := gzip.NewWriter(&content)
	writer := tar.NewWriter(zipped)
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: example\nversion: 1.0.0\n"}
	maps.Copy(all, files)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := writer.WriteHeader(&tar.Header{Name: "example/" + name, Mode: 0o644, Size: int64(len(all[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(all[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: example
  namespace: {{ .Release.Namespace }}
  {{- with .Values.labels }}
  labels: {{ toYaml . | nindent 4 }}
  {{- end }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: example}}
  template:
    metadata: {labels: {app: example}}
    spec:
      initContainers:
      - {name: prepare, image: example}
      containers:
      - name: example
        image: example
        env: [{name: OWN, value: "1"}]
`

// inputs returns the inputs of an extension whose chart has the given templates.
func inputs(t *testing.T, templates map[string]string) Inputs {
	t.Helper()
	files := map[string]string{"values.yaml": "replicas: 1\n"}
	for name, text := range templates {
		files["templates/"+name] = text
	}
	in := Inputs{
		Installation: &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "example-1", UID: "uid"}},
		Registration: &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "example"}},
		Deployment:   &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "example"}, Helm: &gardencorev1.HelmControllerDeployment{}},
		Seed:         &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"region": "eu"}}},
		Chart:        archive(t, files), Version: "v1", FeatureGates: map[string]bool{"Some": true},
		Garden: clientcmdapi.Cluster{Server: "https://garden.example.org", CertificateAuthorityData: []byte("authority")}, GardenIdentity: "my-garden", GardenUID: "uid-of-garden",
	}
	in.Seed.Spec.Provider = corev1beta1.SeedProvider{Type: "local", Region: "local", Zones: []string{"a", "b"}}
	in.Seed.Spec.Taints = []corev1beta1.SeedTaint{{Key: "seed.gardener.cloud/protected"}}
	in.Seed.Spec.Ingress = &corev1beta1.Ingress{Domain: "ingress.example.org"}
	in.Seed.Spec.Networks = corev1beta1.SeedNetworks{Pods: "10.0.0.0/16", BlockCIDRs: []string{"169.254.169.254/32"}}
	in.Seed.Status.ClusterIdentity, in.Seed.Status.KubernetesVersion = ptr.To("seed-one"), ptr.To("1.37.1")
	return in
}

func (in *Inputs) setValues(text string) {
	in.Deployment.Helm.Values = &apiextensionsv1.JSON{Raw: []byte(text)}
}
