package references

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// podSpec references a ConfigMap or Secret in every possible way.
const podSpec = `
initContainers:
- envFrom: [{configMapRef: {name: init-from}}, {secretRef: {name: init-from-s}}]
  env: [{name: a, valueFrom: {configMapKeyRef: {name: init-env, key: a}}}, {name: b, valueFrom: {secretKeyRef: {name: init-env-s, key: a}}}]
containers:
- envFrom: [{configMapRef: {name: from}}, {secretRef: {name: from-s}}]
  env: [{name: a, valueFrom: {configMapKeyRef: {name: env, key: a}}}, {name: b, valueFrom: {secretKeyRef: {name: env-s, key: a}}}]
- env: [{name: c, value: plain}, {name: d, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: e, valueFrom: {secretKeyRef: {name: second-s, key: a}}}]
  envFrom: [{configMapRef: {name: from}}, {configMapRef: {}}]
ephemeralContainers:
- envFrom: [{configMapRef: {name: ephemeral}}]
  env: [{name: a, valueFrom: {secretKeyRef: {name: ephemeral-s, key: a}}}]
volumes:
- configMap: {name: volume}
- secret: {secretName: volume-s}
- projected: {sources: [{configMap: {name: projected}}, {secret: {name: projected-s}}, {serviceAccountToken: {path: x}}]}
- csi: {driver: x, nodePublishSecretRef: {name: csi-s}}
- csi: {driver: x}
- iscsi: {secretRef: {name: iscsi-s}}
- flexVolume: {secretRef: {name: flex-s}}
- cephfs: {secretRef: {name: cephfs-s}}
- rbd: {secretRef: {name: rbd-s}}
- scaleIO: {secretRef: {name: scaleio-s}}
- storageos: {secretRef: {name: storageos-s}}
- azureFile: {secretName: azure-s}
- emptyDir: {}
imagePullSecrets: [{name: pull-s}]
`

// usedByPodSpec are the references in podSpec. Names of Secrets end in -s.
var usedByPodSpec = []string{
	"init-from", "init-from-s", "init-env", "init-env-s", "from", "from-s", "env", "env-s", "second-s", "ephemeral", "ephemeral-s", "volume", "volume-s",
	"projected", "projected-s", "csi-s", "iscsi-s", "flex-s", "cephfs-s", "rbd-s", "scaleio-s", "storageos-s", "azure-s", "pull-s",
}

func annotationsFor(names ...string) map[string]string {
	result := map[string]string{"mine": "stays"}
	for _, name := range names {
		kind := KindConfigMap
		if strings.HasSuffix(name, "-s") {
			kind = KindSecret
		}
		result[AnnotationKey(kind, name)] = name
	}
	return result
}

// before returns annotations. One of them is outdated.
func before() map[string]string {
	return map[string]string{"mine": "stays", AnnotationKey(KindSecret, "old"): "old", AnnotationKeyPrefix + "any-thing-else": "x"}
}

func TestInjectAnnotations(t *testing.T) {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: before()}}
	if err := yaml.UnmarshalStrict([]byte(podSpec), &template.Spec); err != nil {
		t.Fatal(err)
	}
	object := metav1.ObjectMeta{Annotations: before()}
	deployment := &appsv1.Deployment{ObjectMeta: object, Spec: appsv1.DeploymentSpec{Template: *template.DeepCopy()}}
	statefulSet := &appsv1.StatefulSet{ObjectMeta: object, Spec: appsv1.StatefulSetSpec{Template: *template.DeepCopy()}}
	daemonSet := &appsv1.DaemonSet{ObjectMeta: object, Spec: appsv1.DaemonSetSpec{Template: *template.DeepCopy()}}
	job := &batchv1.Job{ObjectMeta: object, Spec: batchv1.JobSpec{Template: *template.DeepCopy()}}
	cronJob := &batchv1.CronJob{ObjectMeta: object, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: before()}, Spec: batchv1.JobSpec{Template: *template.DeepCopy()},
	}}}
	pod := &corev1.Pod{ObjectMeta: object, Spec: *template.Spec.DeepCopy()}
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: object, Spec: resourcesv1alpha1.ManagedResourceSpec{
		SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: "one-s"}, {Name: ""}, {Name: "two-s"}},
	}}
	for name, test := range map[string]struct {
		obj       runtime.Object
		annotated []metav1.Object
		want      []string
	}{
		"Deployment":  {deployment, []metav1.Object{deployment, &deployment.Spec.Template}, usedByPodSpec},
		"StatefulSet": {statefulSet, []metav1.Object{statefulSet, &statefulSet.Spec.Template}, usedByPodSpec},
		"DaemonSet":   {daemonSet, []metav1.Object{daemonSet, &daemonSet.Spec.Template}, usedByPodSpec},
		"Job":         {job, []metav1.Object{job, &job.Spec.Template}, usedByPodSpec},
		"CronJob": {cronJob, []metav1.Object{
			cronJob, &cronJob.Spec.JobTemplate.ObjectMeta, &cronJob.Spec.JobTemplate.Spec.Template,
		}, usedByPodSpec},
		"Pod":             {pod, []metav1.Object{pod}, usedByPodSpec},
		"ManagedResource": {mr, []metav1.Object{mr}, []string{"one-s", "two-s"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time changes nothing
				if err := InjectAnnotations(test.obj, "configmap/more", "secret/more.of-s"); err != nil {
					t.Fatal(err)
				}
				want := annotationsFor(append(slices.Clone(test.want), "more", "more.of-s")...)
				for i, annotated := range test.annotated {
					if got := annotated.GetAnnotations(); !maps.Equal(got, want) {
						t.Errorf("place %d: got %v, want %v", i, got, want)
					}
				}
			}
		})
	}
	if len(object.Annotations) != 3 {
		t.Error("the map of annotations, which might be shared, was changed")
	}
}

