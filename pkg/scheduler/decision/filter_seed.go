package decision

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// anyProvider stands for all provider types in a selector.
const anyProvider = "*"

// usable passes Seeds that take new Shoots at all.
func usable(*Question, []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	return func(seed *corev1beta1.Seed) string {
		settings := seed.Spec.Settings
		switch {
		case seed.DeletionTimestamp != nil:
			return "is being deleted"
		case settings != nil && settings.Scheduling != nil && !settings.Scheduling.Visible:
			return "is not visible for scheduling"
		case seed.Status.LastOperation == nil:
			return "is not set up yet"
		case !holds(seed, corev1beta1.SeedGardenletReady):
			return "is not ready: its condition GardenletReady is not True"
		case seed.Spec.Backup != nil && !holds(seed, corev1beta1.SeedBackupBucketsReady):
			return "is not ready: its condition BackupBucketsReady is not True"
		}
		return ""
	}
}

func holds(seed *corev1beta1.Seed, kind corev1beta1.ConditionType) bool {
	condition := corev1beta1.FindCondition(seed.Status.Conditions, kind)
	return condition != nil && condition.Status == corev1beta1.ConditionTrue
}

func selectedByProfile(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	return selected(q.Profile.Spec.SeedSelector, "CloudProfile")
}

func selectedByShoot(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	return selected(q.Shoot.Spec.SeedSelector, "Shoot")
}

// selected passes Seeds with the labels of a selector.
func selected(by *corev1beta1.SeedSelector, owner string) func(*corev1beta1.Seed) string {
	if by == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&by.LabelSelector)
	return func(seed *corev1beta1.Seed) string {
		switch {
		case err != nil:
			return "cannot be selected, because the seed selector of the " + owner + " is not valid: " + err.Error()
		case !selector.Matches(labels.Set(seed.Labels)):
			return "does not have the labels of the seed selector of the " + owner + " (selector: '" + selector.String() + "')"
		}
		return ""
	}
}

// provider passes Seeds of the provider types that the Shoot's or the CloudProfile's selector names. If none does, it passes Seeds of the provider type
// of the Shoot. A selector of the Shoot narrows that of the CloudProfile.
func provider(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	var allowed [][]string
	for _, selector := range []*corev1beta1.SeedSelector{q.Profile.Spec.SeedSelector, q.Shoot.Spec.SeedSelector} {
		if selector != nil && len(selector.ProviderTypes) > 0 {
			allowed = append(allowed, selector.ProviderTypes)
		}
	}
	if len(allowed) == 0 {
		allowed = [][]string{{q.Shoot.Spec.Provider.Type}}
	}
	return func(seed *corev1beta1.Seed) string {
		for _, types := range allowed {
			if !slices.Contains(types, anyProvider) && !slices.Contains(types, seed.Spec.Provider.Type) {
				return "does not have a matching provider for " + strconv.Quote(q.Shoot.Spec.Provider.Type)
			}
		}
		return ""
	}
}

// accessRestrictions passes Seeds that support the access restrictions of the Shoot.
func accessRestrictions(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	return func(seed *corev1beta1.Seed) string {
		for _, wanted := range q.Shoot.Spec.AccessRestrictions {
			if !slices.Contains(seed.Spec.AccessRestrictions, wanted.AccessRestriction) {
				return "does not support the access restrictions configured in the shoot specification"
			}
		}
		return ""
	}
}

// notStopped passes Seeds on which Shoots are reconciled.
func notStopped(*Question, []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	return func(seed *corev1beta1.Seed) string {
		if Stopped(seed) {
			return "has disabled shoot reconciliations currently"
		}
		return ""
	}
}

// Stopped reports whether operators stopped the reconciliation of all Shoots of a Seed.
func Stopped(seed *corev1beta1.Seed) bool {
	stopped, err := strconv.ParseBool(seed.Annotations[constants.AnnotationShootEmergencyStopReconciliations])
	return err == nil && stopped
}

// tolerated passes Seeds all of whose taints the Shoot tolerates. A taint without a value is tolerated by its key; others by key and value.
func tolerated(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	tolerates := func(taint corev1beta1.SeedTaint) bool {
		return slices.ContainsFunc(q.Shoot.Spec.Tolerations, func(toleration corev1beta1.Toleration) bool {
			return toleration.Key == taint.Key && (taint.Value == nil || toleration.Value != nil && *toleration.Value == *taint.Value)
		})
	}
	return func(seed *corev1beta1.Seed) string {
		for _, taint := range seed.Spec.Taints {
			if !tolerates(taint) {
				return "shoot does not tolerate the seed's taints"
			}
		}
		return ""
	}
}

// capacity passes Seeds that host less Shoots than they can. A Seed that reports no number has no limit.
func capacity(q *Question, _ []*corev1beta1.Seed) func(*corev1beta1.Seed) string {
	return func(seed *corev1beta1.Seed) string {
		if allocatable, limited := seed.Status.Allocatable[corev1beta1.SeedResourceShoots]; limited && int64(q.Usage[seed.Name]) >= allocatable.Value() {
			return ReasonFull
		}
		return ""
	}
}
