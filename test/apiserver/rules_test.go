package apiserver

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestRulesApply checks that the API server validates each kind on creation, on updates and, where it has one, on updates
// of its status, and that the error names the field.
func TestRulesApply(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	checked := sets.New[string]()
	for _, test := range []struct {
		kind string
		// field and value are a change of the example that the API server rejects. update and to are a change that it rejects for
		// the stored object. status and as are a change that it rejects for the stored status.
		field  string
		value  any
		update string
		to     any
		status string
		as     any
	}{
		{kind: "BackupBucket", field: "spec.provider.type", value: "", update: "spec.seedName", to: "other"},
		{kind: "BackupEntry", field: "spec.bucketName", value: "", update: "spec.bucketName", to: ""},
		{kind: "CloudProfile", field: "spec.type", value: "", update: "spec.type", to: ""},
		{kind: "NamespacedCloudProfile", field: "spec.parent.kind", value: "Other", update: "spec.parent", to: map[string]any{"kind": "CloudProfile", "name": "b"}},
		{kind: "ControllerDeployment", field: "helm.ociRepository.digest", value: "md5:a", update: "helm.ociRepository.digest", to: "md5:a"},
		{kind: "ControllerRegistration", field: "spec.deployment.policy", value: "Never", update: "spec.deployment.policy", to: "Never"},
		{kind: "ControllerInstallation", field: "spec.registrationRef.name", value: "", update: "spec.seedRef.name", to: "other"},
		{kind: "ExposureClass", field: "handler", value: "a.b", update: "handler", to: "other"},
		{kind: "InternalSecret", field: "data", value: map[string]any{"a b": "YQ=="}, update: "type", to: "other"},
		{kind: "Project", field: "spec.namespace", value: "other", update: "spec.namespace", to: "garden-other"},
		{kind: "Quota", field: "spec.clusterLifetimeDays", value: int64(0), update: "spec.scope", to: map[string]any{"apiVersion": "v1", "kind": "Secret"}},
		{kind: "SecretBinding", field: "provider", value: nil, update: "provider", to: map[string]any{"type": "other"}},
		{kind: "Seed", field: "spec.provider.type", value: "", update: "spec.networks.pods", to: "10.77.0.0/16"},
		{kind: "Shoot", field: "spec.region", value: "", update: "spec.region", to: "other"},
		{kind: "ShootState", field: "spec.gardener", value: []any{map[string]any{"name": "a", "type": "b", "data": map[string]any{}}},
			update: "spec.gardener", to: []any{map[string]any{"name": "a", "type": "b", "data": map[string]any{}}}},
		{kind: "ManagedSeed", field: "spec.shoot", value: nil, update: "spec.gardenlet.bootstrap", to: "ServiceAccount"},
		{kind: "ManagedSeedSet", field: "spec.template.spec.shoot", value: map[string]any{"name": "a"}, update: "spec.revisionHistoryLimit", to: int64(3),
			status: "status.readyReplicas", as: int64(9)},
		{kind: "Gardenlet", field: "spec.deployment.replicaCount", value: int64(-1), update: "spec.deployment.replicaCount", to: int64(-1)},
		{kind: "Bastion", field: "spec.sshPublicKey", value: "key", update: "spec.shootRef.name", to: "other",
			status: "status.lastHeartbeatTimestamp", as: "2999-01-01T00:00:00Z"},
		{kind: "CredentialsBinding", field: "provider.type", value: "a,b", update: "credentialsRef", to: map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "b"}},
		{kind: "WorkloadIdentity", field: "spec.audiences", value: []any{}, update: "spec.targetSystem.type", to: "other"},
		{kind: "ClusterOpenIDConnectPreset", field: "spec.weight", value: int64(0), update: "spec.server.issuerURL", to: "http://login.example.org"},
		{kind: "OpenIDConnectPreset", field: "spec.server.clientID", value: "", update: "spec.weight", to: int64(101)},
	} {
		t.Run(test.kind, func(t *testing.T) {
			checked.Insert(test.kind)
			i := slices.IndexFunc(examples(t), func(one *unstructured.Unstructured) bool { return one.GetKind() == test.kind })
			object := examples(t)[i]
			object.SetName("rules")
			if test.kind == "ControllerRegistration" { // The example is primary for the same resources.
				unstructured.RemoveNestedField(object.Object, "spec", "resources")
			}
			object.SetFinalizers(nil)
			if test.kind == "Project" {
				setField(t, object, "spec.namespace", "garden-rules")
			}
			ensureNamespace(t, c, object.GetNamespace())
			ensureParent(t, c, object, "parent-of-rules")

			wrong := object.DeepCopy()
			setField(t, wrong, test.field, test.value)
			checkRejected(t, c.Create(t.Context(), wrong), test.field)

			kit.Must(t, c.Create(t.Context(), object))
			wrong = object.DeepCopy()
			setField(t, wrong, test.update, test.to)
			checkRejected(t, c.Update(t.Context(), wrong), test.update)

			if test.status != "" {
				wrong = object.DeepCopy()
				setField(t, wrong, test.status, test.as)
				checkRejected(t, c.Status().Update(t.Context(), wrong), test.status)
			}
		})
	}
	for _, resource := range served.Resources() {
		if !checked.Has(resource.Kind) {
			t.Errorf("the table has no rule of %s", resource.Kind)
		}
	}
}

// setField sets a field, or removes it if the value is nil.
func setField(t *testing.T, object *unstructured.Unstructured, path string, value any) {
	t.Helper()
	if value == nil {
		unstructured.RemoveNestedField(object.Object, strings.Split(path, ".")...)
		return
	}
	kit.Must(t, unstructured.SetNestedField(object.Object, value, strings.Split(path, ".")...))
}

func checkRejected(t *testing.T, err error, field string) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), field) {
		t.Errorf("got %v, want an error that names %s", err, field)
	}
}

// TestNamespaceOfReferences checks that references without a namespace get the namespace of the object, even if only the
// request contains the namespace.
func TestNamespaceOfReferences(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ensureNamespace(t, c, "garden-references")
	for resource, manifest := range map[string]string{
		"core.gardener.cloud/v1beta1/namespaces/garden-references/secretbindings": `{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding", "metadata": {"name": "a"},
			"provider": {"type": "local"}, "secretRef": {"name": "s"}, "quotas": [{"name": "q"}]}`,
		"security.gardener.cloud/v1alpha1/namespaces/garden-references/credentialsbindings": `{"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding", "metadata": {"name": "a"},
			"provider": {"type": "local"}, "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}, "quotas": [{"name": "q"}]}`,
	} {
		object := &unstructured.Unstructured{}
		output := mustKubectl(t, manifest, "create", "--raw", "/apis/"+resource, "--filename", "-")
		_, body, _ := strings.Cut(output, "{") // skips warnings
		kit.Must(t, object.UnmarshalJSON([]byte("{"+body)))
		for _, field := range []string{"secretRef", "credentialsRef"} {
			if ref, found, _ := unstructured.NestedMap(object.Object, field); found && ref["namespace"] != "garden-references" {
				t.Errorf("%s: %s is %v", resource, field, ref)
			}
		}
		quotas, _, err := unstructured.NestedSlice(object.Object, "quotas")
		kit.Must(t, err)
		if quota, is := quotas[0].(map[string]any); !is || quota["namespace"] != "garden-references" {
			t.Errorf("%s: quotas are %v", resource, quotas)
		}
	}
}
