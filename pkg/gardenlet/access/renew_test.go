package access

import (
	"encoding/pem"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// TestRenewer checks that a certificate that is not due is checked again at its renewal time. A certificate that is due, or
// whose Secret requests a renewal, is renewed. If the renewal fails, an Event contains the reason, and the Secret is not
// changed.
func TestRenewer(t *testing.T) {
	from := time.Now().Truncate(time.Second)
	certificate, key := newPair(t, from, from.Add(100*time.Hour))
	kubeconfig := &rest.Config{Host: "https://127.0.0.1:1"} // nothing listens there
	kubeconfig.CertData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	kubeconfig.KeyData = key
	content, err := encode(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		passed    time.Duration
		operation string
		due       bool
	}{
		"new": {}, "before it is due": {passed: 69 * time.Hour}, "due": {passed: 91 * time.Hour, due: true}, "expired": {passed: 101 * time.Hour, due: true},
		"asked for": {operation: "renew", due: true}, "asked for something else": {operation: "reconcile"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "own", Annotations: map[string]string{"gardener.cloud/operation": test.operation}},
				Data:       map[string][]byte{"kubeconfig": content},
			}
			seed := clientfake.NewClientBuilder().WithObjects(secret).Build()
			connection := &Connection{}
			connection.current.Store(&credentials{config: kubeconfig, certificate: certificate})
			recorder := events.NewFakeRecorder(1)
			r := &Renewer{Connection: connection, Recorder: recorder, Garden: Garden{
				SeedName: "one", Seed: seed, Clock: testingclock.NewFakeClock(from.Add(test.passed)),
				Config: &v1alpha1.GardenClientConnection{
					KubeconfigSecret: &corev1.SecretReference{Namespace: "garden", Name: "own"},
					KubeconfigValidity: &v1alpha1.KubeconfigValidity{
						AutoRotationJitterPercentageMin: ptr.To[int32](70), AutoRotationJitterPercentageMax: ptr.To[int32](90),
					},
				},
			}}
			result, err := r.Reconcile(t.Context(), reconcile.Request{})
			if (err != nil) != test.due || (result.RequeueAfter > 0) == test.due {
				t.Fatalf("got %+v and %v", result, err)
			}
			select {
			case event := <-recorder.Events:
				if !test.due || !strings.Contains(event, EventRotationFailed) {
					t.Errorf("Event %q", event)
				}
			default:
				if test.due {
					t.Error("no Event")
				}
			}
			if at := from.Add(test.passed).Add(result.RequeueAfter); !test.due && (at.Before(from.Add(70*time.Hour)) || at.After(from.Add(90*time.Hour))) {
				t.Errorf("next check %s", at)
			}
			after, err := readSecret(t.Context(), seed, r.Config.KubeconfigSecret)
			if err != nil || string(after.secret.Data["kubeconfig"]) != string(content) {
				t.Errorf("the Secret has changed (%v)", err)
			}
		})
	}
}
