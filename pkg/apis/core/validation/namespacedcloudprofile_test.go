package validation_test

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestValidateNamespacedCloudProfile(t *testing.T) {
	const image, version = "spec/machineImages/0", "spec/machineImages/0/versions/0"
	const at = "spec.machineImages[0].versions[0]"
	checkRules(t, "namespacedcloudprofile", 0, v1beta1.SetDefaultsNamespacedCloudProfile, ValidateNamespacedCloudProfile, []rule{
		{"", "", ""},
		{"metadata/name", "a_b", "metadata.name Invalid"},
		{"spec/parent/kind", "NamespacedCloudProfile", "spec.parent.kind NotSupported"},
		{"spec/parent/kind", "''", "spec.parent.kind Required"},
		{"spec/parent/name", "''", "spec.parent.name Required"},
		{"spec/caBundle", "a", "spec.caBundle Invalid"},
		{"spec/kubernetes", "", ""},
		{"spec/kubernetes/versions/0/version", "'1.33'", "spec.kubernetes.versions[0].version Invalid"},
		{"spec/kubernetes/versions/1", "{version: 1.33.4}", "spec.kubernetes.versions[1].version Duplicate"},
		{"spec/kubernetes/versions/0/classification", "supported", "spec.kubernetes.versions[0].classification Forbidden"},
		{image + "/name", "a/b", "spec.machineImages[0].name Invalid"},
		{image + "/updateStrategy", "never", "spec.machineImages[0].updateStrategy NotSupported"},
		{image + "/versions", "[]", ""},
		{"spec/machineImages/1", "{name: linux-dev}", "spec.machineImages[1].name Duplicate"},
		{image + "/versions/1", "{version: 0.1.0}", "spec.machineImages[0].versions[1].version Duplicate"},
		{version + "/version", "one", at + ".version Invalid"},
		{version + "/version", "''", at + ".version Required"},
		{version + "/classification", "expired", at + ".classification NotSupported"},
		{version + "/cri", "[]", ""},
		{version + "/cri/0/name", "docker", at + ".cri[0].name NotSupported"},
		{version + "/architectures", "[mips]", at + ".architectures[0] NotSupported"},
		{version + "/architectures", "[]", ""},
		{version + "/kubeletVersionConstraint", "'about 1'", at + ".kubeletVersionConstraint Invalid"},
		{version + "/inPlaceUpdates", "{supported: true, minVersionForUpdate: one}", at + ".inPlaceUpdates.minVersionForUpdate Invalid"},
		{"spec/machineTypes/0/name", "a/b", "spec.machineTypes[0].name Invalid"},
		{"spec/machineTypes/0/cpu", "'-1'", "spec.machineTypes[0].cpu Invalid"},
		{"spec/machineTypes/0/capabilities", "{architecture: [amd64]}", ""},
		{"spec/machineTypes/1", "{name: huge, cpu: 1, gpu: 0, memory: 1Gi}", "spec.machineTypes[1].name Duplicate"},
		{"spec/volumeTypes/0/class", "''", "spec.volumeTypes[0].class Required"},
		{"spec/limits/maxNodesTotal", "0", "spec.limits.maxNodesTotal Invalid"},
		{"spec/limits", "", ""},
	})
	checkUpdates(t, "namespacedcloudprofile", 0, v1beta1.SetDefaultsNamespacedCloudProfile, ValidateNamespacedCloudProfileUpdate, []rule{
		{"", "", ""},
		{"spec/parent/name", "other", "spec.parent Invalid"},
		{"spec/limits/maxNodesTotal", "5", ""},
		{"spec/limits/maxNodesTotal", "0", "spec.limits.maxNodesTotal Invalid"},
	})
}
