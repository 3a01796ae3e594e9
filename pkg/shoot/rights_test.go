package shoot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/shoot/state"
)

// forbidden returns the error of an API server for a request that it refuses with a text.
func forbidden(text string) error {
	return fmt.Errorf("read it: %w", apierrors.NewForbidden(schema.GroupResource{Group: corev1beta1.GroupName, Resource: "shootstates"}, "one", errors.New(text)))
}

// unpermitted is the error of the garden for a request of a gardenlet without the right.
func unpermitted(user string) error {
	return forbidden(fmt.Sprintf(`User %q cannot get resource "shootstates" in API group "core.gardener.cloud" in the namespace "garden-dev"`, user))
}

// TestMissingRights checks which errors gardenlet waits for.
func TestMissingRights(t *testing.T) {
	ours := unpermitted("gardener.cloud:system:seed:local")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "shoots"}, "one", errors.New("changed"))
	names := forbidden("ValidatingAdmissionPolicy 'names.gardenlet.gardener.cloud' with binding 'names.gardenlet.gardener.cloud' denied request: gardenlets create only objects of their own Seed")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no failure":                   {nil, false},
		"no right":                     {ours, true},
		"a name that is not permitted": {names, true},
		"no right, and a conflict":     {errors.Join(ours, conflict), true},
		"only a conflict":              {conflict, false},
		"no right, and its own error":  {errors.Join(ours, errors.New("its own")), false},
		"another policy":               {forbidden("ValidatingAdmissionPolicy 'owner.gardenlet.gardener.cloud' denied request: this object belongs to another Seed"), false},
		"another user":                 {unpermitted("gardener.cloud:system:seed:local-2"), false},
		"the seed":                     {unpermitted("system:serviceaccount:garden:gardenlet"), false},
	} {
		r := reporter(t)
		if got := r.newPass(ready().shoot).awaitsRights(test.err); got != test.want {
			t.Errorf("%s: gardenlet waits: %t", name, got)
		}
	}
}

// TestWaitForRights checks that a Shoot that is created waits for gardenlet's rights, and reports an error with the Role if they do not come.
func TestWaitForRights(t *testing.T) {
	in := known(t)
	r, _ := failing(t, &in, "")
	clock := clocktesting.NewFakePassiveClock(in.Now)
	r.options.Clock, in.Shoot.Status.LastOperation = clock, nil
	failure := unpermitted(constants.PrefixSeedUser + "local")
	report := func() (reconcile.Result, corev1beta1.LastOperation, error) {
		result, err := r.newPass(in.Shoot).report(t.Context(), failure)
		return result, *in.Shoot.Status.LastOperation, err
	}
	result, last, err := report()
	if err != nil || result.RequeueAfter != rightsAgain || last.State != corev1beta1.LastOperationStatePending || last.Type != corev1beta1.LastOperationTypeCreate ||
		!strings.Contains(last.Description, "has not granted gardenlet its rights") || !strings.Contains(last.Description, "Role garden-dev/gardener.cloud:system:seed:local:gardenlet-rights") {
		t.Errorf("%+v, %+v, %v", result, last, err)
	}
	before := in.Shoot.ResourceVersion
	clock.SetTime(in.Now.Add(rightsWithin - time.Second))
	if result, last, err = report(); err != nil || last.State != corev1beta1.LastOperationStatePending || in.Shoot.ResourceVersion != before {
		t.Errorf("waits for long: %+v, %+v, %v", result, last, err)
	}
	clock.SetTime(in.Now.Add(rightsWithin))
	if result, last, err = report(); err == nil || last.State != corev1beta1.LastOperationStateError ||
		!strings.Contains(last.Description, "Role garden-dev/gardener.cloud:system:seed:local:gardenlet-rights") {
		t.Errorf("waits for too long: %+v, %+v, %v", result, last, err)
	}
	if _, err := r.newPass(in.Shoot).report(t.Context(), nil); err != nil {
		t.Errorf("the rights were granted: %v", err)
	}
}

// TestRightsOfShootAtRest checks that missing rights do not change the status of a Shoot whose last operation has succeeded.
func TestRightsOfShootAtRest(t *testing.T) {
	shoot := ready().shoot
	if status := reporter(t).waitsForRights(shoot, unpermitted("one")); *status.LastOperation != *shoot.Status.LastOperation {
		t.Errorf("%+v", status.LastOperation)
	}
}

// TestDeletedShootIsNotDeletedAgain removes the finalizer of a Shoot, while another controller changes it once, and lets the cache show the Shoot
// as it was before. Nothing happens in the next pass: by then, the ShootState and the rights may be those of another Shoot with this name.
func TestDeletedShootIsNotDeletedAgain(t *testing.T) {
	stale := ready().shoot
	stale.Finalizers = []string{constants.GardenerName, "another"} // of a controller that keeps the Shoot for longer
	stale.Spec.SeedName = ptr.To("local")
	store := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(stale).WithStatusSubresource(stale).Build()
	shoot := stale.DeepCopy()
	if err := errors.Join(store.Get(t.Context(), client.ObjectKeyFromObject(stale), shoot), store.Delete(t.Context(), shoot.DeepCopy()),
		store.Get(t.Context(), client.ObjectKeyFromObject(stale), shoot)); err != nil {
		t.Fatal(err)
	}
	stale = shoot.DeepCopy()
	changed := false
	r := reporter(t)
	r.garden = interceptor.NewClient(store, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			into, is := object.(*corev1beta1.Shoot)
			if !is {
				return errors.New("another kind")
			}
			stale.DeepCopyInto(into)
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if !changed {
				changed = true
				return apierrors.NewConflict(schema.GroupResource{Resource: "shoots"}, "one", errors.New("changed"))
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	r.states, r.objects, r.ledgers = &state.Keeper{GardenReader: store}, gardenobjects.New(nil), &flow.Ledgers{}
	if err := r.removeFinalizer(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	r.forget(Inputs{Shoot: shoot})
	if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)}); err != nil || !result.IsZero() {
		t.Errorf("%+v, %v", result, err)
	}
}
