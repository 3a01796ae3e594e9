package validation_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestValidateControllerInstallation(t *testing.T) {
	checkRules(t, "controllerinstallation", 0, noDefaults, ValidateControllerInstallation, []rule{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"spec/registrationRef/name", "", "spec.registrationRef.name Required"},
		{"spec/seedRef", "", "spec.seedRef Required"},
		{"spec/seedRef/name", "", "spec.seedRef.name Required"},
		{"spec/seedRef; spec/shootRef", "; {name: a, namespace: b}", ""},
		{"spec/seedRef; spec/shootRef", "; {namespace: b}", "spec.shootRef.name Required"},
		{"spec/seedRef; spec/shootRef", "; {name: a}", "spec.shootRef.namespace Required"},
	})
	checkUpdates(t, "controllerinstallation", 0, noDefaults, ValidateControllerInstallationUpdate, []rule{
		{"", "", ""},
		{"spec/registrationRef/name", "other", "spec.registrationRef.name Invalid"},
		{"spec/seedRef/name", "other", "spec.seedRef.name Invalid"},
		{"spec/shootRef", "{name: a, namespace: b}", "spec.shootRef Invalid"},
		{"spec/deploymentRef/name", "other", ""},
		{"spec/registrationRef/resourceVersion", "'2'", ""},
	})
	before := decode(t, example(t, "controllerinstallation", 0), noDefaults[v1beta1.ControllerInstallation])
	before.ResourceVersion, before.DeletionTimestamp, before.Finalizers = "1", &metav1.Time{}, []string{"a/b"}
	now := before.DeepCopy()
	compare(t, ValidateControllerInstallationUpdate(now, before), "")
	now.Spec.DeploymentRef = nil
	compare(t, ValidateControllerInstallationUpdate(now, before), "spec Forbidden")
}

func TestValidateControllerRegistration(t *testing.T) {
	const extension = "spec.resources[3]"
	checkRules(t, "controllerregistration", 0, v1beta1.SetDefaultsControllerRegistration, ValidateControllerRegistration, []rule{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"spec/resources/0/kind", "''", "spec.resources[0].kind Required"},
		{"spec/resources/0/kind", "Cluster", "spec.resources[0].kind NotSupported"},
		{"spec/resources/0/type", "''", "spec.resources[0].type Required"},
		{"spec/resources/0/kind", "Worker", "spec.resources[2] Duplicate"},
		{"spec/resources/0/reconcileTimeout", "5m", "spec.resources[0].reconcileTimeout Forbidden"},
		{"spec/resources/0/workerlessSupported", "true", "spec.resources[0].workerlessSupported Forbidden"},
		{"spec/resources/0/lifecycle", "{}", "spec.resources[0].lifecycle Forbidden"},
		{"spec/resources/0/autoEnable", "[shoot]", "spec.resources[0].autoEnable Forbidden"},
		{"spec/resources/0/clusterCompatibility", "[shoot]", "spec.resources[0].clusterCompatibility Forbidden"},
		{"spec/resources/0/continuousEndpointUpdate", "true", "spec.resources[0].continuousEndpointUpdate Forbidden"},
		{"spec/resources/3/continuousEndpointUpdate", "true", extension + ".continuousEndpointUpdate Forbidden"},
		{"spec/resources/3/autoEnable", "[garden]", extension + ".autoEnable[0] NotSupported"},
		{"spec/resources/3/clusterCompatibility", "[shoot]", extension + ".autoEnable[0] Forbidden"},
		{"spec/resources/3/clusterCompatibility", "[seed, garden]", extension + ".clusterCompatibility[1] NotSupported"},
		{"spec/resources/3/lifecycle/reconcile", "Later", extension + ".lifecycle.reconcile NotSupported"},
		{"spec/resources/3/lifecycle/delete", "AfterWorker", extension + ".lifecycle.delete NotSupported"},
		{"spec/resources/3/lifecycle/migrate", "AfterWorker", extension + ".lifecycle.migrate NotSupported"},
		{"spec/deployment", "", ""},
		{"spec/deployment/policy", "Never", "spec.deployment.policy NotSupported"},
		{"spec/deployment/seedSelector", "{}", "spec.deployment.seedSelector Forbidden"},
		{"spec/resources; spec/deployment/seedSelector", "[{kind: Worker, type: a, primary: false}]; {}", ""},
		{"spec/resources; spec/deployment/seedSelector", "[]; {matchExpressions: [{key: a, operator: Like}]}", "spec.deployment.seedSelector Invalid"},
		{"spec/deployment/deploymentRefs/1", "{name: other}", "spec.deployment.deploymentRefs Forbidden"},
		{"spec/deployment/deploymentRefs/0/name", "''", "spec.deployment.deploymentRefs[0].name Required"},
	})
	checkUpdates(t, "controllerregistration", 0, v1beta1.SetDefaultsControllerRegistration, ValidateControllerRegistrationUpdate, []rule{
		{"", "", ""},
		{"spec/resources/0/primary", "false", "spec.resources[0].primary Invalid"},
		{"spec/resources/1/primary", "false", "spec.resources[1].primary Invalid"},
		{"spec/resources/5", "{kind: Network, type: a, primary: false}", ""},
		{"spec/resources/0/type", "''", "spec.resources[0].type Required"},
	})
	before := decode(t, example(t, "controllerregistration", 0), v1beta1.SetDefaultsControllerRegistration)
	before.ResourceVersion, before.DeletionTimestamp, before.Finalizers = "1", &metav1.Time{}, []string{"a/b"}
	now := before.DeepCopy()
	compare(t, ValidateControllerRegistrationUpdate(now, before), "")
	now.Spec.Deployment = nil
	compare(t, ValidateControllerRegistrationUpdate(now, before), "spec Forbidden")
}

