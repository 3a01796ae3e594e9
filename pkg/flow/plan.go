package flow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plan says what should exist now. It is the result of a pure function.
type Plan struct {
	// Bundles that should exist. A bundle that is not mentioned in a plan is kept as it is.
	Bundles []Bundle
	// Waits say what cannot be computed or must not be changed yet.
	Waits []Wait
	// Tombstones are the bundles that should be gone. Nothing is deleted without one.
	Tombstones []Tombstone
	// Tasks are acts that are due, in order.
	Tasks []Task
	// Next is when the function has to run again though nothing was seen to change; zero for never.
	Next time.Time
	// Inputs is a digest of all that the function read: see [InputsDigest]. It distinguishes changes of the code from others.
	Inputs string
	// Window is when changes of the code may be emitted; nil for always.
	Window *Window
	// AtOnce has changes of the code emitted as soon as others, because nothing runs, or because an operation is under way.
	AtOnce bool
	// Deleting has nothing created that does not exist.
	Deleting bool
}

// Wait is something that a plan waits for.
type Wait struct {
	// Name identifies the wait, such as "infrastructure-ready".
	Name string
	// Reason says what is waited for, as a sentence for people.
	Reason string
	// Holds are the bundles that keep their last revision as long as the wait lasts. Those that do not exist are not created.
	Holds []Key
	// HoldsAll holds all bundles of the plan but those in Repairs.
	HoldsAll bool
	// Repairs are bundles that were lost, and that are emitted though the rest of the plan is held.
	Repairs []Key
	// Deadline is when the wait becomes an error; zero for never.
	Deadline time.Time
	// Code of that error; empty for none.
	Code corev1beta1.ErrorCode
}

// Tombstone says that a bundle should be gone.
type Tombstone struct {
	Key
	// Confirm has the objects of the bundle annotated with AnnotationConfirmDeletion, in a revision that is applied before it is deleted.
	Confirm bool
	// Force adds the annotation AnnotationForceDeletion to them, too: extensions call no infrastructure then.
	Force bool
	// TakenOverBy names the ManagedResource of another flow that takes over the objects. The bundle is deleted once that one has all of them
	// in its inventory.
	TakenOverBy *Key
}

// Window is a time in which changes of the code are emitted.
type Window struct {
	// Open reports whether it is that time now.
	Open bool
	// Opens is the beginning of the next window.
	Opens time.Time
}

// NextAt returns when the plan has to be made again though nothing was seen to change; zero for never. What is past does not count.
func (p Plan) NextAt(now time.Time) time.Time {
	next := earliest(now, time.Time{}, p.Next)
	for _, wait := range p.Waits {
		next = earliest(now, next, wait.Deadline)
	}
	return next
}

// earliest returns the earlier one of two times; the second counts only if it is in the future. Zero stands for never.
func earliest(now, a, b time.Time) time.Time {
	if !b.After(now) || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// Objects returns the objects of all bundles, also of those that are held.
func (p Plan) Objects() []client.Object {
	var objects []client.Object
	for _, bundle := range p.Bundles {
		objects = append(objects, bundle.Objects...)
	}
	return objects
}

// Deletions returns the bundles that are deleted now: none as long as a wait holds the whole plan, since what takes their place may be held.
func (p Plan) Deletions() []Tombstone {
	if slices.ContainsFunc(p.Waits, func(wait Wait) bool { return wait.HoldsAll }) {
		return nil
	}
	return p.Tombstones
}

// held returns the bundles that keep their revision, with the reason.
func (p Plan) held() map[Key]string {
	held := map[Key]string{}
	add := func(key Key, wait Wait) {
		if held[key] == "" {
			held[key] = wait.Name + ": " + wait.Reason
		}
	}
	for _, wait := range p.Waits {
		for _, key := range wait.Holds {
			add(key, wait)
		}
		if wait.HoldsAll {
			for _, bundle := range p.Bundles {
				if !slices.Contains(wait.Repairs, bundle.Key) {
					add(bundle.Key, wait)
				}
			}
		}
	}
	return held
}

// Validate returns what contradicts itself in a plan. Such a plan is not emitted at all.
func (p Plan) Validate() error {
	var errs []error
	seen := map[Key]string{}
	note := func(key Key, what string) {
		if before := seen[key]; before != "" {
			errs = append(errs, fmt.Errorf("the plan has %s as %s and as %s", key, before, what))
		}
		seen[key] = what
	}
	for _, bundle := range p.Bundles {
		note(bundle.Key, "a bundle")
	}
	for _, tombstone := range p.Tombstones {
		note(tombstone.Key, "a tombstone")
	}
	for _, wait := range p.Waits {
		for _, key := range wait.Holds {
			if seen[key] == "a tombstone" {
				errs = append(errs, fmt.Errorf("the wait %s holds %s, which the plan deletes", wait.Name, key))
			}
		}
	}
	if _, err := writeOrder(p.Bundles); err != nil {
		errs = append(errs, err)
	}
	if err := checkDeletion(p.Bundles); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
