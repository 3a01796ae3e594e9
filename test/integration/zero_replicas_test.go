package integration

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// declare changes the manifest of the Deployment and reconciles until it is applied.
func (f *fixture) declare(replicas int) {
	f.Helper()
	f.secret("set", "objects.yaml", f.webWithReplicas(replicas, ""))
	f.reconcileOK("set")
}

// wantRest reconciles at rest. The reconcile must not write to the target cluster.
func (f *fixture) wantRest(when string) {
	f.Helper()
	f.catchUp()
	f.requests.writes()
	f.reconcileOK("set")
	if writes := f.requests.writes(); len(writes) > 0 {
		f.Errorf("%s: at rest, the reconcile sent %v", when, writes)
	}
}

// wantScaled waits for kube-controller-manager, which syncs every 15 seconds.
func (f *fixture) wantScaled(replicas int32) {
	f.Helper()
	f.eventually("the autoscaler scales", func() bool { return *f.liveDeployment().Spec.Replicas == replicas })
}

// wantScaledFromZero waits until the autoscaler has scaled the Deployment from the manifest's replicas to 3. Right
// after that, controllers write the status constantly, so it may take one more reconcile until the replicas are left
// to the autoscaler.
func (f *fixture) wantScaledFromZero() {
	f.Helper()
	f.wantScaled(3)
	f.reconcileOK("set")
}

// TestHibernationBesideAnAutoscaler: the manifest decides whether a Deployment has 0 replicas. Otherwise the
// autoscaler decides their number. The autoscaler does nothing at 0.
func TestHibernationBesideAnAutoscaler(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.createObject(f.hpa(), "somebody")
	f.manage("set", f.webWithReplicas(2, ""))
	f.reconcileOK("set")
	f.wantScaled(3)
	f.wantRest("scaled")

	f.declare(0)
	f.wantReplicas(0)
	f.wantRest("hibernated")
	f.restart()
	f.wantRest("hibernated, restarted")
	f.scale(5)
	f.reconcileOK("set")
	f.wantReplicas(0)
	f.wantRest("hibernated again")

	f.restart()
	f.declare(2)
	if got := *f.liveDeployment().Spec.Replicas; got != 2 && got != 3 {
		t.Errorf("the Deployment has %d replicas, want those of the manifest", got)
	}
	f.wantScaledFromZero()
	f.wantRest("woken")
	f.scale(7)
	f.wantRest("scaled up")
	f.declare(4)
	f.wantReplicas(7)
}

// TestScaledToZeroByHand: an autoscaler does nothing at 0. So the replicas of the manifest are sent once, and then
// left to the autoscaler again.
func TestScaledToZeroByHand(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.createObject(f.hpa(), "somebody")
	f.manage("set", f.webWithReplicas(2, ""))
	f.reconcileOK("set")
	f.wantScaled(3)
	for range 2 {
		f.reconcileOK("set")
		f.scale(0)
		f.reconcileOK("set")
		f.wantScaledFromZero()
		if owner := ownerOfReplicas(f.liveDeployment()); strings.Contains(owner, "resource-manager Apply") {
			t.Errorf("the replicas are owned by %s", owner)
		}
		f.wantRest("scaled")
	}

	f.scale(0)
	f.restart()
	f.reconcileOK("set")
	f.wantScaledFromZero()
	f.wantRest("restarted at 0")

	f.scale(0)
	f.secret("set", "objects.yaml", f.webWithReplicas(5, "changed: at-zero"))
	f.reconcileOK("set")
	if got := *f.liveDeployment().Spec.Replicas; got != 5 {
		t.Errorf("the Deployment has %d replicas, want those of the changed manifest", got)
	}

	f.scale(0)
	must(t, f.client.Delete(f.ctx, f.autoscaler()))
	f.reconcileOK("set")
	f.wantReplicas(5)
	f.wantRest("without autoscaler")
}

// TestDeploymentFailsAtZero: the autoscaler is applied in the same wave as the Deployment, whose update fails. The
// Deployment then counts as scaled, but must be scaled up all the same.
func TestDeploymentFailsAtZero(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.manage("set", f.webWithReplicas(0, ""))
	f.reconcileOK("set")
	f.requests.breakWith(func(request *http.Request) error {
		if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/deployments/web") {
			return errors.New("connection refused")
		}
		return nil
	})
	f.secret("set", "objects.yaml", f.webWithReplicas(2, "")+"\n---\n"+f.hpa())
	f.reconcileOnce("set")
	f.requests.breakWith(nil)
	f.wantReplicas(0)
	must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "web"}, f.autoscaler()))
	f.reconcileOK("set")
	f.wantScaledFromZero()
	f.wantRest("scaled")
}

// TestZeroThatIsLeftAlone: if others decide about 0 replicas, neither the 0 of the manifest nor that of the cluster
// is corrected.
func TestZeroThatIsLeftAlone(t *testing.T) {
	controlled := func(f *fixture) {
		autoscaler := f.autoscaler()
		*autoscaler.Spec.Metrics[0].Resource.Target.AverageUtilization = 80
		autoscaler.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "web", UID: "3b0d8f0f-44ab-4ad1-9a0e-6cfb1f0a8f3a", Controller: ptr.To(true),
		}}
		must(f, f.client.Create(f.ctx, autoscaler))
	}
	plain := func(f *fixture) { f.createObject(f.hpa(), "somebody") }
	for name, test := range map[string]struct {
		annotations string
		hpa         func(*fixture)
		ignore      bool
	}{
		"an autoscaler that another controller controls": {hpa: controlled},
		"preserve-replicas":       {hpa: plain, annotations: `resources.gardener.cloud/preserve-replicas: "true"`},
		"a field that is ignored": {hpa: plain, ignore: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			mr := f.manage("set", f.webWithReplicas(2, test.annotations))
			if test.ignore {
				f.change(mr, func() {
					mr.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{Ignore: []resourcesv1alpha1.IgnoreRule{{Paths: []string{"/spec/replicas"}}}}
				})
			}
			f.reconcileOK("set")
			f.scale(0)
			test.hpa(f)
			f.reconcileOK("set")
			f.wantReplicas(0)
			f.wantRest("at 0")
			f.scale(6)
			f.secret("set", "objects.yaml", f.webWithReplicas(0, test.annotations))
			f.reconcileOK("set")
			f.wantReplicas(6)
		})
	}
}

// TestAutoscalerGoesToAnotherController: at 0, the manifest applies once no other controller controls the autoscaler.
func TestAutoscalerGoesToAnotherController(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	autoscaler := f.autoscaler()
	*autoscaler.Spec.Metrics[0].Resource.Target.AverageUtilization = 80
	autoscaler.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "web", UID: "3b0d8f0f-44ab-4ad1-9a0e-6cfb1f0a8f3a", Controller: ptr.To(true),
	}}
	must(t, f.client.Create(f.ctx, autoscaler))
	f.manage("set", f.webWithReplicas(2, ""))
	f.reconcileOK("set")
	f.scale(0)
	f.wantRest("at 0")
	before := client.MergeFrom(autoscaler.DeepCopy())
	autoscaler.OwnerReferences = slices.Delete(autoscaler.OwnerReferences, 0, 1)
	must(t, f.client.Patch(f.ctx, autoscaler, before))
	f.reconcileOK("set")
	f.wantReplicas(2)
}
