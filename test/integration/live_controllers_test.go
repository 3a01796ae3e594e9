package integration

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeOfController is a controller's write to an object, which the resource-manager must not revert.
type writeOfController struct {
	manager, manifest, subresource string
	// patch is a merge patch. %d stands for a number that differs each time.
	patch string
	// path is the field that must have the number afterwards.
	path []string
}

func writesOfControllers(f *fixture) []writeOfController {
	kinds := driftKinds()
	deployment, statefulSet := kinds["Deployment"].named("scaled"), kinds["StatefulSet"].named("scaled")
	template := []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}
	restart := `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"%d"}}}}}`
	service := f.here("apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: NS}\nspec: {type: LoadBalancer, selector: {app: x}, ports: [{name: a, port: 80}]}\n")
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x, namespace: NS}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	budget := "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x, namespace: NS}\nspec: {minAvailable: 1, selector: {matchLabels: {no: such}}}\n"
	return []writeOfController{
		{"kube-controller-manager", deployment, "", `{"spec":{"replicas":%d}}`, []string{"spec", "replicas"}},
		{"kubectl-rollout", deployment, "", restart, template},
		{"kubectl-rollout", statefulSet, "", restart, template},
		{"kubectl-rollout", kinds["DaemonSet"].named("x"), "", restart, template},
		{"kube-controller-manager", statefulSet, "status", `{"status":{"conditions":[{"type":"Theirs%d","status":"True"}]}}`, nil},
		{"kube-controller-manager", budget, "status", `{"status":{"disruptedPods":{"pod-%d":"2020-01-01T00:00:00Z"}}}`, nil},
		{"cloud-controller-manager", service, "status", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.%d"}]}}}`, nil},
		{"cloud-controller-manager", service, "", `{"spec":{"ports":[{"name":"a","port":80,"targetPort":80,"protocol":"TCP","nodePort":3%04d}]}}`, nil},
		{"cloud-controller-manager", service, "", `{"metadata":{"annotations":{"cloud.example.org/id":"%d"},"finalizers":["cloud.example.org/%[1]d"]}}`,
			[]string{"metadata", "annotations", "cloud.example.org/id"}},
		{"cert-injector", kinds["ValidatingWebhookConfiguration"].named("x"), "", "", nil},
		{"somebody", kinds["Twin"].named("x"), "", `{"status":{"phase":"%d"}}`, []string{"status", "phase"}},
		{"kube-controller-manager", claim, "", `{"metadata":{"annotations":{"pv.kubernetes.io/id":"%d"}}}`, []string{"metadata", "annotations", "pv.kubernetes.io/id"}},
		{"kube-controller-manager", kinds["CronJob"].named("x"), "status", `{"status":{"lastScheduleTime":"2020-01-01T00:00:%02dZ"}}`, nil},
		{"kube-controller-manager", f.configMap("one", "value"), "", `{"data":{"theirs":"%d"}}`, []string{"data", "theirs"}},
		{"kubectl-label", f.configMap("one", "value"), "", `{"metadata":{"labels":{"theirs":"%d"}}}`, []string{"metadata", "labels", "theirs"}},
	}
}

// TestLiveControllersWritesAreLeftAlone makes controllers write repeatedly to objects of many kinds. The
// resource-manager must send no requests in response. To prove that, the test afterwards changes one object of each
// of these kinds by hand. Once these changes are reverted, no more requests than necessary must have been sent.
func TestLiveControllersWritesAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	p := f.newProxy()
	t.Cleanup(f.freeNodePort) // runs after the resource-manager has stopped
	f.startIn([]string{f.namespace}, onlyEvents, environment("KUBECONFIG="+p.kubeconfig))
	writes := writesOfControllers(f)
	f.createObject(f.hpaOf("scaled"), "somebody")
	markers := markersOf(f)
	documents := append([]string{f.here(strings.ReplaceAll(twins, "GROUP", "NS.example.org"))}, markers...)
	for _, write := range writes {
		if document := f.here(write.manifest); !slices.Contains(documents, document) {
			documents = append(documents, document)
		}
	}
	f.manage("set", documents...)
	f.eventuallySucceeded("set")
	f.settle(markers[0]) // the cluster's controllers have processed the new objects
	p.forget()

	for i := range 3 {
		for _, write := range writes {
			f.write(write, i+1)
		}
	}
	for _, marker := range markers {
		f.putBack(marker)
	}
	f.putBack(markers[0]) // afterwards, the effects of the last write are over, too
	secret := "GET /api/v1/namespaces/" + f.namespace + "/secrets/set"
	passes := 0
	for _, question := range p.single() {
		switch {
		case question.String() == secret:
			passes++
		case strings.HasSuffix(question.path, "/managedresources/set/status"): // the start and end of a rollout
		case strings.HasSuffix(question.path, "marker") || strings.Contains(question.path, "/events") || question.path == "/healthz":
		default:
			t.Errorf("unnecessary request to the API server: %s", question)
		}
	}
	if most := len(markers) + 1; passes > most { // a reconcile that still runs at the next change reverts that change, too
		t.Errorf("the manifests are read %d times, want at most %d: once for each change by hand", passes, most)
	}
	for _, write := range writes {
		if got := fmt.Sprint(at(f.object(write.manifest), write.path...)); write.path != nil && got != "3" {
			t.Errorf("the value that %s wrote to %v is now %v", write.manager, write.path, got)
		}
	}
}

