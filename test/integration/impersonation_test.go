package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestServiceAccountLimitsApply(t *testing.T) {
	f := newFixture(t)
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: "robot"}
	secret := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: %s}\n", f.namespace)
	mr := f.manage("set", f.configMap("one", "1"), secret)
	f.change(mr, func() { mr.Spec.ServiceAccountName = "robot" })

	mr, _, err := f.reconcile("set")
	if err == nil {
		t.Error("the missing ServiceAccount is not looked up again")
	}
	wantContains(t, applied(mr).Message, "Nothing is applied or pruned (1): spec.serviceAccountName", f.namespace+"/robot", "not found")
	f.wantNoConfigMap("one")

	must(t, f.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: meta}))
	must(t, f.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "delete"},
	}}}))
	must(t, f.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "robot"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "robot"},
	}))
	f.reconcileUntil("set", "the ConfigMap is applied", func(*resourcesv1alpha1.ManagedResource) bool {
		return f.liveConfigMap("one") != nil
	})
	mr, _, _ = f.reconcile("set")
	wantContains(t, applied(mr).Message, "v1/Secret/"+f.namespace+"/secret", "forbidden", "system:serviceaccount:"+f.namespace+":robot")

	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	mr = f.reconcileOK("set")
	f.change(mr, func() { mr.Spec.ServiceAccountName = f.namespace + "/robot" })
	f.secret("set", "objects.yaml", f.configMap("one", "3"))
	mr = f.reconcileOK("set")
	f.wantConfigMap("one", "3")

	// Without the ServiceAccount, the resource-manager deletes nothing under its own identity.
	must(t, f.client.Delete(f.ctx, &corev1.ServiceAccount{ObjectMeta: meta}))
	must(t, f.client.Delete(f.ctx, mr))
	mr, _, _ = f.reconcile("set")
	wantContains(t, applied(mr).Message, "Nothing is deleted (1): spec.serviceAccountName", "not found")
	f.wantConfigMap("one", "3")
	must(t, f.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: meta}))
	f.reconcileUntil("set", "the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
	f.wantNoConfigMap("one")
}

// TestIgnoredObjectAtRest: an ignored object is checked even if nothing else changes, and created again if it was
// deleted.
func TestIgnoredObjectAtRest(t *testing.T) {
	f := newFixture(t)
	f.manage("set", strings.Replace(f.configMap("one", "1"), "metadata:\n", "metadata:\n  annotations: {resources.gardener.cloud/ignore: \"true\"}\n", 1))
	f.reconcileOK("set")
	f.reconcileOK("set")
	must(t, f.client.Delete(f.ctx, f.wantConfigMap("one", "1")))
	f.reconcileOK("set")
	f.wantConfigMap("one", "1")
}
