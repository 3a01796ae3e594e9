package shootmaintenance

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// now is the time of the tests. Versions with the date 2026-01-01 are expired, others not.
var now = time.Date(2026, 7, 5, 21, 0, 0, 0, time.UTC)

// profileWith returns a profile with versions, each as "version", "version preview", "version deprecated" or "version expired".
func profileWith(versions, images []string, strategy corev1beta1.MachineImageUpdateStrategy) *corev1beta1.CloudProfileSpec {
	spec := &corev1beta1.CloudProfileSpec{}
	if err := yaml.UnmarshalStrict([]byte(`{type: local, machineTypes: [{name: medium, cpu: "1", gpu: "0", memory: 1Gi}, {name: arm, architecture: arm64, cpu: "1", gpu: "0", memory: 1Gi}]}`), spec); err != nil {
		panic(err)
	}
	for _, text := range versions {
		spec.Kubernetes.Versions = append(spec.Kubernetes.Versions, versionOf(text))
	}
	image := corev1beta1.MachineImage{Name: "linux", UpdateStrategy: &strategy}
	for _, text := range images {
		image.Versions = append(image.Versions, corev1beta1.MachineImageVersion{ExpirableVersion: versionOf(text)})
	}
	spec.MachineImages = []corev1beta1.MachineImage{image}
	return spec
}

func versionOf(text string) corev1beta1.ExpirableVersion {
	version, class, _ := strings.Cut(text, " ")
	one := corev1beta1.ExpirableVersion{Version: version}
	if class != "" {
		one.Lifecycle = []corev1beta1.LifecycleStage{{Classification: corev1beta1.VersionClassification(class)}}
	}
	return one
}

func textOf(found update, err error) string {
	switch {
	case err != nil:
		return "error"
	case found.forced:
		return found.to + " forced"
	}
	return found.to
}

