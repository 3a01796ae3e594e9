package garden

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/discoveryserver"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// example returns the Garden of the examples.
func example(t *testing.T) *operatorv1alpha1.Garden {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "fleet", "operator", "garden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	garden := &operatorv1alpha1.Garden{}
	if err := yaml.UnmarshalStrict([]byte(first), garden); err != nil {
		t.Fatal(err)
	}
	garden.UID, garden.Generation = "2f4c5f6a", 1
	return garden
}

// small returns a Garden with the required fields only.
func small() *operatorv1alpha1.Garden {
	garden := &operatorv1alpha1.Garden{}
	garden.Name, garden.UID, garden.Generation = "garden", "2f4c5f6a", 1
	garden.Spec.RuntimeCluster.Networking = operatorv1alpha1.RuntimeNetworking{Pods: []string{"10.1.0.0/16"}, Services: []string{"10.2.0.0/16"}}
	garden.Spec.VirtualCluster = operatorv1alpha1.VirtualCluster{
		DNS:        operatorv1alpha1.DNS{Domains: []operatorv1alpha1.DNSDomain{{Name: "garden.example.org"}}},
		Gardener:   operatorv1alpha1.Gardener{ClusterIdentity: "example"},
		Kubernetes: operatorv1alpha1.Kubernetes{Version: "1.36.1"},
		Maintenance: operatorv1alpha1.Maintenance{TimeWindow: operatorv1alpha1.MaintenanceTimeWindow{
			Begin: "220000+0100", End: "230000+0100",
		}},
		Networking: operatorv1alpha1.Networking{Services: []string{"100.64.0.0/13"}},
	}
	return garden
}

// known returns complete inputs, in which everything is known.
func known(garden *operatorv1alpha1.Garden, change ...func(*Inputs)) Inputs {
	operatorv1alpha1.SetDefaultsGarden(garden)
	config := &v1alpha1.OperatorConfiguration{}
	v1alpha1.SetDefaults(config)
	vector := images.Vector{}
	for _, name := range []string{
		"resource-manager", "etcd-operator", "etcd-member", "vpa-admission-controller", "vpa-recommender", "vpa-updater", "kube-apiserver",
		"kube-controller-manager", "apiserver", "controller-manager", "scheduler", "admission-controller", "discovery-server", "istio-istiod", "istio-proxy",
		"nginx-ingress-controller", "ingress-default-backend",
	} {
		vector = append(vector, images.Source{Name: name, Repository: ptr.To("registry.example.org/" + name), Tag: ptr.To("v1")})
	}
	in := Inputs{
		Owner: flow.Owner{Flow: FlowName, UID: garden.UID, Name: garden.Name}, Namespace: "garden", Garden: garden, Config: config, Version: "v1",
		Images: vector, KubernetesVersion: "1.37.1", Nodes: 3, HasVerticalPodAutoscaler: ptr.To(false), Now: now,
		Addresses: []string{"192.0.2.1"}, APIServerAddress: "10.2.0.7", Tokens: map[string]time.Time{}, Files: userfiles.Files{},
	}
	for _, account := range []string{
		resourcemanager.Account, kubecontrollermanager.Name, gardenerprograms.APIServer.Name(), gardenerprograms.AdmissionController.Name(),
		gardenerprograms.ControllerManager.Name(), gardenerprograms.Scheduler.Name(), discoveryserver.Name,
	} {
		in.Tokens[constants.PrefixShootAccess+account] = now.Add(time.Hour)
	}
	for _, each := range change {
		each(&in)
	}
	in.Bucket = &extensionsv1alpha1.BackupBucket{}
	in.Bucket.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
	for _, named := range in.references() {
		in.Files[named.String()] = fileFor(named)
	}
	in.Secrets = secretsFor(in)
	return in
}

// fileFor returns the object of a reference.
func fileFor(named userfiles.Reference) userfiles.File {
	content := map[string]string{
		userfiles.KeyPolicy:     "apiVersion: audit.k8s.io/v1\nkind: Policy\n",
		userfiles.KeyConfig:     "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n",
		userfiles.KeyKubeconfig: "apiVersion: v1\nkind: Config\n", keyTLS: "certificate",
	}[named.Key]
	if strings.Contains(named.Field, "structuredAuthorization") && named.Key == userfiles.KeyConfig {
		content = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration\nauthorizers: [{type: Webhook, name: one, webhook: {}}]\n"
	}
	if named.Kind == userfiles.Secret {
		return userfiles.File{Secret: &corev1.Secret{Data: map[string][]byte{named.Key: []byte(content)}}}
	}
	return userfiles.File{ConfigMap: &corev1.ConfigMap{Data: map[string]string{named.Key: content}}}
}

