package snapshot

import (
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestHealth(t *testing.T) {
	deleted := metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now()), Finalizers: []string{"a", "b"}}
	skipped := metav1.ObjectMeta{Annotations: map[string]string{resourcesv1alpha1.AnnotationSkipHealthCheck: "true"}}
	for name, test := range map[string]struct {
		object Object
		want   Health
		why    string
	}{
		"gone":                {Object{Presence: live.Absent}, Missing, "it does not exist"},
		"finished":            {Object{Presence: live.Absent, Finished: true}, Healthy, ""},
		"kind gone":           {Object{Presence: live.KindNotServed, Err: errors.New("no kind")}, Missing, "no kind"},
		"not permitted":       {Object{Presence: live.Unknown, Err: errors.New("you may not read it")}, Unseen, "you may not read it"},
		"deleted":             {Object{Presence: live.Present, Meta: deleted, Checked: true}, Deleting, "its finalizers block the deletion: a, b"},
		"skipped":             {Object{Presence: live.Present, Meta: skipped, Verdict: health.Verdict{Unhealthy: "bad"}}, Unchecked, ""},
		"unhealthy":           {Object{Presence: live.Present, Verdict: health.Verdict{Unhealthy: "bad", Progressing: "going"}}, Unhealthy, "bad"},
		"of the former spec":  {Object{Presence: live.Present, Verdict: health.Verdict{Unhealthy: "bad", Unobserved: true}}, Progressing, "bad"},
		"rolled out":          {Object{Presence: live.Present, Verdict: health.Verdict{Progressing: "going"}}, Progressing, "going"},
		"rule fails":          {Object{Presence: live.Present, Verdict: health.Verdict{Err: "rule"}, Checked: true}, Unchecked, "rule"},
		"well":                {Object{Presence: live.Present, Checked: true}, Healthy, ""},
		"there, without rule": {Object{Presence: live.Present}, Present, ""},
	} {
		if got, why := test.object.Health(), test.object.Why(); got != test.want || why != test.why {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got, why, test.want, test.why)
		}
	}
}

func TestBySeverity(t *testing.T) {
	well, absent, bad := &Object{Presence: live.Present}, &Object{}, &Object{Presence: live.Present, Verdict: health.Verdict{Unhealthy: "bad"}}
	absent.Presence = live.Absent
	if got := BySeverity([]*Object{well, bad, absent}); !slices.Equal(got, []*Object{absent, bad, well}) {
		t.Errorf("%v", got)
	}
}

func TestPodDetail(t *testing.T) {
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "main", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "text"}}}}
	}
	ended := func(code int32) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: code}}}}
	}
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no node"}
	for _, test := range []struct {
		node   string
		status corev1.PodStatus
		want   string
	}{
		{"", corev1.PodStatus{Phase: "Pending", Conditions: []corev1.PodCondition{scheduled}}, "Unschedulable: no node"},
		{"", corev1.PodStatus{Phase: "Pending"}, "Pending"},
		{"n", corev1.PodStatus{Phase: "Running"}, "Running on n"},
		{"n", corev1.PodStatus{Phase: "Running", ContainerStatuses: waiting("CrashLoopBackOff")}, "container main: CrashLoopBackOff: text"},
		{"n", corev1.PodStatus{Phase: "Pending", ContainerStatuses: waiting("ContainerCreating")}, "Pending on n, restarted 2 times"},
		{"n", corev1.PodStatus{Phase: "Pending", InitContainerStatuses: ended(1), ContainerStatuses: waiting("PodInitializing")}, "container init: ended with Error (exit code 1)"},
		{"n", corev1.PodStatus{Phase: "Running", InitContainerStatuses: ended(0)}, "Running on n"},
		{"n", corev1.PodStatus{Phase: "Failed", Reason: "Evicted", Message: "no memory"}, "Evicted: no memory"},
	} {
		if got := detailOf(&corev1.Pod{Spec: corev1.PodSpec{NodeName: test.node}, Status: test.status}); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// owned returns an existing object with owners.
func owned(kind, name string, owners ...types.UID) *Object {
	o := &Object{Ref: object.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: kind}, Namespace: "shop", Name: name}, Presence: live.Present}
	o.Meta.UID = types.UID(name)
	for _, owner := range owners {
		o.Meta.OwnerReferences = append(o.Meta.OwnerReferences, metav1.OwnerReference{UID: owner})
	}
	return o
}

