package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fight"
)

// provoke makes another client change the ConfigMap "one" until this is a fight.
func (f *fixture) provoke() {
	f.Helper()
	for range fight.Tolerance + 1 {
		f.patch(f.configMap("one", "1"), "some-operator", `{"data":{"key":"theirs"}}`)
		f.reconcileOnce("set")
	}
	wantContains(f, applied(f.read("set")).Message, "Fighting over fields", `the field manager "some-operator"`, "ssa: Merge", "spec.driftDetection.ignore")
}

// TestFightEndsWithItsCause: a fight is no longer reported when the manifests or the ManagedResource leave the field to
// the other client.
func TestFightEndsWithItsCause(t *testing.T) {
	for name, end := range map[string]func(f *fixture, mr *resourcesv1alpha1.ManagedResource){
		"the field is ignored": func(f *fixture, mr *resourcesv1alpha1.ManagedResource) {
			f.refresh(mr, func() {
				mr.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{Ignore: []resourcesv1alpha1.IgnoreRule{
					{Kind: "ConfigMap", Name: "one", Paths: []string{"/data/key"}},
				}}
			})
		},
		"the field leaves the manifest": func(f *fixture, _ *resourcesv1alpha1.ManagedResource) {
			f.secret("set", "objects.yaml", strings.Replace(f.configMap("one", "1"), "  key:", "  other:", 1))
		},
		"the ManagedResource is created again": func(f *fixture, mr *resourcesv1alpha1.ManagedResource) {
			f.delete(mr)
			f.managedResource("set", "set")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			mr := f.manage("set", f.configMap("one", "1"))
			f.reconcileOK("set")
			f.provoke()
			end(f, mr)
			f.reconcileUntil("set", "the fight is not reported", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Message == "All resources are applied."
			})
		})
	}
}

// TestFightOverDeletions reports that an object keeps being deleted.
func TestFightOverDeletions(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	for range fight.Tolerance + 1 {
		must(t, f.client.Delete(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one"}}))
		f.reconcileOnce("set")
	}
	wantContains(t, applied(f.read("set")).Message, "ConfigMap/"+f.namespace+"/one keeps being deleted by another client")
}

// TestRemovedAdditionsAreNamed: an Event names what a server had filled in, and how to keep it.
func TestRemovedAdditionsAreNamed(t *testing.T) {
	f := newFixture(t)
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: certs, namespace: NS}\n"
	f.manage("set", f.here(secret))
	f.reconcileOK("set")
	f.patch(secret, "webhook", `{"data":{"server-key.pem":"YQ==","server-cert.pem":"Yg=="}}`)
	f.reconcileOK("set")
	event := f.event()
	wantContains(t, event, "Corrected 1", "Secret/"+f.namespace+"/certs: data.server-cert.pem, data.server-key.pem", "ssa: Merge")
	if strings.Contains(event, "YQ==") {
		t.Errorf("the Event repeats the data: %s", event)
	}
}

// TestInvalidUpdateNamesTheReplacement: the message names the annotation for a replacement, but not if data would be
// lost, or if the object could not be created.
func TestInvalidUpdateNamesTheReplacement(t *testing.T) {
	f := newFixture(t)
	binding := func(role string) string {
		return f.here("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x, namespace: NS}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + role + "}\n")
	}
	const hint = `set the annotation resources.gardener.cloud/delete-on-invalid-update: "true"`
	f.manage("set", binding("a"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", binding("b"))
	mr, _, _ := f.reconcile("set")
	wantContains(t, applied(mr).Message, hint)
	f.secret("set", "objects.yaml", binding(`""`))
	if mr, _, _ := f.reconcile("set"); strings.Contains(applied(mr).Message, hint) || applied(mr).Status == resourcesv1alpha1.ConditionTrue {
		t.Errorf("the message is %s", applied(mr).Message)
	}
}