func TestInjectAnnotationsWithoutReferences(t *testing.T) {
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Annotations = map[string]string{AnnotationKey(KindSecret, "old"): "old"}
	if err := InjectAnnotations(deployment); err != nil {
		t.Fatal(err)
	}
	if deployment.Annotations != nil || len(deployment.Spec.Template.Annotations) != 0 {
		t.Errorf("got %v and %v", deployment.Annotations, deployment.Spec.Template.Annotations)
	}
}

const prometheus = `
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: x, annotations: {mine: stays, reference.resources.gardener.cloud/secret-12345678: old}}
spec:
  replicas: 2
  containers: [{name: a, env: [{name: a, valueFrom: {secretKeyRef: {name: env-s, key: a}}}]}]
  initContainers: [{name: a, envFrom: [{configMapRef: {name: init}}]}]
  volumes: [{name: a, configMap: {name: volume}}]
  imagePullSecrets: [{name: pull-s}]
  secrets: [mounted-s]
  configMaps: [mounted]
  remoteWrite: [{url: x, basicAuth: {username: {name: user-s, key: a}, password: {name: password-s, key: a}}}, {url: y}, {url: z, basicAuth: {}}]
  remoteRead: [{url: x, basicAuth: {username: {name: reader-s, key: a}}}]
  additionalScrapeConfigs: {name: scrape-s, key: a}
  additionalAlertRelabelConfigs: {name: relabel-s, key: a}
  additionalAlertManagerConfigs: {name: alertmanager-s, key: a}
  podMetadata: {annotations: {mine: stays}, labels: {a: b}}
`

func parseYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(asJSON)
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestInjectAnnotationsIntoAPrometheus(t *testing.T) {
	obj := parseYAML(t, prometheus)
	if err := InjectAnnotations(obj); err != nil {
		t.Fatal(err)
	}
	want := annotationsFor("env-s", "init", "volume", "pull-s", "mounted-s", "mounted", "user-s", "password-s", "reader-s",
		"scrape-s", "relabel-s", "alertmanager-s")
	if got := obj.GetAnnotations(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	ofPods, _, err := unstructured.NestedStringMap(obj.Object, "spec", "podMetadata", "annotations")
	if err != nil || !maps.Equal(ofPods, want) {
		t.Errorf("the Pods have %v, %v, want %v", ofPods, err, want)
	}
	if labels, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "podMetadata", "labels"); labels["a"] != "b" {
		t.Error("the labels of the Pods are missing")
	}
	bare := parseYAML(t, "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: x}}")
	if err := InjectAnnotations(bare); err != nil || len(bare.Object) != 3 {
		t.Errorf("without a spec: %v, %v", err, bare.Object)
	}
}

func TestInjectAnnotationsBadInput(t *testing.T) {
	for name, test := range map[string]struct {
		obj        runtime.Object
		additional []string
		want       string
	}{
		"a ReplicaSet":             {&appsv1.ReplicaSet{}, nil, "cannot record references of a *v1.ReplicaSet"},
		"a ConfigMap":              {&corev1.ConfigMap{}, nil, "must be a Deployment"},
		"nothing":                  {nil, nil, "cannot record references of a <nil>"},
		"an untyped Deployment":    {parseYAML(t, "{apiVersion: apps/v1, kind: Deployment}"), nil, "Deployment.apps: must be a Prometheus.monitoring.coreos.com"},
		"no object":                {&unstructured.Unstructured{}, nil, "must be a Prometheus"},
		"a spec that is a list":    {parseYAML(t, "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, spec: []}"), nil, "its spec is not an object"},
		"containers are a map":     {parseYAML(t, "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, spec: {containers: {}}}"), nil, "read the spec of Prometheus"},
		"podMetadata is a text":    {parseYAML(t, "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, spec: {podMetadata: x, secrets: [a]}}"), nil, "podMetadata"},
		"additional without kind":  {&corev1.Pod{}, []string{"name"}, `"name": must be configmap/<name> or secret/<name>`},
		"additional, other kind":   {&corev1.Pod{}, []string{"Secret/a"}, "must be"},
		"additional without name":  {&corev1.Pod{}, []string{"secret/"}, "must be"},
		"additional, impossible":   {&corev1.Pod{}, []string{"secret/a/b"}, "must be"},
		"additional, the good too": {&corev1.Pod{}, []string{"secret/a", ""}, "must be"},
	} {
		t.Run(name, func(t *testing.T) {
			err := InjectAnnotations(test.obj, test.additional...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if pod, ok := test.obj.(*corev1.Pod); ok && len(pod.Annotations) > 0 {
				t.Errorf("got %v", pod.Annotations)
			}
		})
	}
}
