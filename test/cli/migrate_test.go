package cli

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/test/kit"
)

// migrated are manifests that another tool applied before with another colour.
const migrated = configMap + `---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: $NS}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: $NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.org/web:1}]}
`

// predecessor is a tool that applies objects.
type predecessor struct {
	manager string
	// labels and annotations are its marks. $NS is replaced by the namespace.
	labels, annotations map[string]string
	// serverSide is whether it uses server-side apply.
	serverSide bool
	// says is the expected output of migrate.
	says []string
}

var predecessors = map[string]predecessor{
	"gardener-resource-manager": {
		manager: "gardener-resource-manager", labels: map[string]string{"resources.gardener.cloud/managed-by": "gardener"},
		annotations: map[string]string{"resources.gardener.cloud/origin": "$NS/shop", "resources.gardener.cloud/description": resourcesv1alpha1.Description},
		says: []string{"1 to change, 2 unchanged; 3 of them currently applied by another tool", "It is suspended", "applied by gardener-resource-manager (ManagedResource $NS/shop)",
			"kubectl scale deployment gardener-resource-manager -n $NS --replicas 0"},
	},
	"Flux": {
		manager: "kustomize-controller", serverSide: true,
		labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
		says: []string{"3 to change; 3 of them currently applied by another tool", "~ Deployment $NS/web, applied by Flux (Kustomization flux-system/shop)",
			"Kept by kustomize-controller: .spec.replicas", ".metadata.labels.kustomize.toolkit.fluxcd.io/name",
			"kubectl patch kustomizations.kustomize.toolkit.fluxcd.io shop -n flux-system --type merge -p '{\"spec\":{\"suspend\":true}}'"},
	},
	"Flux by Helm": {
		manager: "helm-controller",
		labels: map[string]string{
			"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "$NS", "app.kubernetes.io/managed-by": "Helm",
		},
		annotations: map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "$NS"},
		says:        []string{"applied by Flux (HelmRelease $NS/shop)", "it uninstalls the release"},
	},
	"Argo CD": {
		manager: "argocd-controller",
		annotations: map[string]string{
			"argocd.argoproj.io/tracking-id": "shop:v1/ConfigMap:$NS/settings", "kubectl.kubernetes.io/last-applied-configuration": "{}",
		},
		says: []string{"applied by Argo CD (Application shop)", ".metadata.annotations.argocd.argoproj.io/tracking-id",
			"kubectl patch applications.argoproj.io shop -n argocd --type merge -p '{\"metadata\":{\"finalizers\":null}}'"},
	},
}

// TestMigratePredictsTheTakeOver creates objects as each predecessor leaves them, and lets migrate predict the changes of a take-over.
// Then the resource-manager takes the objects over. The test compares its writes, by the API server's audit log, and the resulting
// objects with the prediction.
func TestMigratePredictsTheTakeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, before := range predecessors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := w.namespace(t)
			manifests := strings.ReplaceAll(migrated, "$NS", namespace)
			left := w.leave(t, before, namespace, strings.Replace(manifests, "blue", "red", 1))
			documents, err := pack.Parse("manifests", []byte(manifests))
			kit.Must(t, err)
			parcel, err := pack.Pack(documents, pack.Options{Namespace: namespace, Name: "shop"})
			kit.Must(t, err)
			migrate, takeOver := []string{"migrate", "shop", "-n", namespace, "-f", "-"}, []string{"create", "shop", "-n", namespace, "-f", "-"}
			if before.manager == "gardener-resource-manager" {
				w.leaveManagedResource(t, parcel, left)
				migrate, takeOver = []string{"migrate", "-n", namespace}, []string{"resume", "shop", "-n", namespace}
			}
			out := w.runCall(call{args: migrate, in: manifests})
			for _, text := range append(before.says, "~ ConfigMap $NS/settings", "- colour: red", "+ colour: blue", "move to the resource-manager") {
				out.says(t, 1, strings.ReplaceAll(text, "$NS", namespace))
			}
			w.checkJSON(t, call{args: append(migrate, "-o", "json"), in: manifests}, before.manager)
			foreseen := w.foresee(t, parcel)

			skip := lines(t, auditLog)
			w.runCall(call{args: takeOver, in: manifests}).says(t, 0)
			w.run("wait", "shop", "-n", namespace, "--for", "applied").says(t, 0)
			w.eventually(t, 0, []string{"3 unchanged"}, "diff", "shop", "-n", namespace)
			var written []string
			for _, each := range writtenSince(t, auditLog, skip) {
				if strings.Contains(each, " "+namespace+"/") {
					written = append(written, each)
				}
			}
			if want := slices.Sorted(keys(foreseen)); !slices.Equal(written, want) {
				t.Errorf("written\n  %s\npredicted\n  %s", strings.Join(written, "\n  "), strings.Join(want, "\n  "))
			}
			for name, want := range foreseen {
				w.checkTaken(t, name, before.manager, left, want)
			}
		})
	}
}

