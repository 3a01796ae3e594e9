package shoot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

const (
	fleetSize   = 200
	fleetBudget = 20
)

// member is a Shoot of a simulated Seed, with its part of the seed cluster.
type member struct {
	client.Client
	fleet   *fleet
	shoot   *corev1beta1.Shoot
	emitter *flow.Emitter
	// known are its ManagedResources.
	known []resourcesv1alpha1.ManagedResource
	// asked is set from a change by the user until its operation has succeeded. The check does not ask the tested code for it.
	asked bool
	// settled is the last generation whose operation has succeeded.
	settled int64
	// broken is set while the control plane is not healthy. writes counts the writes of the status.
	broken bool
	writes int
}

// fleet is a simulated Seed. The decisions, reports and the emission are the real ones. The plans are small, and the
// resource-manager only judges.
type fleet struct {
	*testing.T
	random  *rand.Rand
	clock   *testingclock.FakePassiveClock
	pacer   *flow.Pacer
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	version string
	seed    *corev1beta1.Seed
	members []*member
	scheme  *runtime.Scheme
	mapper  meta.RESTMapper
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{T: t, random: rand.New(rand.NewPCG(1, 2)), clock: testingclock.NewFakePassiveClock(now), seed: ready().seed}
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(f.queue.ShutDown)
	f.scheme = runtime.NewScheme() // only what members store: the fake client makes a mapper of all kinds for each request
	if err := errors.Join(corev1.AddToScheme(f.scheme), resourcesv1alpha1.AddToScheme(f.scheme)); err != nil {
		t.Fatal(err)
	}
	f.mapper = testrestmapper.TestOnlyStaticRESTMapper(f.scheme)
	f.upgrade("v1")
	return f
}

// upgrade starts another version of gardenlet.
func (f *fleet) upgrade(version string) {
	f.Helper()
	f.version = version
	f.pacer = &flow.Pacer{Pacing: flow.Pacing{Budget: fleetBudget, MaxFailed: fleetSize, Retry: time.Hour}, Clock: f.clock}
	if err := f.pacer.Source().Start(f.Context(), f.queue); err != nil {
		f.Fatal(err)
	}
	for _, m := range f.members {
		m.emitter.Pacer, m.emitter.Rules.Version = f.pacer, version
	}
}

func (f *fleet) create() *member {
	f.Helper()
	name := fmt.Sprint("s", len(f.members))
	m := &member{fleet: f, shoot: &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden-dev", Name: name, UID: types.UID(name), Generation: 1,
	}}}
	m.Client = fake.NewClientBuilder().WithScheme(f.scheme).WithRESTMapper(f.mapper).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).Build()
	m.emitter = &flow.Emitter{
		Reader: m, Uncached: m, Writer: m, FieldManager: "gardenlet", Pacer: f.pacer, Rules: flow.Rules{Scheme: f.scheme, Version: f.version},
	}
	f.members = append(f.members, m)
	return m
}

// List reads the ManagedResources of all members, unless the options select an owner.
func (m *member) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	all, ok := list.(*resourcesv1alpha1.ManagedResourceList)
	selected := (&client.ListOptions{}).ApplyOptions(options)
	if !ok || selected.LabelSelector == nil {
		return m.Client.List(ctx, list, options...)
	}
	if _, owned := selected.LabelSelector.RequiresExactMatch(flow.LabelOwner); owned {
		return m.Client.List(ctx, list, options...)
	}
	all.Items = m.fleet.all()
	return nil
}

// Apply increases the generation of a ManagedResource if its spec changes, as an API server does.
func (m *member) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	applied, ok := object.(interface {
		GetNamespace() string
		GetName() string
	})
	if !ok {
		return fmt.Errorf("unexpected object %T", object)
	}
	before, after := &resourcesv1alpha1.ManagedResource{}, &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: applied.GetNamespace(), Name: applied.GetName()}
	if err := client.IgnoreNotFound(m.Get(ctx, key, before)); err != nil {
		return err
	}
	if err := m.Client.Apply(ctx, object, options...); err != nil {
		return err
	}
	if err := m.Get(ctx, key, after); err != nil {
		return err
	}
	after.Generation = before.Generation
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		after.Generation++
	}
	return m.Update(ctx, after)
}

