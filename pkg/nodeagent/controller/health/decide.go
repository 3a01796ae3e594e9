package health

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
)

const (
	// restartAfter is how long a program must fail until it is restarted (Gardener).
	restartAfter = time.Minute
	// manyToggles is the number of changes of the readiness of a Node within togglePeriod that an Event reports (Gardener).
	manyToggles  = 5
	togglePeriod = 10 * time.Minute
)

// isChecked reports whether a unit must run: it is installed, and it runs, has failed, or is enabled. As in Gardener, an enabled unit that was
// stopped is started again: a node without kubelet or containerd would be replaced.
func isChecked(unit host.UnitState) bool {
	return unit.Load == "loaded" && (unit.Active != "inactive" || unit.Enabled == "enabled")
}

// probe is what is known about the health of a program.
type probe struct{ failsSince time.Time }

// observe records a result, and returns whether the program is restarted now.
func (p *probe) observe(works bool, now time.Time) bool {
	switch {
	case works:
		p.failsSince = time.Time{}
	case p.failsSince.IsZero():
		p.failsSince = now
	case now.Sub(p.failsSince) >= restartAfter:
		p.failsSince = time.Time{} // it has the same time again
		return true
	}
	return false
}

// toggles are the times at which the readiness of a Node changed.
type toggles []time.Time

// observe records the last change, and returns whether there were many recently. It then begins to count again.
func (t *toggles) observe(node *corev1.Node, now time.Time) bool {
	for _, condition := range node.Status.Conditions {
		at := condition.LastTransitionTime.Time
		if condition.Type == corev1.NodeReady && (len(*t) == 0 || at.After((*t)[len(*t)-1])) {
			*t = append(*t, at)
		}
	}
	for len(*t) > 1 && now.Sub((*t)[0]) > togglePeriod {
		*t = (*t)[1:]
	}
	// The first one is the state that was found.
	if len(*t) <= manyToggles {
		return false
	}
	*t = (*t)[len(*t)-1:]
	return true
}

// addresses returns the internal addresses of a Node, and whether it has an address at which others reach it.
func addresses(node *corev1.Node) (internal []string, reachable bool) {
	for _, each := range node.Status.Addresses {
		switch each.Type {
		case corev1.NodeInternalIP:
			internal, reachable = append(internal, each.Address), true
		case corev1.NodeExternalIP:
			reachable = true
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
		}
	}
	return internal, reachable
}

// restored returns the strategic merge patch of the status that adds an internal address.
func restored(address string) ([]byte, error) {
	return json.Marshal(map[string]any{"status": map[string]any{
		"addresses": []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
	}})
}