// leave creates objects like a predecessor, and returns them.
func (w *world) leave(t *testing.T, before predecessor, namespace, manifests string) []*unstructured.Unstructured {
	t.Helper()
	documents, err := pack.Parse("manifests", []byte(manifests))
	kit.Must(t, err)
	var left []*unstructured.Unstructured
	for _, document := range documents {
		obj := &unstructured.Unstructured{Object: document.Object}
		for field, marks := range map[string]map[string]string{"labels": before.labels, "annotations": before.annotations} {
			for key, value := range marks {
				kit.Must(t, unstructured.SetNestedField(obj.Object, strings.ReplaceAll(value, "$NS", namespace), "metadata", field, key))
			}
		}
		if managedBy := before.labels[resourcesv1alpha1.LabelManagedBy]; managedBy != "" && obj.GetKind() == "Deployment" {
			kit.Must(t, unstructured.SetNestedField(obj.Object, managedBy, "spec", "template", "metadata", "labels", resourcesv1alpha1.LabelManagedBy))
		}
		if before.serverSide {
			body, err := json.Marshal(obj)
			kit.Must(t, err)
			kit.Must(t, w.client.Patch(t.Context(), obj, client.RawPatch(types.ApplyPatchType, body), fieldOwner(before.manager), client.ForceOwnership))
		} else {
			kit.Must(t, w.client.Create(t.Context(), obj, fieldOwner(before.manager)))
		}
		left = append(left, obj)
	}
	kit.Eventually(t, "the Deployment has its Pods, and no longer changes", func() string {
		deployment := &appsv1.Deployment{}
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web"}, deployment); err != nil {
			return err.Error()
		}
		if deployment.Status.AvailableReplicas < 1 {
			return "it does not exist"
		}
		return ""
	})
	return left
}

// leaveManagedResource creates a ManagedResource as gardener-resource-manager leaves it, except that it is suspended.
func (w *world) leaveManagedResource(t *testing.T, parcel *pack.Parcel, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, secret := range parcel.Secrets {
		kit.Must(t, w.client.Create(t.Context(), secret.DeepCopy()))
	}
	mr := parcel.ManagedResource.DeepCopy()
	mr.Annotations[resourcesv1alpha1.AnnotationIgnore] = "true"
	mr.Finalizers = []string{resourcesv1alpha1.FinalizerOf(ptr.Deref(mr.Spec.Class, ""))}
	kit.Must(t, w.client.Create(t.Context(), mr))
	kit.Eventually(t, "the status is as gardener-resource-manager leaves it", func() string {
		kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr))
		checksum := strings.Repeat("0", 64)
		mr.Status.ObservedGeneration, mr.Status.SecretsDataChecksum, mr.Status.Resources = mr.Generation, &checksum, nil
		for _, obj := range objects {
			reference := resourcesv1alpha1.ObjectReference{Labels: obj.GetLabels()}
			reference.APIVersion, reference.Kind, reference.Namespace, reference.Name = obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()
			mr.Status.Resources = append(mr.Status.Resources, reference)
		}
		return kit.TextOf(w.client.Status().Update(t.Context(), mr))
	})
}

// checkJSON checks the JSON output.
func (w *world) checkJSON(t *testing.T, do call, manager string) {
	t.Helper()
	var told struct {
		ManagedResources []struct {
			Changes []struct {
				Kind, Name string
				Owners     []struct{ Tool, Name string }
				Managers   []struct{ Name string }
				Taken      int
			}
		}
		Predecessors []struct{ Objects int }
	}
	out := w.runCall(do)
	kit.Must(t, json.Unmarshal([]byte(out.out), &told))
	if len(told.ManagedResources) != 1 || len(told.ManagedResources[0].Changes) != 3 || len(told.Predecessors) != 1 || told.Predecessors[0].Objects != 3 {
		t.Fatalf("the output is %s", out.out)
	}
	for _, change := range told.ManagedResources[0].Changes {
		manages := slices.ContainsFunc(change.Managers, func(m struct{ Name string }) bool { return m.Name == manager })
		if len(change.Owners) != 1 || change.Owners[0].Name != "shop" || !manages || change.Taken == 0 {
			t.Errorf("the output for %s %s is %+v", change.Kind, change.Name, change)
		}
	}
}

