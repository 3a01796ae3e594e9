package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func (f *fixture) webWithReplicas(replicas int, annotations string) string {
	manifest := strings.Replace(f.web(""), "spec:\n  selector", fmt.Sprintf("spec:\n  replicas: %d\n  selector", replicas), 1)
	return strings.Replace(manifest, "metadata:\n  name", "metadata:\n  annotations: {"+annotations+"}\n  name", 1)
}

// scale scales the Deployment like kube-controller-manager for a HorizontalPodAutoscaler.
func (f *fixture) scale(replicas int32) {
	f.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	must(f, f.client.SubResource("scale").Update(f.ctx, f.liveDeployment(), client.WithSubResourceBody(scale),
		client.FieldOwner("kube-controller-manager")))
}

func (f *fixture) wantReplicas(want int32) {
	f.Helper()
	if got := *f.liveDeployment().Spec.Replicas; got != want {
		f.Errorf("the Deployment has %d replicas, want %d", got, want)
	}
}

func (f *fixture) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:    10,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32),
				}},
			}},
		},
	}
}

func TestAutoscalerDecidesAboutReplicas(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.webWithReplicas(3, ""))
	f.reconcileOK("set")
	f.wantReplicas(3)

	autoscaler := f.autoscaler()
	*autoscaler.Spec.Metrics[0].Resource.Target.AverageUtilization = 80
	must(t, f.client.Create(f.ctx, autoscaler))
	f.reconcileOK("set")
	f.wantReplicas(3) // ownership given up, value kept
	f.scale(7)
	f.reconcileOK("set")
	f.wantReplicas(7)
	f.secret("set", "objects.yaml", f.webWithReplicas(4, "new: change"))
	f.reconcileOK("set")
	f.wantReplicas(7)

	must(t, f.client.Delete(f.ctx, autoscaler))
	f.reconcileOK("set")
	f.wantReplicas(4)
}

func TestManualScalingIsPutBack(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.webWithReplicas(3, ""))
	f.reconcileOK("set")
	f.scale(1)
	f.reconcileOK("set")
	f.wantReplicas(3)
}

func TestReplicasThatLeaveTheManifestStay(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.webWithReplicas(3, ""))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.web(""))
	f.reconcileOK("set")
	f.wantReplicas(3)
}

func TestPreserveReplicas(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.webWithReplicas(3, `resources.gardener.cloud/preserve-replicas: "true"`))
	f.reconcileOK("set")
	f.wantReplicas(3)
	f.scale(5)
	f.reconcileOK("set")
	f.wantReplicas(5)
}

func TestPreserveResources(t *testing.T) {
	f := newFixture(t)
	manifest := func(extra string) string {
		return strings.Replace(f.web("        resources: {requests: {cpu: 100m, memory: 100Mi}}\n"+extra),
			"metadata:\n  name", "metadata:\n  annotations: {resources.gardener.cloud/preserve-resources: \"True\"}\n  name", 1)
	}
	f.manage("set", manifest(""))
	f.reconcileOK("set")
	deployment := f.liveDeployment()
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("100Mi"),
	}
	must(t, f.client.Patch(f.ctx, deployment, patch, client.FieldOwner("autoscaler")))
	f.secret("set", "objects.yaml", manifest("      - {name: second, image: x, resources: {limits: {cpu: 300m}}}\n"))
	f.reconcileOK("set")
	containers := f.liveDeployment().Spec.Template.Spec.Containers
	if got := containers[0].Resources.Requests; got.Cpu().String() != "2" || got.Memory().String() != "100Mi" {
		t.Errorf("the live requests were not kept: %v", got)
	}
	if len(containers) != 2 || containers[1].Resources.Limits.Cpu().String() != "300m" {
		t.Errorf("the new container is %+v", containers)
	}
}

func TestServiceKeepsWhatTheAPIServerAllocated(t *testing.T) {
	f := newFixture(t)
	manifest := func(spec string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: %s}\nspec: {selector: {app: web}, %s}\n",
			f.namespace, spec)
	}
	get := func() *corev1.Service {
		service := &corev1.Service{}
		must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "web"}, service))
		return service
	}
	f.manage("set", manifest(`type: NodePort, clusterIP: "", ports: [{port: 80}]`))
	f.reconcileOK("set")
	before := get()
	f.secret("set", "objects.yaml", manifest(`type: NodePort, clusterIP: 10.0.0.251, ports: [{port: 80, targetPort: 8080}]`))
	f.reconcileOK("set")
	after := get()
	if before.Spec.ClusterIP != after.Spec.ClusterIP || before.Spec.Ports[0].NodePort != after.Spec.Ports[0].NodePort {
		t.Errorf("before %+v, after %+v", before.Spec, after.Spec)
	}
	if after.Spec.Ports[0].TargetPort.IntValue() != 8080 {
		t.Error("the change is not applied")
	}
}

func TestStatefulSetKeepsItsClaimTemplates(t *testing.T) {
	f := newFixture(t)
	manifest := func(size, image string) string {
		return fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %s}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: %s}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}
