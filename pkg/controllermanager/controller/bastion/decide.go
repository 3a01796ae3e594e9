package bastion

import (
	"fmt"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Decision is what to do about a Bastion.
type Decision struct {
	// Delete is why the Bastion has to be deleted, or empty.
	Delete string
	// ByTime is set if the reason is a time that has passed.
	ByTime bool
	// Next is when to decide again, or zero.
	Next time.Time
}

// Decide returns what to do about a Bastion at a time. shoot is its Shoot, or nil if that does not exist. A Bastion expires at
// status.expirationTimestamp, which heartbeats move, and when it is older than maxLifetime.
func Decide(bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot, maxLifetime time.Duration, now time.Time) Decision {
	switch {
	case bastion.DeletionTimestamp != nil:
		return Decision{}
	case shoot == nil:
		return Decision{Delete: fmt.Sprintf("its Shoot %s does not exist", bastion.Spec.ShootRef.Name)}
	case shoot.DeletionTimestamp != nil:
		return Decision{Delete: fmt.Sprintf("its Shoot %s is being deleted", shoot.Name)}
	case moved(bastion.Spec.SeedName, shoot.Spec.SeedName):
		return Decision{Delete: fmt.Sprintf("its Shoot %s has moved from Seed %s to Seed %s", shoot.Name, *bastion.Spec.SeedName, *shoot.Spec.SeedName)}
	}
	end := bastion.CreationTimestamp.Add(maxLifetime)
	if !now.Before(end) {
		return Decision{ByTime: true, Delete: fmt.Sprintf("it is older than %s", maxLifetime)}
	}
	if expires := bastion.Status.ExpirationTimestamp; expires != nil {
		if !now.Before(expires.Time) {
			return Decision{ByTime: true, Delete: "it got no heartbeat and expired at " + expires.UTC().Format(time.RFC3339)}
		}
		end = requeue.Earlier(end, expires.Time)
	}
	return Decision{Next: end}
}

// moved reports whether two Seeds are known and differ.
func moved(from, to *string) bool {
	return from != nil && to != nil && *from != "" && *to != "" && *from != *to
}

// Keep copies the fields of a Shoot on which decisions depend into a cached Shoot.
func Keep(into, shoot *corev1beta1.Shoot) { into.Spec.SeedName = shoot.Spec.SeedName }
