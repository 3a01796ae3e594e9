package integration

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestPolicyOfTheSecurityPage: with the policy, ManagedResources of tenants must name a ServiceAccount of their own
// namespace. Others need not.
func TestPolicyOfTheSecurityPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	page, err := os.ReadFile("../../docs/security.md")
	must(t, err)
	_, policy, found := strings.Cut(string(page), "```yaml\n")
	policy, _, ends := strings.Cut(policy, "```")
	if !found || !ends {
		t.Fatal("the page has no policy")
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(policy), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		must(t, f.client.Create(f.ctx, object))
		t.Cleanup(func() { must(t, f.client.Delete(context.WithoutCancel(f.ctx), object)) })
	}
	create := func(account string) error {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, GenerateName: "set-"}}
		mr.Spec.SecretRefs, mr.Spec.ServiceAccountName = []resourcesv1alpha1.LocalObjectReference{}, account
		return f.client.Create(f.ctx, mr, client.DryRunAll)
	}
	must(t, create("")) // the namespace does not belong to a tenant
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	must(t, f.client.Patch(f.ctx, namespace, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"example.org/tenant":"true"}}}`))))
	f.eventually("the policy is in force", func() bool {
		err := create("")
		return err != nil && strings.Contains(err.Error(), "name a ServiceAccount of the namespace in spec.serviceAccountName")
	})
	if err := create("kube-system/admin"); err == nil || !strings.Contains(err.Error(), "name a ServiceAccount") {
		t.Errorf("a ServiceAccount of another namespace is allowed: %v", err)
	}
	must(t, create("robot"))
}
