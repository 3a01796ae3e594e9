package state

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

const controlPlane = "shoot--dev--one"

// machine returns an object of a kind of machines, owned by another one.
func machine(kind, name, ownerKind, owner string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": map[string]any{"phase": "Running"}}}
	object.SetGroupVersionKind(groupMachines.WithKind(kind))
	object.SetNamespace(controlPlane)
	object.SetName(name)
	object.SetLabels(map[string]string{"name": "pool"})
	object.SetFinalizers(finalizersOfMachines[:1])
	if owner != "" {
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: groupMachines.String(), Kind: ownerKind, Name: owner, UID: "uid"}})
	}
	return object
}

// pool returns the objects of a pool with two machines, one of which is not made yet.
func pool() []client.Object {
	return []client.Object{
		machine(kindMachineDeployment, "pool", "", "", map[string]any{"replicas": int64(2)}),
		machine(kindMachineDeployment, "empty", "", "", map[string]any{"replicas": int64(0)}),
		machine(kindMachineSet, "pool-a", kindMachineDeployment, "pool", map[string]any{"replicas": int64(2)}),
		machine(kindMachine, "pool-a-1", kindMachineSet, "pool-a", map[string]any{"providerID": "id-1"}),
		machine(kindMachine, "pool-a-2", kindMachineSet, "pool-a", map[string]any{}),
		machine("MachineClass", "class", "", "", nil),
		labelled("class", purposeMachineClass), labelled("cloudprovider", purposeCloudProvider, "example.org/other"), labelled("other", "other"),
	}
}

func labelled(name, purpose string, finalizers ...string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: controlPlane, Name: name, Labels: map[string]string{labelPurpose: purpose}, Finalizers: append(finalizers, finalizersOfMachines[1]),
	}}
}

// move is a control plane that leaves its seed.
type move struct {
	*testing.T
	*Keeper
	seed  client.WithWatch
	shoot *corev1beta1.Shoot
}

func newMove(t *testing.T, objects ...client.Object) *move {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{kindMachineDeployment, kindMachineSet, kindMachine, "MachineClass"} {
		scheme.AddKnownTypeWithName(groupMachines.WithKind(kind), &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(groupMachines.WithKind(kind+"List"), &unstructured.UnstructuredList{})
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one"}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one"}}).Build()
	seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&extensionsv1alpha1.Worker{}).Build()
	return &move{t, &Keeper{Garden: garden, GardenReader: garden, Seed: seed, FieldManager: "test", Clock: clocktesting.NewFakePassiveClock(now)}, seed, shoot}
}

func (m *move) save(leaving Leaving) bool {
	m.Helper()
	leaving.Machines = true
	left, err := m.SaveLeaving(m.Context(), m.shoot, controlPlane, leaving)
	if err != nil {
		m.Fatal(err)
	}
	return left.MachinesGivenUp
}

func (m *move) stored() *corev1beta1.ShootState {
	m.Helper()
	present := &corev1beta1.ShootState{}
	if err := m.Garden.Get(m.Context(), client.ObjectKeyFromObject(m.shoot), present); err != nil {
		m.Fatal(err)
	}
	return present
}

