package cleanup

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestVolumes checks which volumes the clean-up waits for, and that it names them as the infrastructure does.
func TestVolumes(t *testing.T) {
	volume := func(name string, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		made := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, ClaimRef: &corev1.ObjectReference{Name: "claim"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.org", VolumeHandle: "vol-" + name}},
		}}
		change(made)
		return made
	}
	for name, test := range map[string]struct {
		volumes []client.Object
		after   time.Duration
		want    []string
	}{
		"none": {nil, 0, nil},
		"one":  {[]client.Object{volume("a", func(*corev1.PersistentVolume) {})}, 0, []string{"a (csi.example.org vol-a)", "after 2026-11-23T13:00:00Z"}},
		"retained": {[]client.Object{volume("a", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})}, 0, nil},
		"never used": {[]client.Object{volume("a", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })}, 0, nil},
		"kept": {[]client.Object{volume("a", func(v *corev1.PersistentVolume) {
			v.Labels = map[string]string{"shoot.gardener.cloud/no-cleanup": "true"}
		})}, 0, nil},
		"many": {[]client.Object{
			volume("a", func(*corev1.PersistentVolume) {}), volume("b", func(v *corev1.PersistentVolume) { v.Spec.CSI = nil }),
			volume("c", func(*corev1.PersistentVolume) {}), volume("d", func(*corev1.PersistentVolume) {}),
		}, 0, []string{"a (csi.example.org vol-a), b, c (csi.example.org vol-c) and 1 more"}},
		"too long": {[]client.Object{volume("a", func(*corev1.PersistentVolume) {})}, time.Hour, nil},
	} {
		cluster := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(test.volumes...).Build()
		left, err := Cleaner{Client: cluster, Began: now, Now: now.Add(test.after)}.Run(t.Context(), VolumeStage())
		if err != nil || (left == "") != (len(test.want) == 0) {
			t.Errorf("%s: %q, %v", name, left, err)
		}
		for _, text := range test.want {
			if !strings.Contains(left, text) {
				t.Errorf("%s: %q does not contain %q", name, left, text)
			}
		}
	}
}
