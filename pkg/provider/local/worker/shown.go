package worker

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// machineKind is the kind by which the shoot's resource-manager learns which machines exist.
var machineKind = schema.GroupVersionKind{Group: "machine.sapcloud.io", Version: "v1alpha1", Kind: "Machine"}

// labelNode is the label of a Machine with the name of its Node.
const labelNode = "node"

// shown returns the object that shows that a machine exists, which Node it is, and with which Secret its node agent is configured. Only
// then are certificates of the machine approved and requests of its node agent allowed. The name of the Node is known in advance, because
// it is the host name of the machine.
func (d Deployment) shown(name, technicalID string) *unstructured.Unstructured {
	labels := maps.Clone(d.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if d.NodeAgentSecretName != nil {
		labels[constants.LabelWorkerPoolNodeAgentSecretName] = *d.NodeAgentSecretName
	}
	template := map[string]any{}
	for key, value := range labels {
		template[key] = value
	}
	machine := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"class":        map[string]any{"kind": "MachineClass", "name": d.Name + "-" + d.Class},
		"nodeTemplate": map[string]any{"metadata": map[string]any{"labels": template}},
		"providerID":   local.Type + ":///" + prefixMachine + name,
	}}}
	machine.SetGroupVersionKind(machineKind)
	machine.SetNamespace(technicalID)
	machine.SetName(prefixMachine + name)
	own := d.labels(name)
	own[labelNode] = prefixMachine + name
	machine.SetLabels(own)
	return machine
}
