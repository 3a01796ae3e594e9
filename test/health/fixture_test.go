package health

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// interval is how often a pending condition is checked.
const interval = 50 * time.Millisecond

// prepared records which control planes have the tests' CustomResourceDefinitions.
var prepared = struct {
	sync.Mutex
	is map[*controlplane.ControlPlane]bool
}{is: map[*controlplane.ControlPlane]bool{}}

func prepare(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	prepared.Lock()
	defer prepared.Unlock()
	if !prepared.is[cp] {
		kit.DefineManagedResources(t, cp.Config())
		kit.Define(t, cp.Config(), definitions()...)
		prepared.is[cp] = true
	}
}

// fixture is a namespace, and a resource-manager for ManagedResources of its own class.
type fixture struct {
	*testing.T
	ctx          context.Context
	client       client.Client
	controlPlane *controlplane.ControlPlane
	namespace    string
	manager      *resourceManager
}

// newFixture starts a resource-manager on the shared control plane.
func newFixture(t *testing.T, tune ...func(*inprocess.ResourceManager)) *fixture {
	t.Helper()
	return newFixtureOn(t, shared.Get(t), tune...)
}

func newFixtureOn(t *testing.T, cp *controlplane.ControlPlane, tune ...func(*inprocess.ResourceManager)) *fixture {
	t.Helper()
	f := fixtureWithoutManager(t, cp)
	f.manager = f.startManager(tune...)
	return f
}

func fixtureWithoutManager(t *testing.T, cp *controlplane.ControlPlane) *fixture {
	t.Helper()
	prepare(t, cp)
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme(t)})
	must(t, err)
	f := &fixture{T: t, ctx: t.Context(), client: c, controlPlane: cp}
	f.namespace = f.newNamespace()
	return f
}

func scheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	s := runtime.NewScheme()
	must(tb, clientgoscheme.AddToScheme(s))
	must(tb, resourcesv1alpha1.AddToScheme(s))
	return s
}

// in returns the fixture for a subtest, in its own namespace.
func (f *fixture) in(t *testing.T) *fixture {
	t.Helper()
	inner := *f
	inner.T, inner.ctx = t, t.Context()
	inner.namespace = inner.newNamespace()
	return &inner
}

// newNamespace creates a namespace in which Pods can be created.
func (f *fixture) newNamespace() string {
	f.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "health-"}}
	must(f, f.client.Create(f.ctx, namespace))
	f.eventually("the namespace has its default service account", func() string {
		return textOf(f.client.Get(f.ctx, client.ObjectKey{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{}))
	})
	return namespace.Name
}

// expand replaces the variables in manifests.
func (f *fixture) expand(text string) string {
	return strings.NewReplacer("$NAMESPACE", f.namespace).Replace(text)
}

// secret writes a Secret with manifests.
func (f *fixture) secret(name string, documents ...string) {
	f.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Data:       map[string][]byte{"objects.yaml": []byte(f.expand(strings.Join(documents, "\n---\n")))},
	}
	err := f.client.Create(f.ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = f.client.Update(f.ctx, secret)
	}
	must(f, err)
}

// managedResource creates a ManagedResource for the Secret of its name.
func (f *fixture) managedResource(name string, checks ...resourcesv1alpha1.HealthCheck) {
	f.Helper()
	must(f, f.client.Create(f.ctx, &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class:        ptr.To(f.manager.class),
			SecretRefs:   []resourcesv1alpha1.LocalObjectReference{{Name: name}},
			HealthChecks: checks,
		},
	}))
}

// manage writes a Secret and a ManagedResource for it.
func (f *fixture) manage(name string, documents ...string) {
	f.Helper()
	f.secret(name, documents...)
	f.managedResource(name)
}

// update changes a Secret with manifests, and waits until they are applied.
func (f *fixture) update(name string, documents ...string) {
	f.Helper()
	checksum := func() string { return ptr.Deref(f.read(name).Status.SecretsDataChecksum, "") }
	before := checksum()
	f.secret(name, documents...)
	f.eventually("the new manifests are applied", func() string {
		if checksum() == before {
			return "the checksum is still " + before
		}
		return ""
	})
}

func (f *fixture) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: f.namespace, Name: name}
}

// read returns a ManagedResource.
func (f *fixture) read(name string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	must(f, f.client.Get(f.ctx, f.key(name), mr))
	return mr
}

// change changes a ManagedResource with a merge patch.
func (f *fixture) change(name, patch string) {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	must(f, f.client.Patch(f.ctx, mr, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// eventually waits until the check has no objection. After a timeout, it reports the last objection.
func (f *fixture) eventually(reason string, objection func() string) {
	f.Helper()
	kit.Eventually(f, reason, objection)
}

// want is an expected condition. The text is a part of the message. Empty fields are not compared.
type want struct {
	status resourcesv1alpha1.ConditionStatus
	reason string
	text   string
}

func (w want) objection(condition resourcesv1alpha1.Condition) string {
	if (w.status == "" || w.status == condition.Status) && (w.reason == "" || w.reason == condition.Reason) &&
		strings.Contains(condition.Message, w.text) {
		return ""
	}
	return fmt.Sprintf("%s is %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
}

// The conditions of healthy objects.
var (
	isHealthy   = want{resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonResourcesHealthy, "All resources are healthy."}
	isRolledOut = want{resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonResourcesRolledOut, "All resources have been fully rolled out."}
)

func unhealthy(reason, text string) want {
	return want{resourcesv1alpha1.ConditionFalse, reason, text}
}

func progressing(reason, text string) want {
	return want{resourcesv1alpha1.ConditionTrue, reason, text}
}

func conditionOf(mr *resourcesv1alpha1.ManagedResource, conditionType resourcesv1alpha1.ConditionType) resourcesv1alpha1.Condition {
	return resourcesv1alpha1.ConditionOf(mr.Status.Conditions, conditionType)
}

// eventuallySays waits until the conditions of health match, and returns the ManagedResource with them.
func (f *fixture) eventuallySays(name string, healthy, progressing want) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	var mr *resourcesv1alpha1.ManagedResource
	f.eventually(fmt.Sprintf("the conditions of %s are %v and %v", name, healthy, progressing), func() string {
		mr = f.read(name)
		objections := []string{
			healthy.objection(conditionOf(mr, resourcesv1alpha1.ResourcesHealthy)),
			progressing.objection(conditionOf(mr, resourcesv1alpha1.ResourcesProgressing)),
		}
		if objections[0]+objections[1] == "" {
			return ""
		}
		applied := conditionOf(mr, resourcesv1alpha1.ResourcesApplied)
		return strings.TrimSpace(fmt.Sprintf("%s; %s; %s", objections[0], objections[1], want{status: "none"}.objection(applied)))
	})
	return mr
}

// textOf returns the message of an error. It is empty for no error.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
