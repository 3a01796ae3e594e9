package state

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TypeMachines is the type and the name of the entry of a ShootState with the state of machines (Gardener).
const TypeMachines = "machine-state"

// maxMachines limits the state of machines after decompression, in bytes.
const maxMachines = 64 << 20

// machineState describes the machines of a control plane, in the format that Gardener's library for Worker extensions reads.
type machineState struct {
	// MachineDeployments are sets of machines by name. Those without a MachineSet are missing: the extension creates them again.
	MachineDeployments map[string]machineDeployment `json:"machineDeployments,omitempty"`
}

// machineDeployment has MachineSets and Machines, each reduced and sorted by name.
type machineDeployment struct {
	Replicas    int64            `json:"replicas,omitempty"`
	MachineSets []map[string]any `json:"machineSets,omitempty"`
	Machines    []map[string]any `json:"machines,omitempty"`
}

// machineObjects are the objects in a namespace that describe machines.
type machineObjects struct {
	deployments, sets, machines []unstructured.Unstructured
}

// kinds of machine.sapcloud.io.
const (
	kindMachineDeployment = "MachineDeployment"
	kindMachineSet        = "MachineSet"
	kindMachine           = "Machine"
)

// isMade reports whether a machine is known to exist: it has an ID of the infrastructure, or a node. Others are made again under another name
// (Gardener).
func isMade(machine *unstructured.Unstructured) bool {
	id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID")
	return id != "" || machine.GetLabels()["node"] != ""
}

// reduced returns what is stored of an object: what it declares, without what controllers and the API server add.
func reduced(object *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	if labels, found, _ := unstructured.NestedMap(object.Object, "metadata", "labels"); found {
		metadata["labels"] = labels
	}
	if annotations, found, _ := unstructured.NestedMap(object.Object, "metadata", "annotations"); found {
		metadata["annotations"] = annotations
	}
	text := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata}
	if spec, found := object.Object["spec"]; found {
		text["spec"] = runtime.DeepCopyJSONValue(spec)
	}
	return text
}

func ownedBy(object *unstructured.Unstructured, kind string) string {
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == kind {
			return owner.Name
		}
	}
	return ""
}

// put sets an object in a sorted list.
func put(list []map[string]any, object *unstructured.Unstructured) []map[string]any {
	at, found := slices.BinarySearchFunc(list, object.GetName(), func(stored map[string]any, name string) int {
		return strings.Compare(nameOf(stored), name)
	})
	if found {
		list[at] = reduced(object)
		return list
	}
	return slices.Insert(list, at, reduced(object))
}

func nameOf(stored map[string]any) string {
	name, _, _ := unstructured.NestedString(stored, "metadata", "name")
	return name
}

// holder returns the stored MachineDeployment that has an object, or an empty string.
func (s machineState) holder(kind, name string) string {
	for of, deployment := range s.MachineDeployments {
		list := deployment.Machines
		if kind == kindMachineSet {
			list = deployment.MachineSets
		}
		if slices.ContainsFunc(list, func(stored map[string]any) bool { return nameOf(stored) == name }) {
			return of
		}
	}
	return ""
}

// with returns the state with existing objects added and replaced; what no longer exists stays. unowned are the objects of machines that
// belong to no MachineDeployment, which cannot be stored.
func (s machineState) with(objects machineObjects) (merged machineState, unowned []string) {
	merged = machineState{MachineDeployments: map[string]machineDeployment{}}
	for name, stored := range s.MachineDeployments {
		stored.MachineSets, stored.Machines = slices.Clone(stored.MachineSets), slices.Clone(stored.Machines)
		merged.MachineDeployments[name] = stored
	}
	for i := range objects.deployments {
		name := objects.deployments[i].GetName()
		deployment := merged.MachineDeployments[name]
		deployment.Replicas, _, _ = unstructured.NestedInt64(objects.deployments[i].Object, "spec", "replicas")
		merged.MachineDeployments[name] = deployment
	}
	owners := map[string]string{}
	for i := range objects.sets {
		set := &objects.sets[i]
		owner := ownedBy(set, kindMachineDeployment)
		if owner == "" {
			owner = s.holder(kindMachineSet, set.GetName())
		}
		if owner == "" {
			unowned = append(unowned, kindMachineSet+" "+set.GetName())
			continue
		}
		owners[set.GetName()] = owner
		deployment := merged.MachineDeployments[owner]
		deployment.MachineSets = put(deployment.MachineSets, set)
		merged.MachineDeployments[owner] = deployment
	}
	for i := range objects.machines {
		machine := &objects.machines[i]
		owner := ownedBy(machine, kindMachineDeployment)
		if set := ownedBy(machine, kindMachineSet); owner == "" && set != "" {
			owner = owners[set]
		}
		if owner == "" {
			owner = s.holder(kindMachine, machine.GetName())
		}
		switch {
		case !isMade(machine):
		case owner == "":
			unowned = append(unowned, kindMachine+" "+machine.GetName())
		default:
			deployment := merged.MachineDeployments[owner]
			deployment.Machines = put(deployment.Machines, machine)
			merged.MachineDeployments[owner] = deployment
		}
	}
	for name, deployment := range merged.MachineDeployments {
		if len(deployment.MachineSets) == 0 && len(deployment.Machines) == 0 {
			delete(merged.MachineDeployments, name)
		}
	}
	return merged, unowned
}

