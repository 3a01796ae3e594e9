// Package definitions tests the CustomResourceDefinitions of extensions, the operator and etcd against a real API server.
package definitions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

var directories = []string{"extensions", "operator", "druid"}

func connect(t *testing.T) (client.Client, *discovery.DiscoveryClient) {
	t.Helper()
	config, root := shared.Get(t).Config(), "../.."
	var paths []string
	for _, directory := range directories {
		paths = append(paths, filepath.Join(root, "config", "crd", directory))
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout})
	kit.Must(t, err)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	kit.Must(t, err)
	return client.WithFieldValidation(c, metav1.FieldValidationStrict), discovery.NewDiscoveryClientForConfigOrDie(config)
}

// TestResources compares the resources that the API server serves with Gardener's.
func TestResources(t *testing.T) {
	_, server := connect(t)
	_, lists, err := server.ServerGroupsAndResources()
	kit.Must(t, err)
	found := map[string]string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			scope := "cluster"
			if resource.Namespaced {
				scope = "namespaced"
			}
			if kind, sub, is := strings.Cut(resource.Name, "/"); is {
				found[list.GroupVersion+" "+kind] += " +" + sub
			} else {
				found[list.GroupVersion+" "+resource.Name] = fmt.Sprintf("%s %s %v", resource.Kind, scope, resource.ShortNames) + found[list.GroupVersion+" "+resource.Name]
			}
		}
	}
	for resource, want := range map[string]string{
		"extensions.gardener.cloud/v1alpha1 backupbuckets":            "BackupBucket cluster [bb] +status",
		"extensions.gardener.cloud/v1alpha1 backupentries":            "BackupEntry cluster [be] +status",
		"extensions.gardener.cloud/v1alpha1 bastions":                 "Bastion namespaced [] +status",
		"extensions.gardener.cloud/v1alpha1 clusters":                 "Cluster cluster [] +status",
		"extensions.gardener.cloud/v1alpha1 containerruntimes":        "ContainerRuntime namespaced [cr] +status",
		"extensions.gardener.cloud/v1alpha1 controlplanes":            "ControlPlane namespaced [cp] +status",
		"extensions.gardener.cloud/v1alpha1 dnsrecords":               "DNSRecord namespaced [dns] +status",
		"extensions.gardener.cloud/v1alpha1 extensions":               "Extension namespaced [ext] +status",
		"extensions.gardener.cloud/v1alpha1 infrastructures":          "Infrastructure namespaced [infra] +status",
		"extensions.gardener.cloud/v1alpha1 networks":                 "Network namespaced [] +status",
		"extensions.gardener.cloud/v1alpha1 operatingsystemconfigs":   "OperatingSystemConfig namespaced [osc] +status",
		"extensions.gardener.cloud/v1alpha1 selfhostedshootexposures": "SelfHostedShootExposure namespaced [exp] +status",
		"extensions.gardener.cloud/v1alpha1 workers":                  "Worker namespaced [] +status",
		"operator.gardener.cloud/v1alpha1 gardens":                    "Garden cluster [grdn] +status",
		"operator.gardener.cloud/v1alpha1 extensions":                 "Extension cluster [extop] +status",
		"druid.gardener.cloud/v1alpha1 etcds":                         "Etcd namespaced [] +scale +status",
		"druid.gardener.cloud/v1alpha1 etcdcopybackupstasks":          "EtcdCopyBackupsTask namespaced [] +status",
	} {
		if got := found[resource]; sorted(got) != sorted(want) {
			t.Errorf("%s: %s, want %s", resource, got, want)
		}
	}
}

func sorted(words string) string {
	list := strings.Fields(words)
	slices.Sort(list)
	return strings.Join(list, " ")
}

func example(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "examples", "fleet", path))
	kit.Must(t, err)
	object := &unstructured.Unstructured{}
	kit.Must(t, yaml.Unmarshal(content, object))
	return object
}

// TestExamplesKeepAllFields creates each example with strict validation, and compares it with the stored object.
func TestExamplesKeepAllFields(t *testing.T) {
	c, _ := connect(t)
	for _, directory := range directories {
		files, err := filepath.Glob(filepath.Join("..", "..", "examples", "fleet", directory, "*.yaml"))
		kit.Must(t, err)
		for _, file := range files {
			t.Run(directory+"/"+filepath.Base(file), func(t *testing.T) {
				want := example(t, filepath.Join(directory, filepath.Base(file)))
				object := want.DeepCopy()
				ensureNamespace(t, c, object.GetNamespace())
				kit.Must(t, c.Create(t.Context(), object))
				if lost := missing("spec", want.Object["spec"], object.Object["spec"]); len(lost) > 0 {
					t.Errorf("the API server did not store %v", lost)
				}
				kit.Must(t, c.Delete(t.Context(), object))
			})
		}
	}
}