// text returns the stored state of machines, decompressed.
func (m *move) text() string {
	m.Helper()
	entry, content := MachinesOf(m.stored().Spec), struct{ State []byte }{}
	if entry == nil {
		return ""
	}
	if err := json.Unmarshal(entry.Data.Raw, &content); err != nil {
		m.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(content.State))
	if err != nil {
		m.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		m.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func (m *move) left() string {
	m.Helper()
	left, err := m.MachinesLeft(m.Context(), controlPlane)
	if err != nil {
		m.Fatal(err)
	}
	return left
}

// format is the state of the pool in the format of Gardener's library for extensions.
const format = `{"machineDeployments":{"pool":{"replicas":2,` +
	`"machineSets":[{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineSet","metadata":{"labels":{"name":"pool"},"name":"pool-a","namespace":"shoot--dev--one"},"spec":{"replicas":2}}],` +
	`"machines":[{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"labels":{"name":"pool"},"name":"pool-a-1","namespace":"shoot--dev--one"},"spec":{"providerID":"id-1"}}]}}}`

// TestMachinesLeave checks when the state of machines is stored and final, and that objects go only after that, without their machines.
func TestMachinesLeave(t *testing.T) {
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: controlPlane, Name: "one", Annotations: map[string]string{
		constants.AnnotationGardenerTimestamp: now.Format(time.RFC3339Nano),
	}}}
	m := newMove(t, append(pool(), worker)...)
	release := func() error { return m.ReleaseMachines(t.Context(), m.seed, m.shoot, controlPlane) }
	for what, leaving := range map[string]Leaving{
		"the manager runs": {Runs: true}, "its Pods exist": {}, "the extension works": {Ended: true}, "the manager is replaced": {Runs: true, Ended: true},
	} {
		if m.save(leaving) || m.text() != format {
			t.Errorf("%s: the state is final, or another one: %s", what, m.text())
		}
		if err := release(); err == nil || !strings.Contains(err.Error(), "not complete yet") {
			t.Errorf("%s: released, %v", what, err)
		}
	}
	worker.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(now),
	}
	if err := m.seed.Status().Update(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if !m.save(Leaving{Ended: true}) || m.text() != format {
		t.Fatalf("the state is not final: %s", m.text())
	}
	changed := machine(kindMachine, "pool-a-1", "", "", nil)
	if err := m.seed.Patch(t.Context(), changed, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"providerID":"id-2"}}`))); err != nil {
		t.Fatal(err)
	}
	before := m.left()
	if err := release(); err == nil || !strings.Contains(err.Error(), "not stored in ShootState garden-dev/one as they are, so they are not deleted: Machine pool-a-1") || m.left() != before {
		t.Errorf("a machine that is not stored: %v, %s is left", err, m.left())
	}
	if !m.save(Leaving{Ended: true}) {
		t.Error("the state is not final any more")
	}
	if err := release(); err != nil || m.left() != "" {
		t.Errorf("%v, %s is left", err, m.left())
	}
	for range 2 {
		if want := strings.ReplaceAll(format, "id-1", "id-2"); !m.save(Leaving{Ended: true}) || m.text() != want {
			t.Errorf("after the objects were deleted, their state is %s", m.text())
		}
	}
	secrets := &corev1.SecretList{}
	if err := m.seed.List(t.Context(), secrets); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if secret.Name == "cloudprovider" && fmt.Sprint(secret.Finalizers) != "[example.org/other]" || secret.Name == "other" && len(secret.Finalizers) != 1 {
			t.Errorf("the Secret %s has the finalizers %v", secret.Name, secret.Finalizers)
		}
	}
	if m.save(Leaving{Runs: true}) || m.text() != "" || m.stored().Annotations[constants.AnnotationMachinesGivenUp] != "" {
		t.Errorf("a state of an earlier move counts while the manager runs: %s", m.text())
	}
}

// TestMachinesComeBack checks that a state is final only until the machines are restored.
func TestMachinesComeBack(t *testing.T) {
	m := newMove(t, pool()...)
	m.save(Leaving{Ended: true})
	present := m.stored()
	if err := m.ForgetGivenUp(t.Context(), present); err != nil || m.stored().Annotations[constants.AnnotationMachinesGivenUp] != "" || m.text() != format {
		t.Errorf("%v, %v", err, m.stored().Annotations)
	}
	if err := m.seed.Delete(t.Context(), machine(kindMachine, "pool-a-2", "", "", nil)); err != nil {
		t.Fatal(err)
	}
	if saved, err := m.SaveMachines(t.Context(), m.shoot, controlPlane); err != nil || MachinesOf(saved.Spec) == nil || m.text() != format {
		t.Errorf("%v, %s", err, m.text())
	}
}

// TestMachinesThatCannotMove checks that nothing is stored if machines would be lost, or do not fit.
func TestMachinesThatCannotMove(t *testing.T) {
	alone := newMove(t, machine(kindMachine, "alone", "", "", map[string]any{"providerID": "id"}))
	_, err := alone.SaveLeaving(t.Context(), alone.shoot, controlPlane, Leaving{Machines: true, Ended: true})
	if err == nil || !strings.Contains(err.Error(), "no MachineDeployment has these objects, so that their machines would be lost in a move: Machine alone") {
		t.Errorf("a machine of nobody: %v", err)
	}
	large := newMove(t, pool()...)
	present := large.stored()
	present.Spec.Gardener = []corev1beta1.GardenerResourceData{{Name: "a", Type: typeSecret, Data: runtime.RawExtension{Raw: []byte(`"` + strings.Repeat("a", maxState) + `"`)}}}
	if err := large.Garden.Update(t.Context(), present); err != nil {
		t.Fatal(err)
	}
	_, err = large.SaveLeaving(t.Context(), large.shoot, controlPlane, Leaving{Machines: true, Ended: true})
	if err == nil || !strings.Contains(err.Error(), "at most 1500000 can be stored") || !strings.Contains(err.Error(), " of machines, ") {
		t.Errorf("too large: %v", err)
	}
	if large.text() != "" || large.stored().Annotations[constants.AnnotationMachinesGivenUp] != "" {
		t.Error("it is stored although it is too large")
	}
}

// TestManyMachinesFit reports how large the state of a large cluster is.
func TestManyMachinesFit(t *testing.T) {
	objects := machineObjects{deployments: []unstructured.Unstructured{*machine(kindMachineDeployment, "pool", "", "", map[string]any{"replicas": int64(2000)})}}
	objects.sets = append(objects.sets, *machine(kindMachineSet, "pool-a", kindMachineDeployment, "pool", map[string]any{"replicas": int64(2000)}))
	for i := range 2000 {
		name := fmt.Sprintf("shoot--dev--one-pool-z1-%x-%05x", i*7919, i*104729%1048573)
		each := machine(kindMachine, name, kindMachineSet, "pool-a", map[string]any{"providerID": fmt.Sprintf("aws:///eu-west-1/i-%017x", i*1299709), "class": map[string]any{"kind": "MachineClass", "name": "class"}})
		each.SetLabels(map[string]string{"name": "pool", "node": fmt.Sprintf("ip-10-180-%d-%d.eu-west-1.compute.internal", i/250, i%250)})
		objects.machines = append(objects.machines, *each)
	}
	state, unowned := machineState{}.with(objects)
	entry, err := state.entry()
	if err != nil || len(unowned) > 0 {
		t.Fatal(err, unowned)
	}
	t.Logf("2000 machines need %d bytes", len(entry.Data.Raw))
	if err := fits(corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{*entry}}); err != nil {
		t.Error(err)
	}
	again, err := storedMachines(corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{*entry}})
	if missing := again.lacks(objects); err != nil || len(missing) > 0 {
		t.Errorf("%v, %d are missing", err, len(missing))
	}
}