// markersOf returns an object of each of the kinds that controllers write to.
func markersOf(f *fixture) []string {
	var markers []string
	kinds := driftKinds()
	for _, kind := range []string{
		"ConfigMap", "Deployment", "StatefulSet", "DaemonSet", "Service", "ValidatingWebhookConfiguration", "Twin", "CronJob",
	} {
		markers = append(markers, f.here(kinds[kind].named("marker")))
	}
	for _, manifest := range []string{
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: marker, namespace: NS, labels: {mine: x}}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: marker, namespace: NS, labels: {mine: x}}\nspec: {minAvailable: 1, selector: {matchLabels: {no: such}}}\n",
	} {
		markers = append(markers, f.here(manifest))
	}
	return markers
}

// putBack changes the label "mine" of an object by hand and waits until the change is reverted.
func (f *fixture) putBack(manifest string) {
	f.Helper()
	f.patch(manifest, "kubectl-edit", `{"metadata":{"labels":{"mine":"by-hand"}}}`)
	f.eventually("the label of "+f.parse(manifest).GetKind()+" is reverted", func() bool {
		return f.object(manifest).GetLabels()["mine"] == "x"
	})
}

// settle waits until kube-controller-manager has processed all workloads, and the resource-manager has processed the
// results.
func (f *fixture) settle(marker string) {
	f.Helper()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		for _, name := range []string{"scaled", "x", "marker"} {
			object := f.parse(driftKinds()[kind].named(name))
			f.eventually(kind+" "+name+" is observed", func() bool {
				err := f.client.Get(f.ctx, client.ObjectKeyFromObject(object), object)
				observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
				return client.IgnoreNotFound(err) == nil && (err != nil || observed == object.GetGeneration())
			})
		}
	}
	f.putBack(marker)
	f.putBack(marker)
	f.eventuallySucceeded("set")
}

// write makes one write of a controller.
func (f *fixture) write(write writeOfController, number int) {
	f.Helper()
	object := f.object(write.manifest)
	if write.manager == "cert-injector" {
		bundle := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "certificate %d", number))
		f.edit(write.manifest, write.manager, inFirst(func(item map[string]any) {
			item["clientConfig"] = map[string]any{"url": "https://example.org", "caBundle": bundle}
		}, "webhooks"))
		return
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, write.patch, number))
	if write.subresource != "" {
		must(f, f.client.Status().Patch(f.ctx, object, patch, &client.SubResourcePatchOptions{
			PatchOptions: client.PatchOptions{FieldManager: write.manager},
		}))
		return
	}
	must(f, f.client.Patch(f.ctx, object, patch, client.FieldOwner(write.manager)))
}

// freeNodePort frees the port for the next run of the test.
func (f *fixture) freeNodePort() {
	service := &corev1.Service{}
	service.Namespace, service.Name = f.namespace, "x"
	_ = f.client.Patch(context.Background(), service, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	_ = f.client.Delete(context.Background(), service)
}

// hpaOf returns an autoscaler that scales a Deployment to one replica, its current number.
func (f *fixture) hpaOf(deployment string) string {
	return f.here(fmt.Sprintf("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x, namespace: NS}\n"+
		"spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}}\n", deployment))
}
