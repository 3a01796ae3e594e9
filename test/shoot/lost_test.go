package shoot

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestLostObjects deletes what a control plane depends on but no ManagedResource contains: the ServiceAccounts of its programs,
// which makes their tokens invalid, and the copies of its authorities in the garden.
func TestLostObjects(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.seeds.Kubeconfig(), nil, "controllers: {resourceClass: seed}")
	w.etcdOperator()
	_, _, stop := w.gardenlet()
	defer stop()
	w.declare()
	w.startServer()
	manager := w.startManager()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")

	for _, lost := range []client.Object{&corev1.ConfigMap{}, &corev1beta1.InternalSecret{}} {
		name := "one.ca-cluster"
		if _, is := lost.(*corev1beta1.InternalSecret); is {
			name = "one.ca-client"
		}
		key := client.ObjectKey{Namespace: w.get().Namespace, Name: name}
		kit.Must(t, w.garden.Get(t.Context(), key, lost))
		uid := lost.GetUID()
		kit.Must(t, w.garden.Delete(t.Context(), lost))
		kit.Eventually(t, name+" is restored", func() string {
			switch err := w.garden.Get(t.Context(), key, lost); {
			case apierrors.IsNotFound(err) || err == nil && lost.GetUID() == uid:
				return "it does not exist"
			default:
				return kit.TextOf(err)
			}
		})
	}

	admin := w.as(mastersGroup) // does not depend on ServiceAccounts
	kit.Must(t, admin.DeleteAllOf(t.Context(), &corev1.ServiceAccount{}, client.InNamespace(metav1.NamespaceSystem)))
	w.eventuallyAccepted(admin, resourcemanager.Account)
	manager.Stop() // a real Pod reads the new token from its volume
	w.startManager()
	w.eventuallyAccepted(admin, kubecontrollermanager.Name)
}

// eventuallyAccepted waits until the shoot's API server accepts the token of an account.
func (w *world) eventuallyAccepted(admin client.Client, account string) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the token of "+account+" is accepted", func() string {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
			Token: string(w.secret("shoot-access-"+account, "token").Data["token"]),
		}}
		if err := admin.Create(w.Context(), review); err != nil {
			return err.Error()
		}
		if !review.Status.Authenticated {
			return "the API server rejects it: " + review.Status.Error
		}
		return ""
	})
}
