package apis_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

const deployment = "replicaCount: 2, revisionHistoryLimit: 2, enableHealthProbes: true"
const configuration = `config: {apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, resources: {capacity: {shoots: 250}}}`

// TestDefaults sets the defaults of an object through its scheme and compares the result with the expected one.
func TestDefaults(t *testing.T) {
	for _, test := range []struct {
		name, given, want string
		object            func() runtime.Object
	}{
		{"CredentialsBinding", "{metadata: {namespace: n}, provider: {type: a}, credentialsRef: {name: c}, quotas: [{name: q}, {name: r, namespace: m}]}",
			"{metadata: {namespace: n}, provider: {type: a}, credentialsRef: {name: c, namespace: n}, quotas: [{name: q, namespace: n}, {name: r, namespace: m}]}",
			func() runtime.Object { return &securityv1alpha1.CredentialsBinding{} }},
		{"TokenRequest", "spec: {}", "spec: {expirationSeconds: 3600}", func() runtime.Object { return &securityv1alpha1.TokenRequest{} }},
		{"AdminKubeconfigRequest", "spec: {}", "spec: {expirationSeconds: 3600}",
			func() runtime.Object { return &authenticationv1alpha1.AdminKubeconfigRequest{} }},
		{"ViewerKubeconfigRequest", "spec: {expirationSeconds: 600}", "spec: {expirationSeconds: 600}",
			func() runtime.Object { return &authenticationv1alpha1.ViewerKubeconfigRequest{} }},
		{"OpenIDConnectPreset", "spec: {weight: 1, server: {clientID: c, issuerURL: i}}",
			"spec: {weight: 1, shootSelector: {}, server: {clientID: c, issuerURL: i, usernameClaim: sub, signingAlgs: [RS256]}}",
			func() runtime.Object { return &settingsv1alpha1.OpenIDConnectPreset{} }},
		{"ClusterOpenIDConnectPreset", "spec: {weight: 1, server: {clientID: c, issuerURL: i, usernameClaim: u, signingAlgs: [ES256]}}",
			"spec: {weight: 1, shootSelector: {}, projectSelector: {}, server: {clientID: c, issuerURL: i, usernameClaim: u, signingAlgs: [ES256]}}",
			func() runtime.Object { return &settingsv1alpha1.ClusterOpenIDConnectPreset{} }},
		{"ManagedSeed", "spec: {gardenlet: {deployment: {image: {tag: latest}}}}",
			"spec: {gardenlet: {bootstrap: BootstrapToken, mergeWithParent: true, deployment: {image: {tag: latest, pullPolicy: Always}, " + deployment + "}, " + configuration + "}}",
			func() runtime.Object { return &seedmanagementv1alpha1.ManagedSeed{} }},
		{"ManagedSeed with a configuration", "spec: {gardenlet: {bootstrap: None, mergeWithParent: false, config: {kind: X, resources: {capacity: {shoots: 3}}}}}",
			"spec: {gardenlet: {bootstrap: None, mergeWithParent: false, deployment: {image: {pullPolicy: IfNotPresent}, " + deployment + "}, config: {kind: X, resources: {capacity: {shoots: 3}}}}}",
			func() runtime.Object { return &seedmanagementv1alpha1.ManagedSeed{} }},
		{"ManagedSeed with another capacity", "spec: {gardenlet: {config: {kind: X, resources: {capacity: {cpu: 3}}}}}",
			"spec: {gardenlet: {bootstrap: BootstrapToken, mergeWithParent: true, deployment: {image: {pullPolicy: IfNotPresent}, " + deployment + "}, config: {kind: X, resources: {capacity: {cpu: 3, shoots: 250}}}}}",
			func() runtime.Object { return &seedmanagementv1alpha1.ManagedSeed{} }},
		{"ManagedSeed with a configuration that is wrong", "spec: {gardenlet: {config: [1]}}",
			"spec: {gardenlet: {bootstrap: BootstrapToken, mergeWithParent: true, deployment: {image: {pullPolicy: IfNotPresent}, " + deployment + "}, config: [1]}}",
			func() runtime.Object { return &seedmanagementv1alpha1.ManagedSeed{} }},
		{"Gardenlet", "spec: {deployment: {helm: {ociRepository: {}}, image: {tag: '1'}, replicaCount: 1}}",
			"spec: {deployment: {helm: {ociRepository: {}}, image: {tag: '1', pullPolicy: IfNotPresent}, replicaCount: 1, revisionHistoryLimit: 2, enableHealthProbes: true}, " + configuration + "}",
			func() runtime.Object { return &seedmanagementv1alpha1.Gardenlet{} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			builder := runtime.SchemeBuilder{securityv1alpha1.RegisterDefaults, authenticationv1alpha1.RegisterDefaults, settingsv1alpha1.RegisterDefaults,
				seedmanagementv1alpha1.RegisterDefaults}
			if err := builder.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			got, want := read(t, test.given, test.object()), read(t, test.want, test.object())
			scheme.Default(got)
			checkText(t, got, want)
		})
	}
}

