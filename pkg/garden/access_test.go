package garden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// TestAccessOfOthers checks what programs in the runtime cluster and administrators need for access to the virtual garden: a resource-manager that
// requests the tokens for access Secrets of the namespace, a kubeconfig that reads such a token from a file, and kubeconfigs with a token.
func TestAccessOfOthers(t *testing.T) {
	in := known(small())
	plan := planOf(t, in)
	manager := bundleOf(t, plan, bundleVirtualManager)
	for _, part := range []string{`tokenRequestor:\n    concurrentSyncs: 5\n    enabled: true`, `namespaces:\n  - garden\n`} {
		if !strings.Contains(manager, part) {
			t.Errorf("the resource-manager of the virtual garden has no %s: %s", part, manager)
		}
	}
	for _, config := range in.secretConfigs() {
		if config.Name != constants.SecretNameGenericTokenKubeconfig {
			continue
		}
		if config.Kind != secrets.KindKubeconfig || config.Server != "https://virtual-garden-kube-apiserver.garden.svc" || config.Trusts != "ca" ||
			config.TokenFile != constants.KubeconfigMountPath+"/token" {
			t.Errorf("%+v", config)
		}
	}
	kubeconfigs := bundleOf(t, plan, bundleAccess)
	for _, part := range []string{
		`"name":"gardener"`, `"name":"gardener-internal"`, `"serviceaccount.resources.gardener.cloud/inject-ca-bundle":"true"`,
		`"resources.gardener.cloud/purpose":"token-requestor"`,
	} {
		if !strings.Contains(kubeconfigs, part) {
			t.Errorf("the Secrets with kubeconfigs have no %s: %s", part, kubeconfigs)
		}
	}
	if strings.Contains(kubeconfigs, "token-expiration-duration") {
		t.Error("tokens do not have the default lifetime of 12 hours")
	}
}

// TestColumns checks that the columns of Gardens show conditions that the operator writes.
func TestColumns(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "operator", "*_gardens.yaml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(content, definition); err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for _, column := range definition.Spec.Versions[0].AdditionalPrinterColumns {
		paths[column.Name] = column.JSONPath
	}
	for name, part := range map[string]string{
		"K8S Version": ".spec.virtualCluster.kubernetes.version", "Gardener Version": ".status.gardener.version", "Last Operation": ".status.lastOperation.state",
		"Runtime": string(operatorv1alpha1.RuntimeComponentsHealthy), "Virtual": string(operatorv1alpha1.VirtualComponentsHealthy),
		"API Server": string(operatorv1alpha1.VirtualGardenAPIServerAvailable), "Observability": string(operatorv1alpha1.ObservabilityComponentsHealthy),
		"Age": ".metadata.creationTimestamp",
	} {
		if !strings.Contains(paths[name], part) {
			t.Errorf("the column %s shows %q", name, paths[name])
		}
	}
}
