// Package operations has the kinds of the group operations.gardener.cloud as the API server serves them.
package operations

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operations/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/apiserver/cell"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

// lifetime is how long a bastion exists after its last heartbeat.
const lifetime = time.Hour

type bastion = *operationsv1alpha1.Bastion

// Kinds returns the kinds of the group. now returns the time of heartbeats.
func Kinds(now func() time.Time) []registry.Served {
	operations := registry.Operations{Kept: []string{constants.OperationReconcile}}
	return []registry.Served{&registry.Kind[bastion]{
		Resource: served.Of(operationsv1alpha1.SchemeGroupVersion.WithKind("Bastion")),
		New:      func() bastion { return &operationsv1alpha1.Bastion{} },
		NewList:  func() runtime.Object { return &operationsv1alpha1.BastionList{} },
		SelectableFields: func(b bastion) fields.Set {
			set := fields.Set{"spec.seedName": "", "spec.shootRef.name": b.Spec.ShootRef.Name}
			if b.Spec.SeedName != nil {
				set["spec.seedName"] = *b.Spec.SeedName
			}
			return set
		},
		IndexedField: "spec.seedName",
		Columns:      columns(now),
		CopyStatus:   func(to, from bastion) { to.Status = from.Status },
		GenerationChanges: func(updated, old bastion) bool {
			asked := operations.Requested(updated, old)
			return asked || !equality.Semantic.DeepEqual(updated.Spec, old.Spec) ||
				registry.TurnsTrue(updated, old, constants.AnnotationConfirmationForceDeletion)
		},
		Validate:       validation.ValidateBastion,
		ValidateUpdate: validation.ValidateBastionUpdate,
		ValidateStatusUpdate: func(updated, old bastion) field.ErrorList {
			return validation.ValidateBastionStatusUpdate(updated, old, now())
		},
		PrepareForCreate: func(_ context.Context, created bastion) { heartbeat(created, now()) },
		PrepareForUpdate: func(_ context.Context, updated, _ bastion) {
			if updated.Annotations[constants.AnnotationGardenerOperation] == constants.OperationKeepalive {
				delete(updated.Annotations, constants.AnnotationGardenerOperation)
				heartbeat(updated, now())
			}
		},
		PrepareForStatusUpdate: func(_ context.Context, updated, _ bastion) {
			if updated.Status.LastHeartbeatTimestamp != nil {
				heartbeat(updated, updated.Status.LastHeartbeatTimestamp.Time)
			}
		},
	}}
}

// heartbeat renews the heartbeat of a bastion.
func heartbeat(b bastion, at time.Time) {
	last, expires := metav1.NewTime(at), metav1.NewTime(at.Add(lifetime))
	b.Status.LastHeartbeatTimestamp, b.Status.ExpirationTimestamp = &last, &expires
}

func columns(now func() time.Time) []registry.Column[bastion] {
	return []registry.Column[bastion]{
		{Name: "Shoot", Description: "Name of the Shoot.", Value: func(b bastion) any { return b.Spec.ShootRef.Name }},
		{Name: "Seed", Description: "Name of the Seed.", Value: func(b bastion) any {
			if b.Spec.SeedName == nil {
				return cell.Pending
			}
			return cell.OrPending(*b.Spec.SeedName)
		}},
		{Name: "IP", Description: "Address of the bastion.", Value: func(b bastion) any {
			if b.Status.Ingress == nil {
				return cell.Pending
			}
			if b.Status.Ingress.Hostname != "" {
				return b.Status.Ingress.Hostname
			}
			return cell.OrPending(b.Status.Ingress.IP)
		}},
		{Name: "Heartbeat", Description: "Time since the last heartbeat.", Value: func(b bastion) any {
			if b.Status.LastHeartbeatTimestamp == nil {
				return "<never>"
			}
			return duration.HumanDuration(now().Sub(b.Status.LastHeartbeatTimestamp.Time)) + " ago"
		}},
		{Name: "Expires", Description: "Time until the bastion is deleted.", Value: func(b bastion) any {
			if b.Status.ExpirationTimestamp == nil {
				return cell.Pending
			}
			left := b.Status.ExpirationTimestamp.Sub(now())
			if left <= 0 {
				return "<expired>"
			}
			return duration.HumanDuration(left)
		}},
	}
}
