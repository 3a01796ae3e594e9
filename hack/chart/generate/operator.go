package generate

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/trellis-k8s/trellis/pkg/operator"
	"github.com/trellis-k8s/trellis/pkg/operator/webhook"
)

// operatorChart is the directory of the chart of the operator.
const operatorChart = "charts/operator"

// operatorFiles returns the generated files of the chart of the operator: its permissions and webhooks, and the definitions of its kinds and of
// ManagedResources, without which it can write nothing.
func operatorFiles(root string) (map[string][]byte, error) {
	rights, err := operator.Controllers().RightsYAML(false)
	if err != nil {
		return nil, fmt.Errorf("the permissions of the operator: %w", err)
	}
	namespaced, err := operator.Controllers().RightsYAML(true)
	if err != nil {
		return nil, fmt.Errorf("the permissions of the operator in its namespace: %w", err)
	}
	nowhere := func(string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{}
	}
	webhooks, err := webhooksFile(webhook.Configuration(nowhere), webhook.Table(nil), func(string, map[string]any) {})
	if err != nil {
		return nil, fmt.Errorf("the webhooks of the operator: %w", err)
	}
	files := map[string][]byte{
		operatorChart + "/files/rights.yaml":           append([]byte(header), rights...),
		operatorChart + "/files/rights-namespace.yaml": append([]byte(header), namespaced...),
		operatorChart + "/files/webhooks.yaml":         webhooks,
	}
	definitions, err := filepath.Glob(filepath.Join(root, "config", "crd", "operator", "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(definitions, filepath.Join(root, filepath.FromSlash(definition))) {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a definition for the chart of the operator: %w", err)
		}
		files[path.Join(operatorChart, "files", "crd-"+filepath.Base(file))] = content
	}
	return files, nil
}
