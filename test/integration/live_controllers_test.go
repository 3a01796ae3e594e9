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

// writeOfController is what a controller does to an object, which has to be left alone.
type writeOfController struct {
	manager, manifest, subresource string
	// patch is a merge patch; %d stands for a number that differs each time.
	patch string
	// path is where the number is to be found afterwards.
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

// TestLiveControllersWritesAreLeftAlone has controllers write to objects of many kinds again and again. No request follows:
// that is known once a change by hand of one object of each of these kinds, made afterwards, has been put back, and that
// took no more than it has to.
func TestLiveControllersWritesAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	p := f.newProxy()
	t.Cleanup(f.freeNodePort) // when the resource-manager is stopped
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
	f.settle(markers[0]) // controllers of the cluster have looked at the new objects
	p.forget()

	for i := range 3 {
		for _, write := range writes {
			f.write(write, i+1)
		}
	}
	for _, marker := range markers {
		f.putBack(marker)
	}
	f.putBack(markers[0]) // when this is done, what the last one led to is too
	secret := "GET /api/v1/namespaces/" + f.namespace + "/secrets/set"
	passes := 0
	for _, question := range p.single() {
		switch {
		case question.String() == secret:
			passes++
		case strings.HasSuffix(question.path, "/managedresources/set/status"): // that a rollout begins, and ends
		case strings.HasSuffix(question.path, "marker") || strings.Contains(question.path, "/events") || question.path == "/healthz":
		default:
			t.Errorf("asks the API server without need: %s", question)
		}
	}
	if most := len(markers) + 1; passes > most { // a pass that is still at work when the next change comes puts that back, too
		t.Errorf("the manifests are read %d times, want at most %d: once for each change by hand", passes, most)
	}
	for _, write := range writes {
		if got := fmt.Sprint(at(f.object(write.manifest), write.path...)); write.path != nil && got != "3" {
			t.Errorf("what %s wrote to %v is %v now", write.manager, write.path, got)
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

// putBack changes the label "mine" of an object by hand, and waits until it is put back.
func (f *fixture) putBack(manifest string) {
	f.Helper()
	f.patch(manifest, "kubectl-edit", `{"metadata":{"labels":{"mine":"by-hand"}}}`)
	f.eventually("the label of "+f.parse(manifest).GetKind()+" is put back", func() bool {
		return f.object(manifest).GetLabels()["mine"] == "x"
	})
}

// settle waits until kube-controller-manager has looked at all workloads, and the resource-manager at what came of it.
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

// write writes what a controller writes.
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

// freeNodePort lets the next run of the test have the port.
func (f *fixture) freeNodePort() {
	service := &corev1.Service{}
	service.Namespace, service.Name = f.namespace, "x"
	_ = f.client.Patch(context.Background(), service, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	_ = f.client.Delete(context.Background(), service)
}

// hpaOf returns an autoscaler that scales a Deployment to one replica, which it has.
func (f *fixture) hpaOf(deployment string) string {
	return f.here(fmt.Sprintf("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x, namespace: NS}\n"+
		"spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}}\n", deployment))
}
