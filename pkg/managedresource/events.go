package managedresource

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// actionEvent is the action of the Events on ManagedResources.
const actionEvent = "Reconcile"

// Reasons of Events on ManagedResources, beside those of conditions. What a change of a manifest does has no Event: conditions
// tell, and an Event costs as much as an object.
//
// +events:on=ManagedResource
const (
	eventCorrected = "Corrected"     // Normal: objects were put back that somebody else had changed or deleted
	eventPruned    = "Pruned"        // Normal: objects were deleted because they left the manifests
	eventTakenOver = "TakenOver"     // Normal: objects were taken over from a field manager that had applied them for a ManagedResource; it is named
	eventDropped   = "UnknownFields" // Warning: objects were applied without fields that the API server does not know; they are named
	eventContested = "Contested"     // Warning: an object was put back once too often; the field manager is named
)

// emitEvents tells in Events what was done that nobody who looks at the manifests expects, and all in the log.
func (p *pass) emitEvents(ctx context.Context) {
	done, takenOver := map[string][]object.Ref{}, map[string][]object.Ref{}
	for _, change := range p.changes {
		if reason := effectOf(change); reason != "" {
			done[reason] = append(done[reason], change.Ref)
		}
		if change.takenFrom != "" {
			takenOver[change.takenFrom] = append(takenOver[change.takenFrom], change.Ref)
		}
		if change.startsFight {
			p.Recorder.Eventf(p.mr, nil, corev1.EventTypeWarning, eventContested, actionEvent, "%s",
				conditiontext.ForEvent(change.fight.describe(change.Ref)+"; it is put back ever more slowly"))
		}
	}
	for manager, objects := range takenOver {
		text := conditiontext.ForEvent(fmt.Sprintf("all fields that field manager %q had applied to %s", manager, countedNames(objects)))
		log.FromContext(ctx).Info("Took over fields", "manager", manager, "what", text)
		p.Recorder.Eventf(p.mr, nil, corev1.EventTypeNormal, eventTakenOver, actionEvent, "Took over %s", text)
	}
	for reason, objects := range done {
		text := conditiontext.ForEvent(countedNames(objects))
		log.FromContext(ctx).Info("Changed objects in the target cluster", "what", reason, "objects", text)
		if reason == eventCorrected || reason == eventPruned && p.mr.DeletionTimestamp == nil {
			p.Recorder.Eventf(p.mr, nil, corev1.EventTypeNormal, reason, actionEvent, "%s %s", reason, text)
		}
	}
}

// effectOf names what a change did to an object; empty if nothing.
func effectOf(change change) string {
	applied := change.action == actionCreate || change.action == actionApply && !change.unchanged
	switch {
	case change.err != nil:
		return ""
	case applied && change.drift && !change.fight.active():
		return eventCorrected
	case change.action == actionCreate:
		return "Created"
	case applied:
		return "Updated"
	case change.action == actionDelete:
		return eventPruned
	}
	return ""
}