// read updates what is known about the ManagedResources.
func (m *member) read() {
	var list resourcesv1alpha1.ManagedResourceList
	if err := m.Client.List(m.fleet.Context(), &list); err != nil {
		m.fleet.Fatal(err)
	}
	m.known = list.Items
}

func (f *fleet) all() []resourcesv1alpha1.ManagedResource {
	var all []resourcesv1alpha1.ManagedResource
	for _, m := range f.members {
		all = append(all, m.known...)
	}
	return all
}

// plan returns a plan with the namespace and one program, whose objects change with the version of gardenlet.
func (f *fleet) plan(in Inputs) flow.Plan {
	f.Helper()
	plan := flow.Plan{Window: in.window(), AtOnce: in.atOnce()}
	var err error
	if plan.Inputs, err = in.digest(); err != nil {
		f.Fatal(err)
	}
	if plan.Program, err = in.program(); err != nil {
		f.Fatal(err)
	}
	for key, value := range map[flow.Key]string{
		{Namespace: "garden", Name: in.Namespace}:         in.Shoot.Annotations["dashboard"],
		{Namespace: in.Namespace, Name: "kube-apiserver"}: in.Shoot.Spec.Region + f.version + fmt.Sprint(in.Seed.Spec.Provider.Zones),
	} {
		plan.Bundles = append(plan.Bundles, flow.Bundle{Key: key, Objects: []client.Object{&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Data: map[string]string{"content": value},
		}}})
	}
	slices.SortFunc(plan.Bundles, func(a, b flow.Bundle) int { return a.Compare(b.Key) })
	return plan
}

func (m *member) inputs() Inputs {
	return Inputs{
		Owner: flow.Owner{Flow: FlowName, UID: m.shoot.UID, Namespace: m.shoot.Namespace, Name: m.shoot.Name}, GardenNamespace: "garden",
		Namespace: "shoot--dev--" + m.shoot.Name, Shoot: m.shoot, Seed: m.fleet.seed, Now: m.fleet.clock.Now(),
	}
}

// program returns the digest of what operators declare, which is the same for all members.
func (f *fleet) program() string {
	f.Helper()
	program, err := f.members[0].inputs().program()
	if err != nil {
		f.Fatal(err)
	}
	return program
}

// hasChange reports whether the program of a member has been written by the version of gardenlet, with what operators declare.
func (m *member) hasChange(program string) bool {
	return slices.ContainsFunc(m.known, func(mr resourcesv1alpha1.ManagedResource) bool {
		return mr.Namespace != "garden" && mr.Annotations[flow.AnnotationVersion] == m.fleet.version && mr.Annotations[flow.AnnotationProgram] == program
	})
}

// pass reconciles a Shoot once, and checks that the budget is held if the changes are paced.
func (m *member) pass() {
	f := m.fleet
	f.Helper()
	identity := f.seed.Status.Gardener
	r := &reconciler{options: Options{
		SeedName: "local", Clock: f.clock, Identity: &corev1beta1.Gardener{ID: "a", Name: "gardenlet", Version: f.version}, Config: &gardenletv1alpha1.GardenletConfiguration{},
	}}
	decision := decisionInput{shoot: m.shoot, seed: f.seed, gardenlet: r.options.Identity, now: f.clock.Now()}.decide()
	if !decision.run {
		if decision.failed && isUnfinished(m.shoot) {
			m.write(r.waitsForSeed(m.shoot, decision.why))
		}
		return
	}
	if *identity != *r.options.Identity {
		f.Fatal("a Shoot is reconciled before its Seed")
	}
	in := m.inputs()
	m.write(r.started(in))
	plan := f.plan(in)
	m.asked = m.asked || m.shoot.Generation != m.settled
	due := !m.asked && !m.hasChange(plan.Program)
	result, err := m.emitter.Emit(f.Context(), in.Owner, plan)
	if err != nil {
		f.Fatal(err)
	}
	if len(result.Written) > 0 {
		m.read()
	}
	status, _ := r.progress(in, result)
	m.write(status)
	if m.shoot.Status.LastOperation.State == corev1beta1.LastOperationStateSucceeded {
		m.asked, m.settled = false, m.shoot.Generation
	}
	if rolling := flow.FleetOf(f.all(), f.version).Rolling; due && len(result.Written) > 0 && rolling > fleetBudget && rolling > len(result.Written) {
		f.Errorf("after a paced change of %s, %d ManagedResources are rolling out, with a budget of %d", m.shoot.Name, rolling, fleetBudget)
	}
}