// secretsFor returns a Secret for each config.
func secretsFor(in Inputs) map[string]secrets.Item {
	items := map[string]secrets.Item{}
	for _, config := range in.secretConfigs() {
		secret := secrets.Secret{Name: config.Name + "-12345678"}
		switch config.Kind {
		case secrets.KindEncryptionKey:
			secret.Data = secrets.Material{
				secrets.KeyEncryptionName: []byte("key"), secrets.KeyEncryptionSecret: []byte("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="),
				secrets.KeyEncryptionEncoding: []byte("base64"), secrets.KeyEncryptionProvider: []byte(config.Provider),
			}
		case secrets.KindStaticToken:
			secret.Data = secrets.Material{
				secrets.KeyStaticTokens: []byte("token," + kubeapiserver.HealthCheckUser + "," + kubeapiserver.HealthCheckUser + "\n"),
			}
		}
		if config.Name == constants.SecretNameWorkloadIdentitySigningKey {
			secret.Data = secrets.Material{secrets.KeyRSA: signingKeys()[0]}
		}
		item := secrets.Item{Config: config, Current: secret, Active: secret}
		if config.Kind == secrets.KindCA || config.Kind == secrets.KindRSAKey {
			item.Bundle = &secrets.Secret{Name: config.Name + "-bundle-12345678", Data: secrets.Material{secrets.KeyBundleCert: []byte("authority")}}
		}
		items[config.Name] = item
	}
	return items
}

func planOf(t *testing.T, in Inputs) flow.Plan {
	t.Helper()
	plan, err := Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Validate(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// contentsOf describes a plan: each bundle with its dependencies and objects, and the waits.
func contentsOf(t *testing.T, plan flow.Plan) string {
	t.Helper()
	var text strings.Builder
	for _, bundle := range plan.Bundles {
		fmt.Fprintf(&text, "%s class=%q keep=%t\n", bundle.Name, ptr.Deref(bundle.Spec.Class, ""), ptr.Deref(bundle.Spec.KeepObjects, false))
		for _, dependency := range bundle.Spec.DependsOn {
			fmt.Fprintf(&text, "  needs %s %s\n", dependency.Name, dependency.Until)
		}
		for _, after := range bundle.DeleteAfter {
			fmt.Fprintf(&text, "  deleted after %s\n", after.Name)
		}
		for _, object := range bundle.Objects {
			u := golden.Unstructured(t, object)
			fmt.Fprintf(&text, "  %s %s/%s\n", u.GetKind(), u.GetNamespace(), u.GetName())
		}
	}
	for _, wait := range plan.Waits {
		fmt.Fprintf(&text, "waits %s: %s\n", wait.Name, wait.Reason)
	}
	for _, tombstone := range plan.Tombstones {
		fmt.Fprintf(&text, "deletes %s after %v, confirmed %t\n", tombstone.Name, tombstone.After, tombstone.Confirm)
	}
	return text.String()
}

// TestContents compares the table of contents with testdata.
func TestContents(t *testing.T) {
	for name, in := range map[string]Inputs{
		"example": known(example(t)),
		"small":   known(small()),
		"nothing": func() Inputs {
			in := known(small())
			in.Secrets, in.Tokens, in.Addresses, in.APIServerAddress = nil, nil, nil, ""
			return in
		}(),
		"autoscaler": known(small(), withoutAutoscaler),
		"deletion": known(small(), func(in *Inputs) {
			in.Emitted = emittedOf(t, known(small()))
			in.Deleting, in.Served, in.Users = true, true, &[]string{}
		}),
	} {
		t.Run(name, func(t *testing.T) { golden.CheckText(t, name+".txt", contentsOf(t, planOf(t, in))) })
	}
}

func withoutAutoscaler(in *Inputs) {
	in.Garden.Spec.RuntimeCluster.Settings = &operatorv1alpha1.Settings{
		VerticalPodAutoscaler: &operatorv1alpha1.SettingVerticalPodAutoscaler{Enabled: ptr.To(false)},
	}
}

func emittedOf(t *testing.T, in Inputs) []flow.Key {
	t.Helper()
	var keys []flow.Key
	for _, bundle := range planOf(t, in).Bundles {
		keys = append(keys, bundle.Key)
	}
	return keys
}

// bundleOf returns the objects of a bundle as JSON, empty if the plan does not have it.
func bundleOf(t *testing.T, plan flow.Plan, name string) string {
	t.Helper()
	at := slices.IndexFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Name == name })
	if at < 0 {
		return ""
	}
	var all []any
	for _, object := range plan.Bundles[at].Objects {
		all = append(all, golden.Unstructured(t, object).Object)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func init() {
	if err := extensionsv1alpha1.AddToScheme(scheme.Scheme); err != nil {
		panic(err) // the golden files need the kind of DNSRecords
	}
}
