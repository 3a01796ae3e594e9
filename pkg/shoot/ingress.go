package shoot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// hasIngressController reports whether the Shoot has the addon with the ingress controller.
func (in Inputs) hasIngressController() bool {
	addons := in.Shoot.Spec.Addons
	return in.hasWorkers() && addons != nil && addons.NginxIngress != nil && addons.NginxIngress.Enabled
}

// ofIngress changes the part of a DNS record to that of the addon. An operation does not wait for its address: the addon needs nodes, and users can break it.
func (in Inputs) ofIngress(part table.Part) table.Part {
	part.Needs, part.Outlives = []table.Need{table.Applied(bundleIngress)}, nil
	if part.Absent == "" && !in.Deleting && len(in.ingressAddresses) == 0 {
		part.Absent, part.Removed = "the address of the ingress controller is not known", false
	}
	return part
}

// observeIngress reads the addresses of the addon's load balancer from the Shoot, when the addon is applied. Its health, which changes when the load balancer
// gets an address, triggers this. If the API server does not answer, they are unknown, and an existing DNS record stays.
func (p *pass) observeIngress(ctx context.Context) {
	if !p.in.hasIngressController() || p.in.externalRecord() == nil || p.in.hibernated() || p.in.Deleting || !p.in.NamespaceExists {
		return
	}
	addresses, err := p.ingressAddresses(ctx)
	if err != nil {
		log.FromContext(ctx).V(1).Info("The addresses of the ingress controller are not known", "why", err.Error())
	}
	p.in.ingressAddresses = addresses
}

func (p *pass) ingressAddresses(ctx context.Context) ([]string, error) {
	key, mr := p.in.key(bundleIngress), &resourcesv1alpha1.ManagedResource{}
	if err := p.caches.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !flow.IsApplied(mr) {
		return nil, nil
	}
	shoot, err := p.connect(p.in)
	if err != nil {
		return nil, err
	}
	service := &corev1.Service{}
	if err := shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: nginxingress.AddonService}, service); err != nil {
		return nil, fmt.Errorf("read the Service of the ingress controller: %w", err)
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil, nil
	}
	return dnsvalues.AddressesOf(service), nil
}
