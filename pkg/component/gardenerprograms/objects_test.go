package gardenerprograms

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestWebhooksCanBeCalled checks that the network policies let the API server of the garden, which calls the webhooks for its kinds itself, connect to them,
// and no other program. Without it, no gardenlet can register a Seed.
func TestWebhooksCanBeCalled(t *testing.T) {
	for program, calls := range map[Program]bool{APIServer: true, AdmissionController: false, ControllerManager: false, Scheduler: false} {
		objects, err := RuntimeObjects(Values{Program: program, Image: "image", Kubeconfig: "generic", Chart: map[string]any{"clusterIdentity": "one", "insecure": true, "tls": map[string]any{"secretName": "tls"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			deployment, is := object.(*appsv1.Deployment)
			if !is {
				continue
			}
			for _, label := range []string{
				"networking.resources.gardener.cloud/to-all-webhook-targets", "networking.resources.gardener.cloud/to-extensions-all-webhook-targets",
				"networking.gardener.cloud/to-private-networks", "networking.gardener.cloud/to-public-networks",
			} {
				if got := deployment.Spec.Template.Labels[label] == "allowed"; got != calls {
					t.Errorf("%s: label %s is set: %t, want %t", program, label, got, calls)
				}
			}
		}
	}
}
