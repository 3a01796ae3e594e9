package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// warningsTimeout limits the duration of reading Events, which are only informational.
	warningsTimeout = 5 * time.Second
	// maxWarnings limits the number of Events in one request.
	maxWarnings = 500
)

// RelatedWarnings returns the Events of type Warning about one object. For a workload, this includes those about its
// Pods and other objects whose names start with its name, except ManagedResources. The order is undefined. It takes one request.
func (o *Objects) RelatedWarnings(ctx context.Context, ref object.Ref, uid types.UID) ([]corev1.Event, error) {
	if ref.Group != appsv1.GroupName && ref.Group != batchv1.GroupName {
		return o.Warnings(ctx, ref, uid)
	}
	events, err := o.warnings(ctx, ref, fields.Set{"type": corev1.EventTypeWarning})
	return slices.DeleteFunc(events, func(event corev1.Event) bool { return !isRelated(event, ref.Name, uid) }), err
}

// isRelated returns whether an Event is about a workload or an object that belongs to it. An Event about the ManagedResource of a
// workload, which often has its name as a prefix, only repeats the workload's status.
func isRelated(event corev1.Event, name string, uid types.UID) bool {
	about := event.InvolvedObject
	return about.UID == uid || strings.HasPrefix(about.Name, name+"-") && about.Kind != "ManagedResource"
}

// Warnings returns the Events of type Warning about one object, in undefined order.
func (o *Objects) Warnings(ctx context.Context, ref object.Ref, uid types.UID) ([]corev1.Event, error) {
	return o.warnings(ctx, ref, fields.Set{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning})
}

// Namespace reads a Namespace of the target cluster.
func (o *Objects) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	ctx, cancel := context.WithTimeout(ctx, warningsTimeout)
	defer cancel()
	namespace, err := o.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Namespace %s: %w", name, err)
	}
	return namespace, nil
}

func (o *Objects) warnings(ctx context.Context, ref object.Ref, selected fields.Set) ([]corev1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, warningsTimeout)
	defer cancel()
	list, err := o.core.Events(ref.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.SelectorFromSet(selected).String(),
		Limit:         maxWarnings,
	})
	if err != nil {
		return nil, fmt.Errorf("list the Events of %s: %w", ref, err)
	}
	return list.Items, nil
}
