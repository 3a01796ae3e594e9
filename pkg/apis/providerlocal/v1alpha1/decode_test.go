package v1alpha1

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

const head = "apiVersion: local.provider.extensions.gardener.cloud/v1alpha1\nkind: InfrastructureConfig\n"

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		head + "networks: {nodes: 10.0.0.0/16}\n":                    "",
		head + "networks: {node: 10.0.0.0/16}\n":                     `unknown field "networks.node"`,
		head + "networks: {nodes: 10.0.0.0/16}\nnetworks: {}\n":      "already set",
		head + "networks: []\n":                                      "cannot unmarshal",
		strings.Replace(head, "Infrastructure", "Other", 1):          `no kind "OtherConfig"`,
		strings.Replace(head, "Infrastructure", "Network", 1):        "it is of the kind NetworkConfig",
		strings.Replace(head, "local.provider", "other.provider", 1): "no kind",
		"networks: {}\n": "'Kind' is missing",
		head + "networks: {nodes: '" + strings.Repeat("1", maxConfigBytes) + "'}\n": "at most 262144",
	} {
		config, err := Decode[InfrastructureConfig](&runtime.RawExtension{Raw: []byte(text)})
		switch {
		case want == "" && (err != nil || *config.Networks.Nodes != "10.0.0.0/16"):
			t.Errorf("%.200q: %+v, %v", text, config, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.200q: %v, want %q", text, err, want)
		}
	}
	for _, raw := range []*runtime.RawExtension{nil, {}} {
		if config, err := Decode[WorkerState](raw); config != nil || err != nil {
			t.Errorf("without a text: %v, %v", config, err)
		}
	}
}

func TestEncode(t *testing.T) {
	state := &WorkerState{TypeMeta: TypeMeta("WorkerState"), Machines: []MachineState{{Name: "a", Deployment: "b", Class: "c"}}}
	raw, err := Encode(state)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode[WorkerState](raw)
	if err != nil || again.Machines[0] != state.Machines[0] {
		t.Errorf("%s is decoded as %+v, %v", raw.Raw, again, err)
	}
}
