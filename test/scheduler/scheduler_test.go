package scheduler

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

const project = "garden-dev"

// TestScheduler runs the program in a garden. The steps depend on each other.
func TestScheduler(t *testing.T) {
	f := newFixture(t)
	f.create(example(f, "cloudprofile.yaml", &corev1beta1.CloudProfile{}))
	f.create(&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To(project)}})
	f.createSeed()
	f.start()
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"no Seed is usable", f.waits}, {"rest", f.rests}, {"heartbeats", f.ignoresHeartbeats}, {"a Seed becomes usable", f.wakes},
		{"the Seed is full", f.isFull}, {"a Shoot leaves", f.getsThePlace}, {"restart", f.restarts},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			before := f.T
			f.T = t
			defer func() { f.T = before }()
			step.run()
		}) {
			t.FailNow()
		}
	}
	f.requests(0)
}

func (f *fixture) createSeed() {
	f.Helper()
	seed := example(f, "seed.yaml", &corev1beta1.Seed{})
	seed.Spec.Taints, seed.Spec.Backup, seed.Spec.Settings.ZoneSelection = nil, nil, nil
	f.create(seed)
}

func (f *fixture) createShoot(name string, change func(*corev1beta1.Shoot)) {
	f.Helper()
	shoot := example(f, "shoot.yaml", &corev1beta1.Shoot{})
	shoot.Name, shoot.Namespace = name, project
	shoot.Spec.SeedName, shoot.Spec.SeedSelector, shoot.Spec.AccessRestrictions, shoot.Spec.ExposureClassName = nil, nil, nil, nil
	shoot.Spec.Kubernetes.KubeAPIServer = nil // refers to a Secret
	shoot.Spec.DNS, shoot.Spec.Resources, shoot.Spec.Extensions, shoot.Spec.Purpose = nil, nil, nil, nil
	shoot.Spec.Networking.Nodes, shoot.Spec.Networking.Pods, shoot.Spec.Networking.Services = ptr.To("10.20.0.0/16"), ptr.To("10.21.0.0/16"), ptr.To("10.22.0.0/16")
	if change != nil {
		change(shoot)
	}
	f.create(shoot)
}

func (f *fixture) shoot(name string) *corev1beta1.Shoot {
	f.Helper()
	shoot := &corev1beta1.Shoot{}
	kit.Must(f, f.client.Get(f.Context(), client.ObjectKey{Namespace: project, Name: name}, shoot))
	return shoot
}

// pending waits until a Shoot reports a reason.
func (f *fixture) pending(name, reason string) {
	f.Helper()
	kit.Eventually(f, "Shoot "+name+" is pending: "+reason, func() string {
		last := f.shoot(name).Status.LastOperation
		if last != nil && last.Type == corev1beta1.LastOperationTypeCreate && last.State == corev1beta1.LastOperationStatePending &&
			strings.HasPrefix(last.Description, "Failed to schedule Shoot: ") && strings.Contains(last.Description, reason) {
			return ""
		}
		return fmt.Sprintf("%+v", last)
	})
}

// bound waits until a Shoot has the Seed and no last operation of the scheduler.
func (f *fixture) bound(name string) {
	f.Helper()
	kit.Eventually(f, "Shoot "+name+" has a Seed", func() string {
		shoot := f.shoot(name)
		if ptr.Deref(shoot.Spec.SeedName, "") == "local" && shoot.Status.LastOperation == nil {
			return ""
		}
		return fmt.Sprintf("%v, %+v", ptr.Deref(shoot.Spec.SeedName, ""), shoot.Status.LastOperation)
	})
}

func (f *fixture) changeSeed(change func(*corev1beta1.SeedStatus)) {
	f.Helper()
	seed := &corev1beta1.Seed{}
	kit.Must(f, f.client.Get(f.Context(), client.ObjectKey{Name: "local"}, seed))
	change(&seed.Status)
	kit.WriteStatus(f, f.client, seed)
}

func (f *fixture) waits() {
	f.createShoot("first", nil)
	f.createShoot("foreign", func(shoot *corev1beta1.Shoot) { shoot.Spec.SchedulerName = ptr.To("another") })
	f.pending("first", "{local => is not set up yet}")
	kit.Eventually(f, "an Event reports the reason", func() string {
		var events corev1.EventList
		kit.Must(f, f.client.List(f.Context(), &events, client.InNamespace(project)))
		for i := range events.Items {
			if events.Items[i].Reason == "SchedulingFailed" && strings.Contains(events.Items[i].Message, "is not set up yet") {
				return ""
			}
		}
		return fmt.Sprintf("%d Events", len(events.Items))
	})
}

func (f *fixture) rests() {
	lines := f.quiet()
	f.quiet()
	if sent, _ := f.requests(lines); len(sent) > 0 {
		f.Errorf("requests at rest: %q", sent)
	}
}

// ignoresHeartbeats changes fields of the Seed on which no decision depends.
func (f *fixture) ignoresHeartbeats() {
	lines := f.quiet()
	for i := range 3 {
		f.changeSeed(func(status *corev1beta1.SeedStatus) { status.KubernetesVersion = ptr.To(fmt.Sprintf("v1.34.%d", i)) })
	}
	f.quiet()
	if sent, _ := f.requests(lines); len(sent) > 0 {
		f.Errorf("requests after heartbeats: %q", sent)
	}
}

func (f *fixture) wakes() {
	f.changeSeed(func(status *corev1beta1.SeedStatus) {
		status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded}
		status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "Ready", Message: "It is."}}
		one := corev1.ResourceList{corev1beta1.SeedResourceShoots: *resource.NewQuantity(1, resource.DecimalSI)}
		status.Capacity, status.Allocatable = one, one
	})
	f.bound("first")
}

func (f *fixture) isFull() {
	f.createShoot("second", nil)
	f.pending("second", "{local => does not have available capacity for shoots}")
	if foreign := f.shoot("foreign"); foreign.Spec.SeedName != nil || foreign.Status.LastOperation != nil {
		f.Errorf("the Shoot of another scheduler has Seed %v and %+v", foreign.Spec.SeedName, foreign.Status.LastOperation)
	}
}

// getsThePlace deletes the first Shoot, after which the second one gets its place.
func (f *fixture) getsThePlace() {
	first := f.shoot("first")
	kit.Must(f, f.client.Patch(f.Context(), first, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null,"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))))
	kit.Must(f, client.IgnoreNotFound(f.client.Delete(f.Context(), first)))
	f.bound("second")
	f.createShoot("third", nil)
	f.pending("third", "available capacity")
}

// restarts checks that the program writes nothing after a restart if nothing has changed.
func (f *fixture) restarts() {
	kit.Must(f, f.process.Stop(kit.WaitTimeout))
	before, _ := f.renewed()
	_, lines := f.requests(0)
	f.start()
	kit.EventuallyTrue(f, "the scheduler leads", func() bool {
		now, _ := f.renewed()
		return now != "" && now != before
	})
	f.quiet()
	sent, _ := f.requests(lines)
	for _, request := range sent {
		if !strings.HasPrefix(request, "list ") && !strings.HasPrefix(request, "get ") {
			f.Errorf("a restart wrote: %s", request)
		}
	}
}
