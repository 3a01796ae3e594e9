// Package restoredgarden recognizes Shoots that the garden shows in an earlier state than the Seed has already reached, because etcd of
// the garden was restored from a backup. gardenlet leaves such Shoots alone until a person has decided: otherwise it would downgrade a
// control plane, build one that was deleted, or a second one next to that in another Seed. Gardener has no such protection.
package restoredgarden

import (
	"fmt"
	"strconv"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Reason is what has happened in the Seed to a Shoot that the garden may not know any more.
type Reason string

const (
	// Changed is the reason of a Shoot that was reconciled in a later generation.
	Changed Reason = "changed"
	// Left is the reason of a Shoot whose control plane has moved to another Seed.
	Left Reason = "left"
	// Deleted is the reason of a Shoot whose control plane was deleted.
	Deleted Reason = "deleted"
)

// Record is what the Seed remembers of a Shoot.
type Record struct {
	Reason Reason
	// Generation of the Shoot at that time.
	Generation int64
	// Held is set once the garden has shown an earlier state.
	Held bool
}

// Facts are what the garden and the Seed say about a Shoot for which this Seed is responsible.
type Facts struct {
	// Generation of the Shoot in the garden, and whether it is being deleted there.
	Generation int64
	Deleting   bool
	// Accepted is the value of the annotation that accepts the earlier state.
	Accepted string
	// Emitted is the generation of the last emission into the Seed, 0 if it is not known.
	Emitted int64
	// Record is nil if the Seed remembers nothing.
	Record *Record
}

// Decision is what follows from the facts.
type Decision struct {
	// Hold is why the Shoot is left alone, empty if it is not.
	Hold string
	// Record is what the Seed remembers from now on, nil for nothing.
	Record *Record
	// Answered is set if the annotation has had its effect and can be removed.
	Answered bool
}

// Decide decides whether a Shoot is left alone. It is pure. A deletion goes on: it cannot be revoked, so it was known when the backup was
// taken. It is held only for a Shoot that has left, because it would also delete the backups of the control plane in the other Seed. A Shoot
// that was recognized once stays held, even if users change it so often that its generation catches up.
func Decide(f Facts) Decision {
	behind := f.Record
	switch {
	case behind != nil && behind.Reason == Left && !behind.Held && f.Generation > behind.Generation:
		return Decision{Record: behind, Answered: f.Accepted != ""} // it has come back
	case behind != nil && behind.Reason == Left:
	case f.Deleting:
		return Decision{Record: behind}
	case behind == nil && f.Emitted > f.Generation:
		behind = &Record{Reason: Changed, Generation: f.Emitted}
	}
	if behind == nil {
		return Decision{Answered: f.Accepted != ""}
	}
	if f.Accepted == strconv.FormatInt(behind.Generation, 10) {
		return Decision{} // the annotation is needed until the earlier generation has been emitted
	}
	held := Record{behind.Reason, behind.Generation, true}
	return Decision{Record: &held, Hold: held.explain(f.Generation)}
}

// explain returns why a Shoot is left alone, and what to do.
func (r Record) explain(generation int64) string {
	what := map[Reason]string{
		Changed: fmt.Sprintf("this Seed has already reconciled its generation %d, and the garden shows the generation %d", r.Generation, generation),
		Left:    fmt.Sprintf("its control plane has left this Seed in its generation %d, and the garden still shows it here", r.Generation),
		Deleted: fmt.Sprintf("this Seed has deleted it in its generation %d", r.Generation),
	}[r.Reason]
	return fmt.Sprintf("the garden shows an earlier state of the Shoot: %s. Nothing is changed until the Shoot is as it should be and annotated with %s=%d: "+
		"see docs/garden-restore.md", what, constants.AnnotationShootAcceptEarlierState, r.Generation)
}
