package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// withoutImages makes e2e.test start although the Pods of metrics-server and node-problem-detector are not ready: the landscape has no
// images for them. The tests do not use them.
var withoutImages = []string{"--minStartupPods=-1", "--system-daemonsets-startup-timeout=1s"}

const (
	metricsResource = "shoot-core-metrics-server"
	metricsService  = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
)

// awaitComponents waits until the system components that the tests need are available.
func awaitComponents(ctx context.Context, connection *rest.Config) error {
	c, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("connecting to the Shoot: %w", err)
	}
	if err := await(ctx, func() error { return componentsAreReady(ctx, c) }); err != nil {
		return fmt.Errorf("waiting for the system components of the Shoot: %w", err)
	}
	return nil
}

// componentsAreReady returns an error unless DNS is available, and the tunnel, through which the API server reaches webhooks, logs and
// aggregated API servers.
func componentsAreReady(ctx context.Context, c kubernetes.Interface) error {
	var errs []error
	for _, name := range []string{"coredns", "vpn-shoot"} {
		deployment, err := c.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			errs = append(errs, err)
		} else if deployment.Status.AvailableReplicas == 0 {
			errs = append(errs, fmt.Errorf("the Deployment %s has no available Pod", name))
		}
	}
	return errors.Join(errs...)
}

// removeMetrics removes the API of metrics-server from the Shoot, and suspends its ManagedResource, which would restore it. An API whose
// server does not run blocks the deletion of all namespaces.
func removeMetrics(ctx context.Context, f *fleet.Fleet, connection *rest.Config) error {
	shoot := &corev1beta1.Shoot{}
	if err := f.Get(ctx, shootKey, shoot); err != nil {
		return fmt.Errorf("read Shoot %s: %w", shootKey, err)
	}
	key := client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: metricsResource}
	if err := suspend(ctx, f, key); err != nil {
		return fmt.Errorf("suspend ManagedResource %s: %w", key, err)
	}
	c, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("connecting to the Shoot: %w", err)
	}
	if err := c.CoreV1().RESTClient().Delete().AbsPath(metricsService).Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the API of metrics-server: %w", err)
	}
	return nil
}

// suspend suspends a ManagedResource, and waits until the resource-manager reports it.
func suspend(ctx context.Context, c client.Client, key client.ObjectKey) error {
	resource := &resourcesv1alpha1.ManagedResource{}
	if err := c.Get(ctx, key, resource); err != nil {
		return err
	}
	before := client.MergeFrom(resource.DeepCopy())
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, resourcesv1alpha1.AnnotationIgnore, "true")
	if err := c.Patch(ctx, resource, before); err != nil {
		return err
	}
	return await(ctx, func() error {
		if err := c.Get(ctx, key, resource); err != nil {
			return err
		}
		if !suspended(resource) {
			return errors.New("the resource-manager has not suspended it yet")
		}
		return nil
	})
}

// suspended reports whether the resource-manager ignores a ManagedResource.
func suspended(resource *resourcesv1alpha1.ManagedResource) bool {
	return slices.ContainsFunc(resource.Status.Conditions, func(condition resourcesv1alpha1.Condition) bool {
		return condition.Reason == resourcesv1alpha1.ReasonManagedResourceIgnored
	})
}
