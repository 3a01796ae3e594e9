package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/measure"
)

const (
	// inFlight is the number of concurrent requests of the bare client and of the user: the number that saturates a
	// local API server.
	inFlight = 16
)

// user acts like a user and their tools: it writes Secrets and ManagedResources and watches their progress.
type user struct {
	client client.WithWatch
}

func newUser(config *rest.Config) (*user, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(measure.WithAgent(config, "user"), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return &user{client: c}, nil
}

// forEach calls do for 0…count-1, at most inFlight at a time. It stops at the first error.
func forEach(ctx context.Context, count int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for i := range count {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}

func (u *user) createNamespaces(ctx context.Context, w workload) error {
	return forEach(ctx, w.namespaces, func(ctx context.Context, i int) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace(i)}}
		if err := u.client.Create(ctx, namespace); err != nil {
			return fmt.Errorf("create Namespace %s: %w", namespace.Name, err)
		}
		return nil
	})
}

// writing are the objects that a user writes for one revision of a workload. They are prepared before the time is
// measured.
type writing struct {
	create           bool
	secrets          []*corev1.Secret
	managedResources []*resourcesv1alpha1.ManagedResource
}

// prepare returns the objects that the user writes: Secrets and ManagedResources at first, only Secrets for an
// update.
func prepare(w workload, revision int) (writing, error) {
	result := writing{create: revision == 1}
	for i := range w.resources {
		secret, err := w.secret(i, revision)
		if err != nil {
			return result, err
		}
		result.secrets = append(result.secrets, secret)
		result.managedResources = append(result.managedResources, w.managedResource(i))
	}
	return result, nil
}

// write writes one Secret and, for the first revision, the ManagedResource that refers to it.
func (u *user) write(ctx context.Context, what writing, i int) error {
	secret, mr := what.secrets[i], what.managedResources[i]
	if !what.create {
		if err := u.client.Update(ctx, secret); err != nil {
			return fmt.Errorf("update Secret %s: %w", client.ObjectKeyFromObject(secret), err)
		}
		return nil
	}
	if err := u.client.Create(ctx, secret); err != nil {
		return fmt.Errorf("create Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	if err := u.client.Create(ctx, mr); err != nil {
		return fmt.Errorf("create ManagedResource %s: %w", client.ObjectKeyFromObject(mr), err)
	}
	return nil
}

func (u *user) writeAll(ctx context.Context, what writing) error {
	return forEach(ctx, len(what.secrets), func(ctx context.Context, i int) error { return u.write(ctx, what, i) })
}

func (u *user) deleteAll(ctx context.Context, w workload) error {
	return forEach(ctx, w.resources, func(ctx context.Context, i int) error {
		mr := w.managedResource(i)
		if err := u.client.Delete(ctx, mr); err != nil {
			return fmt.Errorf("delete ManagedResource %s: %w", client.ObjectKeyFromObject(mr), err)
		}
		return nil
	})
}

// verify checks that every object of a revision exists. For revision 0 it checks that no object of the workload
// exists.
func (u *user) verify(ctx context.Context, w workload, revision int) error {
	selector := client.MatchingLabels{labelSet: w.set, labelRevision: fmt.Sprint(revision)}
	listed := []client.ListOption{selector}
	if revision == 0 {
		listed = []client.ListOption{client.MatchingLabels{labelSet: w.set}, client.HasLabels{labelRevision}}
	}
	for _, kind := range distinctKinds() {
		want := w.count(kind.name)
		if revision == 0 {
			want = 0
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.kind())
		if err := u.client.List(ctx, list, listed...); err != nil {
			return fmt.Errorf("list %s: %w", kind.plural, err)
		}
		if got := len(list.Items); got != want {
			return fmt.Errorf("found %d %s of revision %d, want %d", got, kind.plural, revision, want)
		}
	}
	return nil
}

// cleanUp deletes a workload without a resource-manager. The garbage collector deletes ReplicaSets and
// EndpointSlices.
func (u *user) cleanUp(ctx context.Context, w workload) error {
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	err := forEach(ctx, w.resources, func(ctx context.Context, i int) error {
		return client.IgnoreNotFound(u.client.Patch(ctx, w.managedResource(i), free))
	})
	if err != nil {
		return fmt.Errorf("remove the finalizers of ManagedResources: %w", err)
	}
	return forEach(ctx, w.namespaces, func(ctx context.Context, i int) error {
		for _, object := range []client.Object{
			&resourcesv1alpha1.ManagedResource{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.ServiceAccount{},
			&rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.Service{}, &appsv1.Deployment{},
		} {
			err := u.client.DeleteAllOf(ctx, object, client.InNamespace(w.namespace(i)), client.MatchingLabels{labelSet: w.set},
				client.PropagationPolicy(metav1.DeletePropagationBackground))
			if err != nil {
				return fmt.Errorf("delete the %T of %s: %w", object, w.namespace(i), err)
			}
		}
		return nil
	})
}
