package validation_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestValidateCloudProfile(t *testing.T) {
	const versions, images = "spec/kubernetes/versions", "spec/machineImages"
	checkRules(t, "cloudprofile", 0, v1beta1.SetDefaultsCloudProfile, ValidateCloudProfile, []rule{
		{"", "", ""},
		{"spec/type", "''", "spec.type Required"},
		{"spec/caBundle", "x", "spec.caBundle Invalid"},
		{"spec/caBundle", `"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`, "spec.caBundle Invalid"},
		{versions, "[]", "spec.kubernetes.versions Required"},
		{versions + "/0/version", "'1.34'", "spec.kubernetes.versions[0].version Invalid"},
		{versions + "/0/version", "1.34.2-beta", "spec.kubernetes.versions[0].version Invalid"},
		{versions + "/0/version", "1.33.4", "spec.kubernetes.versions[1].version Duplicate"},
		{versions + "/0/classification", "expired", "spec.kubernetes.versions[0].classification NotSupported"},
		{versions + "/4", "{version: 1.34.1, classification: supported}", "spec.kubernetes.versions[4].classification Forbidden"},
		{versions + "/4", "{version: 1.35.1, lifecycle: [{classification: supported}]}", "spec.kubernetes.versions[4].lifecycle Forbidden"},
		{versions + "/4", "{version: 1.35.1, classification: supported}", "spec.kubernetes.versions[4].classification Forbidden"},
		{versions + "/4", "{version: 1.35.1, lifecycle: [{classification: supported}, {classification: deprecated, startTime: '2027-01-15T00:00:00Z'}]}", ""},
		{versions + "/4", "{version: 1.35.1, lifecycle: [{classification: supported, startTime: '2027-10-15T00:00:00Z'}]}", ""},
		{versions + "/4", "{version: 1.35.1, lifecycle: [{classification: supported, startTime: '2027-10-14T00:00:00Z'}]}", "spec.kubernetes.versions[4].lifecycle Forbidden"},
		{versions + "/4", "{version: 1.35.1, lifecycle: [{classification: preview}]}", ""},
		{versions + "/4", "{version: 1.37.0, lifecycle: [{classification: supported}, {classification: expired, startTime: '2030-01-01T00:00:00Z'}]}", "spec.kubernetes.versions[4].lifecycle[1].classification Invalid"},
		{versions + "/4", "{version: 1.37.0, lifecycle: [{classification: supported}, {classification: deprecated, startTime: '2030-01-01T00:00:00Z'}]}", ""},
		{"spec/regions/0/labels", "{a b: c}", "spec.regions[0].labels Invalid"},
		{"spec/bastion; " + images + "/0/versions/0/classification", "{machineImage: {name: linux, version: 1.2.0}}; ", "spec.bastion.machineImage Invalid"},
		{"spec/bastion; " + images + "/0/versions/0/classification", "{machineImage: {name: linux}}; ", ""},
		{versions + "/4", "{version: 1.37.0, expirationDate: '2030-01-01T00:00:00Z'}", "spec.kubernetes.versions[4].expirationDate Forbidden"},
		{versions + "/2/classification", "preview", "spec.kubernetes.versions[2].classification Forbidden"},
		{versions + "/2/lifecycle/0/classification", "unavailable", "spec.kubernetes.versions[2].lifecycle[0].classification NotSupported"},
		{versions + "/2/lifecycle/1/classification", "preview", "spec.kubernetes.versions[2].lifecycle[1].classification Duplicate"},
		{versions + "/2/lifecycle/3/classification", "preview", "spec.kubernetes.versions[2].lifecycle[3].classification Invalid"},
		{versions + "/2/lifecycle/1/startTime", "", "spec.kubernetes.versions[2].lifecycle[1].startTime Required"},
		{versions + "/2/lifecycle/3/startTime", "'2027-01-01T00:00:00Z'", "spec.kubernetes.versions[2].lifecycle[3].startTime Invalid"},
		{images, "[]", "spec.bastion.machineImage.name NotFound, spec.machineImages Required"},
		{images + "/0/versions", "[]", "spec.bastion.machineImage Invalid, spec.machineImages[0].versions Required"},
		{images + "/1", "{name: linux, versions: [{version: 1.0.0, capabilityFlavors: [{architecture: [amd64]}]}]}", "spec.machineImages[1].name Duplicate"},
		{images + "/0/name; spec/bastion", "a/b; ", "spec.machineImages[0].name Invalid"},
		{images + "/0/updateStrategy", "never", "spec.machineImages[0].updateStrategy NotSupported"},
		{images + "/0/versions/0/version; spec/bastion", "one; ", "spec.machineImages[0].versions[0].version Invalid"},
		{images + "/0/versions/0/architectures; spec/bastion", "[mips]; ", "spec.machineImages[0].versions[0].architectures Invalid, spec.machineImages[0].versions[0].architectures[0] NotSupported"},
		{images + "/0/versions/0/architectures", "[amd64]", "spec.machineImages[0].versions[0].architectures Invalid"},
		{images + "/0/versions/0/architectures", "[arm64, amd64]", ""},
		{images + "/0/versions/0/capabilityFlavors/1", "{boot: [uefi]}", "spec.machineImages[0].versions[0].capabilityFlavors[1][architecture] Required"},
		{images + "/0/versions/0/capabilityFlavors/1", "{}", "spec.machineImages[0].versions[0].capabilityFlavors[1][architecture] Required"},
		{images + "/0/versions/0/kubeletVersionConstraint", "latest", "spec.machineImages[0].versions[0].kubeletVersionConstraint Invalid"},
		{images + "/0/versions/0/cri/0/name", "docker", "spec.machineImages[0].versions[0].cri[0].name NotSupported"},
		{images + "/0/versions/0/cri/1", "{name: containerd}", "spec.machineImages[0].versions[0].cri[1].name Duplicate"},
		{images + "/0/versions/0/cri/0/containerRuntimes/1", "{type: sandbox}", "spec.machineImages[0].versions[0].cri[0].containerRuntimes[1].type Duplicate"},
		{images + "/0/versions/0/inPlaceUpdates/minVersionForUpdate", "old", "spec.machineImages[0].versions[0].inPlaceUpdates.minVersionForUpdate Invalid"},
		{images + "/0/versions/0/capabilityFlavors", "[]", "spec.machineImages[0].versions[0].capabilityFlavors Required"},
		{images + "/0/versions/0/capabilityFlavors/0/boot", "[magic]", "spec.machineImages[0].versions[0].capabilityFlavors[0][boot][0] NotSupported"},
		{images + "/0/versions/0/capabilityFlavors/0/other", "[a]", "spec.machineImages[0].versions[0].capabilityFlavors[0][other] Invalid"},
		{images + "/0/versions/0/capabilityFlavors/0/architecture", "[amd64, arm64]", "spec.machineImages[0].versions[0].capabilityFlavors[0][architecture] Forbidden"},
		{"spec/machineCapabilities; spec/machineTypes/0/capabilities", "[]; ", "spec.machineImages[0].versions[0].capabilityFlavors Forbidden"},
		{"spec/machineCapabilities/0/values/0", "mips", "spec.machineCapabilities[0].values[0] NotSupported, " +
			"spec.machineImages[0].versions[0].capabilityFlavors[0][architecture][0] NotSupported, spec.machineTypes[0].capabilities[architecture][0] NotSupported"},
		{"spec/machineCapabilities/2", "{name: gardener-x, values: [a]}", "spec.machineCapabilities[2].name Forbidden"},
		{"spec/machineCapabilities/2", "{name: boot, values: [a]}", "spec.machineCapabilities[2].name Duplicate"},
		{"spec/machineCapabilities/2", "{name: x, values: []}", "spec.machineCapabilities[2].values Required"},
		{"spec/machineTypes", "[]", "spec.bastion.machineType.name NotFound, spec.machineTypes Required"},
		{"spec/machineTypes/0/cpu", "'-1'", "spec.machineTypes[0].cpu Invalid"},
		{"spec/machineTypes/0/gpu", "'-1'", "spec.machineTypes[0].gpu Invalid"},
		{"spec/machineTypes/0/memory", "'-1'", "spec.machineTypes[0].memory Invalid"},
		{"spec/machineTypes/0/storage/size", "-1Gi", "spec.machineTypes[0].storage.size Invalid"},
		{"spec/machineTypes/0/storage/size; spec/machineTypes/0/storage/minSize", "; -1Gi", "spec.machineTypes[0].storage.minSize Invalid"},
		{"spec/machineTypes/0/name; spec/bastion", "''; ", "spec.machineTypes[0].name Required"},
		{"spec/machineTypes/0/name; spec/bastion", "a/b; ", "spec.machineTypes[0].name Invalid"},
		{"spec/machineTypes/0/architecture; spec/bastion; spec/machineTypes/0/capabilities", "mips; ; ", "spec.machineTypes[0].architecture NotSupported"},
		{"spec/machineTypes/0/capabilities/boot", "[uefi, uefi]", "spec.machineTypes[0].capabilities[boot][1] Duplicate"},
		{"spec/machineCapabilities/0/name", "arch", "spec.machineCapabilities Required, spec.machineImages[0].versions[0].capabilityFlavors[0][architecture] Invalid, " +
			"spec.machineImages[0].versions[0].capabilityFlavors[1][architecture] Invalid, spec.machineTypes[0].capabilities[architecture] Invalid"},
		{"spec/machineCapabilities/2", "{name: a/b, values: [a]}", "spec.machineCapabilities[2].name Invalid"},
		{"spec/machineCapabilities/2", "{name: a, values: ['']}", "spec.machineCapabilities[2].values[0] Required"},
		{"spec/machineCapabilities/1/values/2", "bios", "spec.machineCapabilities[1].values[2] Duplicate"},
		{"spec/regions/0/name", "''", "spec.regions[0].name Required"},
		{"spec/regions/0/zones/0/name", "''", "spec.regions[0].zones[0].name Required"},
		{"spec/regions/0/accessRestrictions/0/name", "''", "spec.regions[0].accessRestrictions[0].name Required"},
		{"spec/volumeTypes/0/name", "a b", "spec.volumeTypes[0].name Invalid"},
		{versions + "/2/classification", "supported", "spec.kubernetes.versions[2].classification Forbidden"},
		{versions + "/2/expirationDate", "'2030-01-01T00:00:00Z'", "spec.kubernetes.versions[2].expirationDate Forbidden"},
		{images + "/0/versions/1", "{version: 1.2.0, capabilityFlavors: [{architecture: [amd64]}]}", "spec.machineImages[0].versions[1].version Duplicate"},
		{images + "/0/versions/0/version; spec/bastion", "''; ", "spec.machineImages[0].versions[0].version Required"},
		{images + "/0/versions/0/classification; spec/bastion", "unavailable; ", "spec.machineImages[0].versions[0].classification NotSupported"},
		{images + "/0/versions/0/cri/0/containerRuntimes/0/type", "a/b", "spec.machineImages[0].versions[0].cri[0].containerRuntimes[0].type Invalid"},
		{"spec/machineTypes/0/architecture; spec/bastion", "arm64; ", "spec.machineTypes[0].architecture Invalid"},
		{"spec/machineTypes/0/storage/minSize", "10Gi", "spec.machineTypes[0].storage Invalid"},
		{"spec/machineTypes/0/storage/size", "", "spec.machineTypes[0].storage Invalid"},
		{"spec/machineTypes/1", "{name: medium, cpu: 1, gpu: 0, memory: 1Gi}", "spec.machineTypes[1].name Duplicate"},
		{"spec/volumeTypes/0/class", "''", "spec.volumeTypes[0].class Required"},
		{"spec/volumeTypes/1", "{name: fast, class: standard}", "spec.volumeTypes[1].name Duplicate"},
		{"spec/volumeTypes/0/minSize", "-1Gi", "spec.volumeTypes[0].minSize Invalid"},
		{"spec/regions", "[]", "spec.regions Required"},
		{"spec/regions/0/zones/1/name", "a", "spec.regions[0].zones[1].name Duplicate"},
		{"spec/regions/1", "{name: local}", "spec.regions[1].name Duplicate"},
		{"spec/regions/0/accessRestrictions/1", "{name: eu-access-only}", "spec.regions[0].accessRestrictions[1].name Duplicate"},
		{"spec/bastion", "{}", "spec.bastion Invalid"},
		{"spec/bastion/machineImage/version", "9.9.9", "spec.bastion.machineImage Invalid"},
		{"spec/bastion/machineType/name", "other", "spec.bastion.machineType.name NotFound"},
		{"spec/limits/maxNodesTotal", "0", "spec.limits.maxNodesTotal Invalid"},
		{"spec/seedSelector/matchExpressions", "[{key: a, operator: Like}]", "spec.seedSelector Invalid"},
	})
}

