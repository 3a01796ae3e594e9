package worker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// Phase is the state of a machine.
type Phase string

// The phases of a machine.
const (
	// PhasePending is a machine that has not become ready yet.
	PhasePending Phase = "Pending"
	// PhaseRunning is a machine that is ready.
	PhaseRunning Phase = "Running"
	// PhaseUnhealthy is a machine that was ready and is not any more, or that has ended.
	PhaseUnhealthy Phase = "Unhealthy"
	// PhaseDraining is a machine whose Pods are evicted, so that it can be deleted.
	PhaseDraining Phase = "Draining"
	// PhaseTerminating is a machine that is being deleted.
	PhaseTerminating Phase = "Terminating"
)

// Machine is what is observed of a machine.
type Machine struct {
	Name, Deployment, Class string
	Pool, ImageVersion      string
	Address                 string
	// Created is when it was created, and Changed when it became ready or ceased to be.
	Created, Changed time.Time
	Ready            bool
	// Failed is set if it has ended, and cannot become ready again.
	Failed bool
	// Draining is when its drain began; zero if it has not.
	Draining time.Time
	// Drained is set if nothing that has to be evicted runs on it.
	Drained bool
	// Deleting is set if it is being deleted.
	Deleting bool
	// WasReady is set if it has ever been ready.
	WasReady bool
	// HasNode is set if a Node of a cluster belongs to it, from which Pods can be evicted.
	HasNode bool
	// Orphaned is set if no ManagedResource brings it.
	Orphaned bool
}

// Phase returns the state of the machine.
func (m Machine) Phase() Phase {
	switch {
	case m.Deleting:
		return PhaseTerminating
	case !m.Draining.IsZero():
		return PhaseDraining
	case m.Ready:
		return PhaseRunning
	case m.WasReady, m.Failed:
		return PhaseUnhealthy
	}
	return PhasePending
}

// staying reports whether nothing removes the machine.
func (m Machine) staying() bool { return !m.Deleting && m.Draining.IsZero() }

// brokenAt returns when the machine has to be replaced, if it does not become ready before; zero for never.
func (m Machine) brokenAt(creation, health time.Duration) time.Time {
	switch {
	case !m.staying(), m.Ready, m.WasReady && !m.Failed && health == 0:
		return time.Time{}
	case m.Failed:
		return m.Created
	case m.WasReady:
		return m.Changed.Add(health)
	}
	return m.Created.Add(creation)
}

// maxNameLength is that of a label, which the name of a machine's Node has to fit into.
const maxNameLength = 63

// prefixMachine begins the names of the Pods and Nodes of machines.
const prefixMachine = "machine-"

// machineName returns the name of a machine with a number. It can be the name of a host.
func machineName(deployment, class string, number int) string {
	suffix := fmt.Sprintf("-%s-%d", class, number)
	if room := maxNameLength - len(prefixMachine) - len(suffix); len(deployment) > room {
		sum := sha256.Sum256([]byte(deployment))
		digest := "-" + hex.EncodeToString(sum[:])[:classLength]
		deployment = deployment[:room-len(digest)] + digest
	}
	return deployment + suffix
}

// newNames returns names for further machines of a deployment that no machine has: those that it had in another seed, then the first ones.
func newNames(d Deployment, machines []Machine, restored []string, count int) []string {
	var names []string
	add := func(name string) {
		used := slices.ContainsFunc(machines, func(m Machine) bool { return m.Name == name })
		if !used && len(names) < count && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range restored {
		add(name)
	}
	for number := 0; len(names) < count; number++ {
		add(machineName(d.Name, d.Class, number))
	}
	return names
}

// sorted returns machines in the order in which they are removed: those that are not ready first, then by age, then by name.
func sorted(machines []Machine, oldestFirst bool) []Machine {
	return slices.SortedFunc(slices.Values(machines), func(a, b Machine) int {
		if a.Ready != b.Ready {
			if b.Ready {
				return -1
			}
			return 1
		}
		age := a.Created.Compare(b.Created)
		if !oldestFirst {
			age = -age
		}
		return cmp.Or(age, cmp.Compare(a.Name, b.Name))
	})
}
