package care

import (
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// connected returns a connection to a cluster with some objects, whose caches are synced.
func connected(objects ...client.Object) *connection {
	cluster := fake.NewClientBuilder().WithScheme(clusterScheme).WithRESTMapper(clusterMapper).WithObjects(objects...).Build()
	c := &connection{cached: cluster, client: cluster, remediated: map[string]time.Time{}}
	c.synced.Store(true)
	return c
}

func mutating(name string, policy admissionregistrationv1.FailurePolicyType) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{
		{Name: "things.example.org", FailurePolicy: &policy, TimeoutSeconds: ptr.To[int32](10), Rules: rules("example.org", "things")},
		{Name: "nodes.example.org", FailurePolicy: &policy, TimeoutSeconds: ptr.To[int32](10), Rules: rules("", "nodes")},
	}}
}

// TestRemediate checks that only harmful webhooks are changed, and at most once per period.
func TestRemediate(t *testing.T) {
	const period = time.Minute
	c := connected(mutating("bad", admissionregistrationv1.Fail), mutating("good", admissionregistrationv1.Ignore))
	look := func(at time.Time) (*admissionregistrationv1.MutatingWebhookConfiguration, time.Duration) {
		t.Helper()
		cluster, err := c.read(t.Context())
		if err != nil || len(cluster.Webhooks) != 2 {
			t.Fatalf("%+v, %v", cluster, err)
		}
		again, err := c.remediate(t.Context(), cluster, period, at)
		if err != nil {
			t.Fatal(err)
		}
		bad, good := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
		for name, into := range map[string]client.Object{"bad": bad, "good": good} {
			if err := c.client.Get(t.Context(), client.ObjectKey{Name: name}, into); err != nil {
				t.Fatal(err)
			}
		}
		if len(good.Annotations) > 0 {
			t.Errorf("%+v", good)
		}
		return bad, again
	}
	bad, again := look(now)
	if *bad.Webhooks[0].FailurePolicy != admissionregistrationv1.Fail || *bad.Webhooks[1].FailurePolicy != admissionregistrationv1.Ignore || again != 0 ||
		!strings.HasSuffix(bad.Annotations[constants.AnnotationGardenerWarning], "\n- webhook nodes.example.org: set failurePolicy to Ignore") {
		t.Errorf("%+v, next check after %s", bad, again)
	}
	bad.Webhooks[1].FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	if err := c.client.Update(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	if bad, again := look(now.Add(time.Second)); *bad.Webhooks[1].FailurePolicy != admissionregistrationv1.Fail || again != period-time.Second {
		t.Errorf("changed again immediately, or next check after %s", again)
	}
	if bad, again := look(now.Add(period)); *bad.Webhooks[1].FailurePolicy != admissionregistrationv1.Ignore || again != 0 {
		t.Errorf("not changed after the period, or next check after %s", again)
	}
}

// TestDeletePods checks that stale Pods are deleted, and that a terminating Pod is checked again when it has taken too long.
func TestDeletePods(t *testing.T) {
	pod := func(name, reason string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: "1"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason}}
	}
	terminating := pod("terminating", "")
	terminating.DeletionTimestamp, terminating.Finalizers = ptr.To(metav1.NewTime(now.Add(-time.Minute))), []string{"example.org/a"}
	c := connected(pod("evicted", "Evicted"), pod("failed", "Error"), terminating)
	again, err := c.deletePods(t.Context(), now)
	if err != nil || again != 4*time.Minute {
		t.Errorf("next check after %s, %v", again, err)
	}
	for name, want := range map[string]bool{"evicted": false, "failed": true, "terminating": true} {
		err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: name}, &corev1.Pod{})
		if apierrors.IsNotFound(err) == want {
			t.Errorf("Pod %s: %v", name, err)
		}
	}
}

// TestNotRead checks that nothing is known about a cluster before the caches are synced.
func TestNotRead(t *testing.T) {
	c := connected()
	c.synced.Store(false)
	if cluster, err := c.read(t.Context()); cluster != nil || err != nil {
		t.Errorf("%+v, %v", cluster, err)
	}
}
