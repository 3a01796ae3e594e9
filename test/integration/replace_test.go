package integration

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

const replaceable = `annotations: {resources.gardener.cloud/delete-on-invalid-update: "true"}`

// replaceableService returns the manifest of a Service that is replaced when its update is invalid.
func (f *fixture) replaceableService(spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: %s, %s}\nspec: %s\n",
		f.namespace, replaceable, spec)
}

// TestNothingIsDeletedForWhatCannotBeCreated updates objects in a way that requires a replacement. The new manifest
// contains a value that no API server would ever accept.
func TestNothingIsDeletedForWhatCannotBeCreated(t *testing.T) {
	for name, test := range map[string]struct {
		manifest func(f *fixture, version string) string
		// hopeless makes the manifest impossible to create.
		old, hopeless    string
		apiVersion, kind string
		object           string
		says             string
	}{
		"Deployment": {
			manifest: func(f *fixture, version string) string {
				return strings.Replace(strings.ReplaceAll(f.web(""), "app: web", "app: v"+version), "metadata:\n", "metadata:\n  "+replaceable+"\n", 1)
			},
			old: "name: web\n        image", hopeless: "name: Not_A_Name\n        image",
			apiVersion: "apps/v1", kind: "Deployment", object: "web", says: "containers[0].name",
		},
		"immutable ConfigMap": {
			manifest: func(f *fixture, version string) string { return f.configMap("one", version) + "immutable: true\n" },
			old:      "  key:", hopeless: "  \"no key\":",
			apiVersion: "v1", kind: "ConfigMap", object: "one", says: "data[no key]",
		},
		"immutable Secret": {
			manifest: func(f *fixture, version string) string {
				return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: %s}\nimmutable: true\n"+
					"type: kubernetes.io/tls\nstringData: {tls.crt: crt%s, tls.key: key}\n", f.namespace, version)
			},
			old: ", tls.key: key", hopeless: "",
			apiVersion: "v1", kind: "Secret", object: "s", says: "data[tls.key]",
		},
		"custom resource": {
			manifest: (*fixture).fixedWidget,
			old:      "size: 1", hopeless: "size: 0",
			apiVersion: "widgets.example.org/v1", kind: "Widget", object: "w", says: "spec.size",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.manage("set", test.manifest(f, "1"))
			f.reconcileOK("set")
			before := f.getObject(test.apiVersion, test.kind, test.object)

			f.secret("set", "objects.yaml", strings.Replace(test.manifest(f, "2"), test.old, test.hopeless, 1))
			mr, result, err := f.reconcile("set")
			wantContains(t, applied(mr).Message, "not replaced, because creating it again would also fail", test.says)
			wantRetry(t, false, result, err)
			if live := f.getObject(test.apiVersion, test.kind, test.object); live.GetUID() != before.GetUID() {
				t.Error("the object was deleted")
			}

			f.secret("set", "objects.yaml", test.manifest(f, "2"))
			f.reconcileUntil("set", "the object is replaced", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Status == resourcesv1alpha1.ConditionTrue
			})
			if live := f.getObject(test.apiVersion, test.kind, test.object); live.GetUID() == before.GetUID() {
				t.Error("the object was not replaced once that was possible")
			}
		})
	}
}

// fixedWidget returns a custom resource and its definition. The version is immutable and the size is at least 1.
func (f *fixture) fixedWidget(version string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.widgets.example.org}
spec:
  group: widgets.example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              version: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: it cannot be changed}]}
              size: {type: integer, minimum: 1}
