package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

const (
	// prefixVirtualGarden is the prefix of the names of components of the virtual garden.
	prefixVirtualGarden = "virtual-garden-"
	nameKubeAPIServer   = "kube-apiserver"
	// labelExposure with the value exposedByGardener means that gardenlet exposes an API server by SNI.
	labelExposure     = constants.LabelAPIServerExposure
	exposedByGardener = constants.APIServerExposureGardenerManaged
)

// mutator calls an ensurer for the objects of requests.
type mutator struct {
	ensurer Ensurer
	reader  client.Reader
}

// of is the [Context] of a request.
type of struct {
	namespace string
	reader    client.Reader
}

// Namespace implements [Context].
func (c of) Namespace() string { return c.namespace }

// Cluster implements [Context].
func (c of) Cluster(ctx context.Context) (*extension.Cluster, error) {
	return extension.GetCluster(ctx, c.reader, c.namespace)
}

// change modifies an object. live is the stored object, or the zero value if it is being created.
type change[T client.Object] func(ctx context.Context, c Context, wanted, live T) error

// changing returns a handler that modifies objects, except those that are being deleted.
func changing[T client.Object](m mutator, newObject func() T, change change[T]) admission.Handler {
	return admit.Mutating(newObject, func(ctx context.Context, request *admission.Request, wanted T) error {
		if wanted.GetDeletionTimestamp() != nil {
			return nil
		}
		var live T
		if len(request.OldObject.Raw) > 0 {
			live = newObject()
			if err := json.Unmarshal(request.OldObject.Raw, live); err != nil {
				return fmt.Errorf("read the stored object: %w", err)
			}
		}
		err := change(ctx, of{request.Namespace, m.reader}, wanted, live)
		if err != nil && !admit.IsRefusal(err) {
			// gardenlet reports the message in the ManagedResource.
			return admit.Refuse(http.StatusUnprocessableEntity, "the extension cannot change %s %s/%s: %v",
				request.Kind.Kind, request.Namespace, wanted.GetName(), err)
		}
		return err
	})
}

// handlers returns the handlers by kind.
func (m mutator) handlers() map[schema.GroupKind]admission.Handler {
	return map[schema.GroupKind]admission.Handler{
		{Kind: "Service"}:                    changing(m, func() *corev1.Service { return &corev1.Service{} }, m.service),
		{Group: "apps", Kind: "Deployment"}:  changing(m, func() *appsv1.Deployment { return &appsv1.Deployment{} }, m.deployment),
		{Group: "apps", Kind: "StatefulSet"}: changing(m, func() *appsv1.StatefulSet { return &appsv1.StatefulSet{} }, m.statefulSet),
		druidv1alpha1.Kind("Etcd"):           changing(m, func() *druidv1alpha1.Etcd { return &druidv1alpha1.Etcd{} }, m.etcd),
		{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}: changing(m,
			func() *unstructured.Unstructured { return &unstructured.Unstructured{} }, m.autoscaler),
		extensionsv1alpha1.Kind("OperatingSystemConfig"): changing(m,
			func() *extensionsv1alpha1.OperatingSystemConfig { return &extensionsv1alpha1.OperatingSystemConfig{} }, m.operatingSystemConfig),
	}
}

// service calls the method for a Service.
func (m mutator) service(ctx context.Context, c Context, wanted, live *corev1.Service) error {
	if component(wanted.Name) != nameKubeAPIServer || wanted.Labels[labelExposure] == exposedByGardener {
		return nil
	}
	return m.ensurer.EnsureKubeAPIServerService(ctx, c, wanted, live)
}

// component returns the name of a component without the prefix of the virtual garden.
func component(name string) string { return strings.TrimPrefix(name, prefixVirtualGarden) }

// deployment calls the method for a Deployment.
func (m mutator) deployment(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error {
	switch component(wanted.Name) {
	case nameKubeAPIServer:
		return m.apiServer(ctx, c, wanted, live)
	case "kube-controller-manager":
		return m.ensurer.EnsureKubeControllerManagerDeployment(ctx, c, wanted, live)
	case "kube-scheduler":
		return m.ensurer.EnsureKubeSchedulerDeployment(ctx, c, wanted, live)
	case "cluster-autoscaler":
		return m.ensurer.EnsureClusterAutoscalerDeployment(ctx, c, wanted, live)
	case "machine-controller-manager":
		return m.ensurer.EnsureMachineControllerManagerDeployment(ctx, c, wanted, live)
	case "vpn-seed-server":
		return m.ensurer.EnsureVPNSeedServerDeployment(ctx, c, wanted, live)
	case "gardener-resource-manager":
		return m.ensurer.EnsureResourceManagerDeployment(ctx, c, wanted, live)
	}
	return nil
}

// apiServer enforces the contract for API servers that gardenlet exposes by SNI: an ensurer must not change their exposure flags.
func (m mutator) apiServer(ctx context.Context, c Context, wanted, live *appsv1.Deployment) error {
	if wanted.Labels[labelExposure] != exposedByGardener {
		return m.ensurer.EnsureKubeAPIServerDeployment(ctx, c, wanted, live)
	}
	before := exposureFlags(wanted)
	if err := m.ensurer.EnsureKubeAPIServerDeployment(ctx, c, wanted, live); err != nil {
		return err
	}
	if after := exposureFlags(wanted); after != before {
		return fmt.Errorf("the flags %q of an API server that gardenlet exposes must not change, but became %q", before, after)
	}
	return nil
}

// exposureFlags returns the flags that determine the address of an API server.
func exposureFlags(deployment *appsv1.Deployment) string {
	container := Container(&deployment.Spec.Template.Spec, nameKubeAPIServer)
	if container == nil {
		return ""
	}
	var flags []string
	for _, list := range [][]string{container.Command, container.Args} {
		for _, flag := range list {
			if strings.HasPrefix(flag, "--endpoint-reconciler-type=") || strings.HasPrefix(flag, "--advertise-address=") {
				flags = append(flags, flag)
			}
		}
	}
	return strings.Join(flags, " ")
}

// statefulSet calls the method for a StatefulSet.
func (m mutator) statefulSet(ctx context.Context, c Context, wanted, live *appsv1.StatefulSet) error {
	switch component(wanted.Name) {
	case "vpn-seed-server":
		return m.ensurer.EnsureVPNSeedServerStatefulSet(ctx, c, wanted, live)
	case "etcd-main", "etcd-events":
		return m.ensurer.EnsureEtcdStatefulSet(ctx, c, wanted, live)
	}
	return nil
}

// etcd calls the method for an Etcd.
func (m mutator) etcd(ctx context.Context, c Context, wanted, live *druidv1alpha1.Etcd) error {
	switch component(wanted.Name) {
	case "etcd-main", "etcd-events":
		return m.ensurer.EnsureEtcd(ctx, c, wanted, live)
	}
	return nil
}

// autoscaler calls the method for a VerticalPodAutoscaler.
func (m mutator) autoscaler(ctx context.Context, c Context, wanted, live *unstructured.Unstructured) error {
	if wanted.GetName() == "machine-controller-manager-vpa" {
		return m.ensurer.EnsureMachineControllerManagerVPA(ctx, c, wanted, live)
	}
	return nil
}