func (m *member) write(status corev1beta1.ShootStatus) {
	if !equality.Semantic.DeepEqual(status, m.shoot.Status) {
		m.shoot.Status = status
		m.writes++
	}
}

// judge rolls out the ManagedResources of a member, and reports whether it changed one.
func (m *member) judge() bool {
	f, changed := m.fleet, false
	for _, mr := range m.known {
		healthy := resourcesv1alpha1.ConditionTrue
		if m.broken && mr.Namespace != "garden" {
			healthy = resourcesv1alpha1.ConditionFalse
		}
		before := mr.DeepCopy()
		mr.Status.ObservedGeneration = mr.Generation
		for kind, status := range map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.ConditionStatus{
			resourcesv1alpha1.ResourcesApplied: "True", resourcesv1alpha1.ResourcesHealthy: healthy, resourcesv1alpha1.ResourcesProgressing: "False",
		} {
			statement := resourcesv1alpha1.NewStatement(status, "Judged", "judged")
			mr.Status.Conditions = resourcesv1alpha1.SetCondition(mr.Status.Conditions, kind, statement, now)
		}
		slices.SortFunc(mr.Status.Conditions, func(a, b resourcesv1alpha1.Condition) int { return len(a.Type) - len(b.Type) })
		if equality.Semantic.DeepEqual(before.Status, mr.Status) {
			continue
		}
		changed = true
		if err := m.Client.Status().Update(f.Context(), &mr); err != nil {
			f.Fatal(err)
		}
	}
	if changed {
		m.read()
	}
	return changed
}

// settle reconciles members until nothing changes.
func (f *fleet) settle(members ...*member) {
	f.Helper()
	for range 20 {
		changed := false
		for _, m := range members {
			m.pass()
			changed = m.judge() || changed
		}
		if !changed {
			return
		}
	}
	f.Fatal("the Shoots do not come to rest")
}

// check computes the health of the Seed from the ManagedResources of all members and of one component of its own.
func (f *fleet) check(healthy bool) {
	f.Helper()
	own := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "vpa", Labels: map[string]string{flow.LabelFlow: "seed"}}}
	for kind, status := range map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.ConditionStatus{
		resourcesv1alpha1.ResourcesApplied: "True", resourcesv1alpha1.ResourcesHealthy: "True", resourcesv1alpha1.ResourcesProgressing: "False",
	} {
		own.Status.Conditions = append(own.Status.Conditions, resourcesv1alpha1.Condition{Type: kind, Status: status})
	}
	if !healthy {
		own.Generation++
	}
	components := []resourcesv1alpha1.ManagedResource{own}
	for _, mr := range f.all() {
		if mr.Namespace == "garden" {
			components = append(components, mr)
		}
	}
	components = slices.DeleteFunc(components, func(mr resourcesv1alpha1.ManagedResource) bool { return !readiness.IsSeedComponent(&mr) })
	status, problem := corev1beta1.ConditionTrue, readiness.CheckAll(components)
	if problem != nil {
		status = corev1beta1.ConditionFalse
	}
	if (problem == nil) != healthy {
		f.Fatalf("the Seed is healthy: %t, %+v", problem == nil, problem)
	}
	f.seed.Status.Conditions[1].Status = status
}