func TestValidateControllerDeployment(t *testing.T) {
	const oci, at = "helm/ociRepository", "helm.ociRepository"
	checkRules(t, "controllerdeployment", 0, noDefaults, ValidateControllerDeployment, []rule{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"helm", "", "type Required"},
		{"helm; metadata/annotations", "; {migration.controllerdeployment.gardener.cloud/type: custom}", ""},
		{"helm; metadata/annotations", "; {migration.controllerdeployment.gardener.cloud/type: custom, migration.controllerdeployment.gardener.cloud/providerConfig: '{}'}", ""},
		{"helm; metadata/annotations", "; {migration.controllerdeployment.gardener.cloud/type: custom, migration.controllerdeployment.gardener.cloud/providerConfig: '{'}",
			"metadata.annotations[migration.controllerdeployment.gardener.cloud/providerConfig] Invalid"},
		{"helm/rawChart", "Y2hhcnQ=", "helm Forbidden"},
		{oci, "", "helm Required"},
		{oci + "; helm/rawChart", "; Y2hhcnQ=", ""},
		{oci, "{ref: a:1}", ""},
		{oci, "{ref: a:1, repository: a, tag: b, digest: 'sha256:c'}", at + ".digest Forbidden, " + at + ".repository Forbidden, " + at + ".tag Forbidden"},
		{oci + "/repository", "", at + ".repository Required"},
		{oci + "/tag", "", ""},
		{oci + "/digest", "", ""},
		{oci + "/tag; " + oci + "/digest", "; ", at + ".tag Required"},
		{oci + "/digest", "'md5:a'", at + ".digest Invalid"},
		{oci + "/pullSecretRef", "{}", at + ".pullSecretRef.name Required"},
		{oci + "/caBundleSecretRef", "{}", at + ".caBundleSecretRef.name Required"},
		{"resources/0/name", "a-b", "helm.values Invalid, resources[0].name Invalid"},
		{"resources/1", "{name: settings, resourceRef: {apiVersion: v1, kind: Secret, name: a}}", "resources[1].name Duplicate"},
		{"resources/0/resourceRef/kind", "Pod", "resources[0].resourceRef NotSupported"},
		{"resources/0/resourceRef/name", "''", "resources[0].resourceRef.name Required"},
		{"helm/values/a", "{b: ['{{ .resources.other.data.key }}']}", "helm.values Invalid"},
		{"helm/values/a", "'{{.resources.settings.data.ca.crt}}-{{- .resources.settings.data.b -}}'", ""},
		{"helm/values/a", "'{{ .Values.a }}'", "helm.values Invalid"},
		{"helm/values/a", "'{{ .resources.settings.data.a | quote }}'", "helm.values Invalid"},
		{"helm/values/a", "'a }}'", "helm.values Invalid"},
		{"helm/values/a", "{'{{ if }}': 1}", "helm.values Invalid"},
	})
	checkUpdates(t, "controllerdeployment", 0, noDefaults, ValidateControllerDeploymentUpdate, []rule{
		{"", "", ""},
		{oci + "/tag", "'2'", ""},
		{oci, "", "helm Required"},
	})
}
