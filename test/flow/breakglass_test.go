package flow

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/breakglass"
	"github.com/trellis-k8s/trellis/test/kit"
)

const staleAfter = 10 * time.Minute

// broken is a world in which a seed's resource-manager does not run, and a flow watches it with a fake clock.
type broken struct {
	*world
	clock    *clocktesting.FakeClock
	requests *kit.Requests
	owner    flow.Owner
}

func newBroken(t *testing.T) *broken {
	t.Helper()
	b := &broken{world: newWorld(t), clock: clocktesting.NewFakeClock(time.Now()), requests: &kit.Requests{}}
	b.owner = flow.Owner{Flow: "seed", UID: types.UID(b.namespace), Name: "seed"}
	config := b.cp.Config()
	config.Wrap(b.requests.Wrap)
	mgr, err := manager.New(config, kit.ManagerOptions(b.scheme))
	kit.Must(t, err)
	kit.Must(t, breakglass.AddToManager(mgr, breakglass.Options{
		Namespace: b.namespace, Lease: "resource-manager", Deployment: "resource-manager", ManagedResource: "resource-manager",
		Flow: "seed", FieldManager: "seed-flow", StaleAfter: staleAfter,
	}, mgr.GetEventRecorder("seed-flow"), b.clock))
	kit.Run(t, mgr)
	return b
}

// objects are the objects of the resource-manager in a version.
func (b *broken) objects(image string) []client.Object {
	labels := map[string]string{"app": "resource-manager"}
	return []client.Object{
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "resource-manager"},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "resource-manager", Image: image}}},
			}},
		},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
		},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "resource-manager"}},
	}
}

// emit writes the bundle of the resource-manager, or deletes it.
func (b *broken) emit(plan flow.Plan) {
	b.Helper()
	emitter := &flow.Emitter{
		Reader: b.client, Uncached: b.client, Writer: b.client, FieldManager: "seed-flow", Rules: flow.Rules{Scheme: b.scheme, Version: "v1"},
	}
	_, err := emitter.Emit(b.Context(), b.owner, plan)
	kit.Must(b, err)
}

func (b *broken) emitVersion(image string) {
	b.Helper()
	key := flow.Key{Namespace: b.namespace, Name: "resource-manager"}
	b.emit(flow.Plan{Bundles: []flow.Bundle{{Key: key, Objects: b.objects(image), AppliesItself: true}}})
}

// pass waits until the controller has reconciled and waits for its clock.
func (b *broken) pass() {
	b.Helper()
	kit.EventuallyTrue(b, "the controller waits for its clock", b.clock.HasWaiters)
}

// renew renews the lease like the resource-manager.
func (b *broken) renew() {
	b.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "resource-manager"}}
	kit.Must(b, client.IgnoreAlreadyExists(b.client.Create(b.Context(), lease)))
	kit.Change(b, b.client, lease, func() { lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(b.clock.Now())) })
}

// ready writes the status of the Deployment.
func (b *broken) ready(replicas int32) {
	b.Helper()
	deployment := &appsv1.Deployment{}
	b.get(deployment, "resource-manager")
	deployment.Status = appsv1.DeploymentStatus{Replicas: replicas, ReadyReplicas: replicas}
	kit.WriteStatus(b, b.client, deployment)
}

// spoil gives the resource-manager a bad configuration: no rights, and an image that does not exist.
func (b *broken) spoil() {
	b.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}
	kit.Change(b, b.client, role, func() { role.Rules = nil })
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "resource-manager"}}
	kit.Change(b, b.client, deployment, func() { deployment.Spec.Template.Spec.Containers[0].Image = "bad" })
}

// applied names the first difference from the objects of a version. It is empty if there is no difference.
func (b *broken) applied(image string) string {
	b.Helper()
	deployment, role := &appsv1.Deployment{}, &rbacv1.ClusterRole{}
	err := b.client.Get(b.Context(), client.ObjectKey{Name: b.namespace}, role)
	switch {
	case !b.get(deployment, "resource-manager"):
		return "the Deployment does not exist"
	case deployment.Spec.Template.Spec.Containers[0].Image != image:
		return "the image is " + deployment.Spec.Template.Spec.Containers[0].Image
	case err != nil:
		return err.Error()
	case len(role.Rules) != 1:
		return "the ClusterRole has no rules"
	case !b.get(&corev1.ServiceAccount{}, "resource-manager"):
		return "the ServiceAccount does not exist"
	}
	return ""
}

