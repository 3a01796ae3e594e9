package shootquota

import (
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	day = 24 * time.Hour
	// maxFactor is how many times the lifetime of a Quota the annotation can extend a Shoot's life to (Gardener).
	maxFactor = 2
	// If more than massShare of the Shoots with an end would be deleted at once, and more than massCount, none is deleted.
	massShare = 0.3
	massCount = 10
)

// Decision is what to do about a Shoot.
type Decision struct {
	// Annotation is the value that the annotation with the end must have; nil to leave it as it is, empty to remove it.
	Annotation *string
	// Expires is when the Shoot is deleted, or zero.
	Expires time.Time
	// Delete is set if that has passed.
	Delete bool
}

// Decide returns what to do about a Shoot at a time. lifetime is the least spec.clusterLifetimeDays of its Quotas, or nil if none
// limits it. The annotation shoot.gardener.cloud/expiration-timestamp can shorten the lifetime, or extend it to twice its length.
// An annotation that is not a time is replaced.
func Decide(shoot *corev1beta1.Shoot, lifetime *int32, now time.Time) Decision {
	if shoot.DeletionTimestamp != nil {
		return Decision{}
	}
	given, annotated := shoot.Annotations[constants.AnnotationShootExpirationTimestamp]
	if lifetime == nil {
		if annotated {
			return Decision{Annotation: ptr.To("")}
		}
		return Decision{}
	}
	limit := time.Duration(*lifetime) * day
	expires, err := time.Parse(time.RFC3339, given)
	latest := shoot.CreationTimestamp.Add(maxFactor * limit)
	switch {
	case err != nil:
		expires = shoot.CreationTimestamp.Add(limit)
	case expires.After(latest):
		expires = latest
	}
	decision := Decision{Expires: expires, Delete: !now.Before(expires)}
	if text := expires.UTC().Format(time.RFC3339); err != nil || expires.Equal(latest) && text != given {
		decision.Annotation = &text
	}
	return decision
}

// Lifetime returns the least lifetime that Quotas allow, in days, or nil if none limits it.
func Lifetime(quotas []*corev1beta1.Quota) (least *int32) {
	for _, quota := range quotas {
		if days := quota.Spec.ClusterLifetimeDays; days != nil && (least == nil || *days < *least) {
			least = days
		}
	}
	return least
}

// Mass reports whether too many Shoots end at once: rather, a Quota or a clock is wrong. It counts by the annotations, and returns how many Shoots
// have an end, and how many of these ends have passed.
func Mass(shoots []corev1beta1.Shoot, now time.Time) (ended, all int, mass bool) {
	for i := range shoots {
		expires, err := time.Parse(time.RFC3339, shoots[i].Annotations[constants.AnnotationShootExpirationTimestamp])
		if err != nil || shoots[i].DeletionTimestamp != nil {
			continue
		}
		all++
		if !now.Before(expires) {
			ended++
		}
	}
	return ended, all, ended > massCount && float64(ended) > massShare*float64(all)
}

// Keep copies the fields on which decisions depend into a cached Shoot.
func Keep(into, shoot *corev1beta1.Shoot) {
	into.CreationTimestamp = shoot.CreationTimestamp
	into.Spec.SecretBindingName, into.Spec.CredentialsBindingName = shoot.Spec.SecretBindingName, shoot.Spec.CredentialsBindingName
	for _, name := range []string{constants.AnnotationShootExpirationTimestamp, constants.AnnotationConfirmationDeletion} {
		if value, found := shoot.Annotations[name]; found {
			if into.Annotations == nil {
				into.Annotations = map[string]string{}
			}
			into.Annotations[name] = value
		}
	}
}
