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

// Phases of a machine.
const (
	// PhasePending means that the machine has not become ready yet.
	PhasePending Phase = "Pending"
	// PhaseRunning means that the machine is ready.
	PhaseRunning Phase = "Running"
	// PhaseUnhealthy means that the machine is no longer ready, or has terminated.
	PhaseUnhealthy Phase = "Unhealthy"
	// PhaseDraining means that the Pods of the machine are being evicted before its deletion.
	PhaseDraining Phase = "Draining"
	// PhaseTerminating means that the machine is being deleted.
	PhaseTerminating Phase = "Terminating"
)

// Machine is the observed state of a machine.
type Machine struct {
	Name, Deployment, Class string
	Pool, ImageVersion      string
	Address                 string
	// Created is its creation time. Changed is when it last became ready or not ready.
	Created, Changed time.Time
	Ready            bool
	// Failed is set if it has terminated, or cannot become ready for another reason.
	Failed bool
	// Draining is when its drain started, or zero.
	Draining time.Time
	// Drained is set if no Pods are left to evict.
	Drained bool
	// Deleting is set if it is being deleted.
	Deleting bool
	// WasReady is set if it has ever been ready.
	WasReady bool
	// HasNode is set if it has a Node, from which Pods can be evicted.
	HasNode bool
	// Orphaned is set if it has no ManagedResource.
	Orphaned bool
	// Update is the state of its updates in place.
	Update
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

// staying reports whether the machine is not being removed.
func (m Machine) staying() bool { return !m.Deleting && m.Draining.IsZero() }

// brokenAt returns when the machine must be replaced if it does not become ready before, or zero for never.
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

// maxNameLength is the maximum length of a label's value. The name of a machine's Node must not be longer.
const maxNameLength = 63

// prefixMachine is the prefix of the names of Pods and Nodes of machines.
const prefixMachine = "machine-"

// machineName returns the name of a machine with a number. It is a valid host name.
func machineName(deployment, class string, number int) string {
	suffix := fmt.Sprintf("-%s-%d", class, number)
	if room := maxNameLength - len(prefixMachine) - len(suffix); len(deployment) > room {
		sum := sha256.Sum256([]byte(deployment))
		digest := "-" + hex.EncodeToString(sum[:])[:classLength]
		deployment = deployment[:room-len(digest)] + digest
	}
	return deployment + suffix
}

// newNames returns unused names for additional machines of a deployment: names from before a migration, then those with the lowest numbers.
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

// sorted returns machines in the order of their removal: those that are not ready first, then by age, then by name.
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
