package snapshot

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// root is the directory of this format in a store.
const root = "v1/"

// Kind is the kind of a snapshot.
type Kind string

// The kinds of snapshots.
const (
	// KindFull contains the whole database.
	KindFull Kind = "full"
	// KindFinal is a full snapshot after which the cluster does not change any more.
	KindFinal Kind = "final"
	// KindDelta contains the changes of a range of revisions.
	KindDelta Kind = "delta"
)

// Object is a snapshot in a store, as described by its name.
type Object struct {
	// Key is the name of the object in the store.
	Key string `json:"key"`
	// Epoch is the number of the epoch to which the snapshot belongs.
	Epoch int  `json:"epoch"`
	Kind  Kind `json:"kind"`
	// First and Last are the revisions of the changes in a delta snapshot. A full snapshot contains all changes up to Last, which is
	// also its First, and may contain later ones.
	First int64 `json:"firstRevision"`
	Last  int64 `json:"lastRevision"`
	// Created is when the snapshot was begun, with a resolution of milliseconds.
	Created time.Time `json:"created"`
	// Size is the size of the object in bytes.
	Size int64 `json:"size"`
}

// IsFull reports whether the object contains the whole database.
func (o Object) IsFull() bool { return o.Kind != KindDelta }

// key returns the name of an object. Names sort by kind and revision.
func (o Object) key() string {
	return fmt.Sprintf("%s%08d/%s-%020d-%020d-%013d", root, o.Epoch, o.Kind, o.First, o.Last, o.Created.UnixMilli())
}

var objectName = regexp.MustCompile(`^` + root + `(\d{8,9})/(full|final|delta)-(\d{20})-(\d{20})-(\d{13,14})$`)

// parseKey returns the snapshot with a name. It is false for names of other objects.
func parseKey(key string) (Object, bool) {
	parts := objectName.FindStringSubmatch(key)
	if parts == nil {
		return Object{}, false
	}
	var numbers [4]int64
	for i, text := range []string{parts[1], parts[3], parts[4], parts[5]} {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Object{}, false
		}
		numbers[i] = number
	}
	o := Object{
		Key: key, Epoch: int(numbers[0]), Kind: Kind(parts[2]), First: numbers[1], Last: numbers[2], Created: time.UnixMilli(numbers[3]).UTC(),
	}
	return o, o.First <= o.Last
}

// Chain is a full snapshot with the delta snapshots that continue it.
type Chain struct {
	Full   Object   `json:"full"`
	Deltas []Object `json:"deltas"`
	// Last is the revision up to which the chain contains all changes.
	Last int64 `json:"lastRevision"`
	// Missing is the first revision that is missing although later ones are stored; 0 for none.
	Missing int64 `json:"missingRevision,omitempty"`
}

// Chains returns a chain for each full snapshot of an epoch, the newest first. It is pure.
func Chains(objects []Object, epoch int) []Chain {
	var fulls, deltas []Object
	for _, object := range objects {
		switch {
		case object.Epoch != epoch:
		case object.IsFull():
			fulls = append(fulls, object)
		default:
			deltas = append(deltas, object)
		}
	}
	slices.SortFunc(fulls, func(a, b Object) int { return cmp.Or(cmp.Compare(b.Last, a.Last), b.Created.Compare(a.Created)) })
	slices.SortFunc(deltas, func(a, b Object) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last)) })
	chains := make([]Chain, 0, len(fulls))
	for _, full := range fulls {
		chain := Chain{Full: full, Last: full.Last}
		for _, delta := range deltas {
			switch {
			case delta.Last <= chain.Last: // the chain contains it already
			case delta.First > chain.Last+1:
				if chain.Missing == 0 {
					chain.Missing = chain.Last + 1
				}
			case chain.Missing == 0:
				chain.Deltas = append(chain.Deltas, delta)
				chain.Last = delta.Last
			}
		}
		chains = append(chains, chain)
	}
	return chains
}
