package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// desired returns the Service, or nil if it does not exist, and its desired state. It reads only from caches.
func (r *Reconciler) desired(ctx context.Context, key types.NamespacedName, existing map[types.NamespacedName]*networkingv1.NetworkPolicy,
) (*corev1.Service, *netpol.Result, error) {
	service := &corev1.Service{}
	if err := r.Cache.Get(ctx, key, service); apierrors.IsNotFound(err) {
		r.istio.use(key, nil) //nolint:contextcheck // the watches run longer than the reconcile
		return nil, &netpol.Result{}, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("read Service %s: %w", key, err)
	}
	request := netpol.Read(service)
	input, err := r.gather(ctx, service, request, existing)
	if err != nil {
		return nil, nil, err
	}
	result := netpol.Desired(request, input, r.Options.Config)
	if input.Taken, err = r.taken(ctx, key, result, existing); err != nil || len(input.Taken) == 0 {
		return service, result, err
	}
	return service, netpol.Desired(request, input, r.Options.Config), nil
}

// gather reads the input for the policies of a Service.
func (r *Reconciler) gather(ctx context.Context, service *corev1.Service, request *netpol.Request,
	existing map[types.NamespacedName]*networkingv1.NetworkPolicy,
) (netpol.Input, error) {
	input := netpol.Input{Namespaces: map[string]netpol.Namespace{}}
	wanted := []string{service.Namespace}
	for _, policy := range existing {
		summary := existingOf(policy)
		input.Existing = append(input.Existing, summary)
		wanted = append(wanted, summary.Peer)
	}
	if controller := r.Options.Config.IngressController; controller != nil {
		var list networkingv1.IngressList
		if err := r.Cache.List(ctx, &list, lookup(indexService, service.Name, service.Namespace)...); err != nil {
			return input, fmt.Errorf("list the Ingresses of Service %s: %w", keyOf(service), err)
		}
		for i := range list.Items {
			input.Ingresses = append(input.Ingresses, &list.Items[i])
		}
		wanted = append(wanted, controller.Namespace)
	}
	//nolint:contextcheck // the watches run longer than the reconcile
	input.VirtualServices, input.Gateways, input.IstioUnknown = r.istio.of(keyOf(service))
	for _, gateway := range input.Gateways {
		wanted = append(wanted, gateway.Namespaces...)
	}
	if r.Options.OnlyWhilePodsExist {
		input.HasPods = func(namespace, key string) bool { return r.hasPods(ctx, namespace, key) }
	}
	slices.Sort(wanted)
	for _, name := range slices.Compact(wanted) {
		namespace := &corev1.Namespace{}
		if err := r.Cache.Get(ctx, types.NamespacedName{Name: name}, namespace); err == nil {
			r.add(input.Namespaces, namespace)
		} else if !apierrors.IsNotFound(err) {
			return input, fmt.Errorf("read Namespace %s: %w", name, err)
		}
	}
	return input, r.addSelected(ctx, input.Namespaces, request)
}

// addSelected adds the namespaces that may match a selector of a Service.
func (r *Reconciler) addSelected(ctx context.Context, namespaces map[string]netpol.Namespace, request *netpol.Request) error {
	for _, selector := range request.Selectors {
		for _, bucket := range bucketsOf(selector) {
			var list corev1.NamespaceList
			if err := r.Cache.List(ctx, &list, lookup(indexLabels, bucket, "")...); err != nil {
				return fmt.Errorf("list Namespaces with the label %s: %w", bucket, err)
			}
			for i := range list.Items {
				r.add(namespaces, &list.Items[i])
			}
		}
	}
	return nil
}

// add adds a namespace if it is in the configured scope.
func (r *Reconciler) add(namespaces map[string]netpol.Namespace, namespace *corev1.Namespace) {
	if len(r.Options.Namespaces) == 0 || slices.Contains(r.Options.Namespaces, namespace.Name) {
		namespaces[namespace.Name] = netpol.Namespace{Labels: namespace.Labels, Terminating: isTerminating(namespace)}
	}
}

func isTerminating(namespace *corev1.Namespace) bool {
	return namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating
}

// hasPods reports whether a Pod in a namespace has the label. If the Pods cannot be listed, it returns true.
func (r *Reconciler) hasPods(ctx context.Context, namespace, key string) bool {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	err := r.Cache.List(ctx, list, append(lookup(indexKeys, key, namespace), client.Limit(1))...)
	return err != nil || len(list.Items) > 0 // an unnecessary policy does no harm
}

// taken returns those of the wanted policy names that belong to another Service which also wants them.
func (r *Reconciler) taken(ctx context.Context, service types.NamespacedName, result *netpol.Result,
	existing map[types.NamespacedName]*networkingv1.NetworkPolicy,
) (map[types.NamespacedName]bool, error) {
	var taken map[types.NamespacedName]bool
	for _, policy := range result.Policies {
		key := keyOf(policy)
		if existing[key] != nil {
			continue
		}
		present := &networkingv1.NetworkPolicy{}
		if err := r.Cache.Get(ctx, key, present); apierrors.IsNotFound(err) || err == nil && serviceOf(present) == service {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("look for NetworkPolicy %s: %w", key, err)
		}
		wanted, err := r.wants(ctx, serviceOf(present), key)
		if err != nil {
			return nil, err
		}
		if wanted {
			if taken == nil {
				taken = map[types.NamespacedName]bool{}
			}
			taken[key] = true
		}
	}
	return taken, nil
}

// wants reports whether a Service wants a policy with the given name.
func (r *Reconciler) wants(ctx context.Context, key, policy types.NamespacedName) (bool, error) {
	service := &corev1.Service{}
	if err := r.Cache.Get(ctx, key, service); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read Service %s: %w", key, err)
	}
	existing, err := r.existing(ctx, key)
	if err != nil {
		return false, err
	}
	request := netpol.Read(service)
	input, err := r.gather(ctx, service, request, existing)
	if err != nil {
		return false, err
	}
	result := netpol.Desired(request, input, r.Options.Config)
	return slices.ContainsFunc(result.Policies, func(one *networkingv1.NetworkPolicy) bool { return keyOf(one) == policy }) ||
		result.Keeps(policy.Namespace, policy.Name), nil
}
