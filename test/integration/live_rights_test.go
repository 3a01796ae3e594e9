package integration

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestLiveForbiddenToWatch runs as a user with all rights on ConfigMaps except list and watch. ConfigMaps are
// applied, and each one is read at every sync, which corrects drift. The log reports the problem once. After the
// right is granted, watches report drift.
func TestLiveForbiddenToWatch(t *testing.T) {
	f := newFixture(t)
	token := f.account("target")
	everywhere := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "update", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"secrets", "services"}, Verbs: []string{"*"}},
		{APIGroups: []string{"autoscaling"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}
	f.grant("some", everywhere)
	kubeconfig := f.kubeconfig(func(user *clientcmdapi.AuthInfo, _ *clientcmdapi.Cluster) {
		*user = clientcmdapi.AuthInfo{Token: token}
	})
	p := f.startIn([]string{f.namespace}, "controllers: {managedResource: {syncPeriod: 15s}}\n"+noElection+
		"targetClientConnection: {kubeconfig: "+kubeconfig+", qps: -1}\n")
	f.manage("set", f.configMap("one", "1"), f.here(driftKinds()["Secret"].named("x")))
	f.eventuallySucceeded("set")
	if watching, failing := p.metric(watchesWatching), p.metric(watchesFailing); watching != 1 || failing != 1 {
		t.Errorf("%v watches work and %v fail, want one each", watching, failing)
	}
	f.eventuallyRestored("one", "1")
	f.putBack(f.here(driftKinds()["Secret"].named("x")))
	must(t, f.client.Delete(f.ctx, f.object(f.configMap("one", ""))))
	f.eventually("the ConfigMap is recreated", func() bool { return f.liveConfigMap("one") != nil })
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
	if count := strings.Count(p.Written.String(), "Cannot watch objects of the target cluster"); count != 1 {
		t.Errorf("the log reports %d times that objects cannot be watched", count)
	}
	t.Logf("the log has %d lines about forbidden requests", strings.Count(p.Written.String(), "forbidden"))

	f.grant("rest", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}})
	f.eventually("all kinds are watched", func() bool { return p.metric(watchesWatching) == 2 && p.metric(watchesFailing) == -1 })
	f.eventuallyRestored("one", "1")
	p.Stop()
}

// grant grants the ServiceAccount "target" rights in the whole cluster.
func (f *fixture) grant(name string, rules []rbacv1.PolicyRule) {
	f.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "target"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	must(f, f.client.Create(f.ctx, role))
	must(f, f.client.Create(f.ctx, binding))
	f.Cleanup(func() {
		_ = f.client.Delete(context.Background(), role)
		_ = f.client.Delete(context.Background(), binding)
	})
}
