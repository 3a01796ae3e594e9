package controller

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// maxCheckedPods is how many Pods of a Service are checked for its named ports. Usually all of them are alike.
const maxCheckedPods = 10

// portCheck identifies a check of named ports.
type portCheck struct {
	uid      types.UID
	selector string
	ports    []netpol.NamedPort
}

func (l portCheck) equals(other portCheck) bool {
	return l.uid == other.uid && l.selector == other.selector && slices.Equal(l.ports, other.ports)
}

// knownPorts remembers the Services whose Pods have all named ports, so that the Pods are read only once. It is safe
// for concurrent use.
type knownPorts struct {
	mu        sync.Mutex
	byService map[types.NamespacedName]portCheck
}

func newKnownPorts() *knownPorts {
	return &knownPorts{byService: map[types.NamespacedName]portCheck{}}
}

func (k *knownPorts) has(service types.NamespacedName, wanted portCheck) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, found := k.byService[service]
	return found && known.equals(wanted)
}

func (k *knownPorts) add(service types.NamespacedName, found portCheck) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byService[service] = found
}

func (k *knownPorts) forget(service types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byService, service)
}

// missingPorts returns the named ports of a Service that its Pods do not have. Pods are not watched, because that would
// be too expensive. Instead, some are read at each reconcile of the Service until they have all ports. A Service
// without named ports costs nothing.
func (r *Reconciler) missingPorts(
	ctx context.Context, service *corev1.Service, key types.NamespacedName, result *netpol.Result,
) []netpol.Problem {
	if service == nil || len(result.NamedPorts) == 0 || len(result.Policies) == 0 {
		r.ports.forget(key)
		return nil
	}
	wanted := portCheck{uid: service.UID, selector: labels.Set(service.Spec.Selector).String(), ports: result.NamedPorts}
	if r.ports.has(key, wanted) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pods, err := r.Pods.Pods(key.Namespace).List(ctx, metav1.ListOptions{LabelSelector: wanted.selector, Limit: maxCheckedPods})
	if err != nil { // the check only gives hints, so the reconcile does not fail
		log.FromContext(ctx).Info("Cannot check whether Pods have the named ports of a Service", "reason", err.Error())
		return nil
	}
	problems, known := netpol.MissingPorts(wanted.ports, pods.Items)
	if known && len(problems) == 0 {
		r.ports.add(key, wanted)
	}
	return problems
}
