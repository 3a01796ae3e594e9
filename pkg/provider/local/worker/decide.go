package worker

import (
	"fmt"
	"time"
)

// Decision is what has to be done with the machines of a deployment now.
type Decision struct {
	// Create are the names of machines to create.
	Create []string
	// Drain are the machines to drain, in order. They are deleted when they are empty.
	Drain []string
	// Delete are the machines to delete.
	Delete []string
	// Waiting says what the deployment waits for; empty if its machines are as they should be.
	Waiting string
	// Failed says why machines are replaced that did not become or stay ready; empty if none is.
	Failed string
	// Next is when the decision has to be made again though nothing was seen to change; zero for never.
	Next time.Time
}

// decide returns what has to be done with the machines of a deployment so that it has as many as it should, all of its class. While
// machines are replaced, there are at most maxSurge beyond the replicas, and at most maxUnavailable of them are not ready. One machine that is
// broken is replaced at a time, so that an outage of what reports health costs no more. A hibernated deployment loses its machines at once.
func decide(d Deployment, machines []Machine, hibernated bool, now time.Time) (Decision, error) {
	if hibernated {
		return removeAll(machines), nil
	}
	p := pass{Deployment: d, machines: machines, now: now, replicas: d.replicas(false)}
	var err error
	if p.surge, p.unavailable, err = d.fenceposts(p.replicas); err != nil {
		return Decision{}, err
	}
	p.deleteDrained()
	p.replaceBroken()
	p.scale()
	p.replaceOld()
	p.wait()
	return p.Decision, nil
}

// removeAll deletes machines without draining them.
func removeAll(machines []Machine) Decision {
	var decision Decision
	for _, m := range machines {
		if !m.Deleting {
			decision.Delete = append(decision.Delete, m.Name)
		}
	}
	if len(machines) > 0 {
		decision.Waiting = fmt.Sprintf("%d machines are being deleted", len(machines))
	}
	return decision
}

// pass is one decision while it is made.
type pass struct {
	Deployment
	Decision

	machines                     []Machine
	replicas, surge, unavailable int
	now                          time.Time
	// removed are the machines that this decision removes.
	removed map[string]bool
}

func (p *pass) remove(m Machine) {
	if p.removed == nil {
		p.removed = map[string]bool{}
	}
	p.removed[m.Name] = true
}

// staying returns the machines of the present class, or the others, that nothing removes.
func (p *pass) staying(present bool) []Machine {
	var found []Machine
	for _, m := range p.machines {
		if m.staying() && !p.removed[m.Name] && (m.Class == p.Class) == present {
			found = append(found, m)
		}
	}
	return found
}

// again makes the decision again at that time, if it is in the future.
func (p *pass) again(at time.Time) {
	if at.After(p.now) && (p.Next.IsZero() || at.Before(p.Next)) {
		p.Next = at
	}
}

// deleteDrained deletes the machines that are empty, or were not emptied in time.
func (p *pass) deleteDrained() {
	_, _, timeout := p.timeouts()
	for _, m := range p.machines {
		if m.Deleting || m.Draining.IsZero() {
			continue
		}
		if until := m.Draining.Add(timeout); m.Drained || !p.now.Before(until) {
			p.Delete = append(p.Delete, m.Name)
		} else {
			p.again(until)
		}
	}
}

// replaceBroken deletes one machine that is not healthy, unless another one is being removed already.
func (p *pass) replaceBroken() {
	creation, health, _ := p.timeouts()
	for _, m := range sorted(p.machines, true) {
		at := m.brokenAt(creation, health)
		if at.IsZero() {
			continue
		}
		if p.now.Before(at) {
			p.again(at)
			continue
		}
		if len(p.removed) > 0 {
			continue
		}
		p.Failed = fmt.Sprintf("machine %s is not ready since %s and is replaced", m.Name, since(m).UTC().Format(time.RFC3339))
		p.Delete = append(p.Delete, m.Name)
		p.remove(m)
	}
}

func since(m Machine) time.Time {
	if m.WasReady {
		return m.Changed
	}
	return m.Created
}

// scale creates missing machines, and drains those of the present class that are too many.
func (p *pass) scale() {
	present, old := p.staying(true), p.staying(false)
	if surplus := len(present) - p.replicas; surplus > 0 {
		for _, m := range sorted(present, false)[:surplus] {
			p.drain(m)
		}
		return
	}
	missing := p.replicas - len(present)
	if draining := p.draining(); len(old) > 0 || draining > 0 {
		missing = min(missing, max(0, p.replicas+p.surge-len(present)-len(old)-draining))
	}
	p.Create = newNames(p.Deployment, p.machines, p.Restored, missing)
}

// draining returns how many machines of other classes are being drained, and stay beside those that take their place.
func (p *pass) draining() int {
	count := 0
	for _, m := range p.machines {
		if m.Phase() == PhaseDraining && m.Class != p.Class {
			count++
		}
	}
	return count
}

// drain drains a machine. One that is not ready, or has not joined a cluster, is deleted at once: nothing on it can be evicted.
func (p *pass) drain(m Machine) {
	p.remove(m)
	if m.Ready && m.HasNode {
		p.Drain = append(p.Drain, m.Name)
	} else {
		p.Delete = append(p.Delete, m.Name)
	}
}

// replaceOld drains machines of other classes as far as enough others are ready.
func (p *pass) replaceOld() {
	old := sorted(p.staying(false), true)
	ready := 0
	for _, m := range append(p.staying(true), old...) {
		if m.Ready {
			ready++
		}
	}
	spare := ready - (p.replicas - p.unavailable)
	for _, m := range old {
		if m.Ready {
			if spare <= 0 {
				return
			}
			spare--
		}
		p.drain(m)
	}
}

// wait says what the deployment waits for.
func (p *pass) wait() {
	ready, old, going := 0, 0, 0
	for _, m := range p.machines {
		switch {
		case !m.staying() || p.removed[m.Name]:
			going++
		case m.Class != p.Class:
			old++
		case m.Ready:
			ready++
		}
	}
	switch {
	case old > 0 || going > 0:
		p.Waiting = fmt.Sprintf("deployment %s: %d of %d machines are up to date and ready, %d have to be replaced, %d are being removed",
			p.Name, ready, p.replicas, old, going)
	case ready < p.replicas:
		p.Waiting = fmt.Sprintf("deployment %s: %d of %d machines are ready", p.Name, ready, p.replicas)
	}
}
