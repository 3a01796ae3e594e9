package fleet

import (
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// DeleteShoot deletes the Shoot, and returns when it no longer exists.
func (f *Fleet) DeleteShoot(ctx context.Context) error {
	return f.DeleteConfirmed(ctx, &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shootKey.Namespace, Name: shootKey.Name}})
}

// DeleteShootWithNodes deletes the Shoot with nodes, and returns when it no longer exists.
func (f *Fleet) DeleteShootWithNodes(ctx context.Context) error {
	return f.DeleteConfirmed(ctx, &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: nodesKey.Namespace, Name: nodesKey.Name}})
}

// DeleteSeed deletes the Seed, and returns when it no longer exists.
func (f *Fleet) DeleteSeed(ctx context.Context) error {
	return f.DeleteConfirmed(ctx, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: SeedName}})
}

// DeleteConfirmed confirms the deletion of an object of the garden, deletes it, and returns when it no longer exists.
func (f *Fleet) DeleteConfirmed(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, shootTimeout)
	defer cancel()
	confirm := client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, constants.AnnotationConfirmationDeletion))
	what := fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
	if err := f.Patch(ctx, object, confirm); err != nil {
		return fmt.Errorf("confirm the deletion of %s: %w", what, err)
	}
	if err := f.Delete(ctx, object); err != nil {
		return fmt.Errorf("delete %s: %w", what, err)
	}
	began := time.Now()
	err := wait(ctx, func() error {
		switch err := f.Get(ctx, client.ObjectKeyFromObject(object), object); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%s still exists: %+v", what, lastOperation(object))
	})
	if err == nil {
		f.say("  %s is deleted after %.1f s", what, time.Since(began).Seconds())
	}
	return err
}

func lastOperation(object client.Object) *corev1beta1.LastOperation {
	switch object := object.(type) {
	case *corev1beta1.Shoot:
		return object.Status.LastOperation
	case *corev1beta1.Seed:
		return object.Status.LastOperation
	case *operatorv1alpha1.Garden:
		return object.Status.LastOperation
	}
	return nil
}

// releases are the releases that Up installs, in the order of their removal.
var releases = []struct{ name, namespace string }{
	{"gardenlet", constants.GardenNamespace},
	{"gardenlet-garden", constants.GardenNamespace},
	{"resource-manager", constants.GardenNamespace},
	{"scheduler", system},
	{"controller-manager", system},
	{"apiserver", system},
}

// Uninstall removes the garden and gardenlet after the Shoot and the Seed have been deleted.
func (f *Fleet) Uninstall(ctx context.Context) error {
	for _, release := range releases {
		if err := f.uninstall(release.name, release.namespace); err != nil {
			return err
		}
	}
	return f.deleteNamespaces(ctx, system, constants.GardenNamespace, constants.SystemPublicNamespace, "seed-"+SeedName, shootKey.Namespace)
}

// uninstall removes a release, if it exists.
func (f *Fleet) uninstall(release, namespace string) error {
	config, err := f.landscape.Helm(namespace)
	if err != nil {
		return err
	}
	uninstall := action.NewUninstall(config)
	uninstall.WaitStrategy, uninstall.Timeout, uninstall.IgnoreNotFound = kube.HookOnlyStrategy, timeout, true
	if _, err := uninstall.Run(release); err != nil {
		return fmt.Errorf("uninstall %s: %w", release, err)
	}
	return nil
}

func (f *Fleet) deleteNamespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(f.base.Delete(ctx, namespace)); err != nil {
			return fmt.Errorf("delete the namespace %s: %w", name, err)
		}
	}
	return nil
}
