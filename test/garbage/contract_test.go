package garbage

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/references"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestExampleOfTheSpecification is the unchanged example of gardener-resource-manager's documentation.
func TestExampleOfTheSpecification(t *testing.T) {
	f := newFixture(t)
	f.configMaps("test-1234", "test-5678")
	pod := f.pod("example")
	pod.Annotations = map[string]string{"reference.resources.gardener.cloud/configmap-82a3537f": "test-5678"}
	must(t, f.client.Update(f.ctx, pod))
	f.collect()
	f.wantLeft("test-5678")
}

// TestLabel checks that only ConfigMaps and Secrets with the exact label are considered.
func TestLabel(t *testing.T) {
	f := newFixture(t)
	for i, labels := range []map[string]string{nil, {"a": "b"}, {references.LabelKeyGarbageCollectable: "false"}, {references.LabelKeyGarbageCollectable: ""},
		{references.LabelKeyGarbageCollectable: "True"}, {references.LabelKeyGarbageCollectable: "1"}} {
		must(t, f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: f.metaOf(fmt.Sprintf("c%d", i), labels)}))
		must(t, f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: f.metaOf(fmt.Sprintf("s%d", i), labels)}))
	}
	f.configMaps("c")
	f.secrets("s")
	f.collect()
	f.wantLeft("c0", "c1", "c2", "c3", "c4", "c5", "s0", "s1", "s2", "s3", "s4", "s5")
	if f.metric("garbage_candidates", "ConfigMap") != 1 || f.metric("garbage_collected_total", "Secret") != 1 {
		t.Error("the metrics have other values")
	}
}

// TestImmutableOrNot checks that the field immutable does not matter.
func TestImmutableOrNot(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"used", "unused"} {
		for _, immutable := range []*bool{nil, ptr.To(true), ptr.To(false)} {
			meta := f.metaOf(fmt.Sprintf("%s-%t-%t", name, immutable == nil, ptr.Deref(immutable, false)), marked)
			must(t, f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: meta, Immutable: immutable}))
			must(t, f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: *meta.DeepCopy(), Immutable: immutable, Type: "kubernetes.io/any"}))
		}
	}
	pod := f.pod("pod", "used-true-false", "used-false-true", "used-false-false")
	for _, name := range pod.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, references.AnnotationKey(references.KindSecret, name), name)
	}
	must(t, f.client.Update(f.ctx, pod))
	f.collect()
	f.wantLeft("used-true-false", "used-false-true", "used-false-false", "used-true-false", "used-false-true", "used-false-false")
}

// referrer creates objects of a kind whose annotations count. For kinds with a template, template contains the annotations of its Pods.
type referrer struct {
	kind string
	make func(meta metav1.ObjectMeta, template map[string]string) client.Object
}

func template(annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}

func newDeployment(meta metav1.ObjectMeta, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: selector, Template: template(annotations)}}
}

func newCronJob(meta metav1.ObjectMeta, annotations map[string]string) *batchv1.CronJob {
	cronJob := &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *"}}
	cronJob.Spec.JobTemplate.Annotations = annotations
	cronJob.Spec.JobTemplate.Spec.Template = template(annotations)
	cronJob.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	return cronJob
}

func referrers() []referrer {
	return []referrer{
		{"Deployment", func(meta metav1.ObjectMeta, annotations map[string]string) client.Object {
			return newDeployment(meta, annotations)
		}},
		{"StatefulSet", func(meta metav1.ObjectMeta, annotations map[string]string) client.Object {
			return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32), Selector: selector, Template: template(annotations)}}
		}},
		{"DaemonSet", func(meta metav1.ObjectMeta, annotations map[string]string) client.Object {
			return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template(annotations)}}
		}},
		{"Job", func(meta metav1.ObjectMeta, annotations map[string]string) client.Object {
			return &batchv1.Job{ObjectMeta: meta, Spec: newCronJob(meta, annotations).Spec.JobTemplate.Spec}
		}},
		{"CronJob", func(meta metav1.ObjectMeta, annotations map[string]string) client.Object {
			return newCronJob(meta, annotations)
		}},
		{"Pod", func(meta metav1.ObjectMeta, _ map[string]string) client.Object {
			return &corev1.Pod{ObjectMeta: meta, Spec: template(nil).Spec}
		}},
		{"ManagedResource", func(meta metav1.ObjectMeta, _ map[string]string) client.Object {
			return &resourcesv1alpha1.ManagedResource{ObjectMeta: meta, Spec: resourcesv1alpha1.ManagedResourceSpec{
				SecretRefs: []resourcesv1alpha1.LocalObjectReference{},
			}}
		}},
		{"Prometheus", func(meta metav1.ObjectMeta, _ map[string]string) client.Object {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus"}}
			obj.SetNamespace(meta.Namespace)
			obj.SetName(meta.Name)
			obj.SetAnnotations(meta.Annotations)
			return obj
		}},
	}
}