func TestAdopt(t *testing.T) {
	of := map[types.UID][]*Object{}
	for _, o := range []*Object{
		owned("Pod", "pod-b", "set"), owned("Pod", "pod-a", "set", "other"), owned("ReplicaSet", "set", "deployment"),
		owned("Secret", "listed", "deployment"), owned("Loop", "loop", "loop", "deployment"),
	} {
		for _, owner := range o.Meta.OwnerReferences {
			of[owner.UID] = append(of[owner.UID], o)
		}
	}
	root, other := owned("Deployment", "deployment"), owned("ReplicaSet", "other")
	inventory := map[types.UID]bool{"deployment": true, "listed": true}
	adopt(root, of, inventory, maxDepth)
	adopt(other, of, inventory, maxDepth)
	var below []string
	root.Walk(func(o *Object) {
		if o.Kind != "Loop" {
			below = append(below, o.Name)
		}
	})
	if want := []string{"deployment", "set", "pod-a", "pod-b"}; !slices.Equal(below, want) {
		t.Errorf("the children are %v, want %v: sorted, without objects of the inventory", below, want)
	}
	if len(other.Children) != 1 || other.Children[0].Name != "pod-a" {
		t.Errorf("an object with two owners is not below both: %+v", other.Children)
	}
}

func TestIsFormer(t *testing.T) {
	for _, test := range []struct {
		wanted, there int32
		want          bool
	}{{0, 0, true}, {0, 1, false}, {1, 0, false}} {
		set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &test.wanted}, Status: appsv1.ReplicaSetStatus{Replicas: test.there}}
		if got := isFormer(&Object{Body: set}); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
	if isFormer(&Object{Body: &corev1.Pod{}}) {
		t.Error("a Pod counts as an old ReplicaSet")
	}
}

// TestEventsAbout checks that the Events of a Deployment, of the objects below it and of its deleted Pods are found, and no
// Events of other objects.
func TestEventsAbout(t *testing.T) {
	event := func(name, kind, namespace, of string, uid types.UID, second int64) corev1.Event {
		return corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, LastTimestamp: metav1.NewTime(time.Unix(second, 0)),
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: of, UID: uid},
		}
	}
	root := owned("Deployment", "web")
	root.Group = "apps"
	root.Children = []*Object{owned("ReplicaSet", "web-1")}
	secret := owned("Secret", "web2")
	all := []corev1.Event{
		event("latest", "Deployment", "shop", "web", "", 9), event("gone", "Pod", "shop", "web-1-x", "gone", 3), event("by uid", "ReplicaSet", "shop", "renamed", "web-1", 2),
		event("elsewhere", "Pod", "other", "web-1-x", "", 1), event("longer name", "Deployment", "shop", "webhook", "", 1),
		event("no workload", "Pod", "shop", "web2-x", "", 1), event("same name", "Service", "shop", "web", "", 1),
	}
	var names []string
	for _, found := range EventsAbout(all, []*Object{root, secret}) {
		names = append(names, found.Name)
	}
	if want := []string{"by uid", "gone", "latest"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

func TestFieldsOf(t *testing.T) {
	entry := metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{},"f:b":{},"f:c":{},"f:d":{},"f:e":{},"f:f":{}}}`)}
	if got := fieldsOf(entry); len(got) != maxFields+1 || got[0] != "data.a" || got[maxFields] != "…" {
		t.Errorf("%v", got)
	}
	entry.FieldsV1 = metav1.NewFieldsV1("nonsense")
	if got := fieldsOf(entry); got != nil {
		t.Errorf("%v", got)
	}
}
