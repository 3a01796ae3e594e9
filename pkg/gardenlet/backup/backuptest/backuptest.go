// Package backuptest has a simulated garden and seed for unit tests of the controllers of backups.
package backuptest

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
)

// Errors of the seed while it fails.
var (
	ErrWrite = errors.New("the seed refuses to write")
	ErrList  = errors.New("the seed refuses to list")
)

// Seed is a backup.Seed with simulated clusters.
type Seed struct {
	*backup.Seed

	// Live is the seed without failures.
	Live client.Client
	// Fails makes writes of ManagedResources and lists of the API server fail.
	Fails bool
}

// New returns a Seed named here, with objects in the garden.
func New(t *testing.T, now time.Time, inGarden ...client.Object) *Seed {
	t.Helper()
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	of := []client.Object{&corev1beta1.BackupBucket{}, &corev1beta1.BackupEntry{}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(of...).WithObjects(inGarden...).Build()
	store := fake.NewClientBuilder().WithScheme(scheme).Build()
	s := &Seed{Live: store}
	failing := func(err error) error {
		if s.Fails {
			return err
		}
		return nil
	}
	seed := interceptor.NewClient(store, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return errors.Join(failing(ErrWrite), c.Apply(ctx, object, options...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := failing(ErrWrite); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return errors.Join(failing(ErrList), c.List(ctx, list, options...))
		},
	})
	clock := testingclock.NewFakePassiveClock(now)
	s.Seed = &backup.Seed{
		Name: "here", Namespace: "garden", Client: seed, Uncached: seed, Emitted: flow.IndexedReader{Reader: unindexed{store}},
		Emitter: &flow.Emitter{Reader: store, Uncached: store, Writer: seed, FieldManager: backup.FieldManager, Rules: flow.Rules{Scheme: scheme, Version: "v1"}},
		Garden:  garden, GardenReader: garden, Objects: objects{garden}, Clock: clock,
	}
	return s
}

// unindexed lists all objects: there is only one owner.
type unindexed struct{ client.Reader }

// List lists all objects of a kind.
func (u unindexed) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return u.Reader.List(ctx, list)
}

// objects reads from a client.
type objects struct{ client.Reader }

// Get reads an object.
func (o objects) Get(ctx context.Context, _ gardenobjects.User, name client.ObjectKey, object client.Object) error {
	return o.Reader.Get(ctx, name, object)
}

// Begin does nothing.
func (objects) Begin(gardenobjects.User) func() { return func() {} }

// Release does nothing.
func (objects) Release(gardenobjects.User) {}

// OnChange does nothing.
func (objects) OnChange(func(client.Object)) {}