func TestKubernetesUpdate(t *testing.T) {
	t.Parallel()
	const manual, automatic = false, true
	for name, test := range map[string]struct {
		versions, current string
		auto              bool
		want              string
	}{
		"newest":                            {"1.34.2,1.34.3,1.34.4", "1.34.4", automatic, ""},
		"newest patch":                      {"1.34.2,1.34.10,1.34.9,1.35.0", "1.34.2", automatic, "1.34.10"},
		"not automatic":                     {"1.34.2,1.34.3", "1.34.2", manual, ""},
		"no downgrade":                      {"1.34.2,1.34.1", "1.34.2", automatic, ""},
		"no preview":                        {"1.34.2,1.34.3 preview", "1.34.2", automatic, ""},
		"not before it is offered":          {"1.34.2,1.34.3 unavailable", "1.34.2", automatic, ""},
		"not to an expired one":             {"1.34.2,1.34.3 expired", "1.34.2", automatic, ""},
		"supported before deprecated":       {"1.34.2,1.34.3,1.34.4 deprecated", "1.34.2", automatic, "1.34.3"},
		"deprecated":                        {"1.34.2,1.34.4 deprecated", "1.34.2", automatic, "1.34.4"},
		"no minor version by itself":        {"1.34.2,1.35.0", "1.34.2", automatic, ""},
		"deprecated stays":                  {"1.34.2 deprecated,1.35.0", "1.34.2", automatic, ""},
		"expired, automatic":                {"1.34.2 expired,1.34.3", "1.34.2", automatic, "1.34.3"},
		"expired, to a patch":               {"1.34.2 expired,1.34.3,1.35.0", "1.34.2", manual, "1.34.3 forced"},
		"expired, to the minor version":     {"1.34.2 expired,1.34.3 expired,1.35.0,1.35.1", "1.34.2", automatic, "1.35.1 forced"},
		"expired, not by two":               {"1.34.2 expired,1.35.1 expired,1.36.0", "1.34.2", manual, "1.35.1 forced"},
		"expired, next one not expired":     {"1.34.2 expired,1.35.1,1.35.2 expired", "1.34.2", manual, "1.35.1 forced"},
		"expired, supported before":         {"1.34.2 expired,1.35.1,1.35.2 deprecated", "1.34.2", manual, "1.35.1 forced"},
		"expired, next one is a preview":    {"1.34.2 expired,1.35.1 preview", "1.34.2", manual, "error"},
		"expired, a gap":                    {"1.34.2 expired,1.36.0", "1.34.2", manual, "error"},
		"expired, the last one":             {"1.34.2 expired", "1.34.2", automatic, "error"},
		"removed":                           {"1.34.3,1.35.0", "1.34.2", manual, "1.34.3 forced"},
		"removed, automatic":                {"1.34.3,1.35.0", "1.34.2", automatic, "1.34.3"},
		"removed with its minor version":    {"1.35.0,1.35.4", "1.34.2", automatic, "1.35.4 forced"},
		"not a version":                     {"1.35.0", "latest", automatic, "error"},
		"the profile has something strange": {"latest,1.34.2,1.34.3", "1.34.2", automatic, "1.34.3"},
	} {
		profile := profileWith(strings.Split(test.versions, ","), nil, "")
		if got := textOf(kubernetesUpdate(profile, test.current, test.auto, now)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestKubeletUpdate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		versions, current, control string
		want                       string
	}{
		"newest patch":                {"1.33.1,1.33.4,1.34.2", "1.33.1", "1.34.2", "1.33.4"},
		"not beyond the cluster":      {"1.34.1,1.34.2,1.34.4", "1.34.1", "1.34.2", "1.34.2"},
		"already as the cluster":      {"1.34.2,1.34.4", "1.34.2", "1.34.2", ""},
		"expired":                     {"1.33.1 expired,1.34.2,1.34.4", "1.33.1", "1.34.4", "1.34.4 forced"},
		"expired, up to the cluster":  {"1.33.1 expired,1.34.2,1.34.4", "1.33.1", "1.34.2", "1.34.2 forced"},
		"expired, as the cluster":     {"1.33.1 expired,1.34.2", "1.33.1", "1.33.1", ""},
		"expired, no other available": {"1.33.1 expired", "1.33.1", "1.34.2", "error"},
	} {
		profile := profileWith(strings.Split(test.versions, ","), nil, "")
		if got := textOf(kubeletUpdate(profile, test.current, test.control, true, now)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func poolWith(image string) *corev1beta1.Worker {
	return &corev1beta1.Worker{Name: "pool", Machine: corev1beta1.Machine{
		Type: "medium", Architecture: ptr.To("amd64"), Image: &corev1beta1.ShootMachineImage{Name: "linux", Version: &image},
	}}
}

func TestImageUpdate(t *testing.T) {
	t.Parallel()
	const patch, minor, major = corev1beta1.UpdateStrategyPatch, corev1beta1.UpdateStrategyMinor, corev1beta1.UpdateStrategyMajor
	for name, test := range map[string]struct {
		versions, current string
		strategy          corev1beta1.MachineImageUpdateStrategy
		auto              bool
		want              string
	}{
		"newest":                          {"1.2.0,1.1.0", "1.2.0", major, true, ""},
		"not automatic":                   {"1.2.0,1.3.0", "1.2.0", major, false, ""},
		"patch":                           {"1.2.0,1.2.3,1.3.0,2.0.0", "1.2.0", patch, true, "1.2.3"},
		"patch, newest":                   {"1.2.0,1.3.0", "1.2.0", patch, true, ""},
		"minor, patch first":              {"1.2.0,1.2.3,1.3.0,2.0.0", "1.2.0", minor, true, "1.2.3"},
		"minor":                           {"1.2.3,1.3.0,1.4.1,2.0.0", "1.2.3", minor, true, "1.4.1"},
		"minor, newest":                   {"1.2.3,2.0.0", "1.2.3", minor, true, ""},
		"major, patch first":              {"1.2.0,1.2.3,3.0.0", "1.2.0", major, true, "1.2.3"},
		"major":                           {"1.2.3,1.3.0,2.0.0,3.1.0", "1.2.3", major, true, "3.1.0"},
		"no preview":                      {"1.2.3,3.1.0 preview,2.0.0", "1.2.3", major, true, "2.0.0"},
		"supported before deprecated":     {"1.2.3,3.1.0 deprecated,2.0.0", "1.2.3", major, true, "2.0.0"},
		"expired, automatic":              {"1.2.0 expired,1.2.3", "1.2.0", patch, true, "1.2.3"},
		"expired, to a patch":             {"1.2.0 expired,1.2.3,1.3.0", "1.2.0", patch, false, "1.2.3 forced"},
		"expired, major":                  {"1.2.0 expired,2.0.0", "1.2.0", major, false, "2.0.0 forced"},
		"expired, beyond patch":           {"1.2.0 expired,1.4.1,1.4.0,1.5.0,2.0.0", "1.2.0", patch, true, "1.4.1 forced"},
		"expired, the nearest is expired": {"1.2.0 expired,1.4.1 expired,1.4.0 expired,1.5.0", "1.2.0", patch, true, "1.4.1 forced"},
		"expired, the nearest is mixed":   {"1.2.0 expired,1.4.1 expired,1.4.0,1.5.0", "1.2.0", patch, true, "1.4.0 forced"},
		"expired, the nearest is preview": {"1.2.0 expired,1.4.1 preview,1.5.0", "1.2.0", patch, true, "1.5.0 forced"},
		"expired, patch, no other minor":  {"1.2.0 expired,2.0.0", "1.2.0", patch, true, "error"},
		"expired, beyond minor":           {"1.2.0 expired,3.1.0,3.0.0,4.0.0", "1.2.0", minor, true, "3.1.0 forced"},
		"expired, minor, no other major":  {"1.2.0 expired,1.1.0", "1.2.0", minor, true, "error"},
		"expired, major, no other":        {"1.2.0 expired,2.0.0 expired", "1.2.0", major, true, "error"},
		"removed":                         {"1.3.0,2.0.0", "1.2.0", patch, false, "1.3.0 forced"},
		"not a version":                   {"1.3.0", "stable", major, true, "error"},
	} {
		profile := profileWith(nil, strings.Split(test.versions, ","), test.strategy)
		if got := textOf(imageUpdate(profile, poolWith(test.current), "1.34.2", test.auto, now)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	if got := textOf(imageUpdate(&corev1beta1.CloudProfileSpec{}, poolWith("1.0.0"), "1.34.2", true, now)); got != "error" {
		t.Errorf("an image that the profile does not have: %q", got)
	}
}

// TestFits checks that only versions of images are chosen that a pool can use.
func TestFits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*corev1beta1.MachineImageVersion, *corev1beta1.Worker)
		want   string
	}{
		"all":                  {func(*corev1beta1.MachineImageVersion, *corev1beta1.Worker) {}, "2.0.0"},
		"another architecture": {func(v *corev1beta1.MachineImageVersion, _ *corev1beta1.Worker) { v.Architectures = []string{"arm64"} }, ""},
		"another kubelet": {func(v *corev1beta1.MachineImageVersion, _ *corev1beta1.Worker) {
			v.KubeletVersionConstraint = ptr.To(">= 1.35")
		}, ""},
		"this kubelet": {func(v *corev1beta1.MachineImageVersion, _ *corev1beta1.Worker) {
			v.KubeletVersionConstraint = ptr.To(">= 1.34")
		}, "2.0.0"},
		"a missing runtime": {func(_ *corev1beta1.MachineImageVersion, w *corev1beta1.Worker) {
			w.CRI = &corev1beta1.CRI{Name: "containerd", ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}}
		}, ""},
		"an unknown machine type": {func(_ *corev1beta1.MachineImageVersion, w *corev1beta1.Worker) { w.Machine.Type = "gone" }, ""},
		"in place, not supported": {func(_ *corev1beta1.MachineImageVersion, w *corev1beta1.Worker) {
			w.UpdateStrategy = ptr.To(corev1beta1.AutoInPlaceUpdate)
		}, ""},
		"in place, supported":         {inPlace(nil), "2.0.0"},
		"in place, from this version": {inPlace(ptr.To("1.0.0")), "2.0.0"},
		"in place, from a later one":  {inPlace(ptr.To("1.5.0")), ""},
	} {
		profile, pool := profileWith(nil, []string{"1.0.0", "2.0.0"}, corev1beta1.UpdateStrategyMajor), poolWith("1.0.0")
		test.change(&profile.MachineImages[0].Versions[1], pool)
		if got := textOf(imageUpdate(profile, pool, "1.34.2", true, now)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func inPlace(least *string) func(*corev1beta1.MachineImageVersion, *corev1beta1.Worker) {
	return func(v *corev1beta1.MachineImageVersion, w *corev1beta1.Worker) {
		w.UpdateStrategy = ptr.To(corev1beta1.AutoInPlaceUpdate)
		v.InPlaceUpdates = &corev1beta1.InPlaceUpdates{Supported: true, MinVersionForUpdate: least}
	}
}