---
apiVersion: widgets.example.org/v1
kind: Widget
metadata: {name: w, namespace: %s, %s}
spec: {version: "%s", size: 1}
`, f.namespace, replaceable, version)
}

// TestReplacementDespiteWhatTheOldObjectHolds replaces objects whose replacement cannot exist next to them, because
// the old object holds a value that the new one needs. Node ports that are not requested are allocated from 30086 on
// (KEP-3070), so that no Service of another test gets this one.
func TestReplacementDespiteWhatTheOldObjectHolds(t *testing.T) {
	for name, test := range map[string]struct {
		prepare  func(f *fixture)
		old, new func(f *fixture) string
		object   string
		kind     string
	}{
		"a node port": {
			old: func(f *fixture) string {
				return f.replaceableService("{type: LoadBalancer, loadBalancerClass: example.org/a, ports: [{port: 80, nodePort: 30042}]}")
			},
			new: func(f *fixture) string {
				return f.replaceableService("{type: LoadBalancer, loadBalancerClass: example.org/b, ports: [{port: 80, nodePort: 30042}]}")
			},
			kind: "Service", object: "front",
		},
		"the quota": {
			prepare: func(f *fixture) { f.quota(2) },
			old:     func(f *fixture) string { return f.configMap("one", "1") + "immutable: true\n" },
			new:     func(f *fixture) string { return f.configMap("one", "2") + "immutable: true\n" },
			kind:    "ConfigMap", object: "one",
		},
		"an API server that does not answer": {
			prepare: func(f *fixture) {
				f.requests.breakWith(func(request *http.Request) error {
					if request.Method == http.MethodPost {
						return errors.New("broken")
					}
					return nil
				})
			},
			old:  func(f *fixture) string { return f.configMap("one", "1") + "immutable: true\n" },
			new:  func(f *fixture) string { return f.configMap("one", "2") + "immutable: true\n" },
			kind: "ConfigMap", object: "one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.prepare != nil {
				test.prepare(f)
			}
			f.manage("set", test.old(f))
			f.reconcileOK("set")
			uid := f.getObject("v1", test.kind, test.object).GetUID()
			f.secret("set", "objects.yaml", test.new(f))
			f.reconcileUntil("set", "the object is replaced", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Status == resourcesv1alpha1.ConditionTrue
			})
			if f.getObject("v1", test.kind, test.object).GetUID() == uid {
				t.Error("the object was not replaced")
			}
		})
	}
}

// quota sets a quota of ConfigMaps in the fixture's namespace. Kubernetes itself creates one of them.
func (f *fixture) quota(configMaps int64) {
	f.Helper()
	f.eventually("Kubernetes has created its own", func() bool { return f.liveConfigMap("kube-root-ca.crt") != nil })
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "quota"}}
	quota.Spec.Hard = corev1.ResourceList{"count/configmaps": *resource.NewQuantity(configMaps, resource.DecimalSI)}
	must(f, f.client.Create(f.ctx, quota))
	f.eventually("the quota is in force", func() bool {
		must(f, f.client.Get(f.ctx, client.ObjectKeyFromObject(quota), quota))
		used, counted := quota.Status.Used["count/configmaps"]
		return counted && used.Value() == 1
	})
}

// TestNothingIsDeletedWithoutTheRightToCreate: a ServiceAccount that may delete an object loses the right to create
// it.
func TestNothingIsDeletedWithoutTheRightToCreate(t *testing.T) {
	f := newFixture(t)
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: "robot"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch", "delete", "create"},
	}}}
	must(t, f.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: meta}))
	must(t, f.client.Create(f.ctx, role))
	must(t, f.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "robot"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "robot"},
	}))
	mr := f.manage("set", f.configMap("one", "1")+"immutable: true\n")
	f.change(mr, func() { mr.Spec.ServiceAccountName = "robot" })
	f.reconcileUntil("set", "the ConfigMap is applied", func(*resourcesv1alpha1.ManagedResource) bool {
		return f.liveConfigMap("one") != nil
	})
	f.reconcileOK("set")

	role.Rules[0].Verbs = role.Rules[0].Verbs[:3]
	must(t, f.client.Update(f.ctx, role))
	f.eventually("the ServiceAccount may not create ConfigMaps", func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + f.namespace + ":robot",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: f.namespace, Verb: "create", Resource: "configmaps"},
		}}
		must(t, f.client.Create(f.ctx, review))
		return !review.Status.Allowed
	})
	f.secret("set", "objects.yaml", f.configMap("one", "2")+"immutable: true\n")
	mr, _, err := f.reconcile("set")
	if err == nil {
		t.Error("the replacement is not retried")
	}
	wantContains(t, applied(mr).Message, "not replaced, because creating it again would also fail", "cannot create resource")
	f.wantConfigMap("one", "1")
}

func TestTrialCreatesNothing(t *testing.T) {
	f := newFixture(t)
	config := shared.Get(t).Config()
	httpClient, err := rest.HTTPClientFor(config)
	must(t, err)
	objects, err := target.NewObjects(config, httpClient)
	must(t, err)
	ref := object.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: f.namespace, Name: "one"}
	body, err := yaml.YAMLToJSON([]byte(f.configMap("one", "1")))
	must(t, err)
	must(t, objects.TryCreate(t.Context(), ref, body, metav1.FieldValidationStrict))
	f.wantNoConfigMap("one")
}

// TestReplacementIsTriedAgain makes each of the two steps of a replacement fail once, for a temporary reason.
func TestReplacementIsTriedAgain(t *testing.T) {
	for step, belongs := range map[string]func(*http.Request) bool{
		"deletion": func(r *http.Request) bool { return r.Method == http.MethodDelete },
		"creation": func() func(*http.Request) bool {
			updated := false // the first patch is the update that is invalid
			return func(r *http.Request) bool {
				second := r.Method == http.MethodPatch && updated
				updated = updated || r.Method == http.MethodPatch
				return second
			}
		}(),
	} {
		t.Run(step, func(t *testing.T) {
			f := newFixture(t)
			f.manage("set", f.configMap("one", "1")+"immutable: true\n")
			f.reconcileOK("set")
			f.secret("set", "objects.yaml", f.configMap("one", "2")+"immutable: true\n")
			f.requests.breakWith(func(request *http.Request) error {
				if belongs(request) {
					return errors.New("connection refused")
				}
				return nil
			})
			if mr, _, err := f.reconcile("set"); err == nil {
				t.Errorf("the replacement is not retried: %v", applied(mr))
			}
			f.requests.breakWith(nil)
			f.reconcileOK("set")
			f.wantConfigMap("one", "2")
		})
	}
}
