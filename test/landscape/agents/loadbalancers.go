package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// assign returns the Services whose status has to change, with the new status. A Service keeps its address. Others get the
// lowest free address, in the order of their creation. Services with a class belong to other controllers.
func assign(services []*corev1.Service, pool netip.Prefix) (changed []*corev1.Service, err error) {
	services = slices.Clone(services)
	slices.SortFunc(services, func(a, b *corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	used := map[netip.Addr]bool{}
	keeps := map[*corev1.Service]bool{}
	for _, s := range services {
		if address := current(s); wants(s) && pool.Contains(address) && !used[address] {
			used[address], keeps[s] = true, true
		}
	}
	var errs []error
	for _, s := range services {
		switch {
		case s.Spec.LoadBalancerClass != nil || keeps[s]:
		case wants(s):
			address, err := free(pool, used, s.Spec.LoadBalancerIP)
			if err != nil {
				errs = append(errs, fmt.Errorf("the Service %s/%s: %w", s.Namespace, s.Name, err))
				continue
			}
			used[address] = true
			changed = append(changed, withAddress(s, address))
		case len(s.Status.LoadBalancer.Ingress) > 0:
			changed = append(changed, withAddress(s, netip.Addr{}))
		}
	}
	return changed, errors.Join(errs...)
}

func wants(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil && s.DeletionTimestamp == nil
}

func current(s *corev1.Service) netip.Addr {
	if len(s.Status.LoadBalancer.Ingress) != 1 {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(s.Status.LoadBalancer.Ingress[0].IP)
	if err != nil {
		return netip.Addr{}
	}
	return address
}

// free returns an unused address. If a specific address is wanted, it returns that address or an error.
func free(pool netip.Prefix, used map[netip.Addr]bool, wanted string) (netip.Addr, error) {
	if wanted != "" {
		address, err := netip.ParseAddr(wanted)
		if err != nil || !pool.Contains(address) || used[address] {
			return netip.Addr{}, fmt.Errorf("the address %s is not free, or is not in %s", wanted, pool)
		}
		return address, nil
	}
	// The first address is that of the network.
	for address := pool.Masked().Addr().Next(); pool.Contains(address); address = address.Next() {
		if !used[address] {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all addresses of %s are in use", pool)
}

func withAddress(s *corev1.Service, address netip.Addr) *corev1.Service {
	s = s.DeepCopy()
	s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	if address.IsValid() {
		mode := corev1.LoadBalancerIPModeVIP // kube-proxy sees the address
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address.String(), IPMode: &mode}}
	}
	return s
}

func loadBalancers(factory informers.SharedInformerFactory, client kubernetes.Interface, o Options) (*agent, error) {
	services := factory.Core().V1().Services()
	act := func(ctx context.Context) error {
		all, err := services.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		changed, err := assign(all, o.LoadBalancers)
		errs := []error{err}
		for _, s := range changed {
			_, err := client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{})
			// A conflict or a deletion is followed by a change, which triggers the agent again.
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	return newAgent("load-balancers", act, services.Informer())
}
