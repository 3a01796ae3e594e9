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

// held contains the observations of the objects of one kind. It stores each one in a third of the memory of an
// Observation, because there is one for each object during the whole life of the process.
type held map[types.NamespacedName]*record

// get returns a copy of the observation of an object. It is nil if there is none.
func (h held) get(key types.NamespacedName) *Observation {
	found, known := h[key]
	if !known {
		return nil
	}
	observation := found.observation()
	return &observation
}

func (h held) put(key types.NamespacedName, observation *Observation) { h[key] = recordOf(observation) }

// record is an Observation split into the values that are specific to an object, values that many objects have in
// common, and values that are rarely set.
type record struct {
	uid                  uuid.UUID // UIDs of API servers are UUIDs; see rare for others
	version, ownedDigest string
	generation, seen     int64
	origin               unique.Handle[string]
	common               unique.Handle[common]
	rare                 *rare
	examined, borrowed   bool
}

// common contains the values that many objects have in common.
type common struct {
	managedBy, formerApplier, writer string
	labels, annotations              Keys
	owned                            fieldowner.FieldFilter
	directive                        applyoptions.Options
	finalizeAfter                    string
	finalizers, unlabelled           bool
	exempt, garbageCollectable       bool
	finished                         bool
	replicas                         Replicas
}

// rare contains the values that are rarely set.
type rare struct {
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
			finished: o.Finished,
		}),
	}
	rest := rare{candidates: o.TakeOverCandidates, deleting: o.Deleting, health: o.Health, counted: o.counted}
	uid, isUUID := parseUUID(o.UID)
	if result.uid = uid; !isUUID {
		rest.uid = o.UID
	}
	if rest != (rare{}) {
		result.rare = &rest
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
		Replicas: common.replicas, Finished: common.finished,
	}
	if rest := r.rare; rest != nil {
		result.UID = rest.uid
		result.TakeOverCandidates, result.Deleting, result.Health, result.counted = rest.candidates, rest.deleting, rest.health, rest.counted
	}
	if r.uid != uuid.Nil {
		result.UID = types.UID(r.uid.String())
	}
	return result
}

// parseUUID parses a UUID in the notation of API servers. It rejects UUIDs that uuid.UUID would format in another way,
// and the zero UUID, which stands for none.
func parseUUID(text types.UID) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(string(text))
	const length = 36 // uuid.Parse also accepts longer and shorter notations
	if err != nil || id == uuid.Nil || len(text) != length || strings.ToLower(string(text)) != string(text) {
		return uuid.Nil, false
	}
	return id, true
}
