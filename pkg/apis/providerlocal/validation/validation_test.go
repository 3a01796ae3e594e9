package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
)

var path = field.NewPath("spec")

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// compare checks that each error contains the expected text, in order.
func compare(t *testing.T, what string, errs field.ErrorList, want ...string) {
	t.Helper()
	if len(errs) != len(want) {
		t.Errorf("%s: %v, want %d errors", what, errs, len(want))
		return
	}
	for i, one := range want {
		if !strings.Contains(errs[i].Error(), one) {
			t.Errorf("%s: %v, want %q", what, errs[i], one)
		}
	}
}

func TestCloudProfileConfig(t *testing.T) {
	images := *parse[[]gardencorev1beta1.MachineImage](t, "[{name: linux, versions: [{version: 1.0.0}, {version: 1.1.0}]}]")
	for text, want := range map[string][]string{
		"machineImages: [{name: linux, versions: [{version: 1.0.0, image: a}, {version: 1.1.0, image: b}]}]": nil,
		"machineImages: [{name: linux, versions: [{version: 1.0.0, image: a}]}]":                             {"version 1.1.0 of the machine image linux"},
		"{}": {"version 1.0.0 of the machine image linux", "version 1.1.0"},
		"machineImages: [{name: linux, versions: [{version: 1.0.0}, {version: 1.1.0, image: b}, {version: 1.1.0, image: c}]}]": {
			"spec.machineImages[0].versions[0].image: Required", "spec.machineImages[0].versions[2].version: Duplicate"},
		"machineImages: [{name: linux, versions: [{version: 1.0.0, image: a}, {version: 1.1.0, image: b}]}, {name: linux, versions: []}, {name: '', versions: [{image: c}]}]": {
			"machineImages[1].name: Duplicate", "machineImages[2].name: Required", "machineImages[2].versions[0].version: Required"},
		"machineImages: [{name: linux, versions: [{version: 1.0.0, image: a}, {version: 1.1.0, image: b}]}, {name: other, versions: []}]": {
			"machineImages[1].versions: Required"},
	} {
		compare(t, text, ValidateCloudProfileConfig(parse[v1alpha1.CloudProfileConfig](t, text), images, path), want...)
	}
}

func TestFindImage(t *testing.T) {
	config := parse[v1alpha1.CloudProfileConfig](t, "machineImages: [{name: linux, versions: [{version: 1.0.0, image: a}]}]")
	for _, test := range []struct {
		config              *v1alpha1.CloudProfileConfig
		name, version, want string
	}{{config, "linux", "1.0.0", "a"}, {config, "linux", "1.1.0", ""}, {config, "other", "1.0.0", ""}, {nil, "linux", "1.0.0", ""}} {
		if got, known := FindImage(test.config, test.name, test.version); got != test.want || known != (test.want != "") {
			t.Errorf("%s %s: %q, %t, want %q", test.name, test.version, got, known, test.want)
		}
	}
}

func TestInfrastructureConfig(t *testing.T) {
	for text, want := range map[string][]string{
		"{}":                              nil,
		"networks: {}":                    nil,
		"networks: {nodes: 10.10.0.0/16}": nil,
		"networks: {nodes: 10.0.1.0/24}":  {"must not overlap with the range of pods, 10.0.0.0/16"},
		"networks: {nodes: 10.0.0.0/8}":   {"range of pods", "range of services"},
		"networks: {nodes: 10.10.0.1/16}": {"must begin with the first address of the range: 10.10.0.0/16"},
		"networks: {nodes: here}":         {"CIDR notation"},
	} {
		compare(t, text, ValidateInfrastructureConfig(parse[v1alpha1.InfrastructureConfig](t, text), "10.0.0.0/16", "10.1.0.0/16", path), want...)
	}
	one, other := parse[v1alpha1.InfrastructureConfig](t, "networks: {nodes: 10.10.0.0/16}"), parse[v1alpha1.InfrastructureConfig](t, "networks: {nodes: 10.11.0.0/16}")
	compare(t, "the same", ValidateInfrastructureConfigUpdate(one, one, path))
	compare(t, "set later", ValidateInfrastructureConfigUpdate(one, nil, path))
	compare(t, "another one", ValidateInfrastructureConfigUpdate(other, one, path), "must stay 10.10.0.0/16: the field is immutable")
	compare(t, "removed", ValidateInfrastructureConfigUpdate(nil, one, path), "immutable")
}

func TestWorkerConfig(t *testing.T) {
	for text, want := range map[string][]string{
		"{}": nil,
		"resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {memory: 2Gi}}": nil,
		"resources: {requests: {memory: 3Gi}, limits: {memory: 2Gi}}":            {"must be at most the limit 2Gi"},
		"resources: {limits: {memory: 0}}":                                       {"must be above 0"},
		"resources: {limits: {storage: 1Gi}}":                                    {"spec.resources.limits[storage]: Unsupported value"},
		"resources: {claims: [{name: a}]}":                                       {"claims: Forbidden"},
	} {
		compare(t, text, ValidateWorkerConfig(parse[v1alpha1.WorkerConfig](t, text), path), want...)
	}
}

func TestWorkers(t *testing.T) {
	workers := *parse[[]gardencorev1beta1.Worker](t, "[{name: a, updateStrategy: AutoRollingUpdate}, {name: b}, "+
		"{name: c, updateStrategy: AutoInPlaceUpdate, dataVolumes: [{name: d, size: 1Gi}]}]")
	compare(t, "workers", ValidateWorkers(workers, path), "spec[2].dataVolumes: Forbidden")
}
