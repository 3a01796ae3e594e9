// Package generate generates the parts of the Helm chart that are derived from other parts of the repository, and the
// plain manifests below config/ from the chart.
package generate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/controllermanager"
	"github.com/trellis-k8s/trellis/pkg/rbac"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
)

// Paths below the root of the repository.
const (
	// Chart is the directory of the chart.
	Chart = "charts/resource-manager"

	definition = "config/crd/resources.gardener.cloud_managedresources.yaml"
	header     = "# Made by make generate.\n"

	controllerManagerRights = "charts/controller-manager/files/rights.yaml"
)

// prefix is a placeholder for the name prefix, which the chart's templates replace.
const prefix = "PREFIX-"

// ChartFiles returns the generated files of the chart, by their paths below the root.
func ChartFiles(root string) (map[string][]byte, error) {
	crd, err := os.ReadFile(filepath.Join(root, definition))
	if err != nil {
		return nil, fmt.Errorf("read the definition of ManagedResources: %w", err)
	}
	files := map[string][]byte{
		Chart + "/files/managedresources.yaml": crd,
		Chart + "/files/rights.yaml":           rbac.Table(),
	}
	files[admissionChart+"/files/webhooks.yaml"], err = admissionWebhooks()
	if err != nil {
		return nil, err
	}
	files[controllerManagerRights], err = controllermanager.Controllers().Rights()
	if err != nil {
		return nil, fmt.Errorf("the permissions of the controller-manager: %w", err)
	}
	files[controllerManagerRights] = append([]byte(header), files[controllerManagerRights]...)
	ofOperator, err := operatorFiles(root)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, ofOperator)
	for name, placement := range map[string]webhooks.Placement{
		"seed": {NamePrefix: prefix}, "shoot": {NamePrefix: prefix, Shoot: true},
	} {
		files[Chart+"/files/webhooks-"+name+".yaml"], err = webhookFile(placement)
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// called is a webhook that an API server calls, for the chart's templates.
type called struct {
	// Setting is the field of the configuration that enables the webhook.
	Setting string `json:"setting,omitempty"`
	Path    string `json:"path"`
	// Webhook is the entry of a webhook configuration without its clientConfig.
	Webhook map[string]any `json:"webhook"`
}

// webhookFile returns the webhooks by the kind of their configuration.
func webhookFile(placement webhooks.Placement) ([]byte, error) {
	all := map[string][]called{}
	nowhere := func(string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{}
	}
	for _, one := range webhooks.Table() {
		rows := []webhooks.Webhook{one}
		add := func(kind string, webhook any) error {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(webhook)
			if err != nil {
				return fmt.Errorf("webhook %s: %w", one.Name, err)
			}
			delete(fields, "clientConfig")
			all[kind] = append(all[kind], called{one.Setting, one.Path, fields})
			return nil
		}
		if configuration := webhooks.MutatingConfiguration(rows, placement, nowhere); configuration != nil {
			if err := add(configuration.Kind, &configuration.Webhooks[0]); err != nil {
				return nil, err
			}
		}
		if configuration := webhooks.ValidatingConfiguration(rows, placement, nowhere); configuration != nil {
			if err := add(configuration.Kind, &configuration.Webhooks[0]); err != nil {
				return nil, err
			}
		}
	}
	encoded, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode webhooks: %w", err)
	}
	return append([]byte(header), encoded...), nil
}

// All returns all generated files, by their paths below the root. The chart's own files must be written before, because
// the plain manifests are generated from the files on disk.
func All(root string) (map[string][]byte, error) {
	files, err := ChartFiles(root)
	if err != nil {
		return nil, err
	}
	plain, err := plainFiles(root)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, plain)
	reference, err := reference(root)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, reference)
	return files, nil
}

// Write writes files below the root.
func Write(root string, files map[string][]byte) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil { //nolint:gosec // files of the repository are readable by all users
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.WriteFile(full, files[path], 0o644); err != nil { //nolint:gosec // files of the repository are readable by all users
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}