`, f.namespace, image, size)
	}
	f.manage("set", manifest("1Gi", "db:1"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", manifest("2Gi", "db:2"))
	f.reconcileOK("set")
	statefulSet := &appsv1.StatefulSet{}
	must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "db"}, statefulSet))
	if got := statefulSet.Spec.Template.Spec.Containers[0].Image; got != "db:2" {
		t.Errorf("the image is %s", got)
	}
	if got := statefulSet.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); got != "1Gi" {
		t.Errorf("the claim template requests %s", got)
	}
}

func TestServiceAccountKeepsItsSecrets(t *testing.T) {
	f := newFixture(t)
	manifest := func(extra string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot, namespace: %s}\n%s", f.namespace, extra)
	}
	f.manage("set", manifest("imagePullSecrets: [{name: first}]\n"))
	f.reconcileOK("set")
	account := &corev1.ServiceAccount{}
	key := types.NamespacedName{Namespace: f.namespace, Name: "robot"}
	must(t, f.client.Get(f.ctx, key, account))
	account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: "added"})
	must(t, f.client.Update(f.ctx, account, client.FieldOwner("registry-controller")))
	f.secret("set", "objects.yaml", manifest("automountServiceAccountToken: false\n"))
	f.reconcileOK("set")
	must(t, f.client.Get(f.ctx, key, account))
	if len(account.ImagePullSecrets) != 2 || account.AutomountServiceAccountToken == nil {
		t.Errorf("the ServiceAccount is %+v", account)
	}
}

func TestIgnoredObjectIsCreatedOnce(t *testing.T) {
	f := newFixture(t)
	manifest := func(value string) string {
		return strings.Replace(f.configMap("once", value), "metadata:\n",
			"metadata:\n  annotations: {resources.gardener.cloud/ignore: \"1\"}\n", 1)
	}
	mr := f.manage("set", manifest("1"))
	created := f.reconcileOK("set")
	if healthy := resourcesv1alpha1.ConditionOf(created.Status.Conditions, resourcesv1alpha1.ResourcesHealthy); healthy.Status != resourcesv1alpha1.ConditionTrue {
		t.Errorf("no watch shows the object, and the condition reports it: %s", healthy.Message)
	}
	live := f.wantConfigMap("once", "1")
	if len(live.Labels) > 0 || len(live.Annotations) != 1 {
		t.Errorf("the object is marked: labels %v, annotations %v", live.Labels, live.Annotations)
	}
	f.secret("set", "objects.yaml", manifest("2"))
	mr = f.reconcileOK(mr.Name)
	f.wantConfigMap("once", "1")
	if len(mr.Status.Resources) != 1 {
		t.Errorf("the inventory is %v", mr.Status.Resources)
	}
	f.delete(mr)
	f.wantNoConfigMap("once")
}

func TestModeIgnoreReleases(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"), f.configMap("two", "1"))
	f.reconcileOK("set")
	released := strings.Replace(f.configMap("one", "2"), "metadata:\n",
		"metadata:\n  annotations: {resources.gardener.cloud/mode: Ignore}\n", 1)
	f.secret("set", "objects.yaml", released, "two.yaml", f.configMap("two", "1"))
	mr = f.reconcileOK(mr.Name)
	live := f.wantConfigMap("one", "1")
	if len(live.Labels) > 0 || len(live.Annotations) > 0 || len(live.ManagedFields) > 0 {
		t.Errorf("the object is still marked: %+v", live.ObjectMeta)
	}
	if len(mr.Status.Resources) != 1 {
		t.Errorf("the inventory is %v", mr.Status.Resources)
	}
	f.delete(mr)
	f.wantConfigMap("one", "1")
	f.wantNoConfigMap("two")
}

func TestImmutableConfigMapIsReplaced(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1")+"immutable: true\n")
	f.reconcileOK("set")
	uid := f.liveConfigMap("one").UID
	f.secret("set", "objects.yaml", f.configMap("one", "2")+"immutable: true\n")
	f.reconcileOK("set")
	if f.wantConfigMap("one", "2").UID == uid {
		t.Error("the object was not replaced")
	}
}

func TestDeleteOnInvalidUpdate(t *testing.T) {
	f := newFixture(t)
	manifest := func(app, annotations string) string {
		return strings.Replace(strings.ReplaceAll(f.web(""), "app: web", "app: "+app),
			"metadata:\n  name", "metadata:\n  annotations: {"+annotations+"}\n  name", 1)
	}
	f.manage("set", manifest("web", ""))
	f.reconcileOK("set")
	uid := f.liveDeployment().UID
	f.secret("set", "objects.yaml", manifest("other", "")) // the selector is immutable
	mr, result, err := f.reconcile("set")
	wantContains(t, applied(mr).Message, "field is immutable")
	wantRetry(t, false, result, err)
	if f.liveDeployment().UID != uid {
		t.Error("the object was replaced although that is not allowed")
	}
	f.secret("set", "objects.yaml", manifest("other", `resources.gardener.cloud/delete-on-invalid-update: "true", `+
		`resources.gardener.cloud/deletion-propagation-on-invalid-update: Sideways`))
	mr, result, err = f.reconcile("set")
	wantContains(t, applied(mr).Message, "invalid deletion propagation policy", "Sideways", "use Background, Foreground or Orphan")
	wantRetry(t, false, result, err)
	f.secret("set", "objects.yaml", manifest("other", `resources.gardener.cloud/delete-on-invalid-update: "true"`))
	f.reconcileUntil("set", "the object is replaced", func(mr *resourcesv1alpha1.ManagedResource) bool { return applied(mr).Status == "True" })
	if live := f.liveDeployment(); live.UID == uid || live.Spec.Selector.MatchLabels["app"] != "other" {
		t.Errorf("the object was not replaced: %v", live.Spec.Selector)
	}
}

func TestFinalizeDeletionAfter(t *testing.T) {
	f := newFixture(t)
	stuck := func(name, after string) string {
		return strings.Replace(f.configMap(name, "1"), "metadata:\n", "metadata:\n  finalizers: [example.org/stuck]\n"+
			"  annotations: {resources.gardener.cloud/finalize-deletion-after: "+after+"}\n", 1)
	}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + f.namespace + "-stuck\n  finalizers: [example.org/stuck]\n" +
		"  annotations: {resources.gardener.cloud/finalize-deletion-after: 1h}\n"
	mr := f.manage("set", stuck("hour", "1h"), stuck("absurd", "-1h"), stuck("wrong", "soon"), namespace)
	f.reconcileOK("set")
	f.clock.SetTime(time.Now())
	f.beginDeletion(mr)
	mr, _, err := f.reconcile("set")
	must(t, err)
	wantContains(t, applied(mr).Message, "hour: it is being deleted")
	f.clock.SetTime(time.Now().Add(time.Minute)) // the status does not report every reconcile
	mr, _, err = f.reconcile("set")
	must(t, err)
	wantContains(t, applied(mr).Message, "absurd", "not a positive duration")
	if f.liveConfigMap("hour") == nil {
		t.Fatal("finalized too early")
	}
	f.clock.SetTime(time.Now().Add(time.Hour + time.Minute))
	f.reconcileUntil("set", "the finalizers are removed", func(*resourcesv1alpha1.ManagedResource) bool { return f.liveConfigMap("hour") == nil })
	for _, name := range []string{"absurd", "wrong"} {
		must(t, f.client.Patch(f.ctx, f.liveConfigMap(name),
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	}
	f.reconcileUntil("set", "the ManagedResource and the Namespace are deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
}

func TestForceOverwrite(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	add := func() {
		live := f.liveConfigMap("one")
		live.Labels["other"], live.Annotations["other"] = "x", "y"
		must(t, f.client.Update(f.ctx, live, client.FieldOwner("somebody")))
	}
	add()
	f.reconcileOK("set")
	if live := f.liveConfigMap("one"); live.Labels["other"] != "x" || live.Annotations["other"] != "y" {
		t.Errorf("the labels are %v, the annotations %v", live.Labels, live.Annotations)
	}
	patch := client.MergeFrom(mr.DeepCopy())
	yes := true
	mr.Spec.ForceOverwriteLabels, mr.Spec.ForceOverwriteAnnotations = &yes, &yes
	must(t, f.client.Patch(f.ctx, mr, patch))
	f.reconcileOK("set")
	if live := f.liveConfigMap("one"); len(live.Labels) != 1 || len(live.Annotations) != 2 {
		t.Errorf("the labels are %v, the annotations %v", live.Labels, live.Annotations)
	}
	f.requests.writes()
	f.reconcileOK("set")
	if writes := f.requests.writes(); len(writes) > 0 {
		t.Errorf("the next reconcile writes %v", writes)
	}
}

// TestVerticalAutoscalerDecidesAboutPods changes the requests of a Pod as a VerticalPodAutoscaler does. It changes Pods, never
// their workload, so they keep the requests, without any annotation, and the workload is not written.
func TestVerticalAutoscalerDecidesAboutPods(t *testing.T) {
	f := newFixture(t)
	// The simulated nodes do not resize Pods, so this one stays without a node.
	f.manage("set", f.web("        resources: {requests: {cpu: 100m}}\n      nodeSelector: {no: such}\n"))
	f.reconcileOK("set")
	pods := &corev1.PodList{}
	f.eventually("the Deployment has a Pod", func() bool {
		must(t, f.client.List(f.ctx, pods, client.InNamespace(f.namespace), client.MatchingLabels{"app": "web"}))
		return len(pods.Items) == 1
	})
	pod := &pods.Items[0]
	must(t, f.client.SubResource("resize").Patch(f.ctx, pod, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"700m"}}}]}}`)), client.FieldOwner("vpa-updater")))
	before := f.liveDeployment()
	f.reconcileOK("set")
	if after := f.liveDeployment(); after.Generation != before.Generation {
		t.Errorf("the Deployment was changed: %+v", after.Spec.Template.Spec.Containers)
	}
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(pod), pod))
	if got := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "700m" {
		t.Errorf("the Pod requests %s", got)
	}
}
