package generate

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

var update = flag.Bool("update", false, "write testdata")

// TestAPIServerChart compares the output of the chart of the garden's API server in each mode with testdata.
func TestAPIServerChart(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	tls := map[string]any{"secretName": "apiserver-tls", "caBundle": "the authority"}
	etcd := map[string]any{"servers": []any{"https://etcd-0:2379", "https://etcd-1:2379"}, "secretName": "apiserver-etcd"}
	for mode, values := range map[string]map[string]any{
		"all": {"clusterIdentity": "my-garden", "etcd": etcd, "tls": tls, "encryptionConfigSecretName": "encryption"},
		"runtime": {
			"clusterIdentity": "my-garden", "etcd": etcd, "tls": tls, "kubeconfigSecretName": "garden-kubeconfig", "encryptionConfigSecretName": "encryption",
			"workloadIdentity": map[string]any{"issuer": "https://issuer.example.org", "secretName": "issuer-key"},
			"extraArgs":        []any{"--goaway-chance=0.001"}, "image": map[string]any{"repository": "registry.example.org/apiserver", "digest": "sha256:0"},
		},
		"garden": {"externalName": "apiserver.example.org", "user": "apiserver", "tls": tls},
	} {
		t.Run(mode, func(t *testing.T) {
			values["mode"] = mode
			checkGolden(t, loaded, "apiserver-"+mode, values)
		})
	}
}

// checkGolden compares the output of a chart for values with a file of testdata.
func checkGolden(t *testing.T, loaded *chart.Chart, name string, values map[string]any) {
	t.Helper()
	files, err := Render(loaded, "garden", values)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all.WriteString("# " + name + "\n" + strings.Trim(files[name], "\n") + "\n")
	}
	golden := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != string(want) {
		t.Errorf("the output of the chart differs from %s (-update writes it):\n%s", golden, &all)
	}
}

// TestAPIServerChartNeeds checks that the error names the values that a mode requires.
func TestAPIServerChartNeeds(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{"runtime": "clusterIdentity is required", "garden": "tls.caBundle is required"} {
		if _, err := Render(loaded, "garden", map[string]any{"mode": mode}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mode %s without values: error %v, want one with %q", mode, err, want)
		}
	}
}

// TestAPIServerChartRefusesPlainText checks that the chart fails if secrets would be sent or stored in plain text, unless the
// values accept it.
func TestAPIServerChartRefusesPlainText(t *testing.T) {
	loaded, err := LoadFrom(filepath.Join("..", "..", "..", "charts", "apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(values, etcd map[string]any){
		"etcd.secretName is required":                 func(_, etcd map[string]any) { delete(etcd, "secretName") },
		"http://etcd-1:2379 must start with https://": func(_, etcd map[string]any) { etcd["servers"] = []any{"https://etcd-0:2379", "http://etcd-1:2379"} },
		"encryptionConfigSecretName is required":      func(values, _ map[string]any) { delete(values, "encryptionConfigSecretName") },
	} {
		etcd := map[string]any{"servers": []any{"https://etcd-0:2379"}, "secretName": "etcd"}
		values := map[string]any{
			"clusterIdentity": "my-garden", "etcd": etcd, "encryptionConfigSecretName": "encryption",
			"tls": map[string]any{"secretName": "apiserver-tls", "caBundle": "the authority"},
		}
		if _, err := Render(loaded, "garden", values); err != nil {
			t.Errorf("with TLS and encryption: %v", err)
		}
		change(values, etcd)
		for _, mode := range []string{"all", "runtime"} {
			values["mode"] = mode
			if _, err := Render(loaded, "garden", values); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("mode %s: error %v, want one with %q", mode, err, want)
			}
		}
		values["insecure"] = true
		if _, err := Render(loaded, "garden", values); err != nil {
			t.Errorf("with insecure: %v", err)
		}
	}
}