// wantWritten checks how many objects the controller has written. Those that are as declared are only compared.
func (b *broken) wantWritten(objects int) {
	b.Helper()
	patches := 0
	for _, request := range b.requests.Single() {
		if request.Method == http.MethodPatch && !request.DryRun && !strings.Contains(request.Path, "/events/") {
			patches++
		}
	}
	if patches != objects {
		b.Errorf("%d objects were written, not %d: %v", patches, objects, b.requests.Single())
	}
}

// TestTheResourceManagerIsHealed: the flow applies the resource-manager only if it is not alive.
func TestTheResourceManagerIsHealed(t *testing.T) {
	b := newBroken(t)
	b.emitVersion("v1")
	b.pass()
	b.clock.Step(staleAfter)
	kit.Eventually(t, "a resource-manager that never existed is applied", func() string { return b.applied("v1") })

	kit.Eventually(t, "an Event reports the reason", func() string {
		return b.missingEvent("and has no ready replica. The flow has applied its 3 objects: 3 created")
	})
	// A resource-manager that is alive is left alone, even if something is wrong with its objects.
	b.pass()
	b.requests.Forget()
	b.ready(1)
	b.renew()
	b.spoil()
	for i := range 3 {
		b.pass()
		b.clock.Step(staleAfter * 9 / 10)
		b.renew()
		// A delayed watch may make the controller read the lease later.
		if sent := b.requests.Single(); i == 0 && len(sent) > 0 {
			t.Errorf("the controller sends requests at rest: %v", sent)
		}
	}
	b.wantWritten(0)
	// It no longer renews its lease, but a ready replica might still do so.
	b.pass()
	b.clock.Step(staleAfter)
	b.ready(0)
	kit.Eventually(t, "its objects are applied", func() string { return b.applied("v1") })
	b.pass()
	b.wantWritten(2) // the ServiceAccount was as declared

	// The same revision has to wait. Another one does not.
	b.spoil()
	b.ready(0)
	b.pass()
	b.clock.Step(staleAfter / 2)
	b.pass()
	b.wantWritten(2)
	b.emitVersion("v2")
	kit.Eventually(t, "the next revision is applied", func() string { return b.applied("v2") })
	b.spoil()
	b.pass()
	b.clock.Step(staleAfter)
	kit.Eventually(t, "the revision is applied again", func() string { return b.applied("v2") })
	b.pass()
	b.wantWritten(6)
}

// missingEvent returns a message if no Event has the text, or an empty string.
func (b *broken) missingEvent(text string) string {
	b.Helper()
	var events eventsv1.EventList
	kit.Must(b, b.client.List(b.Context(), &events, client.InNamespace(b.namespace)))
	notes := make([]string, 0, len(events.Items))
	for _, event := range events.Items {
		if event.Reason == breakglass.ReasonApplied && event.Regarding.Name == "resource-manager" && strings.Contains(event.Note, text) {
			return ""
		}
		notes = append(notes, event.Note)
	}
	return "the Events are " + strings.Join(notes, "; ")
}

// TestTheResourceManagerIsRemoved: the flow deletes its objects last and does not restore them.
func TestTheResourceManagerIsRemoved(t *testing.T) {
	b := newBroken(t)
	b.emitVersion("v1")
	b.pass()
	b.clock.Step(staleAfter)
	kit.Eventually(t, "the resource-manager is applied", func() string { return b.applied("v1") })
	b.pass()

	// The other tests of the package have ManagedResources, too.
	mine := client.NewNamespacedClient(b.client, b.namespace)
	if _, err := breakglass.Remove(t.Context(), b.client, mine, b.objects("v1")); err == nil || !strings.Contains(err.Error(), b.namespace+"/resource-manager exists") {
		t.Fatalf("the resource-manager is removed although its ManagedResource exists: %v", err)
	}
	b.emit(flow.Plan{Tombstones: []flow.Tombstone{{Key: flow.Key{Namespace: b.namespace, Name: "resource-manager"}}}})
	kit.EventuallyTrue(t, "its ManagedResource is deleted", func() bool { return b.mr("resource-manager") == nil })
	b.requests.Forget()
	kit.Eventually(t, "its objects are deleted", func() string {
		left, err := breakglass.Remove(t.Context(), b.client, mine, b.objects("v1"))
		return strings.Join(left, ", ") + kit.TextOf(err)
	})
	b.clock.Step(10 * staleAfter)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "resource-manager"}}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{}
	kit.Must(t, b.client.Create(t.Context(), mr)) // belongs to no flow, and triggers another reconcile
	kit.Must(t, b.client.Delete(t.Context(), mr))
	b.wantWritten(0)
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: b.namespace}, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRole exists: %v", err)
	}
}
