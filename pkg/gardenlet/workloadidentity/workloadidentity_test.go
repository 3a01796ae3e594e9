package workloadidentity

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// TestReconcile checks when a token is requested, and when the next one is due.
func TestReconcile(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const renewal = "workloadidentity.security.gardener.cloud/token-renew-timestamp"
	for name, test := range map[string]struct {
		annotations map[string]string
		token       string
		lifetime    time.Duration
		refused     error
		requested   bool
		next        time.Duration
		err         string
	}{
		"new":                    {lifetime: 6 * time.Hour, requested: true, next: 3 * time.Hour},
		"a long life":            {lifetime: 100 * time.Hour, requested: true, next: 12 * time.Hour},
		"due":                    {annotations: map[string]string{renewal: "2025-12-31T23:59:59Z"}, token: "old", lifetime: time.Hour, requested: true, next: 30 * time.Minute},
		"not due":                {annotations: map[string]string{renewal: "2026-01-01T01:00:00Z"}, token: "old", next: time.Hour},
		"a token that is gone":   {annotations: map[string]string{renewal: "2026-01-01T01:00:00Z"}, lifetime: time.Hour, requested: true, next: 30 * time.Minute},
		"a time that is no time": {annotations: map[string]string{renewal: "soon"}, token: "old", lifetime: time.Hour, requested: true, next: 30 * time.Minute},
		"with a context": {annotations: map[string]string{"workloadidentity.security.gardener.cloud/context-object": `{"kind":"Shoot","name":"x","uid":"1"}`},
			lifetime: time.Hour, requested: true, next: 30 * time.Minute},
		"no identity":   {annotations: map[string]string{"workloadidentity.security.gardener.cloud/name": ""}, err: "must refer to a WorkloadIdentity"},
		"no context":    {annotations: map[string]string{"workloadidentity.security.gardener.cloud/context-object": "{"}, err: "is not a JSON object"},
		"large context": {annotations: map[string]string{"workloadidentity.security.gardener.cloud/context-object": strings.Repeat("x", maxContext+1)}, err: "more than the 4096 allowed"},
		"refused":       {refused: errors.New("no such identity"), err: "no such identity"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "garden", Name: "s", Labels: map[string]string{"security.gardener.cloud/purpose": Purpose},
				Annotations: map[string]string{
					"workloadidentity.security.gardener.cloud/namespace": "garden", "workloadidentity.security.gardener.cloud/name": "identity",
				},
			}, Data: map[string][]byte{"config": []byte("kept")}}
			for key, value := range test.annotations {
				secret.Annotations[key] = value
			}
			if test.token != "" {
				secret.Data["token"] = []byte(test.token)
			}
			seed := fake.NewClientBuilder().WithObjects(secret).Build()
			requested := false
			scheme := runtime.NewScheme()
			if err := errors.Join(clientgoscheme.AddToScheme(scheme), securityv1alpha1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			garden := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, name string, identity, body client.Object, _ ...client.SubResourceCreateOption) error {
					if test.refused != nil {
						return test.refused
					}
					asked, ok := body.(*securityv1alpha1.TokenRequest)
					if !ok || name != "token" || identity.GetName() != "identity" || *asked.Spec.ExpirationSeconds != 21600 {
						t.Errorf("%s of %s: %+v", name, identity.GetName(), body)
					}
					requested = true
					asked.Status = securityv1alpha1.TokenRequestStatus{Token: "new", ExpirationTimestamp: metav1.NewTime(now.Add(test.lifetime))}
					return nil
				},
			}).Build()
			r := &Reconciler{
				Seed: seed, Direct: seed, Garden: garden, Recorder: events.NewFakeRecorder(10), Clock: testingclock.NewFakeClock(now),
				Random: func() float64 { return 0.5 }, Lifetime: 6 * time.Hour,
			}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)})
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got %v", err)
			}
			if requested != test.requested || result.RequeueAfter != test.next {
				t.Errorf("requested: %t, next in %s", requested, result.RequeueAfter)
			}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			if requested && (string(secret.Data["token"]) != "new" || secret.Annotations[renewal] != now.Add(test.next).Format(time.RFC3339)) ||
				string(secret.Data["config"]) != "kept" {
				t.Errorf("the Secret is %+v", secret)
			}
		})
	}
}