// lacks returns the objects that are not stored as they are.
func (s machineState) lacks(objects machineObjects) []string {
	var missing []string
	check := func(kind string, object *unstructured.Unstructured) {
		deployment := s.MachineDeployments[s.holder(kind, object.GetName())]
		want := reduced(object)
		if !slices.ContainsFunc(slices.Concat(deployment.MachineSets, deployment.Machines), func(stored map[string]any) bool {
			return stored["kind"] == kind && nameOf(stored) == object.GetName() && sameValue(stored, want)
		}) {
			missing = append(missing, kind+" "+object.GetName())
		}
	}
	for i := range objects.deployments {
		name := objects.deployments[i].GetName()
		replicas, _, _ := unstructured.NestedInt64(objects.deployments[i].Object, "spec", "replicas")
		if stored, found := s.MachineDeployments[name]; found && stored.Replicas != replicas {
			missing = append(missing, kindMachineDeployment+" "+name)
		}
	}
	for i := range objects.sets {
		check(kindMachineSet, &objects.sets[i])
	}
	for i := range objects.machines {
		if isMade(&objects.machines[i]) {
			check(kindMachine, &objects.machines[i])
		}
	}
	return missing
}

// sameValue compares values whose numbers may have different types.
func sameValue(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// packed is the content of the entry: JSON, compressed by gzip.
type packed struct {
	State []byte `json:"state"`
}

// entry returns the entry of the ShootState, nil if there is nothing to store. The same state always has the same entry.
func (s machineState) entry() (*corev1beta1.GardenerResourceData, error) {
	if len(s.MachineDeployments) == 0 {
		return nil, nil //nolint:nilnil // there are no machines
	}
	var text bytes.Buffer
	writer, err := gzip.NewWriterLevel(&text, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress the state of machines: %w", err)
	}
	err = json.NewEncoder(writer).Encode(s)
	if err = errors.Join(err, writer.Close()); err != nil {
		return nil, fmt.Errorf("compress the state of machines: %w", err)
	}
	raw, err := json.Marshal(packed{State: text.Bytes()})
	if err != nil {
		return nil, fmt.Errorf("encode the state of machines: %w", err)
	}
	return &corev1beta1.GardenerResourceData{Name: TypeMachines, Type: TypeMachines, Data: runtime.RawExtension{Raw: raw}}, nil
}

// MachinesOf returns the entry of a ShootState with the state of machines, or nil.
func MachinesOf(spec corev1beta1.ShootStateSpec) *corev1beta1.GardenerResourceData {
	for i := range spec.Gardener {
		if spec.Gardener[i].Type == TypeMachines {
			return &spec.Gardener[i]
		}
	}
	return nil
}

// storedMachines returns the state of machines in a ShootState.
func storedMachines(spec corev1beta1.ShootStateSpec) (machineState, error) {
	state, entry := machineState{}, MachinesOf(spec)
	if entry == nil {
		return state, nil
	}
	var content packed
	if err := json.Unmarshal(entry.Data.Raw, &content); err != nil {
		return state, fmt.Errorf("read the state of machines: %w", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(content.State))
	if err != nil {
		return state, fmt.Errorf("decompress the state of machines: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxMachines+1))
	if err != nil {
		return state, fmt.Errorf("decompress the state of machines: %w", err)
	}
	if len(text) > maxMachines {
		return state, fmt.Errorf("decompress the state of machines: it has more than %d bytes", maxMachines)
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, fmt.Errorf("read the state of machines: %w", err)
	}
	return state, nil
}

// withMachines returns the entries of a ShootState with another state of machines.
func withMachines(entries []corev1beta1.GardenerResourceData, state machineState) ([]corev1beta1.GardenerResourceData, error) {
	made, err := state.entry()
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(slices.Clone(entries), func(entry corev1beta1.GardenerResourceData) bool { return entry.Type == TypeMachines })
	if made != nil {
		kept = append(kept, *made)
	}
	return kept, nil
}
