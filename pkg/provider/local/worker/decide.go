package worker

import (
	"fmt"
	"time"
)

// Decision contains the next actions for the machines of a deployment.
type Decision struct {
	// Create are the names of machines to create.
	Create []string
	// Drain are the machines to drain, in order. They are deleted once they are empty.
	Drain []string
	// Delete are the machines to delete.
	Delete []string
	// Waiting is the reason why the deployment is not up to date, or empty.
	Waiting string
	// Failed is the reason why a broken machine is replaced, or empty.
	Failed string
	// Next is when the next decision is due without a change, or zero for never.
	Next time.Time
}

// decide returns the next actions for a deployment to reach its replicas, all of its class. During a replacement, there
// are at most maxSurge additional machines, and at most maxUnavailable of the replicas are not ready. Only one broken
// machine is replaced at a time, to limit the damage if health reports are wrong. The machines of a hibernated deployment
// are deleted immediately.
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

// pass is a decision in progress.
type pass struct {
	Deployment
	Decision

	machines                     []Machine
	replicas, surge, unavailable int
	now                          time.Time
	// removed are the machines that this decision removes.
	removed map[string]bool
}

// remove records that this decision removes a machine.
func (p *pass) remove(m Machine) {
	if p.removed == nil {
		p.removed = map[string]bool{}
	}
	p.removed[m.Name] = true
}

// staying returns the machines that are not being removed: those of the current class, or the others.
func (p *pass) staying(present bool) []Machine {
	var found []Machine
	for _, m := range p.machines {
		if m.staying() && !p.removed[m.Name] && (m.Class == p.Class) == present {
			found = append(found, m)
		}
	}
	return found
}

// again requests another decision at a time in the future.
func (p *pass) again(at time.Time) {
	if at.After(p.now) && (p.Next.IsZero() || at.Before(p.Next)) {
		p.Next = at
	}
}

// deleteDrained deletes machines that are empty or whose drain has timed out.
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

// replaceBroken deletes one unhealthy machine, unless another one is being removed.
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
		p.Failed = fmt.Sprintf("machine %s has not been ready since %s and is replaced", m.Name, since(m).UTC().Format(time.RFC3339))
		p.Delete = append(p.Delete, m.Name)
		p.remove(m)
	}
}

// since returns when a machine ceased to be ready, or its creation if it was never ready.
func since(m Machine) time.Time {
	if m.WasReady {
		return m.Changed
	}
	return m.Created
}

// scale creates missing machines and drains surplus machines of the current class.
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

// draining returns the number of machines of other classes that are being drained, and exist in addition to their replacements.
func (p *pass) draining() int {
	count := 0
	for _, m := range p.machines {
		if m.Phase() == PhaseDraining && m.Class != p.Class {
			count++
		}
	}
	return count
}

// drain drains a machine. If it is not ready or has no Node, it is deleted immediately, because no Pods can be evicted.
func (p *pass) drain(m Machine) {
	p.remove(m)
	if m.Ready && m.HasNode {
		p.Drain = append(p.Drain, m.Name)
	} else {
		p.Delete = append(p.Delete, m.Name)
	}
}

// replaceOld drains machines of other classes as long as enough machines are ready.
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

// wait sets the reason why the deployment is not up to date.
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
		p.Waiting = fmt.Sprintf("deployment %s: %d of %d machines are up to date and ready, %d must be replaced, %d are being removed",
			p.Name, ready, p.replicas, old, going)
	case ready < p.replicas:
		p.Waiting = fmt.Sprintf("deployment %s: %d of %d machines are ready", p.Name, ready, p.replicas)
	}
}
