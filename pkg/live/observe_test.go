package live

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
)

const origin = "resources.gardener.cloud/origin"

// setOf returns a StatefulSet with all metadata that an object can have and the given number of ready replicas.
func setOf(ready int32) *appsv1.StatefulSet {
	meta := metav1.ObjectMeta{
		Namespace: "ns", Name: "a", GenerateName: "a-", UID: "u", ResourceVersion: "7", Generation: 3,
		CreationTimestamp: metav1.NewTime(time.Unix(100, 0)), DeletionTimestamp: &metav1.Time{Time: time.Unix(200, 0)},
		DeletionGracePeriodSeconds: new(int64),
		Labels:                     map[string]string{"resources.gardener.cloud/managed-by": "gardener"},
		Annotations:                map[string]string{origin: "garden/shop", "resources.gardener.cloud/skip-health-check": "1"},
		OwnerReferences:            []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "y"}},
		Finalizers:                 []string{"example.org/x"},
		ManagedFields:              []metav1.ManagedFieldsEntry{applied(nil)},
	}
	replicas := int32(1)
	return &appsv1.StatefulSet{
		ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &replicas},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 3, ReadyReplicas: ready, UpdatedReplicas: 1},
	}
}

// untypedOf returns the same object as a client for any kind decodes it.
func untypedOf(t *testing.T, set *appsv1.StatefulSet) *unstructured.Unstructured {
	t.Helper()
	body, err := json.Marshal(set)
	must(t, err)
	obj := &unstructured.Unstructured{}
	must(t, obj.UnmarshalJSON([]byte(strings.Replace(string(body), "{", `{"apiVersion":"apps/v1","kind":"StatefulSet",`, 1))))
	return obj
}

// TestReduce checks that an object results in the same observation in any representation. Only its health needs more than the
// metadata.
func TestReduce(t *testing.T) {
	examiner := health.NewExaminer("", nil)
	gk := schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	for _, ready := range []int32{0, 1} {
		set := setOf(ready)
		metadata := &metav1.PartialObjectMetadata{ObjectMeta: set.ObjectMeta}
		want := Observe(metadata, observer{}.policy)
		if want.OwnedDigest == "" || !want.Exempt || want.Generation != 3 {
			t.Fatalf("the metadata is observed as %+v", want)
		}
		verdict := &health.Verdict{Unhealthy: "not enough ready replicas (0/1)"}
		if ready == 1 {
			verdict = nil
		}
		for name, test := range map[string]struct {
			observer observer
			obj      any
			examined bool
			health   *health.Verdict
		}{
			"typed":                 {observer{gk: gk, examiner: examiner}, set, true, verdict},
			"untyped":               {observer{gk: gk, examiner: examiner}, untypedOf(t, set), true, verdict},
			"metadata":              {observer{gk: gk}, metadata, true, nil},
			"metadata, not enough":  {observer{gk: gk, examiner: examiner}, metadata, false, nil},
			"typed, no examination": {observer{gk: gk}, set, true, nil},
		} {
			seen, err := test.observer.reduce(test.obj)
			must(t, err)
			expected := want
			expected.Examined, expected.Health = test.examined, test.health
			if !reflect.DeepEqual(*seen.observation, expected) {
				t.Errorf("%s, %d ready:\n got %+v\nwant %+v", name, ready, *seen.observation, expected)
			}
			if seen.key().String() != "ns/a" {
				t.Errorf("%s: the name is %s", name, seen.key())
			}
			if again, err := test.observer.reduce(seen); err != nil || again != seen {
				t.Errorf("%s: a reduced object is changed when it is reduced again: %v", name, err)
			}
		}
	}
}

// strange is an object that no API server sends.
type strange struct{ metav1.TypeMeta }

func (s *strange) DeepCopyObject() runtime.Object { return s }

