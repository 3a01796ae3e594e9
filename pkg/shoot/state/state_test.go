package state

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

const identity = "gardenlet"

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// secret returns a Secret with the label persist.
func secret(name, manager, data string) corev1.Secret {
	return corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--one", Name: name, Labels: map[string]string{"persist": "true", "manager-identity": manager}},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"data": []byte(data)},
	}
}

func content(t *testing.T, existing ...corev1.Secret) corev1beta1.ShootStateSpec {
	t.Helper()
	spec, err := Next(corev1beta1.ShootStateSpec{}, existing, identity)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func names(spec corev1beta1.ShootStateSpec) (all []string) {
	for _, entry := range spec.Gardener {
		all = append(all, entry.Name)
	}
	return all
}

func TestNext(t *testing.T) {
	present := content(t, secret("ca", identity, "a"), secret("gone", identity, "b"), secret("ledger", "", "c"))
	present.Gardener = append(present.Gardener, corev1beta1.GardenerResourceData{Name: "machines", Type: "machine-state"})
	present.Extensions = []corev1beta1.ExtensionResourceState{{Kind: "Infrastructure"}}
	present.Resources = []corev1beta1.ResourceData{{}}
	next, err := Next(present, []corev1.Secret{secret("new", identity, "d"), secret("ledger", "", "changed"), secret("ca", identity, "a")}, identity)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(next); !slices.Equal(got, []string{"ca", "ledger", "new", "machines"}) || len(next.Extensions) != 1 || len(next.Resources) != 1 {
		t.Errorf("%v, %d extensions, %d resources", got, len(next.Extensions), len(next.Resources))
	}
	if Equal(present, next) || !Equal(next, next) {
		t.Error("changed states are equal, or unchanged ones are not")
	}
	encoded := next
	encoded.Gardener = slices.Clone(next.Gardener)
	encoded.Gardener[0].Data = runtime.RawExtension{Raw: []byte(strings.ReplaceAll(string(next.Gardener[0].Data.Raw), ",", " ,\n"))}
	if !Equal(encoded, next) {
		t.Error("the same content in another encoding is not equal")
	}
}

// TestReplaced checks that the data of a manually replaced Secret does not replace the data that is in use.
func TestReplaced(t *testing.T) {
	const bytes = "other-bytes"
	_, err := Next(content(t, secret("ca", identity, "a")), []corev1.Secret{secret("ca", identity, bytes)}, identity)
	if err == nil || !strings.Contains(err.Error(), "ca was replaced") || strings.Contains(err.Error(), bytes) {
		t.Errorf("%v", err)
	}
}

// world consists of a garden and a seed.
type world struct {
	*Keeper
	seed  client.Client
	clock *clocktesting.FakePassiveClock
	// sent counts reads, and written counts writes. fails is the error of creations.
	sent, written int
	fails         error
}

func newWorld(t *testing.T, existing ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, corev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{clock: clocktesting.NewFakePassiveClock(now)}
	reading := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			w.sent++
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.sent++
			return c.List(ctx, list, options...)
		},
	}
	writing := reading
	writing.Create = func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if w.fails != nil {
			return w.fails
		}
		w.written++
		return c.Create(ctx, object, options...)
	}
	writing.Patch = func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		w.written++
		return c.Patch(ctx, object, patch, options...)
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(writing).Build()
	seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing...).WithInterceptorFuncs(reading).Build()
	w.seed = seed
	w.Keeper = &Keeper{Garden: garden, GardenReader: garden, Seed: seed, Identity: identity, FieldManager: "gardenlet", Period: 6 * time.Hour, Clock: w.clock}
	return w
}

var shoot = &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one", UID: "1"}}

func inUse(existing ...corev1.Secret) map[string]secrets.Item {
	items := map[string]secrets.Item{}
	for _, each := range existing {
		items[each.Name] = secrets.Item{Config: secrets.Config{Name: each.Name, Persist: true}, Current: secrets.Secret{Name: each.Name, Data: each.Data}}
	}
	return items
}

// TestKeep checks that requests are sent only for unknown state, and that only changes are written.
func TestKeep(t *testing.T) {
	ca, other := secret("ca", identity, "a"), secret("other", "extension", "b")
	w := newWorld(t, &ca)
	keep := func(what string, sent, written int, used ...corev1.Secret) {
		t.Helper()
		w.sent, w.written = 0, 0
		if err := w.Keep(t.Context(), shoot, "shoot--dev--one", inUse(used...)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if w.sent != sent || w.written != written {
			t.Errorf("%s: %d reads and %d writes, want %d and %d", what, w.sent, w.written, sent, written)
		}
	}
	keep("first", 2, 1, ca)
	keep("at rest", 0, 0, ca)
	w.Forget(shoot.UID)
	keep("after a restart", 2, 0, ca)
	if err := w.seed.Create(t.Context(), &other); err != nil {
		t.Fatal(err)
	}
	keep("before the period is over", 0, 0, ca)
	w.clock.SetTime(now.Add(6 * time.Hour))
	keep("after the period", 2, 1, ca)
	rotated := secret("ca-2", identity, "c")
	if err := w.seed.Create(t.Context(), &rotated); err != nil {
		t.Fatal(err)
	}
	keep("rotated", 2, 1, ca, rotated)

	saved, err := w.Saved(t.Context(), shoot)
	if err != nil || len(saved) != 3 {
		t.Errorf("%d entries are stored: %v", len(saved), err)
	}
	if err := errors.Join(w.Delete(t.Context(), shoot), w.Delete(t.Context(), shoot)); err != nil {
		t.Error(err)
	}
	if saved, err := w.Saved(t.Context(), shoot); err != nil || len(saved) > 0 {
		t.Errorf("after the deletion, %d entries are stored: %v", len(saved), err)
	}
}

// TestNotStored checks that an error is reported as long as a Secret in use is not stored, and that the stored state is kept.
func TestNotStored(t *testing.T) {
	ca, key := secret("ca", identity, "a"), secret("key", identity, "b")
	w := newWorld(t, &ca, &key)
	w.fails = errors.New("the garden is away")
	for range 2 {
		if err := w.Keep(t.Context(), shoot, "shoot--dev--one", inUse(ca, key)); err == nil || !strings.Contains(err.Error(), "the garden is away") {
			t.Errorf("%v", err)
		}
	}
	w.fails = nil
	if err := w.Keep(t.Context(), shoot, "shoot--dev--one", inUse(ca, key)); err != nil {
		t.Fatal(err)
	}
	// The Secret is deleted manually, and the cache of the flow does not show that yet.
	if err := w.seed.Delete(t.Context(), &key); err != nil {
		t.Fatal(err)
	}
	w.Forget(shoot.UID)
	if err := w.Keep(t.Context(), shoot, "shoot--dev--one", inUse(ca, key)); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("%v", err)
	}
	if saved, err := w.Saved(t.Context(), shoot); err != nil || len(saved) != 2 {
		t.Errorf("%d entries are stored: %v", len(saved), err)
	}
}
