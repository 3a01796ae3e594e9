package live

import (
	"strings"
	"time"
	"unique"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
)

// held are the observations of the objects of one kind. It holds each in a third of the memory of an Observation, as there is one for each
// object for as long as the process lives.
type held map[types.NamespacedName]*record

// get returns a copy of an object's observation, nil if there is none.
func (h held) get(key types.NamespacedName) *Observation {
	found, known := h[key]
	if !known {
		return nil
	}
	observation := found.observation()
	return &observation
}

func (h held) put(key types.NamespacedName, observation *Observation) { h[key] = recordOf(observation) }

// record is an Observation divided into what each object has for itself, what many objects have in common, and what hardly any object has.
type record struct {
	uid                  uuid.UUID // if it is a UUID, as all that an API server makes; see unusual
	version, ownedDigest string
	generation, seen     int64
	origin               unique.Handle[string]
	common               unique.Handle[common]
	unusual              *unusual
	examined, borrowed   bool
}

// common is what many objects have in common.
type common struct {
	managedBy, formerApplier, writer string
	labels, annotations              Keys
	owned                            fieldowner.FieldFilter
	directive                        applyoptions.Options
	finalizeAfter                    string
	finalizers, unlabelled           bool
	exempt, garbageCollectable       bool
	replicas                         Replicas
}

// unusual is what hardly any object has.
type unusual struct {
	uid        types.UID
	candidates *fieldpath.Set
	deleting   time.Time
	health     *health.Verdict
	counted    *health.PodCount
}

func recordOf(o *Observation) *record {
	result := &record{
		version: o.ResourceVersion, ownedDigest: o.OwnedDigest, generation: o.Generation, seen: o.Seen, origin: unique.Make(o.Origin),
		examined: o.Examined, borrowed: o.borrowed,
		common: unique.Make(common{
			managedBy: o.ManagedBy, formerApplier: o.FormerApplier, writer: o.Writer, labels: o.Labels, annotations: o.Annotations,
			owned: o.Owned, directive: o.Directive, finalizeAfter: o.FinalizeAfter, finalizers: o.Finalizers, unlabelled: o.Unlabelled,
			exempt: o.Exempt, garbageCollectable: o.GarbageCollectable, replicas: o.Replicas,
		}),
	}
	rest := unusual{candidates: o.TakeOverCandidates, deleting: o.Deleting, health: o.Health, counted: o.counted}
	uid, isUUID := parseUUID(o.UID)
	if result.uid = uid; !isUUID {
		rest.uid = o.UID
	}
	if rest != (unusual{}) {
		result.unusual = &rest
	}
	return result
}

func (r *record) observation() Observation {
	common := r.common.Value()
	result := Observation{
		ResourceVersion: r.version, Origin: r.origin.Value(), OwnedDigest: r.ownedDigest,
		Generation: r.generation, Seen: r.seen, Examined: r.examined, borrowed: r.borrowed,
		ManagedBy: common.managedBy, FormerApplier: common.formerApplier, Writer: common.writer, Labels: common.labels,
		Annotations: common.annotations, Owned: common.owned, Directive: common.directive, FinalizeAfter: common.finalizeAfter,
		Finalizers: common.finalizers, Unlabelled: common.unlabelled, Exempt: common.exempt, GarbageCollectable: common.garbageCollectable,
		Replicas: common.replicas,
	}
	if rest := r.unusual; rest != nil {
		result.UID = rest.uid
		result.TakeOverCandidates, result.Deleting, result.Health, result.counted = rest.candidates, rest.deleting, rest.health, rest.counted
	}
	if r.uid != uuid.Nil {
		result.UID = types.UID(r.uid.String())
	}
	return result
}

// parseUUID reads a UUID in the form in which an API server writes it. It does not take any that uuid.UUID would write otherwise, and not the one
// that is zero, which stands for none.
func parseUUID(text types.UID) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(string(text))
	const length = 36 // in other forms, which uuid.Parse takes as well, it is longer or shorter
	if err != nil || id == uuid.Nil || len(text) != length || strings.ToLower(string(text)) != string(text) {
		return uuid.Nil, false
	}
	return id, true
}
