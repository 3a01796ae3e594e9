package trouble

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// account creates a ServiceAccount and returns its access to the API server.
func (w *world) account(name string) *rest.Config {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	kit.Must(w, w.client.Create(w.Context(), account))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](7200)}}
	kit.Must(w, w.client.SubResource("token").Create(w.Context(), account, request))
	config := rest.AnonymousClientConfig(w.controlPlane.Config())
	config.BearerToken, config.QPS = request.Status.Token, -1
	return config
}

// grant grants cluster-wide rights to the ServiceAccount "manager" until the test ends or the binding is deleted.
func (w *world) grant(name string, rules []rbacv1.PolicyRule) client.Object {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: w.namespace + "-" + name + "-"}, Rules: rules}
	kit.Must(w, w.client.Create(w.Context(), role))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "manager"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	kit.Must(w, w.client.Create(w.Context(), binding))
	w.Cleanup(func() {
		_ = w.client.Delete(context.Background(), role)
		_ = w.client.Delete(context.Background(), binding)
	})
	return binding
}

// TestTokenOfTargetExpires makes the token in the file of the target's kubeconfig invalid, as if it had expired,
// and then replaces it. No object may be lost in between, the condition must report the problem, and processing
// must continue with the new token without a restart.
func TestTokenOfTargetExpires(t *testing.T) {
	takesLong(t) // client-go reads the file again after a minute
	t.Parallel()
	w := newWorld(t)
	everything := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	w.grant("everything", everything)
	config := w.account("manager")
	file := w.file("token", []byte(config.BearerToken))
	config.BearerToken, config.BearerTokenFile = "", file
	p := w.startBinary(w.kubeconfigOf(w.controlPlane.Config()), w.kubeconfigOf(config), noElection)
	w.declare("set", configMap("one", "1"), configMap("leaves", "1"))
	w.eventuallyHolds("at first")
	before := w.uid(configMap("one", ""))

	kit.Must(t, w.client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "manager"}}))
	kit.EventuallyTrue(t, "the token is refused", func() bool {
		c, err := client.New(config, client.Options{Scheme: w.client.Scheme(), Mapper: w.client.RESTMapper()})
		kit.Must(t, err)
		return c.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "one"}, &corev1.ConfigMap{}) != nil
	})
	w.declare("set", configMap("one", "2"), configMap("comes", "1"))
	w.eventuallyApplied("set", isFalse, "ApplyFailed", "Unauthorized")
	if got := len(w.read("set").Status.Resources); got != 3 {
		t.Errorf("the inventory has %d objects, want 3", got)
	}
	kit.Must(t, writeFile(file, []byte(w.account("manager").BearerToken)))
	w.eventuallyHolds("with the new token")
	if after := w.uid(configMap("one", "")); after != before {
		t.Errorf("the UID is %s, was %s", after, before)
	}
	p.Stop()
}

// TestKubeconfigRotated replaces the kubeconfig of the target with one that has other credentials, and restarts
// the resource-manager, as a rotation requires. This must not cause any write.
func TestKubeconfigRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grant("everything", []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}})
	admin := w.kubeconfigOf(w.controlPlane.Config())
	p := w.startBinary(admin, admin, noElection)
	w.declare("set", configMap("one", "1"), service("two", 1))
	w.eventuallyHolds("at first")
	versions := []string{w.live(configMap("one", "1")).GetResourceVersion(), w.live(service("two", 1)).GetResourceVersion()}
	p.Stop()
	p = w.startBinary(admin, w.kubeconfigOf(w.account("manager")), noElection)
	w.declare("other", configMap("three", "1"))
	w.eventuallyHolds("with the new kubeconfig")
	for i, manifest := range []string{configMap("one", "1"), service("two", 1)} {
		if after := w.live(manifest).GetResourceVersion(); after != versions[i] {
			t.Errorf("the resourceVersion is %s, was %s", after, versions[i])
		}
	}
	p.Stop()
}
