package live

import (
	"encoding/hex"
	"time"
	"unique"

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
	uid                  [16]byte // if it is a UUID, as all that an API server makes; see unusual
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
	owned                            fieldowner.Footprint
	directive                        applyoptions.Options
	finalizeAfter                    string
	finalizers, unlabelled           bool
	exempt, garbageCollectable       bool
	replicas                         Replicas
}

// unusual is what hardly any object has.
type unusual struct {
	uid          types.UID
	displaceable *fieldpath.Set
	deleting     time.Time
	health       *health.Verdict
	counted      *health.PodCount
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
	rest := unusual{displaceable: o.Displaceable, deleting: o.Deleting, health: o.Health, counted: o.counted}
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
		result.Displaceable, result.Deleting, result.Health, result.counted = rest.displaceable, rest.deleting, rest.health, rest.counted
	}
	if r.uid != ([16]byte{}) {
		result.UID = formatUUID(r.uid)
	}
	return result
}

// hyphens are the positions at which a UUID has a hyphen.
var hyphens = [...]int{8, 13, 18, 23}

// parseUUID reads a UUID in the form in which an API server writes it. It does not take any that formatUUID would write otherwise, and not
// the one that is zero, which stands for none.
func parseUUID(text types.UID) (uuid [16]byte, ok bool) {
	if len(text) != 36 {
		return uuid, false
	}
	var digits [32]byte
	n := 0
	for i := range len(text) {
		isHyphen := i == hyphens[0] || i == hyphens[1] || i == hyphens[2] || i == hyphens[3]
		if isHyphen != (text[i] == '-') || 'A' <= text[i] && text[i] <= 'F' {
			return uuid, false
		}
		if !isHyphen {
			digits[n] = text[i]
			n++
		}
	}
	if _, err := hex.Decode(uuid[:], digits[:]); err != nil || uuid == ([16]byte{}) {
		return [16]byte{}, false
	}
	return uuid, true
}

func formatUUID(uuid [16]byte) types.UID {
	text := make([]byte, 0, 36)
	for i, part := range [][]byte{uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return types.UID(text)
}