// TestReferrers checks for every kind that annotations of the object itself keep ConfigMaps and Secrets of its namespace while the
// object exists. Annotations of its template do not, because its Pods have them.
func TestReferrers(t *testing.T) {
	for _, referrer := range referrers() {
		t.Run(referrer.kind, func(t *testing.T) {
			f := newFixture(t)
			f.configMaps("used", "unused", "of-template", "wrong-kind")
			f.secrets("s-used", "s-unused")
			meta := f.metaOf("referrer", nil)
			meta.Annotations = map[string]string{
				references.AnnotationKey(references.KindConfigMap, "used"):    "used",
				references.AnnotationKey(references.KindSecret, "s-used"):     "s-used",
				references.AnnotationKey(references.KindSecret, "wrong-kind"): "wrong-kind",
				"example.com/configmap-12345678":                              "unused",
			}
			obj := referrer.make(meta, map[string]string{references.AnnotationKey(references.KindConfigMap, "of-template"): "of-template"})
			must(t, f.client.Create(f.ctx, obj))
			elsewhere := f.newNamespace()
			must(t, f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "used", Labels: marked}}))
			f.collector.Options.Namespaces = []string{f.namespace, elsewhere}
			f.collect()
			f.wantLeft("used", "s-used")
			if left := f.leftIn(elsewhere); len(left) != 0 {
				t.Errorf("in another namespace, the remaining objects are %q", left)
			}
			must(t, f.client.Delete(f.ctx, obj, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)))
			f.collect()
			f.wantLeft()
		})
	}
}

// TestSecretRefs checks that a Secret that a ManagedResource references is kept without an annotation while it is referenced.
func TestSecretRefs(t *testing.T) {
	f := newFixture(t)
	f.secrets("named", "unused")
	f.configMaps("named") // a ConfigMap of the same name is not referenced
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: f.metaOf("referrer", nil)}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: "missing"}, {Name: "named"}}
	must(t, f.client.Create(f.ctx, mr))
	f.collect()
	f.wantLeft("named")
	mr.Spec.SecretRefs = mr.Spec.SecretRefs[:1]
	must(t, f.client.Update(f.ctx, mr))
	f.collect()
	f.wantLeft()
}

// TestLifeOfAClient checks a client that makes its objects unique, injects the references and later changes its data, as documented.
func TestLifeOfAClient(t *testing.T) {
	f := newFixture(t)
	unique := func(value string) *corev1.ConfigMap {
		configMap := &corev1.ConfigMap{ObjectMeta: f.metaOf("config", nil), Data: map[string]string{"a": value}}
		must(t, references.MakeUnique(configMap))
		must(t, f.client.Create(f.ctx, configMap))
		return configMap
	}
	deployment := newDeployment(f.metaOf("client", nil), nil)
	use := func(configMap *corev1.ConfigMap) {
		deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap.Name}},
		}}}
		must(t, references.InjectAnnotations(deployment))
	}
	first := unique("1")
	use(first)
	must(t, f.client.Create(f.ctx, deployment))
	f.collect()
	f.wantLeft(first.Name)
	oldPod := f.pod("old", first.Name) // the Pod of the Deployment
	later := f.clock.Now()
	f.clock.SetTime(time.Now())
	second := unique("2")
	f.collect()
	f.wantLeft(first.Name, second.Name) // the second one has no reference yet, but is new
	f.clock.SetTime(later)
	use(second)
	must(t, f.client.Update(f.ctx, deployment))
	if !maps.Equal(deployment.Annotations, deployment.Spec.Template.Annotations) {
		t.Errorf("the annotations of the Deployment are %v, those of its template %v", deployment.Annotations, deployment.Spec.Template.Annotations)
	}
	f.collect()
	f.wantLeft(first.Name, second.Name)
	must(t, f.client.Delete(f.ctx, oldPod, client.GracePeriodSeconds(0)))
	f.collect()
	f.wantLeft(second.Name)
}

// TestMinimumAge checks that objects younger than ten minutes are kept.
func TestMinimumAge(t *testing.T) {
	f := newFixture(t)
	f.configMaps("a")
	configMap := &corev1.ConfigMap{}
	must(t, f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "a"}, configMap))
	created := configMap.CreationTimestamp.Time
	for _, now := range []time.Time{created.Add(-time.Hour), created, created.Add(10*time.Minute - time.Second)} {
		f.clock.SetTime(now)
		f.collect()
		f.wantLeft("a")
	}
	if !strings.Contains(f.log.last(), `"young"=1`) {
		t.Errorf("the last line of the log is %s", f.log.last())
	}
	f.clock.SetTime(created.Add(10 * time.Minute))
	f.collect()
	f.wantLeft()
}

// TestStartAndSyncPeriod checks that the collector runs at the start, then in every sync period, and soon after a failure.
func TestStartAndSyncPeriod(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	f.configMaps("first")
	go func() { done <- f.collector.Start(ctx) }()
	waits := func() { f.eventually("the collector waits", f.clock.HasWaiters) }
	waits()
	f.wantLeft()
	f.configMaps("second")
	f.clock.Step(time.Hour - time.Second)
	f.wantLeft("second")
	f.requests.mu.Lock()
	f.requests.before = func(*http.Request) error { return errBroken }
	f.requests.mu.Unlock()
	f.clock.Step(time.Second)
	f.eventually("the second run has failed", func() bool { return strings.Contains(f.log.last(), "again") })
	waits()
	if !strings.Contains(f.log.last(), `"again"="10s"`) {
		t.Errorf("the last line of the log is %s", f.log.last())
	}
	f.wantLeft("second")
	f.requests.mu.Lock()
	f.requests.before = nil
	f.requests.mu.Unlock()
	f.clock.Step(10 * time.Second)
	f.eventually("the third run has deleted the ConfigMap", func() bool { return len(f.left()) == 0 })
	cancel()
	must(t, <-done)
}

func (f *fixture) eventually(reason string, done func() bool) {
	f.Helper()
	kit.EventuallyTrue(f, reason, done)
}
