package routing

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Table says which host leads where. It can be read while it changes.
type Table struct {
	mutex sync.RWMutex
	// exact has hosts, and wildcards the part of a host after *.
	exact, wildcards map[string]Target
}

// Target is where a host leads.
type Target struct {
	// Route is the name of the TLSRoute.
	Route types.NamespacedName
	// Backends share connections by their weights, which are positive.
	Backends []Backend
}

// Backend is a port of a Service. It is not valid if it must get no connections: those for it are refused, as the Gateway API says.
type Backend struct {
	Service types.NamespacedName
	Port    int32
	Weight  int32
	Valid   bool
}

// Lookup returns the target of a host in lower case: that of the host itself or, if there is none, of the longest wildcard.
func (t *Table) Lookup(host string) (Target, bool) {
	if t == nil {
		return Target{}, false
	}
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	if target, found := t.exact[host]; found {
		return target, true
	}
	for rest := host; ; {
		_, after, found := strings.Cut(rest, ".")
		if !found {
			return Target{}, false
		}
		if target, found := t.wildcards[after]; found {
			return target, true
		}
		rest = after
	}
}

// Hosts returns the number of hosts.
func (t *Table) Hosts() int {
	if t == nil {
		return 0
	}
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	return len(t.exact) + len(t.wildcards)
}

// Choose returns the backend for a connection. draw returns a number from 0 to one less than its argument.
func (t Target) Choose(draw func(int32) int32) (Backend, bool) {
	sum := int32(0)
	for _, backend := range t.Backends {
		sum += backend.Weight
	}
	if sum == 0 {
		return Backend{}, false
	}
	number := draw(sum)
	for _, backend := range t.Backends {
		if number -= backend.Weight; number < 0 {
			return backend, backend.Valid
		}
	}
	return Backend{}, false
}

// set makes a host lead to a target, or nowhere if that is nil.
func (t *Table) set(host string, target *Target) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	hosts, key := t.exact, host
	if suffix, is := strings.CutPrefix(host, wildcard); is {
		hosts, key = t.wildcards, suffix
	}
	if target == nil {
		delete(hosts, key)
	} else {
		hosts[key] = *target
	}
}

const wildcard = "*."

// intersect returns the hosts that both a listener and a route have: the more specific one of the two, or an empty string for none. A wildcard
// stands for one or more labels. An empty listener has all hosts.
func intersect(listener, route string) string {
	listenerSuffix, listenerIsWildcard := strings.CutPrefix(listener, wildcard)
	routeSuffix, routeIsWildcard := strings.CutPrefix(route, wildcard)
	switch {
	case listener == "" || listener == route:
		return route
	case listenerIsWildcard && strings.HasSuffix(routeSuffix, "."+listenerSuffix):
		return route
	case routeIsWildcard && strings.HasSuffix(listenerSuffix, "."+routeSuffix):
		return listener
	}
	return ""
}
