package shoot

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// latency is the delay of each request to the API server of the seed while it is slow.
const latency = 2 * time.Second

// lostData is the error that the etcd operator reports.
const lostData = "all members have lost their data"

// tolerate changes the Shoot while one of its dependencies fails and gardenlet is killed. The Shoot reports the problem.
// Nothing is deleted, and no data that users have is generated again. Afterwards the change is applied.
func (w *world) tolerate(m *mortal) {
	w.Helper()
	w.checkConditions(corev1beta1.ConditionTrue, "HealthzRequestSucceeded")
	bundles, persisted := w.uids(), w.persisted()

	for number, each := range []struct {
		name  string
		begin func()
		check func(limit int32)
		end   func()
	}{
		{"the seed's API server is away", w.line.cut, func(int32) { w.reports("connection refused") }, w.line.restore},
		{"the seed's API server is slow", func() { w.line.delay(latency) }, w.awaitLimit, w.line.restore},
		{"all Secrets are deleted", w.deleteSecrets, func(int32) {}, func() {}},
		{"the volume of etcd is gone", func() { w.loseEtcd(lostData) }, func(int32) { w.reportsLoss() }, func() { w.loseEtcd("") }},
	} {
		limit := int32(number) + 1
		killed := m.killed()
		m.spare(true) // a gardenlet that is not running cannot report the problem
		w.setLimit(100 + limit)
		w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
		each.begin()
		w.setLimit(limit)
		each.check(limit)
		m.spare(false)
		m.kill()
		each.end()
		w.awaitLimit(limit)
		w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
		w.checkConditions(corev1beta1.ConditionTrue, "HealthzRequestSucceeded")
		w.generatedOnce()
		w.secretsExist()
		w.checkState(persisted)
		for name, uid := range w.uids() {
			if bundles[name] != uid {
				w.Errorf("%s: ManagedResource %s was deleted", each.name, name)
			}
		}
		w.Logf("%s: gardenlet was killed %d times", each.name, m.killed()-killed)
	}
}

// line is the connection of gardenlet to the API server of the seed.
type line struct {
	mu      sync.Mutex
	broken  bool
	latency time.Duration
	ends    map[*http.Request]context.CancelFunc
}

// wrap returns a transport that sends through the line.
func (l *line) wrap(next http.RoundTripper) http.RoundTripper {
	return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
		ctx, end := context.WithCancel(request.Context())
		l.mu.Lock()
		broken, latency := l.broken, l.latency
		if l.ends == nil {
			l.ends = map[*http.Request]context.CancelFunc{}
		}
		l.ends[request] = end
		l.mu.Unlock()
		if broken {
			end()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		select {
		case <-time.After(latency):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return next.RoundTrip(request.WithContext(ctx))
	})
}

// cut closes all connections and rejects new ones.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	for _, end := range l.ends {
		end()
	}
	clear(l.ends)
}

func (l *line) delay(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = by
}

// restore permits requests again.
func (l *line) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken, l.latency = false, 0
}

// uids returns the UIDs of the ManagedResources of the Shoot.
func (w *world) uids() map[string]types.UID {
	w.Helper()
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(w, w.seed.List(w.Context(), &list))
	found := map[string]types.UID{}
	for _, mr := range list.Items {
		found[mr.Namespace+"/"+mr.Name] = mr.UID
	}
	return found
}

// setLimit changes a flag of the API server.
func (w *world) setLimit(limit int32) {
	w.Helper()
	w.change(func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Kubernetes.KubeAPIServer.Requests.MaxNonMutatingInflight = ptr.To(limit)
	})
}

// awaitLimit waits until the Deployment of the API server has the flag.
func (w *world) awaitLimit(limit int32) {
	w.Helper()
	want := fmt.Sprintf("--max-requests-inflight=%d", limit)
	kit.EventuallyWithin(w, 12*kit.WaitTimeout, "kube-apiserver has "+want, func() string {
		deployment := &appsv1.Deployment{}
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: "kube-apiserver"}, deployment))
		if slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, want) {
			return ""
		}
		return fmt.Sprintf("%+v\n%s", w.get().Status.LastOperation, w.bundles())
	})
}

// reports waits until the last operation has an error with a text.
func (w *world) reports(text string) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the Shoot reports "+text, func() string {
		last := w.get().Status.LastOperation
		if last.State == corev1beta1.LastOperationStateSucceeded || !strings.Contains(last.Description, text) {
			return fmt.Sprintf("%+v", last)
		}
		return ""
	})
	w.Logf("reported: %s", w.get().Status.LastOperation.Description)
}

// deleteSecrets deletes all Secrets in the namespace of the control plane.
func (w *world) deleteSecrets() {
	w.Helper()
	kit.Must(w, w.seed.DeleteAllOf(w.Context(), &corev1.Secret{}, client.InNamespace(technical)))
}

// loseEtcd makes the etcd operator report a loss of the main etcd. An empty text means no loss.
func (w *world) loseEtcd(lost string) {
	w.Helper()
	etcd := &unstructured.Unstructured{}
	etcd.SetGroupVersionKind(etcdKind)
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: "etcd-main"}, etcd))
	kit.Must(w, w.reportEtcd(w.Context(), etcd, lost))
}

// reportsLoss waits until the Shoot reports the loss of data in a condition and in the pending operation.
func (w *world) reportsLoss() {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "the Shoot reports the loss", func() string {
		shoot := w.get()
		for _, condition := range shoot.Status.Conditions {
			if condition.Type == corev1beta1.ShootControlPlaneHealthy && condition.Status == corev1beta1.ConditionFalse && strings.Contains(condition.Message, lostData) {
				return ""
			}
		}
		return fmt.Sprintf("%+v %+v", shoot.Status.LastOperation, shoot.Status.Conditions)
	})
	w.Logf("reported: %+v", w.get().Status.LastOperation)
}
