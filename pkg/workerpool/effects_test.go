package workerpool

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// effect is what a change of a field does: it replaces the nodes, or changes them or their template.
type effect string

const (
	replaces effect = "nodes are replaced"
	changes  effect = "nodes or their template change"
)

// effects has a row for each field of a worker pool. docs/workers.md has the same table for users.
var effects = map[string]struct {
	effect effect
	change func(*corev1beta1.Worker)
}{
	"annotations": {changes, func(w *corev1beta1.Worker) { w.Annotations = map[string]string{"a": "b"} }},
	"caBundle":    {changes, func(w *corev1beta1.Worker) { w.CABundle = ptr.To("certificates") }},
	"cri":         {replaces, func(w *corev1beta1.Worker) { w.CRI = &corev1beta1.CRI{Name: "other"} }},
	"cri.containerRuntimes": {changes, func(w *corev1beta1.Worker) {
		w.CRI = &corev1beta1.CRI{Name: "containerd", ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}}
	}},
	"kubernetes.version, minor": {replaces, func(w *corev1beta1.Worker) {
		w.Kubernetes = &corev1beta1.WorkerKubernetes{Version: ptr.To("1.36.1")}
	}},
	"kubernetes": {changes, func(w *corev1beta1.Worker) {
		w.Kubernetes = &corev1beta1.WorkerKubernetes{Version: ptr.To("1.37.9")}
	}},
	"labels":                {changes, func(w *corev1beta1.Worker) { w.Labels = map[string]string{"a": "b"} }},
	"name":                  {replaces, func(w *corev1beta1.Worker) { w.Name = "other" }},
	"machine":               {replaces, func(w *corev1beta1.Worker) { w.Machine.Type = "large" }},
	"machine.image":         {replaces, func(w *corev1beta1.Worker) { w.Machine.Image.Name = "other" }},
	"machine.image.version": {replaces, func(w *corev1beta1.Worker) { w.Machine.Image.Version = ptr.To("2.0.0") }},
	"machine.architecture":  {changes, func(w *corev1beta1.Worker) { w.Machine.Architecture = ptr.To("arm64") }},
	"maximum":               {changes, func(w *corev1beta1.Worker) { w.Maximum = 9 }},
	"minimum":               {changes, func(w *corev1beta1.Worker) { w.Minimum = 2 }},
	"maxSurge":              {changes, func(w *corev1beta1.Worker) { w.MaxSurge = ptr.To(intstr.FromInt32(3)) }},
	"maxUnavailable":        {changes, func(w *corev1beta1.Worker) { w.MaxUnavailable = ptr.To(intstr.FromInt32(3)) }},
	"providerConfig":        {changes, func(w *corev1beta1.Worker) { w.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{}`)} }},
	"taints":                {changes, func(w *corev1beta1.Worker) { w.Taints = []corev1.Taint{{Key: "a"}} }},
	"volume":                {replaces, func(w *corev1beta1.Worker) { w.Volume = &corev1beta1.Volume{VolumeSize: "60Gi"} }},
	"volume.type":           {replaces, func(w *corev1beta1.Worker) { w.Volume = &corev1beta1.Volume{VolumeSize: "50Gi", Type: ptr.To("slow")} }},
	"dataVolumes":           {changes, func(w *corev1beta1.Worker) { w.DataVolumes = []corev1beta1.DataVolume{{Name: "a"}} }},
	"kubeletDataVolumeName": {changes, func(w *corev1beta1.Worker) { w.KubeletDataVolumeName = ptr.To("a") }},
	"zones":                 {changes, func(w *corev1beta1.Worker) { w.Zones = []string{"a"} }},
	"systemComponents":      {changes, func(w *corev1beta1.Worker) { w.SystemComponents = &corev1beta1.WorkerSystemComponents{} }},
	"machineControllerManager": {changes, func(w *corev1beta1.Worker) {
		w.MachineControllerManagerSettings = &corev1beta1.MachineControllerManagerSettings{MaxEvictRetries: ptr.To[int32](3)}
	}},
	"sysctls": {changes, func(w *corev1beta1.Worker) { w.Sysctls = map[string]string{"a": "b"} }},
	"clusterAutoscaler": {changes, func(w *corev1beta1.Worker) {
		w.ClusterAutoscaler = &corev1beta1.ClusterAutoscalerOptions{ScaleDownUtilizationThreshold: ptr.To(0.5)}
	}},
	"priority":       {changes, func(w *corev1beta1.Worker) { w.Priority = ptr.To[int32](3) }},
	"updateStrategy": {replaces, func(w *corev1beta1.Worker) { w.UpdateStrategy = ptr.To(corev1beta1.ManualInPlaceUpdate) }},
	"controlPlane":   {changes, func(w *corev1beta1.Worker) { w.ControlPlane = &corev1beta1.WorkerControlPlane{} }},
}

// TestEffects checks for each field of a pool whether its change replaces nodes. A field without a row fails the test.
func TestEffects(t *testing.T) {
	for field := range reflect.TypeFor[corev1beta1.Worker]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); effects[name].change == nil {
			t.Errorf("the effect of the field %s is not known: add a row here and in docs/workers.md", name)
		}
	}
	before := keyOf(t, fullShoot())
	for name, row := range effects {
		shoot := fullShoot()
		row.change(&shoot.Spec.Provider.Workers[0])
		if got := keyOf(t, shoot) != before; got != (row.effect == replaces) {
			t.Errorf("%s: replaced: %t, want: %s", name, got, row.effect)
		}
	}
}

// keptKubelet has the settings of kubelet that replace nodes. All others change them.
var keptKubelet = map[string]bool{"cpuManagerPolicy": true, "evictionHard": true, "kubeReserved": true}

// TestEffectsOfKubelet sets each setting of kubelet.
func TestEffectsOfKubelet(t *testing.T) {
	values := map[string]string{
		"evictionHard": `{"memoryAvailable":"1Mi"}`, "kubeReserved": `{"cpu":"1"}`, "cpuManagerPolicy": `"none"`,
		"registryPullQPS": "7",
	}
	for field := range reflect.TypeFor[corev1beta1.KubeletConfig]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, given := values[name]
		if name == "" || !given && keptKubelet[name] {
			continue
		}
		shoot := fullShoot()
		before := keyOf(t, shoot)
		if given {
			if err := json.Unmarshal([]byte(`{"`+name+`":`+value+`}`), shoot.Spec.Kubernetes.Kubelet); err != nil {
				t.Fatal(err)
			}
		} else {
			setAny(reflect.ValueOf(shoot.Spec.Kubernetes.Kubelet).Elem().FieldByName(field.Name))
		}
		if got := keyOf(t, shoot) != before; got != keptKubelet[name] {
			t.Errorf("%s: replaced: %t", name, got)
		}
	}
}

// setAny sets a value that is not zero.
func setAny(value reflect.Value) {
	if value.Kind() == reflect.Pointer {
		value.Set(reflect.New(value.Type().Elem()))
	}
	if value.Kind() == reflect.Slice {
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
	}
}

// TestEntry checks what only the entry in the Worker has: the template of nodes stays with the machine type, and the machine
// type has a default for the creation of machines.
func TestEntry(t *testing.T) {
	shoot, minute := smallShoot(), metav1.Duration{Duration: time.Minute}
	profile := &corev1beta1.CloudProfile{}
	profile.Spec.MachineTypes = []corev1beta1.MachineType{{
		Name: "local", CPU: resource.MustParse("4"), Memory: resource.MustParse("8Gi"),
		MachineControllerManager: &corev1beta1.MachineTypeControllerManagerSettings{MachineCreationTimeout: &minute},
	}}
	pools, err := Of(shoot, profile)
	if err != nil {
		t.Fatal(err)
	}
	entry := pools[0].Entry("user-data", nil)
	if cpu := entry.NodeTemplate.Capacity.Cpu().String(); cpu != "4" || *entry.MachineControllerManagerSettings.MachineCreationTimeout != minute {
		t.Errorf("%+v", entry)
	}
	profile.Spec.MachineTypes[0].CPU = resource.MustParse("16")
	if pools, err = Of(shoot, profile); err != nil {
		t.Fatal(err)
	}
	if again := pools[0].Entry("user-data", &entry); again.NodeTemplate.Capacity.Cpu().String() != "4" {
		t.Error("a change of the CloudProfile changes the template of existing machines")
	}
	entry.MachineType = "small"
	if again := pools[0].Entry("user-data", &entry); again.NodeTemplate.Capacity.Cpu().String() != "16" {
		t.Error("another machine type keeps the template of the previous one")
	}
}

// TestInvalidPools checks that all pools are reported, with their paths.
func TestInvalidPools(t *testing.T) {
	shoot := smallShoot()
	shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, shoot.Spec.Provider.Workers[0], shoot.Spec.Provider.Workers[0])
	shoot.Spec.Provider.Workers[1].Machine.Image = nil
	shoot.Spec.Provider.Workers[2].Kubernetes = &corev1beta1.WorkerKubernetes{Version: ptr.To("new")}
	_, err := Of(shoot, nil)
	for _, want := range []string{"spec.provider.workers[1]: machine.image has no version", `spec.provider.workers[2]: the version of Kubernetes "new"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
