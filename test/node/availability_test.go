package node

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/node/highavailability"
	webhook "github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/test/kit"
)

// spreader is a webhook that changes the first constraint of workloads in the same way as the webhook for high availability.
type spreader struct {
	mu sync.Mutex
	// several is whether it assumes more than one node.
	several bool
	// asleep is the number of further calls that it answers without a change, like a replica that lags behind.
	asleep int
	calls  []string
}

func (s *spreader) set(several bool, asleep int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.several, s.asleep, s.calls = several, asleep, nil
}

func (s *spreader) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := slices.Clone(s.calls)
	slices.Sort(calls)
	return calls
}

func (s *spreader) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	review := &admissionv1.AdmissionReview{}
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = json.Unmarshal(body, review)
	}
	if err != nil || review.Request == nil {
		http.Error(writer, "bad request", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	if review.Request.Operation == admissionv1.Update {
		s.calls = append(s.calls, review.Request.Kind.Kind+" "+review.Request.Name)
	}
	action := corev1.ScheduleAnyway
	if s.several {
		action = corev1.DoNotSchedule
	}
	if s.asleep > 0 && review.Request.Operation == admissionv1.Update {
		s.asleep--
	} else {
		review.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
		review.Response.Patch = []byte(`[{"op": "replace", "path": "/spec/template/spec/topologySpreadConstraints/0/whenUnsatisfiable", "value": "` + string(action) + `"}]`)
	}
	_ = json.NewEncoder(writer).Encode(review)
}

// startSpreader registers the webhook for the workloads of a namespace.
func (f *fixture) startSpreader() *spreader {
	f.Helper()
	hook := &spreader{}
	server := kit.ServeWebhooks(f, map[string]http.Handler{"/": hook})
	one := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "spreader.example.org", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			ClientConfig:      server.ClientConfig("/"),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.namespace}},
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"webhook": "yes"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments", "statefulsets"},
				},
			}},
		}},
	}
	kit.Must(f, f.client.Create(f.ctx, one))
	f.Cleanup(func() { f.delete(one) })
	return hook
}

func spreadTemplate(name string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	return selector, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "main", Image: "example.org/image:1"}},
			NodeSelector: map[string]string{"example.org/none": "none"},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				TopologyKey: corev1.LabelHostname, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector,
			}},
		},
	}
}

func (f *fixture) deployment(name string, changes ...func(*metav1.ObjectMeta)) *appsv1.Deployment {
	f.Helper()
	one := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"webhook": "yes"}}}
	one.Annotations = map[string]string{webhook.AnnotationHostSpread: "true"}
	one.Spec.Replicas = ptr.To[int32](2)
	one.Spec.Paused = true // no other client writes it
	one.Spec.Selector, one.Spec.Template = spreadTemplate(name)
	for _, change := range changes {
		change(&one.ObjectMeta)
	}
	kit.Must(f, f.client.Create(f.ctx, one))
	f.Cleanup(func() { f.delete(one) })
	return one
}

func (f *fixture) startAvailability() *target {
	f.Helper()
	t, err := newTarget(shared.Get(f))
	kit.Must(f, err)
	reconciler := &highavailability.Reconciler{
		Nodes: t.GetCache(), Reader: t.GetAPIReader(), Client: t.GetClient(), Clock: clock.RealClock{},
	}
	kit.Must(f, reconciler.AddToManager(t))
	t.runFor(f)
	return t
}

func (f *fixture) eventuallySpread(want corev1.UnsatisfiableConstraintAction, objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		kit.Eventually(f, object.GetName()+" has "+string(want), func() string {
			kit.Must(f, f.client.Get(f.ctx, client.ObjectKeyFromObject(object), object))
			template := corev1.PodTemplateSpec{}
			switch object := object.(type) {
			case *appsv1.Deployment:
				template = object.Spec.Template
			case *appsv1.StatefulSet:
				template = object.Spec.Template
			}
			if got := template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable; got != want {
				return string(got)
			}
			return ""
		})
	}
}

// patched returns the workloads that the controller patched.
func patched(t *target) []string {
	var all []string
	for _, sent := range t.requests.All() {
		if sent.Method == http.MethodPatch {
			all = append(all, sent.Path[strings.LastIndex(sent.Path, "/")+1:])
		}
	}
	slices.Sort(all)
	return all
}

