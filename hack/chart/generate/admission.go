package generate

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/resourcesize"
	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// admissionChart is the directory of the chart of the admission controller.
const admissionChart = "charts/admission-controller"

// admissionWebhooks returns the webhooks of the admission controller by the kind of their configuration. The limits of sizes have
// no rules: the chart takes them from its values.
func admissionWebhooks() ([]byte, error) {
	nowhere := func(string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{}
	}
	limits := v1alpha1.ServerConfiguration{
		ResourceAdmissionConfiguration: &v1alpha1.ResourceAdmissionConfiguration{Limits: []v1alpha1.ResourceLimit{{}}},
	}
	return webhooksFile(admissioncontroller.Configuration(nowhere), admissioncontroller.Table(admissioncontroller.Readers{}, limits),
		func(path string, fields map[string]any) {
			if path == resourcesize.Path {
				delete(fields, "rules")
			}
		})
}

// webhooksFile returns webhooks by the kind of their configuration, without addresses. change may change the fields of one.
func webhooksFile(
	configuration webhookserver.Configuration, table []webhookserver.Webhook, change func(path string, fields map[string]any),
) ([]byte, error) {
	all := map[string][]called{}
	for _, row := range table {
		if row.Kind == webhookserver.Authorizing {
			continue // API servers know it from their configuration file
		}
		var kind string
		var webhook any
		rows := []webhookserver.Webhook{row}
		if mutating := configuration.Mutating(rows); mutating != nil {
			kind, webhook = mutating.Kind, &mutating.Webhooks[0]
		} else {
			validating := configuration.Validating(rows)
			kind, webhook = validating.Kind, &validating.Webhooks[0]
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(webhook)
		if err != nil {
			return nil, fmt.Errorf("webhook %s: %w", row.Name, err)
		}
		delete(fields, "clientConfig")
		change(row.Path, fields)
		all[kind] = append(all[kind], called{Path: row.Path, Webhook: fields})
	}
	encoded, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode webhooks: %w", err)
	}
	return append([]byte(header), encoded...), nil
}
