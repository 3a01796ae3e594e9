package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

const (
	// tokenValidity is longer than a run.
	tokenValidity = 24 * time.Hour
	// workers is the number of ManagedResources that are reported at once.
	workers = 16
	// gatewayNamespace is that of the gateway of all Shoots.
	gatewayNamespace = "istio-ingress"
)

// resourceManager reports every ManagedResource as applied and healthy at once. Of the objects, it creates only those that gardenlet waits for:
// the namespace of a control plane, the Service of its API server, and the tokens of its programs.
type resourceManager struct{ seed client.Client }

// runResourceManager runs the simulated resource-manager until the context ends.
func runResourceManager(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) error {
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Namespace{}}}},
	})
	if err != nil {
		return fmt.Errorf("run the resource-manager of the Seed: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).For(&resourcesv1alpha1.ManagedResource{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(&resourceManager{seed: mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("run the resource-manager of the Seed: %w", err)
	}
	return mgr.Start(ctx)
}

// Reconcile reports a ManagedResource of a new generation.
func (m *resourceManager) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := m.seed.Get(ctx, request.NamespacedName, mr); err != nil || mr.Status.ObservedGeneration == mr.Generation {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if strings.HasPrefix(mr.Name, constants.PrefixTechnicalID) && mr.Namespace == constants.GardenNamespace {
		if err := m.createNamespace(ctx, mr.Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": mr.Generation, "conditions": []resourcesv1alpha1.Condition{
			condition(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue),
			condition(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue),
			condition(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse),
		},
	}})
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, client.IgnoreNotFound(m.seed.Status().Patch(ctx, mr, client.RawPatch(types.MergePatchType, patch)))
}

func condition(kind resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus) resourcesv1alpha1.Condition {
	return resourcesv1alpha1.Condition{
		Type: kind, Status: status, Reason: "Simulated", Message: "The objects are simulated.", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
	}
}

func (m *resourceManager) createNamespace(ctx context.Context, name string) error {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{constants.LabelGardenRole: constants.RoleShoot},
		Annotations: map[string]string{highavailability.AnnotationFailureTolerance: ""},
	}}, service(name, kubeapiserver.Name)}
	for _, account := range []string{"gardener-resource-manager", "kube-controller-manager"} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: constants.PrefixShootAccess + account, Labels: map[string]string{resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot},
			Annotations: map[string]string{resourcesv1alpha1.AnnotationTokenRenewTimestamp: time.Now().Add(tokenValidity).UTC().Format(time.RFC3339)},
		}})
	}
	for _, object := range objects {
		if err := client.IgnoreAlreadyExists(m.seed.Create(ctx, object)); err != nil {
			return fmt.Errorf("create %s: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// createGateway creates the Service of the gateway with the address that a load balancer would have.
func createGateway(ctx context.Context, seed client.Client) error {
	made := service(gatewayNamespace, exposure.GatewayApp)
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gatewayNamespace}}, made} {
		if err := seed.Create(ctx, object); err != nil {
			return fmt.Errorf("create the gateway: %w", err)
		}
	}
	made.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	if err := seed.Status().Update(ctx, made); err != nil {
		return fmt.Errorf("write the address of the gateway: %w", err)
	}
	return nil
}

func service(namespace, name string) *corev1.Service {
	made := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: kubeapiserver.Labels()}}
	made.Spec.Ports = []corev1.ServicePort{{Name: "https", Port: httpsPort}}
	if namespace == gatewayNamespace {
		made.Spec.Type, made.Labels = corev1.ServiceTypeLoadBalancer, map[string]string{exposure.LabelApp: name}
	}
	return made
}