// TestWebhookLooksAgainWhenTheSecondNodeComesOrGoes checks that exactly the workloads that the webhook would change get an empty patch,
// when the controller starts and when the second node is added or removed, and not for a third node.
func TestWebhookLooksAgainWhenTheSecondNodeComesOrGoes(t *testing.T) {
	f := newFixture(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	f.change(namespace, func() { namespace.Labels[webhook.LabelConsider] = "true" })
	hook := f.startSpreader()
	hook.set(false, 0)
	f.node(f.named("1"))
	one := f.deployment("one")
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.namespace, Name: "set", Labels: one.Labels, Annotations: one.Annotations,
	}}
	set.Spec.Replicas = ptr.To[int32](2)
	set.Spec.Selector, set.Spec.Template = spreadTemplate("set")
	kit.Must(t, f.client.Create(f.ctx, set))
	t.Cleanup(func() { f.delete(set) })
	f.deployment("skipped", func(meta *metav1.ObjectMeta) { meta.Labels[webhook.LabelSkip] = "" })
	f.deployment("not-demanded", func(meta *metav1.ObjectMeta) { meta.Annotations = nil })
	elsewhere := *f
	elsewhere.namespace = kit.NewNamespace(t, f.client, "node", nil)
	elsewhere.deployment("elsewhere")

	hook.set(true, 0)
	second := f.node(f.named("2")) // two nodes exist when the controller starts
	target := f.startAvailability()
	f.eventuallySpread(corev1.DoNotSchedule, one, set)
	if got := patched(target); !slices.Equal(got, []string{"one", "set"}) {
		t.Errorf("at the start, the controller patched %q", got)
	}

	target.requests.Forget()
	f.node(f.named("3")) // nothing changes
	hook.set(false, 0)
	f.delete(second)
	third := f.readNode(f.named("3"))
	f.delete(third)
	f.eventuallySpread(corev1.ScheduleAnyway, one, set)
	if got := patched(target); !slices.Equal(got, []string{"one", "set"}) {
		t.Errorf("with one node, the controller patched %q", got)
	}

	target.requests.Forget()
	hook.set(true, 1) // the webhook lags one call behind
	f.node(f.named("4"))
	f.eventuallySpread(corev1.DoNotSchedule, one, set)
	if got := patched(target); len(got) != 3 {
		t.Errorf("with a webhook that lags, the controller patched %q", got)
	}
	generations := []int64{one.Generation, set.Generation}
	if calls := hook.seen(); len(calls) < 3 {
		t.Errorf("the webhook was called for %q", calls)
	}
	kit.Must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(one), one))
	kit.Must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(set), set))
	if !slices.Equal(generations, []int64{one.Generation, set.Generation}) {
		t.Error("the workloads still change")
	}
	for _, sent := range target.requests.Single() {
		if sent.Method != http.MethodGet && sent.Method != http.MethodPatch {
			t.Errorf("the controller sent %s", sent)
		}
	}
}

// TestWebhookUnreachable checks that workloads that no webhook changes are patched three times and then no more, and that nothing changes.
func TestWebhookUnreachable(t *testing.T) {
	f := newFixture(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	f.change(namespace, func() { namespace.Labels[webhook.LabelConsider] = "true" })
	f.node(f.named("1"))
	f.node(f.named("2"))
	one := f.deployment("one", func(meta *metav1.ObjectMeta) { meta.Labels = nil })
	fake := &testClock{now: time.Now()}
	target, err := newTarget(shared.Get(t))
	kit.Must(t, err)
	reconciler := &highavailability.Reconciler{
		Nodes: target.GetCache(), Reader: target.GetAPIReader(), Client: target.GetClient(), Clock: fake,
	}
	_, err = target.GetCache().GetInformer(f.ctx, &corev1.Node{})
	kit.Must(t, err)
	target.runFor(f)
	if !target.GetCache().WaitForCacheSync(f.ctx) {
		t.Fatal("the cache is not synced")
	}
	kit.EventuallyTrue(t, "the cache has both nodes", func() bool {
		nodes := &corev1.NodeList{}
		kit.Must(t, target.GetCache().List(f.ctx, nodes))
		return len(nodes.Items) == 2
	})
	before := one.Generation
	for _, pause := range []time.Duration{5 * time.Second, 30 * time.Second, 0, 0} {
		result, err := reconciler.Reconcile(f.ctx, request("nodes"))
		kit.Must(t, err)
		if result.RequeueAfter != pause {
			t.Errorf("the result is a requeue after %s, want %s", result.RequeueAfter, pause)
		}
		if early, err := reconciler.Reconcile(f.ctx, request("nodes")); err != nil || early.RequeueAfter != pause {
			t.Errorf("the result of an early reconciliation is %+v, %v", early, err)
		}
		fake.now = fake.now.Add(pause)
	}
	if got := patched(target); len(got) != 3 {
		t.Errorf("the controller patched %q", got)
	}
	kit.Must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(one), one))
	if one.Generation != before {
		t.Error("the empty patch changed something")
	}
}