func TestValidateCloudProfileUpdate(t *testing.T) {
	checkUpdates(t, "cloudprofile", 0, v1beta1.SetDefaultsCloudProfile, ValidateCloudProfileUpdate, []rule{
		{"", "", ""},
		{"spec/limits/maxNodesTotal", "99", "spec.limits.maxNodesTotal Invalid"},
		{"spec/limits/maxNodesTotal", "101", ""},
		{"spec/limits", "", ""},
	})
}

// TestValidateCloudProfileStages checks that a version that users may use cannot become unavailable.
func TestValidateCloudProfileStages(t *testing.T) {
	const versions, images = "spec/kubernetes/versions/", "spec/machineImages/0/versions/0/"
	const lifecycle, stages = "spec.kubernetes.versions[2].lifecycle Forbidden", versions + "2/lifecycle"
	at := func(value string) func(now, before *v1beta1.CloudProfile) field.ErrorList {
		now, err := time.Parse(time.DateOnly, value)
		if err != nil {
			t.Fatal(err)
		}
		return func(updated, old *v1beta1.CloudProfile) field.ErrorList {
			return ValidateCloudProfileStages(updated, old, now)
		}
	}
	checkUpdates(t, "cloudprofile", 0, v1beta1.SetDefaultsCloudProfile, at("2027-01-01"), []rule{
		{"", "", ""},
		{stages, "[{classification: preview, startTime: '2027-02-01T00:00:00Z'}]", lifecycle},
		{stages, "[{classification: preview, startTime: '2026-02-01T00:00:00Z'}]", ""},
		{stages, "[{classification: expired}]", ""},
		{versions + "0", "{version: 1.34.2, lifecycle: [{classification: preview, startTime: '2027-02-01T00:00:00Z'}]}", "spec.kubernetes.versions[0].lifecycle Forbidden"},
		{versions + "4", "{version: 1.34.3, lifecycle: [{classification: preview, startTime: '2027-02-01T00:00:00Z'}]}", ""},
		{images + "classification; " + images + "lifecycle", "; [{classification: preview, startTime: '2027-02-01T00:00:00Z'}]", "spec.machineImages[0].versions[0].lifecycle Forbidden"},
	})
	checkStates(t, "cloudprofile", 0, v1beta1.SetDefaultsCloudProfile, at("2026-01-01"), []stateRule{
		{stages, "[{classification: preview, startTime: '2026-02-01T00:00:00Z'}]", rule{stages, "[{classification: preview, startTime: '2026-03-01T00:00:00Z'}]", ""}},
	})
}
