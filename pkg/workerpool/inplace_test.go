package workerpool

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestInPlaceHash compares hashes with values that were computed independently from the documented formula.
func TestInPlaceHash(t *testing.T) {
	for want, shoot := range map[string]*corev1beta1.Shoot{"d256369e6365122f": smallShoot(), "0133aadffdf0a6c7": fullShoot()} {
		pools, err := Of(shoot, nil)
		if err != nil || pools[0].InPlaceHash() != want {
			t.Errorf("got %s, %v, want %s", pools[0].InPlaceHash(), err, want)
		}
	}
}

// TestPending checks which pools wait for their update in place.
func TestPending(t *testing.T) {
	shoot := func(strategy corev1beta1.MachineUpdateStrategy, change ...func(*corev1beta1.Worker)) *corev1beta1.Shoot {
		shoot := smallShoot()
		shoot.Spec.Provider.Workers[0].UpdateStrategy = &strategy
		for _, each := range change {
			each(&shoot.Spec.Provider.Workers[0])
		}
		return shoot
	}
	image := func(w *corev1beta1.Worker) { w.Machine.Image.Version = ptr.To("1.1.0") }
	patch := func(w *corev1beta1.Worker) { w.Kubernetes = &corev1beta1.WorkerKubernetes{Version: ptr.To("1.37.9")} }
	minor := func(w *corev1beta1.Worker) { w.Kubernetes = &corev1beta1.WorkerKubernetes{Version: ptr.To("1.36.9")} }
	reserved := func(w *corev1beta1.Worker) {
		w.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{
			KubeReserved: &corev1beta1.KubeletConfigReserved{CPU: ptr.To(resource.MustParse("1"))},
		}}
	}
	const auto, manual = corev1beta1.AutoInPlaceUpdate, corev1beta1.ManualInPlaceUpdate
	updated := map[string]string{"small": "d256369e6365122f"}
	waits := &corev1beta1.PendingWorkerUpdates{AutoInPlaceUpdate: []string{"small"}}
	for name, test := range map[string]struct {
		shoot   *corev1beta1.Shoot
		updated map[string]string
		want    *corev1beta1.PendingWorkerUpdates
	}{
		"updated":               {shoot(auto), updated, nil},
		"image":                 {shoot(auto, image), updated, waits},
		"minor version":         {shoot(auto, minor), updated, waits},
		"patch version":         {shoot(auto, patch), updated, nil},
		"reserved":              {shoot(auto, reserved), updated, waits},
		"chosen by the user":    {shoot(manual, image), updated, &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"small"}}},
		"machines are replaced": {shoot(corev1beta1.AutoRollingUpdate, image), updated, nil},
		"new":                   {shoot(auto), map[string]string{"other": "x"}, nil},
	} {
		if got, err := Pending(test.shoot, test.updated); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if _, err := Pending(shoot(auto, func(w *corev1beta1.Worker) { w.Machine.Image = nil }), updated); err == nil {
		t.Error("a pool without an image is accepted")
	}
}