func ensureNamespace(t *testing.T, c client.Client, name string) {
	t.Helper()
	if name == "" {
		return
	}
	err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	kit.Must(t, client.IgnoreAlreadyExists(err))
}

// missing returns the paths of values that a stored object lacks.
func missing(path string, want, got any) []string {
	switch wanted := want.(type) {
	case map[string]any:
		stored, _ := got.(map[string]any)
		var lost []string
		for key, value := range wanted {
			lost = append(lost, missing(path+"."+key, value, stored[key])...)
		}
		if stored == nil {
			lost = append(lost, path)
		}
		return lost
	case []any:
		stored, _ := got.([]any)
		if len(stored) != len(wanted) {
			return []string{path}
		}
		var lost []string
		for i := range wanted {
			lost = append(lost, missing(fmt.Sprintf("%s[%d]", path, i), wanted[i], stored[i])...)
		}
		return lost
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return []string{fmt.Sprintf("%s (%v instead of %v)", path, got, want)}
	}
	return nil
}

// TestRules checks that the API server rejects each change of an example, or of the stored example, and that the error
// names the field.
func TestRules(t *testing.T) {
	c, _ := connect(t)
	for _, test := range []struct {
		file, path string
		value      any
		update     bool
		want       string
	}{
		{"extensions/infrastructure.yaml", "spec.type", "", false, "spec.type"},
		{"extensions/infrastructure.yaml", "spec.type", "other", true, "spec.type"},
		{"extensions/infrastructure.yaml", "spec.region", "other", true, "spec.region"},
		{"extensions/extension.yaml", "spec.class", "garden", true, "spec.class"},
		{"extensions/extension.yaml", "spec.class", nil, true, "class is immutable"},
		{"extensions/infrastructure.yaml", "spec.class", "seed", true, "class is immutable"},
		{"extensions/extension.yaml", "spec.class", "world", false, "spec.class"},
		{"extensions/bastion.yaml", "spec.ingress", []any{}, false, "spec.ingress"},
		{"extensions/dnsrecord.yaml", "spec.name", "other.example.org", true, "spec.name"},
		{"extensions/dnsrecord.yaml", "spec.recordType", "CNAME", true, "spec.recordType"},
		{"extensions/dnsrecord.yaml", "spec.recordType", "MX", false, "spec.recordType"},
		{"extensions/dnsrecord.yaml", "spec.values", []any{}, false, "spec.values"},
		{"extensions/dnsrecord.yaml", "spec.ttl", int64(-1), false, "spec.ttl"},
		{"extensions/network.yaml", "spec.podCIDR", "10.9.0.0/16", true, "spec.podCIDR"},
		{"extensions/network.yaml", "spec.ipFamilies", []any{"IPv5"}, false, "spec.ipFamilies"},
		{"extensions/operatingsystemconfig.yaml", "spec.purpose", "provision", false, "containerd is forbidden"},
		{"extensions/operatingsystemconfig.yaml", "spec.criConfig.name", "docker", false, "spec.criConfig.name"},
		{"extensions/selfhostedshootexposure.yaml", "spec.port", int64(0), false, "spec.port"},
		{"extensions/worker.yaml", "spec.region", "other", true, "spec.region"},
		{"extensions/containerruntime.yaml", "spec.workerPool.name", "other", true, "spec.workerPool.name"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.clusterIdentity", "other", true, "clusterIdentity"},
		{"operator/garden.yaml", "spec.virtualCluster.etcd.main.backup", nil, true, "backup cannot be removed"},
		{"operator/garden.yaml", "spec.virtualCluster.etcd.main.backup.region", "other", true, "backup.region"},
		{"operator/garden.yaml", "spec.virtualCluster.etcd.main.backup.bucketName", nil, true, "bucketName is immutable"},
		{"operator/garden.yaml", "spec.virtualCluster.controlPlane", nil, true, "highAvailability cannot be removed"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerDiscoveryServer", nil, true, "gardenerDiscoveryServer cannot be removed"},
		{"operator/garden.yaml", "spec.virtualCluster.maintenance.timeWindow.begin", "250000+0100", false, "timeWindow.begin"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerAPIServer.goAwayChance", 0.03, false, "goAwayChance"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerScheduler.logLevel", "warn", false, "logLevel"},
		{"operator/garden.yaml", "spec.runtimeCluster.ingress.domains", []any{map[string]any{"name": "other.example.org"}}, true, "first domain is immutable"},
		{"druid/etcd.yaml", "spec.replicas", int64(1), true, "spec.replicas"},
		{"druid/etcd.yaml", "spec.storageClass", "other", true, "spec.storageClass"},
		{"druid/etcd.yaml", "spec.volumeClaimTemplate", nil, true, "volumeClaimTemplate is immutable"},
		{"druid/etcd.yaml", "spec.memberNamePrefix", "other", true, "spec.memberNamePrefix"},
		{"druid/etcd.yaml", "spec.backup.garbageCollectionPeriod", "1m", false, "must be longer than deltaSnapshotPeriod"},
		{"extensions/backupbucket.yaml", "spec.secretRef.name", nil, false, "spec.secretRef: Invalid value"},
		{"extensions/backupentry.yaml", "spec.secretRef.name", nil, false, "spec.secretRef: Invalid value"},
		{"extensions/controlplane.yaml", "spec.secretRef.name", nil, false, "spec.secretRef: Invalid value"},
		{"extensions/dnsrecord.yaml", "spec.secretRef.name", nil, false, "spec.secretRef: Invalid value"},
		{"extensions/infrastructure.yaml", "spec.secretRef.name", nil, false, "spec.secretRef: Invalid value"},
		{"extensions/worker.yaml", "spec.secretRef.name", nil, false, "spec.secretRef: Invalid value"},
		{"extensions/bastion.yaml", "spec.userData", "", false, "spec.userData"},
		{"extensions/dnsrecord.yaml", "spec.name", "localhost", false, "spec.name"},
		{"extensions/dnsrecord.yaml", "spec.name", "Api.example.org", false, "spec.name"},
		{"extensions/dnsrecord.yaml", "spec.name", "_acme.example.org", false, "only the name of a TXT record"},
		{"extensions/dnsrecord.yaml", "spec", map[string]any{"type": "local", "name": "a.example.org", "recordType": "CNAME", "values": []any{"b.example.org", "c.example.org"}, "secretRef": map[string]any{"name": "dns"}}, false, "a CNAME record has one value"},
		{"extensions/network.yaml", "spec.podCIDR", "10.3.0.0", false, "spec.podCIDR"},
		{"extensions/network.yaml", "spec.serviceCIDR", "10.3.7.0/24", false, "must not overlap"},
		{"extensions/network.yaml", "spec.serviceCIDR", "10.0.0.0/8", false, "must not overlap"},
		{"extensions/network.yaml", "spec.ipFamilies", []any{"IPv4", "IPv4"}, false, "family twice"},
		{"extensions/network.yaml", "spec.ipFamilies", []any{"IPv6"}, true, "between [IPv4] and [IPv4, IPv6]"},
		{"extensions/operatingsystemconfig.yaml", "spec.criConfig.containerd", map[string]any{"sandboxImage": "a", "registries": []any{map[string]any{"upstream": "https://a"}}}, false, "upstream"},
		{"extensions/operatingsystemconfig.yaml", "spec.criConfig.containerd", map[string]any{"sandboxImage": "a", "registries": []any{map[string]any{"upstream": "a", "server": "a"}}}, false, "server"},
		{"extensions/operatingsystemconfig.yaml", "spec.criConfig.containerd", map[string]any{"sandboxImage": "a", "registries": []any{map[string]any{"upstream": "a", "hosts": []any{map[string]any{"url": "https:///a"}}}}}, false, "url"},
		{"extensions/operatingsystemconfig.yaml", "spec.files", []any{map[string]any{"path": "/a", "content": map[string]any{}}}, false, "exactly one of"},
		{"extensions/operatingsystemconfig.yaml", "spec.files", []any{map[string]any{"path": "/a", "content": map[string]any{"inline": map[string]any{"encoding": "", "data": "a"}, "imageRef": map[string]any{"image": "a", "filePathInImage": "b"}}}}, false, "exactly one of"},
		{"extensions/operatingsystemconfig.yaml", "spec.files", []any{map[string]any{"path": "/a", "content": map[string]any{"inline": map[string]any{"encoding": "", "data": ""}}}}, false, "data"},
		{"extensions/operatingsystemconfig.yaml", "spec.files", []any{map[string]any{"path": "/a", "content": map[string]any{"secretRef": map[string]any{"name": "", "dataKey": "a"}}}}, false, "name"},
		{"extensions/operatingsystemconfig.yaml", "spec.files", []any{map[string]any{"path": "/a", "content": map[string]any{"secretRef": map[string]any{"name": "a", "dataKey": ""}}}}, false, "dataKey"},
		{"extensions/operatingsystemconfig.yaml", "spec.files", []any{map[string]any{"path": "/a", "content": map[string]any{"imageRef": map[string]any{"image": "", "filePathInImage": "a"}}}}, false, "image"},
		{"extensions/operatingsystemconfig.yaml", "spec.files", []any{map[string]any{"path": "/a", "content": map[string]any{"imageRef": map[string]any{"image": "a", "filePathInImage": ""}}}}, false, "filePathInImage"},
		{"extensions/operatingsystemconfig.yaml", "spec.files", []any{map[string]any{"path": "/a", "hostName": "a_b", "content": map[string]any{"inline": map[string]any{"encoding": "", "data": "a"}}}}, false, "hostName"},
		{"extensions/selfhostedshootexposure.yaml", "spec.credentialsRef.kind", "ConfigMap", false, "must refer to a Secret"},
		{"operator/garden.yaml", "spec.runtimeCluster.provider.zones", []any{"a"}, false, "topologyAwareRouting needs"},
		{"operator/garden.yaml", "spec.runtimeCluster.ingress.controller.kind", "other", false, "kind must be nginx"},
		{"operator/garden.yaml", "spec.runtimeCluster.networking.ipFamilies", []any{"IPv4", "IPv4"}, false, "family twice"},
		{"operator/garden.yaml", "spec.virtualCluster.etcd.main.autoscaling.minAllowed.memory", "299M", false, "at least 300M"},
		{"operator/garden.yaml", "spec.virtualCluster.etcd.events.autoscaling.minAllowed.memory", "59M", false, "at least 60M"},
		{"operator/garden.yaml", "spec.virtualCluster.networking.services", []any{"100.72.0.0/13"}, true, "not removed"},
		{"operator/garden.yaml", "spec.virtualCluster.kubernetes.kubeAPIServer.structuredAuthentication", nil, false, "needs kubernetes.kubeAPIServer.structuredAuthentication"},
		{"operator/garden.yaml", "spec.virtualCluster.kubernetes.kubeAPIServer.sni", nil, false, "needs kubernetes.kubeAPIServer.sni"},
		{"operator/garden.yaml", "spec.virtualCluster.kubernetes.version", "1.31.0", false, "kubernetes.version"},
		{"operator/garden.yaml", "spec.virtualCluster.kubernetes.version", "1.34.1", true, "cannot be lowered"},
		{"operator/garden.yaml", "spec.virtualCluster.kubernetes.version", "1.33.9", true, "cannot be lowered"},
		{"operator/garden.yaml", "spec.virtualCluster.kubernetes.version", "1.36.0", true, "one minor version at a time"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerAPIServer.shootAdminKubeconfigMaxExpiration", "59m", false, "shootAdminKubeconfigMaxExpiration"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerAdmissionController.resourceAdmissionConfiguration.limits", []any{map[string]any{"resources": []any{"shoots"}}}, false, "size or count is required"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerDashboard.oidcConfig", nil, false, "oidcConfig is required"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerDashboard.oidcConfig.issuerURL", nil, false, "issuerURL and clientIDPublic"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerDashboard.oidcConfig.clientIDPublic", nil, false, "issuerURL and clientIDPublic"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerDashboard.oidcConfig.issuerURL", "http://login.example.org", false, "issuerURL"},
		{"operator/garden.yaml", "spec.virtualCluster.gardener.gardenerDashboard.tlsSecretName", "a_b", false, "tlsSecretName"},
		{"operator/extension.yaml", "spec.deployment", nil, false, "deployment is required"},
		{"operator/extension.yaml", "spec.deployment", map[string]any{}, false, "extension or admission"},
		{"operator/extension.yaml", "spec.deployment.admission", map[string]any{}, false, "runtimeCluster or virtualCluster"},
		{"operator/extension.yaml", "spec.deployment.extension.helm", map[string]any{}, false, "ociRepository is required"},
		{"operator/extension.yaml", "spec.deployment.extension.helm.ociRepository", map[string]any{"ref": "a", "tag": "b"}, false, "together with ref"},
		{"operator/extension.yaml", "spec.deployment.extension.helm.ociRepository", map[string]any{"repository": "a"}, false, "repository and tag or digest"},
		{"operator/extension.yaml", "spec.deployment.extension.helm.ociRepository", map[string]any{"repository": "a", "digest": "b"}, false, "digest"},
		{"operator/extension.yaml", "spec.resources", []any{map[string]any{"kind": "Cluster", "type": "a"}}, false, "kind"},
		{"operator/extension.yaml", "spec.resources", []any{map[string]any{"kind": "Worker", "type": ""}}, false, "type"},
		{"operator/extension.yaml", "spec.resources", []any{map[string]any{"kind": "Worker", "type": "a", "autoEnable": []any{"shoot"}}}, false, "for the kind Extension only"},
		{"operator/extension.yaml", "spec.resources", []any{map[string]any{"kind": "Worker", "type": "a", "continuousEndpointUpdate": true}}, false, "SelfHostedShootExposure only"},
		{"operator/extension.yaml", "spec.resources", []any{map[string]any{"kind": "Extension", "type": "a", "lifecycle": map[string]any{"delete": "AfterWorker"}}}, false, "delete must not"},
		{"operator/extension.yaml", "spec.resources", []any{map[string]any{"kind": "Extension", "type": "a", "lifecycle": map[string]any{"migrate": "AfterWorker"}}}, false, "migrate must not"},
	} {
		t.Run(test.file+"/"+test.path, func(t *testing.T) {
			object := example(t, test.file)
			object.SetName(strings.ToLower(strings.NewReplacer("/", "-", ".", "-", "_", "-", "#", "-").Replace(t.Name())))
			object.SetName(object.GetName()[max(0, len(object.GetName())-50):])
			object.SetName(strings.Trim(object.GetName(), "-"))
			ensureNamespace(t, c, object.GetNamespace())
			if test.update {
				kit.Must(t, c.Create(t.Context(), object))
				defer func() { kit.Must(t, c.Delete(t.Context(), object)) }()
			}
			path := strings.Split(test.path, ".")
			if test.value == nil {
				unstructured.RemoveNestedField(object.Object, path...)
			} else {
				kit.Must(t, unstructured.SetNestedField(object.Object, test.value, path...))
			}
			var err error
			if test.update {
				err = c.Update(t.Context(), object.DeepCopy())
			} else {
				err = c.Create(t.Context(), object)
			}
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want an Invalid error that contains %s", err, test.want)
			}
		})
	}
}

// TestAllowedChanges checks that rules about changes accept the intended changes.
func TestAllowedChanges(t *testing.T) {
	c, _ := connect(t)
	for _, test := range []struct {
		file, path string
		value      any
	}{
		{"extensions/network.yaml", "spec.ipFamilies", []any{"IPv4", "IPv6"}},
		{"extensions/dnsrecord.yaml", "spec.values", []any{"2001:db8::1"}},
		{"operator/garden.yaml", "spec.virtualCluster.kubernetes.version", "1.35.0"},
		{"operator/garden.yaml", "spec.virtualCluster.kubernetes.version", "1.34.10"},
		{"operator/garden.yaml", "spec.virtualCluster.networking.services", []any{"100.64.0.0/13", "2001:db8::/108"}},
	} {
		object := example(t, test.file)
		object.SetName("allowed")
		ensureNamespace(t, c, object.GetNamespace())
		kit.Must(t, c.Create(t.Context(), object))
		kit.Must(t, unstructured.SetNestedField(object.Object, test.value, strings.Split(test.path, ".")...))
		if err := c.Update(t.Context(), object); err != nil {
			t.Errorf("%s of %s: %v", test.path, test.file, err)
		}
		kit.Must(t, c.Delete(t.Context(), object))
	}
}

// TestEtcdIsScaled sets the number of members through the subresource scale.
func TestEtcdIsScaled(t *testing.T) {
	c, _ := connect(t)
	etcd := example(t, "druid/etcd.yaml")
	etcd.SetName("scaled")
	ensureNamespace(t, c, etcd.GetNamespace())
	kit.Must(t, c.Create(t.Context(), etcd))
	scale := &unstructured.Unstructured{}
	scale.SetAPIVersion("autoscaling/v1")
	scale.SetKind("Scale")
	kit.Must(t, c.SubResource("scale").Get(t.Context(), etcd, scale))
	kit.Must(t, unstructured.SetNestedField(scale.Object, int64(5), "spec", "replicas"))
	kit.Must(t, c.SubResource("scale").Update(t.Context(), etcd, client.WithSubResourceBody(scale)))
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(etcd), etcd))
	if replicas, _, _ := unstructured.NestedInt64(etcd.Object, "spec", "replicas"); replicas != 5 {
		t.Errorf("%d replicas", replicas)
	}
	kit.Must(t, c.Delete(t.Context(), etcd))
}
