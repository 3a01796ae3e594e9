package target

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// warningsTimeout bounds the reading of Events, which are for information only.
	warningsTimeout = 5 * time.Second
	// mostWarnings bounds what is read of one object's Events.
	mostWarnings = 200
)

// Warnings returns the Events of type Warning about one object, in no certain order.
func (o *Objects) Warnings(ctx context.Context, ref object.Ref, uid types.UID) ([]corev1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, warningsTimeout)
	defer cancel()
	list, err := o.core.Events(ref.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.SelectorFromSet(fields.Set{
			"involvedObject.uid": string(uid),
			"type":               corev1.EventTypeWarning,
		}).String(),
		Limit: mostWarnings,
	})
	if err != nil {
		return nil, fmt.Errorf("list the Events of %s: %w", ref, err)
	}
	return list.Items, nil
}
