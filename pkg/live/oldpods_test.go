package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// TestFollow checks that the Pods of a Deployment are counted while that is needed, and only once at a time. No count gets a
// slot in this test, so no request is sent.
func TestFollow(t *testing.T) {
	pods := &oldPods{slots: make(chan struct{}), running: map[types.NamespacedName]*podCount{}}
	var held *Observation
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	follow := func(observation *Observation) *podCount {
		held = observation
		pods.follow(ctx, thing, func() *Observation { return held }, func(types.UID, health.PodCount, int) { t.Error("something was counted") })
		return pods.running[thing]
	}
	awaiting := func(uid types.UID, count health.PodCount) *Observation {
		return &Observation{UID: uid, Health: &health.Verdict{OldPods: count}}
	}
	if follow(nil) != nil || follow(&Observation{UID: "u"}) != nil {
		t.Fatal("Pods are counted without need")
	}
	first := follow(awaiting("u", twoOf))
	if first == nil || follow(awaiting("u", twoOf)) != first {
		t.Fatal("Pods are not counted, or they are counted twice")
	}
	second := follow(awaiting("u", health.PodCount{Selector: "app=web", Replicas: 3}))
	third := follow(awaiting("another", second.wanted))
	if second == first || third == second || len(pods.running) != 1 {
		t.Error("another number of Pods, or another Deployment, does not start a new count")
	}
	if follow(&Observation{UID: "another", Health: &health.Verdict{Progressing: "rolling"}}) != nil {
		t.Error("Pods are counted during a rollout")
	}
	follow(awaiting("u", twoOf))
	if follow(nil) != nil || len(pods.running) != 0 {
		t.Error("Pods of a deleted Deployment are counted")
	}
}

func TestPodStore(t *testing.T) {
	var counts []int
	store := &podStore{relevant: map[types.NamespacedName]bool{}, counted: func(found int) { counts = append(counts, found) }}
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.Status.Phase = "ns", name, phase
		return pod
	}
	expect := func(what string, err error, want ...int) {
		t.Helper()
		must(t, err)
		if !slices.Equal(counts, want) {
			t.Errorf("%s: counted %v, want %v", what, counts, want)
		}
		counts = nil
	}
	expect("the first list", store.Replace([]any{pod("a", corev1.PodRunning), pod("b", corev1.PodPending), pod("c", corev1.PodSucceeded)}, "1"), 2)
	expect("a new Pod", store.Add(pod("d", corev1.PodPending)), 3)
	expect("one that starts", store.Update(pod("d", corev1.PodRunning)), 3)
	expect("one that ends", store.Update(pod("a", corev1.PodFailed)), 2)
	expect("one that is deleted", store.Delete(pod("b", corev1.PodRunning)), 1)
	expect("one that is not known", store.Delete(pod("x", corev1.PodRunning)), 1)
	expect("a list after an interruption", store.Replace([]any{pod("e", corev1.PodRunning)}, "9"), 1)
	expect("nothing", store.Resync())
	if store.Add("text") == nil || len(counts) != 0 {
		t.Error("a string is accepted as a Pod")
	}
	if len(store.relevant) != 1 {
		t.Errorf("the store has %v", store.relevant)
	}
}

// podReading is a fake API server for Pods. It does not support reads of one object.
type podReading struct {
	target.Reading
	pods []corev1.Pod
}

func (r podReading) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: r.pods}, nil
}

func (r podReading) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil) // like an API server that cannot stream lists
	}
	events := watch.NewFake()
	context.AfterFunc(ctx, events.Stop)
	return events, nil
}

// TestOldPods_CountedAfterFailedDiscovery checks that discovery is retried if the API server does not answer which resource
// serves Pods. If it answers that it serves no Pods, the Deployment counts as rolled out.
func TestOldPods_CountedAfterFailedDiscovery(t *testing.T) {
	one := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}}
	collection := target.Collection{Namespaced: true, In: func(string) target.Reading { return podReading{pods: []corev1.Pod{one}} }}
	for name, test := range map[string]struct {
		errs []error
		want int
	}{
		"an API server that is down for a moment": {[]error{errors.New("connection refused"), errors.New("connection refused")}, 1},
		"a cluster without Pods":                  {[]error{fmt.Errorf("Pod: %w", target.ErrKindNotServed)}, int(twoOf.Replicas)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				errs := test.errs
				pods := newOldPods(func(schema.GroupVersionKind) (target.Collection, error) {
					if len(errs) == 0 {
						return collection, nil
					}
					err := errs[0]
					errs = errs[1:]
					return target.Collection{}, err
				}, clock.RealClock{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				counted := make(chan int, 1)
				held := &Observation{UID: "u", Health: &health.Verdict{OldPods: twoOf}}
				pods.follow(ctx, thing, func() *Observation { return held }, func(_ types.UID, _ health.PodCount, found int) {
					select {
					case counted <- found:
					default:
					}
				})
				select {
				case found := <-counted:
					if found != test.want {
						t.Errorf("counted %d Pods, want %d", found, test.want)
					}
				case <-time.After(time.Hour):
					t.Error("Pods are not counted")
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
