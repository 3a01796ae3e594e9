package integration

import (
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// web is a Deployment with a field that its next version does not have.
func (f *fixture) web(extra string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: %s
  labels: {app: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: example.org/web:1
%s`, f.namespace, extra)
}

const obsolete = `        env: [{name: OBSOLETE, value: "1"}]
`

func (f *fixture) liveDeployment() *appsv1.Deployment {
	f.Helper()
	deployment := &appsv1.Deployment{}
	must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "web"}, deployment))
	return deployment
}

// toObject decodes a manifest.
func toObject[T any](f *fixture, manifest string, obj T) T {
	f.Helper()
	must(f, yaml.Unmarshal([]byte(manifest), obj))
	return obj
}

// serverSideApply applies a manifest like another tool.
func (f *fixture) serverSideApply(manifest, manager string) {
	f.Helper()
	var obj map[string]any
	must(f, yaml.Unmarshal([]byte(manifest), &obj))
	body, err := json.Marshal(obj)
	must(f, err)
	deployment := toObject(f, manifest, &appsv1.Deployment{})
	must(f, f.client.Patch(f.ctx, deployment, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(manager),
		client.ForceOwnership))
}

// TestTakeOver lets the resource-manager take over a Deployment that another tool applied. The Deployment must
// neither be recreated nor rolled out, and fields that then leave the manifest must be removed.
func TestTakeOver(t *testing.T) {
	for name, apply := range map[string]func(f *fixture, manifest string){
		"gardener-resource-manager (update)": func(f *fixture, manifest string) {
			must(f, f.client.Create(f.ctx, toObject(f, manifest, &appsv1.Deployment{}), client.FieldOwner("gardener-resource-manager")))
		},
		"kubectl apply": func(f *fixture, manifest string) {
			deployment := toObject(f, manifest, &appsv1.Deployment{})
			deployment.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
			must(f, f.client.Create(f.ctx, deployment, client.FieldOwner("kubectl-client-side-apply")))
		},
		"kubectl apply --server-side": func(f *fixture, manifest string) { f.serverSideApply(manifest, "kubectl") },
		"Helm": func(f *fixture, manifest string) {
			must(f, f.client.Create(f.ctx, toObject(f, manifest, &appsv1.Deployment{}), client.FieldOwner("helm")))
		},
		"Flux":    func(f *fixture, manifest string) { f.serverSideApply(manifest, "kustomize-controller") },
		"Argo CD": func(f *fixture, manifest string) { f.serverSideApply(manifest, "argocd-controller") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			apply(f, f.web(obsolete))
			before := f.liveDeployment()
			f.manage("set", f.web(obsolete))
			f.reconcileOK("set")
			taken := f.liveDeployment()
			// The generation of a Deployment also changes with its annotations, so it proves nothing.
			if taken.UID != before.UID || !equality.Semantic.DeepEqual(taken.Spec, before.Spec) {
				t.Errorf("the Deployment was recreated or rolled out: UID %s → %s, spec %+v → %+v",
					before.UID, taken.UID, before.Spec, taken.Spec)
			}
			f.requests.writes()
			f.reconcileOK("set")
			if writes := f.requests.writes(); len(writes) > 0 {
				t.Errorf("the second reconcile writes %v", writes)
			}

			f.secret("set", "objects.yaml", f.web(""))
			f.reconcileOK("set")
			after := f.liveDeployment()
			if env := after.Spec.Template.Spec.Containers[0].Env; len(env) > 0 {
				t.Errorf("the removed field still exists: %v", env)
			}
			if after.UID != before.UID {
				t.Error("the Deployment was recreated")
			}
			t.Logf("managers before: %v, after: %v", managers(before), managers(after))
		})
	}
}

func managers(obj metav1.Object) []string {
	var names []string
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "" {
			names = append(names, fmt.Sprintf("%s (%s)", entry.Manager, entry.Operation))
		}
	}
	return names
}

func TestAddedFieldsAreRemoved(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.web(""), f.configMap("one", "1"))
	f.reconcileOK("set")

	deployment := f.liveDeployment()
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Template.Spec.Containers = append(deployment.Spec.Template.Spec.Containers,
		corev1.Container{Name: "debug", Image: "example.org/debug"})
	deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DEBUG", Value: "1"}}
	deployment.Labels["mine"] = "kept"
	must(t, f.client.Patch(f.ctx, deployment, patch, client.FieldOwner("kubectl-edit")))
	configMap := f.liveConfigMap("one")
	configMap.Data["added"] = "by hand"
	must(t, f.client.Update(f.ctx, configMap, client.FieldOwner("kubectl-patch")))

	f.reconcileOK("set")
	deployment = f.liveDeployment()
	if containers := deployment.Spec.Template.Spec.Containers; len(containers) != 1 || len(containers[0].Env) > 0 {
		t.Errorf("the containers are %+v", containers)
	}
	if deployment.Labels["mine"] != "kept" {
		t.Errorf("the labels are %v", deployment.Labels)
	}
	if data := f.liveConfigMap("one").Data; len(data) != 1 {
		t.Errorf("the data is %v", data)
	}
	f.requests.writes()
	f.reconcileOK("set")
	if writes := f.requests.writes(); len(writes) > 0 {
		t.Errorf("the next reconcile writes %v", writes)
	}
}

func TestFieldsOfControllersAreKept(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.web(""))
	f.reconcileOK("set")
	deployment := f.liveDeployment()
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
	must(t, f.client.Patch(f.ctx, deployment, patch, client.FieldOwner("kubectl-rollout")))
	patch = client.MergeFrom(deployment.DeepCopy())
	deployment.Finalizers = []string{"example.org/other"}
	deployment.Annotations["example.org/injected"] = "yes"
	must(t, f.client.Patch(f.ctx, deployment, patch, client.FieldOwner("injector")))

	f.secret("set", "objects.yaml", f.web("        command: [run]\n"))
	f.reconcileOK("set")
	deployment = f.liveDeployment()
	if deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Error("the annotation of kubectl rollout restart was removed")
	}
	if len(deployment.Finalizers) != 1 || deployment.Annotations["example.org/injected"] != "yes" {
		t.Errorf("the finalizers are %v, the annotations %v", deployment.Finalizers, deployment.Annotations)
	}
	if len(deployment.Spec.Template.Spec.Containers[0].Command) != 1 {
		t.Error("the new field is not applied")
	}
	must(t, f.client.Patch(f.ctx, deployment,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

// TestEditThatIsInvalidBesideTheManifestIsPutBack: a user changes the number of a Service's port. Next to the
// manifest's port, which has the same name, it is invalid.
func TestEditThatIsInvalidBesideTheManifestIsPutBack(t *testing.T) {
	f := newFixture(t)
	f.manage("set", "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: "+f.namespace+"}\n"+
		"spec: {ports: [{name: http, port: 80, protocol: TCP}]}\n")
	f.reconcileOK("set")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"}}
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(service), service))
	uid := service.UID
	service.Spec.Ports[0].Port = 81
	must(t, f.client.Update(f.ctx, service, fieldOwner("kubectl-edit")))
	f.reconcileOK("set")
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(service), service))
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 80 || service.UID != uid {
		t.Errorf("the ports are %v, the UID %s, was %s", service.Spec.Ports, service.UID, uid)
	}
}

// TestTakeOverOfAnInvalidObject: a predecessor leaves a Service whose port has the same name as the manifest's port,
// but a different number.
func TestTakeOverOfAnInvalidObject(t *testing.T) {
	for name, test := range map[string]struct {
		manager  string
		manifest string
		says     string
	}{
		"of a predecessor":                 {"helm", "[{name: http, port: 80, protocol: TCP}]", ""},
		"of a person":                      {"kubectl-create", "[{name: http, port: 80, protocol: TCP}]", ""},
		"of a client":                      {"Mozilla", "[{name: http, port: 80, protocol: TCP}]", ""},
		"of a controller":                  {"kube-controller-manager", "[{name: http, port: 80, protocol: TCP}]", ""},
		"beside a manifest that is wrong":  {"helm", "[{name: http, port: 80, protocol: TCP}, {name: http, port: 82, protocol: TCP}]", "Duplicate value"},
		"beside a manifest of other wrong": {"helm", "[{name: http, port: 80, protocol: TCP}, {name: HTTP_, port: 82, protocol: TCP}]", "Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"}}
			service.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 81, Protocol: corev1.ProtocolTCP}}
			must(t, f.client.Create(f.ctx, service, fieldOwner(test.manager)))
			uid, version := service.UID, service.ResourceVersion
			f.manage("set", "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: "+f.namespace+"}\nspec: {ports: "+test.manifest+"}\n")
			mr, _, _ := f.reconcile("set")
			must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(service), service))
			if test.says != "" {
				wantContains(t, applied(mr).Message, test.says)
				if service.ResourceVersion != version {
					t.Errorf("the Service was written: %+v", service)
				}
				return
			}
			if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 80 || service.UID != uid || applied(mr).Status != resourcesv1alpha1.ConditionTrue {
				t.Errorf("the ports are %v, the UID %s, was %s; %+v", service.Spec.Ports, service.UID, uid, applied(mr))
			}
		})
	}
}
