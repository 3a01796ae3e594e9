package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// hookInterval is the time between attempts to write to the garden, and hookTimeout limits all attempts.
	hookInterval = time.Second
	hookTimeout  = time.Minute
	// identityOrigin is the component that wrote the identity of the garden.
	identityOrigin = "gardener-apiserver"
)

// addHooks makes the server create the required objects of the garden after it started to serve.
func addHooks(generic *server.GenericAPIServer, kube kubernetes.Interface, identity string) error {
	namespaces := func(ctx context.Context) error {
		return errors.Join(
			ensureNamespace(ctx, kube, constants.SystemSeedLeaseNamespace), ensureNamespace(ctx, kube, constants.SystemShootIssuerNamespace))
	}
	return errors.Join(
		generic.AddPostStartHook("gardener-namespaces", retried(namespaces)),
		generic.AddPostStartHook("gardener-cluster-identity", retried(func(ctx context.Context) error {
			return ensureIdentity(ctx, kube, identity)
		})))
}

// retried returns a hook that retries a function, which might fail while the garden starts.
func retried(run func(context.Context) error) server.PostStartHookFunc {
	return func(hook server.PostStartHookContext) error {
		var last error
		err := wait.PollUntilContextTimeout(hook, hookInterval, hookTimeout, true, func(ctx context.Context) (bool, error) {
			if last = run(ctx); last != nil {
				klog.FromContext(ctx).Error(last, "A hook failed; retrying")
			}
			return last == nil, nil
		})
		return errors.Join(err, last)
	}
}

func ensureNamespace(ctx context.Context, kube kubernetes.Interface, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// ensureIdentity writes the identity of the garden to an immutable ConfigMap. It does not change a ConfigMap that another
// component wrote.
func ensureIdentity(ctx context.Context, kube kubernetes.Interface, identity string) error {
	maps, immutable := kube.CoreV1().ConfigMaps(metav1.NamespaceSystem), true
	found, err := maps.Get(ctx, constants.ClusterIdentityName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: constants.ClusterIdentityName},
			Data:       map[string]string{constants.ClusterIdentityName: identity, constants.ClusterIdentityOrigin: identityOrigin},
			Immutable:  &immutable,
		}, metav1.CreateOptions{})
	case err != nil:
	case adopts(found, identity):
		found.Data[constants.ClusterIdentityOrigin], found.Immutable = identityOrigin, &immutable
		_, err = maps.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", metav1.NamespaceSystem, constants.ClusterIdentityName, err)
	}
	return nil
}

// adopts reports whether an existing ConfigMap has our identity, but no origin yet.
func adopts(found *corev1.ConfigMap, identity string) bool {
	return (found.Immutable == nil || !*found.Immutable) && found.Data[constants.ClusterIdentityOrigin] == "" &&
		found.Data[constants.ClusterIdentityName] == identity
}