func TestDefaultsOfAManagedSeedSet(t *testing.T) {
	set := read(t, "{metadata: {namespace: garden, name: s}, spec: {selector: {}, template: {}, shootTemplate: {}}}", &seedmanagementv1alpha1.ManagedSeedSet{})
	seedmanagementv1alpha1.SetDefaultsManagedSeedSet(set)
	spec := set.Spec
	if *spec.Replicas != 1 || *spec.RevisionHistoryLimit != 10 || spec.UpdateStrategy.RollingUpdate != nil ||
		*spec.UpdateStrategy.Type != seedmanagementv1alpha1.RollingUpdateStrategyType || spec.Template.Spec.Gardenlet.MergeWithParent != nil ||
		spec.ShootTemplate.Spec.SchedulerName != nil || len(spec.ShootTemplate.Spec.Tolerations) > 0 {
		t.Errorf("%+v", spec)
	}
	seedmanagementv1alpha1.SetDefaultsTemplates(set)
	if spec := set.Spec; *spec.Template.Spec.Gardenlet.MergeWithParent != true ||
		*spec.ShootTemplate.Spec.SchedulerName != "default-scheduler" || len(spec.ShootTemplate.Spec.Tolerations) != 1 {
		t.Errorf("%+v", spec)
	}
}

func TestDefaultsOfAGarden(t *testing.T) {
	garden := read(t, "spec: {virtualCluster: {kubernetes: {kubeAPIServer: {encryptionConfig: {provider: {type: secretbox}}}}}}", &operatorv1alpha1.Garden{})
	operatorv1alpha1.SetDefaultsGarden(garden)
	cluster := garden.Spec.VirtualCluster
	if *cluster.Kubernetes.KubeAPIServer.Requests.MaxMutatingInflight != 200 || cluster.Kubernetes.KubeAPIServer.DefaultNotReadyTolerationSeconds != nil ||
		cluster.Kubernetes.KubeControllerManager.CertificateSigningDuration.Hours() != 48 ||
		*cluster.Gardener.GardenerAPIServer.EncryptionConfig.Provider.Type != "secretbox" {
		t.Errorf("%+v", cluster)
	}
}

func TestDefaultsOfAnExtension(t *testing.T) {
	extension := read(t, "spec: {resources: [{kind: Extension, type: a}]}", &operatorv1alpha1.Extension{})
	operatorv1alpha1.SetDefaultsExtension(extension)
	if resource := extension.Spec.Resources[0]; !*resource.Primary || resource.ReconcileTimeout.Minutes() != 3 {
		t.Errorf("%+v", resource)
	}
}

func read[T any](t *testing.T, content string, object T) T {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(content), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func checkText(t *testing.T, got, want any) {
	t.Helper()
	gotText, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	wantText, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(gotText) != string(wantText) {
		t.Errorf("got\n%s\nwant\n%s", gotText, wantText)
	}
}