// foresee returns the predicted objects of a parcel.
func (w *world) foresee(t *testing.T, parcel *pack.Parcel) map[string]*unstructured.Unstructured {
	t.Helper()
	c := kubectl.NewConsole(genericiooptions.NewTestIOStreamsDiscard(), "v0.0.0-test")
	kit.Must(t, cli.NewCommand(c, "kubectl mr").PersistentFlags().Set("kubeconfig", w.kubeconfig))
	previewer, err := preview.NewPreviewer(c, preview.Settings{}, parcel.ManagedResource, parcel.Secrets)
	kit.Must(t, err)
	prospect, cluster, err := previewer.Preview(t.Context(), parcel.ManagedResource)
	kit.Must(t, err)
	foreseen := map[string]*unstructured.Unstructured{}
	for _, forecast := range prospect.Forecasts {
		kit.Must(t, forecast.Err)
		foreseen[strings.ToLower(forecast.Key().String())] = cluster.Copy(forecast.Key()).After
	}
	return foreseen
}

// checkTaken compares an object with its prediction.
func (w *world) checkTaken(t *testing.T, name, manager string, left []*unstructured.Unstructured, want *unstructured.Unstructured) {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(want), live))
	if got, want := essence(live), essence(want); !reflect.DeepEqual(got, want) {
		t.Errorf("%s is %v, but the prediction was %v", name, got, want)
	}
	if got, want := fieldsOf(t, live, manager), fieldsOf(t, want, manager); got != want {
		t.Errorf("of %s, %s keeps %s, but the prediction was %s", name, manager, got, want)
	}
	for _, before := range left {
		if before.GetKind() == live.GetKind() && before.GetUID() != live.GetUID() {
			t.Errorf("%s was recreated", name)
		}
	}
}

// fieldsOf returns the fields of a manager as text, except for the status.
func fieldsOf(t *testing.T, obj *unstructured.Unstructured, manager string) string {
	t.Helper()
	var found []string
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != "" {
			continue
		}
		var fields any
		kit.Must(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
		text, err := json.Marshal(fields) // sorted
		kit.Must(t, err)
		found = append(found, string(entry.Operation)+" "+string(text))
	}
	return strings.Join(found, "; ")
}

func TestMigrateRefusesAndFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run("migrate", "webshop-app", "-n", "garden", "--from", "nobody").says(t, 2, "!invalid --from \"nobody\": must be one of gardener-resource-manager, flux")
	w.run("migrate", "-f", "../../examples/webshop/app").says(t, 2, "!specify exactly one ManagedResource")
	w.run("migrate", "webshop-ap", "-n", "garden").says(t, 2, "!did you mean webshop-app")
	w.eventually(t, 0, []string{"4 unchanged", "No other tool applies any of these objects."}, "migrate", "webshop-app", "-n", "garden")
	namespace := w.namespace(t)
	manifests := strings.ReplaceAll(configMap, "$NS", namespace)
	w.leaveOne(t, namespace, manifests)
	propose := func(args ...string) outcome {
		return w.runCall(call{args: append([]string{"migrate", "shop", "-n", namespace, "-f", "-"}, args...), in: manifests})
	}
	propose().says(t, 1, "~ ConfigMap "+namespace+"/settings, applied by kubectl", "Do not apply the manifests with kubectl again")
	propose("--from", "flux").says(t, 0, "no objects")
	propose("--from", "kubectl", "--brief").says(t, 1, "by kubectl")
	propose("--as", "nobody").says(t, 2, "!forbidden")
	look := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}
	w.permit(t, "onlooker", look)
	propose("--as", "onlooker").says(t, 1, "by kubectl", "move to the resource-manager", "!without the API server's defaults and webhooks")
	w.run("__complete", "migrate", "--from", "").says(t, 0, "argocd\n")
}

// leaveOne creates an object like kubectl apply.
func (w *world) leaveOne(t *testing.T, namespace, manifests string) {
	t.Helper()
	documents, err := pack.Parse("manifests", []byte(manifests))
	kit.Must(t, err)
	obj := &unstructured.Unstructured{Object: documents[0].Object}
	obj.SetNamespace(namespace)
	kit.Must(t, w.client.Create(t.Context(), obj, fieldOwner("kubectl-client-side-apply")))
}
