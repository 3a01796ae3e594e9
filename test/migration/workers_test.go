package migration

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestMachinesMove moves a Shoot whose machines machine-controller-manager makes. They are the same after the move: none was deleted, and
// none was made.
func TestMachinesMove(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud"}, Data: map[string][]byte{"token": []byte("a")}})
	w.create(&securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud"}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "cloud"},
	})
	kit.Must(t, w.garden.Create(t.Context(), &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shootName},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local", SeedName: ptr.To(w.source.name),
			Kubernetes: corev1beta1.Kubernetes{Version: version}, CredentialsBindingName: ptr.To("cloud"),
			Networking: &corev1beta1.Networking{Type: ptr.To("local"), Pods: ptr.To("100.96.0.0/16"), Nodes: ptr.To("10.1.0.0/16")},
			Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{
				Name: "small", Minimum: 1, Maximum: replicas, Zones: []string{"a"},
				Machine: corev1beta1.Machine{Type: "medium", Image: &corev1beta1.ShootMachineImage{Name: "linux", Version: ptr.To("1.2.0")}},
			}}},
		},
	}))
	w.eventually(w.source, corev1beta1.LastOperationTypeCreate)
	kit.EventuallyWithin(t, 2*kit.WaitTimeout, "the machines are made", func() string {
		if made := w.source.machines("Machine"); len(made) != replicas {
			return w.describe(w.shoot())
		}
		return ""
	})
	before := map[string][]string{}
	for _, kind := range machineKinds {
		before[kind] = w.source.machines(kind)
	}
	w.source.finalizesCredentials()
	w.source.forget()
	w.moves(w.source, w.destination)
	for _, kind := range machineKinds {
		if after := w.destination.machines(kind); !slices.Equal(after, before[kind]) {
			t.Errorf("the objects of kind %s are\n%v\ninstead of\n%v", kind, after, before[kind])
		}
		if left := w.source.machines(kind); len(left) > 0 {
			t.Errorf("on the source, %v are left", left)
		}
	}
	for _, s := range []*seed{w.source, w.destination} {
		if lost := s.forget(); len(lost) > 0 {
			t.Errorf("on Seed %s: %v", s.name, lost)
		}
	}
	worker := &extensionsv1alpha1.Worker{}
	kit.Must(t, w.destination.seed.Get(t.Context(), client.ObjectKey{Namespace: technical, Name: shootName}, worker))
	if worker.Status.State != nil {
		t.Error("the Worker still has the state of its machines at the time of the move")
	}
}

// finalizesCredentials adds the finalizer that machine-controller-manager sets on the credentials of the infrastructure.
func (s *seed) finalizesCredentials() {
	s.Helper()
	secret := &corev1.Secret{}
	kit.Must(s, s.seed.Get(s.Context(), client.ObjectKey{Namespace: technical, Name: "cloudprovider"}, secret))
	before := secret.DeepCopy()
	secret.Finalizers = append(secret.Finalizers, machineFinalizer)
	kit.Must(s, s.seed.Patch(s.Context(), secret, client.MergeFrom(before)))
}

// forget returns and forgets what happened to machines.
func (s *seed) forget() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost
	s.lost = nil
	return lost
}
