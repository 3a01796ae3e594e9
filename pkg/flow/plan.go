package flow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plan describes what should exist now. It is the result of a pure function.
type Plan struct {
	// Bundles that should exist. A bundle that the plan does not mention is kept unchanged.
	Bundles []Bundle
	// Waits are the parts that cannot be computed or must not be changed yet.
	Waits []Wait
	// Keeps are bundles that are not wanted any more, but must stay as they are, for example because something still uses
	// them. The plan is settled without them. Nothing happens if one does not exist.
	Keeps []Key
	// Tombstones are the bundles to delete. Nothing is deleted without one.
	Tombstones []Tombstone
	// Tasks are the pending tasks, in order.
	Tasks []Task
	// Next is when the plan must be computed again even if no input changes; zero for never.
	Next time.Time
	// Inputs is a digest of what the owner's user declares, and of observations: see [InputsDigest]. A change of it is
	// emitted immediately. Other changes are paced, if there is a [Pacer].
	Inputs string
	// Program is a digest of what operators declare for many owners, such as images and the Seed; empty if there is
	// nothing. It counts as a part of the version of the program.
	Program string
	// Generation of the owner, which [LastGeneration] returns after the emission; 0 if nothing needs it. It has no effect by itself: every
	// change of it also changes Inputs.
	Generation int64
	// Window is the maintenance window in which code changes may be emitted; nil for always.
	Window *Window
	// Hold is the reason why nothing but the repair of deleted bundles is emitted; empty for none.
	Hold string
	// AtOnce emits code changes without pacing, because nothing runs or an operation is in progress.
	AtOnce bool
	// Deleting prevents the creation of bundles that do not exist, except for those in Recreated: bundles that existed, and
	// without which nothing else can be deleted.
	Deleting  bool
	Recreated []Key
	// Gone is how many bundles of an owner that is being deleted do not exist any more. They count for its progress.
	Gone int
}

// Wait is a condition that a plan waits for.
type Wait struct {
	// Name identifies the wait, such as "infrastructure-ready".
	Name string
	// Reason describes the condition as a sentence for users.
	Reason string
	// Holds are the bundles that keep their current revision during the wait. Bundles that do not exist are not created.
	Holds []Key
	// HoldsAll holds all bundles of the plan except those in Repairs.
	HoldsAll bool
	// Repairs are deleted bundles that are emitted again although the rest of the plan is held.
	Repairs []Key
	// Deadline is when the wait becomes an error; zero for never.
	Deadline time.Time
	// Code of that error; empty for none.
	Code corev1beta1.ErrorCode
}

// Tombstone requests the deletion of a bundle.
type Tombstone struct {
	Key
	// Confirm annotates the objects of the bundle with AnnotationConfirmDeletion, in a revision that is applied before the
	// deletion.
	Confirm bool
	// Force also adds AnnotationForceDeletion. Extensions then do not call the infrastructure.
	Force bool
	// Migrate is when extensions were asked to give up the objects of the bundle, which move to another seed; zero if they are
	// deleted. The confirmation then also requests the operation migrate with this time. Without the operation, an extension
	// would delete what the objects stand for.
	Migrate time.Time
	// Kept is why the bundle must not be deleted yet, although its objects confirm that; empty if it may be deleted.
	Kept string
	// After are the bundles that must be deleted first. Nil stands for the order that the revision of the bundle records:
	// see [Bundle.DeleteAfter].
	After []Key
	// Release gives up the bundle without deleting its objects. Confirm and Force have no effect, and there is no order except
	// that of After. A bundle that was never applied is deleted.
	Release Release
}

// Window is a maintenance window for code changes.
type Window struct {
	// Open reports whether the window is open now.
	Open bool
	// Opens is the start of the next window.
	Opens time.Time
}

// NextAt returns when the plan must be computed again even if no input changes; zero for never. Times in the past are
// ignored.
func (p Plan) NextAt(now time.Time) time.Time {
	next := earliest(now, time.Time{}, p.Next)
	for _, wait := range p.Waits {
		next = earliest(now, next, wait.Deadline)
	}
	return next
}

// earliest returns the earlier of two times. b counts only if it is in the future. Zero means never.
func earliest(now, a, b time.Time) time.Time {
	if !b.After(now) || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// Objects returns the objects of all bundles, including held ones.
func (p Plan) Objects() []client.Object {
	var objects []client.Object
	for _, bundle := range p.Bundles {
		objects = append(objects, bundle.Objects...)
	}
	return objects
}

// Deletions returns the bundles to delete now. It returns none while a wait holds the whole plan, because their
// replacements might be held.
func (p Plan) Deletions() []Tombstone {
	if slices.ContainsFunc(p.Waits, func(wait Wait) bool { return wait.HoldsAll }) {
		return nil
	}
	return p.Tombstones
}

// held returns the bundles that keep their current revision, with the reason.
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

// Validate returns an error if the plan is inconsistent. Such a plan is not emitted.
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
	for _, key := range p.Keeps {
		note(key, "a bundle to keep")
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
	if err := checkDeletion(p.Bundles, p.Tombstones); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
