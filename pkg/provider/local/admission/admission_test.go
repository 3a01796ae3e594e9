package admission

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

const (
	config = "apiVersion: local.provider.extensions.gardener.cloud/v1alpha1, kind: "
	shoot  = "spec: {provider: {type: local, workers: [{name: a}]}, networking: {pods: 100.96.0.0/16}}"
)

// TestWebhooks sends objects to the webhooks for their kinds.
func TestWebhooks(t *testing.T) {
	handlers := map[string]admission.Handler{}
	for _, one := range Webhooks() {
		hook, is := one.Handler.(*admission.Webhook)
		if !is || !one.Validating || !strings.Contains(one.MatchConditions[0].Expression, `"local"`) {
			t.Fatalf("webhook %+v", one)
		}
		handlers[one.Name] = hook.Handler
	}
	for _, test := range []struct{ name, kind, object, old, want string }{
		{"a profile", "cloudprofiles", "spec: {type: local, machineImages: [{name: linux, versions: [{version: 1.0.0}]}], providerConfig: {" + config +
			"CloudProfileConfig, machineImages: [{name: linux, versions: [{version: 1.0.0, image: a}]}]}}", "", ""},
		{"a profile without an image", "cloudprofiles", "spec: {type: local, machineImages: [{name: linux, versions: [{version: 1.0.0}]}], providerConfig: {" + config +
			"CloudProfileConfig}}", "", "spec.providerConfig.machineImages: Required"},
		{"a profile without a configuration", "cloudprofiles", "spec: {type: local}", "", "spec.providerConfig: Required"},
		{"a profile with an unknown field", "cloudprofiles", "spec: {type: local, providerConfig: {" + config + "CloudProfileConfig, images: []}}", "", `unknown field "images"`},
		{"a profile of another type", "cloudprofiles", "spec: {type: other}", "", ""},
		{"a profile that goes", "cloudprofiles", "metadata: {deletionTimestamp: '2026-11-01T00:00:00Z'}\nspec: {type: local}", "", ""},
		{"a Shoot", "shoots", shoot, "", ""},
		{"a Shoot with configurations", "shoots", "spec: {provider: {type: local, infrastructureConfig: {" + config + "InfrastructureConfig, networks: {nodes: 10.0.0.0/16}}, " +
			"controlPlaneConfig: {" + config + "ControlPlaneConfig}, workers: [{name: a, providerConfig: {" + config + "WorkerConfig}}]}}", shoot, ""},
		{"overlapping ranges", "shoots", "spec: {networking: {pods: 10.0.0.0/16}, provider: {type: local, infrastructureConfig: {" + config +
			"InfrastructureConfig, networks: {nodes: 10.0.0.0/16}}}}", "", "spec.provider.infrastructureConfig.networks.nodes: Invalid value"},
		{"another range", "shoots", shoot, "spec: {provider: {type: local, infrastructureConfig: {" + config + "InfrastructureConfig, networks: {nodes: 10.0.0.0/16}}}}", "immutable"},
		{"a configuration of another kind", "shoots", "spec: {provider: {type: local, controlPlaneConfig: {" + config + "WorkerConfig}}}", "", "of the kind WorkerConfig"},
		{"a wrong pool", "shoots", "spec: {provider: {type: local, workers: [{name: a, updateStrategy: AutoInPlaceUpdate, providerConfig: {" + config +
			"WorkerConfig, resources: {limits: {cpu: 0}}}}]}}", "", "spec.provider.workers[0].providerConfig.resources.limits[cpu]"},
		{"a network with an unknown field", "shoots", "spec: {networking: {type: local, providerConfig: {" + config + "NetworkConfig, policies: true}}, provider: {type: local}}", "",
			"spec.networking.providerConfig: Invalid value"},
		{"a network of another type", "shoots", "spec: {networking: {type: other, providerConfig: {a: b}}, provider: {type: local}}", "", ""},
		{"a Shoot of another type", "shoots", "spec: {provider: {type: other, controlPlaneConfig: {a: b}}}", "", ""},
		{"no object", "shoots", "", "", "the object cannot be read"},
	} {
		raw := func(text string) runtime.RawExtension {
			content, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if text == "" {
				content = nil
			}
			return runtime.RawExtension{Raw: content}
		}
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(test.object)}}
		if test.old != "" {
			request.Operation, request.OldObject = admissionv1.Update, raw(test.old)
		}
		response := handlers[test.kind].Handle(t.Context(), request)
		text, err := json.Marshal(response.Result)
		if err != nil {
			t.Fatal(err)
		}
		if response.Allowed != (test.want == "") || !strings.Contains(strings.ReplaceAll(string(text), `\"`, `"`), test.want) {
			t.Errorf("%s: allowed %t, %s, want %q", test.name, response.Allowed, text, test.want)
		}
	}
}
