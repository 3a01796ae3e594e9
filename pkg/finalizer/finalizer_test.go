package finalizer

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const held = "example.org/held"

// TestRelease checks that an object is released only if neither the cache nor the API server knows a user, and that an error
// and a change of the object keep it.
func TestRelease(t *testing.T) {
	failed := errors.New("the API server does not respond")
	for name, test := range map[string]struct {
		cached, live []string
		err          error
		changed      bool
		want         []string
		released     bool
	}{
		"no users":                          {released: true},
		"users in the cache":                {cached: []string{"b", "a"}, want: []string{"a", "b"}},
		"a user that the cache lacks":       {live: []string{"new"}, want: []string{"new"}},
		"the API server cannot be read":     {err: failed},
		"the object has changed since then": {changed: true},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "pull", Finalizers: []string{held}}}
			cached, live := fake.NewClientBuilder().WithObjects(secret).Build(), fake.NewClientBuilder().Build()
			if err := cached.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			if test.changed {
				changed := secret.DeepCopy()
				changed.Labels = map[string]string{"changed": "true"}
				if err := cached.Update(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}
			users, err := Holder{Client: cached, Uncached: live, Owner: "test"}.Release(t.Context(), secret, held,
				func(_ context.Context, reader client.Reader) ([]string, error) {
					if reader == client.Reader(live) {
						return test.live, test.err
					}
					return test.cached, nil
				})
			if (err != nil) != (test.err != nil || test.changed) || !slices.Equal(users, test.want) {
				t.Errorf("users %v, error %v", users, err)
			}
			found := &corev1.Secret{}
			if err := cached.Get(t.Context(), client.ObjectKeyFromObject(secret), found); err != nil {
				t.Fatal(err)
			}
			if released := len(found.Finalizers) == 0; released != test.released {
				t.Errorf("released: %t, want %t", released, test.released)
			}
		})
	}
}