func TestReduceRefuses(t *testing.T) {
	broken := &unstructured.Unstructured{Object: map[string]any{"kind": "Widget", "metadata": map[string]any{"name": "a", "generation": "many"}}}
	for name, test := range map[string]struct {
		obj  any
		want string
	}{
		"no object":       {"text", "a string was watched instead of an object"},
		"no metadata":     {&strange{}, "has no metadata"},
		"broken metadata": {broken, "read the metadata of Widget /a: "},
	} {
		if _, err := (observer{}).reduce(test.obj); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if _, err := (observer{}).reduce(&unstructured.Unstructured{Object: map[string]any{"metadata": "none"}}); err != nil {
		t.Errorf("for an object whose metadata is a string: %v", err)
	}
}

// TestMetadataOf checks that the metadata is the same as that which the API server returns for requests for metadata only.
func TestMetadataOf(t *testing.T) {
	set := setOf(1)
	body, err := json.Marshal(set.ObjectMeta)
	must(t, err)
	want := metav1.ObjectMeta{}
	must(t, json.Unmarshal(body, &want))
	for name, obj := range map[string]runtime.Object{"typed": set, "untyped": untypedOf(t, set)} {
		got, err := metadataOf(obj)
		must(t, err)
		gotBody, err := json.Marshal(got.ObjectMeta)
		must(t, err)
		if string(gotBody) != string(body) {
			t.Errorf("%s:\n got %s\nwant %s", name, gotBody, body)
		}
		if !got.DeletionTimestamp.Equal(want.DeletionTimestamp) || !reflect.DeepEqual(got.OwnerReferences, want.OwnerReferences) {
			t.Errorf("%s: got %+v", name, got.ObjectMeta)
		}
	}
}

func TestExaminerOf(t *testing.T) {
	configMap, deployment := schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Group: "apps", Kind: "Deployment"}
	examiner := health.NewExaminer("", nil)
	if examinerOf(nil, deployment) != nil || examinerOf(examiner, configMap) != nil || examinerOf(examiner, deployment) == nil {
		t.Error("bodies are read without need, or not read although they are needed")
	}
	if _, err := examiner.SetOwn("garden/shop", []resourcesv1alpha1.HealthCheck{{Kind: "ConfigMap", Healthy: "true"}}); err != nil {
		t.Fatal(err)
	}
	if examinerOf(examiner, configMap) == nil {
		t.Error("the body is not read although a ManagedResource has a check")
	}
}

// TestReplicasAtZero checks that it is known whether workloads have 0 replicas, who set them, and that this remains known until
// the generation changes.
func TestReplicasAtZero(t *testing.T) {
	owned := []metav1.ManagedFieldsEntry{{
		Manager: "resource-manager", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}}
	zero, one := int32(0), int32(1)
	meta := metav1.ObjectMeta{Name: "web", UID: "1", Generation: 1, ResourceVersion: "1"}
	for name, test := range map[string]struct {
		object runtime.Object
		want   Replicas
	}{
		"Deployment":          {&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &one}}, ReplicasOther},
		"Deployment, default": {&appsv1.Deployment{ObjectMeta: meta}, ReplicasOther},
		"Deployment at 0":     {&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &zero}}, ReplicasZeroOfOthers},
		"StatefulSet at 0":    {&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &zero}}, ReplicasZeroOfOthers},
		"StatefulSet at 0, ours": {&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web", ManagedFields: owned}, Spec: appsv1.StatefulSetSpec{Replicas: &zero},
		}, ReplicasZeroOfOurs},
		"ReplicaSet at 0": {&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &zero}}, ReplicasOther},
	} {
		seen, err := observer{}.reduce(test.object)
		if err != nil {
			t.Fatal(err)
		}
		if seen.observation.Replicas != test.want {
			t.Errorf("%s: got %d, want %d", name, seen.observation.Replicas, test.want)
		}
	}

	before := &Observation{UID: "1", Generation: 1, Replicas: ReplicasZeroOfOthers}
	for name, test := range map[string]struct {
		answer Observation
		want   Replicas
	}{
		"labels changed":   {Observation{UID: "1", Generation: 1}, ReplicasZeroOfOthers},
		"spec changed":     {Observation{UID: "1", Generation: 2}, ReplicasOther},
		"another object":   {Observation{UID: "2", Generation: 1}, ReplicasOther},
		"owner changed":    {Observation{UID: "1", Generation: 1, Replicas: ReplicasZeroOfOurs, Examined: true}, ReplicasZeroOfOurs},
		"another's object": {Observation{UID: "1", Generation: 1, Origin: "shop"}, ReplicasZeroOfOthers},
	} {
		inherit(before, &test.answer)
		if test.answer.Replicas != test.want {
			t.Errorf("%s: got %d, want %d", name, test.answer.Replicas, test.want)
		}
	}
	if after := (Observation{UID: "1", Generation: 1}); before.Agrees(&after) {
		t.Error("the observation would lead to the same decision as that of an object with replicas")
	}
}
