package criticalcomponents

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

const (
	actionWait    = "Wait"
	actionRelease = "RemoveTaint"
)

// createEvent creates an Event about a node, and reports whether that succeeded. It does not use client-go's recorder,
// which merges Events that differ only in their note and keeps the first note. Users would then see what was missing
// when the node joined, not what is missing now.
func (r *Reconciler) createEvent(ctx context.Context, node *corev1.Node, eventType, reason, action, note string) bool {
	err := r.Client.Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: node.Name + "-"},
		EventTime:           metav1.NewMicroTime(r.Clock.Now()),
		ReportingController: ReporterName, ReportingInstance: r.instance,
		Type: eventType, Reason: reason, Action: action, Note: conditiontext.ForEvent(note),
		Regarding: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
		},
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not create an Event", "reason", reason, "note", note)
	}
	return err == nil
}
