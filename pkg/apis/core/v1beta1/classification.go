package v1beta1

import "time"

// ClassificationAt returns the classification of a version at a time. With a lifecycle, this is the classification of the
// stage that began last. Without a lifecycle, it is the configured classification until the version expires. The default
// is supported.
func (v *ExpirableVersion) ClassificationAt(now time.Time) VersionClassification {
	if len(v.Lifecycle) > 0 {
		return v.stageAt(now)
	}
	switch {
	case v.ExpirationDate != nil && !v.ExpirationDate.After(now):
		return ClassificationExpired
	case v.Classification != nil:
		return *v.Classification
	default:
		return ClassificationSupported
	}
}

func (v *ExpirableVersion) stageAt(now time.Time) VersionClassification {
	current, since := ClassificationUnavailable, time.Time{}
	for _, stage := range v.Lifecycle {
		var start time.Time
		if stage.StartTime != nil {
			start = stage.StartTime.Time
		}
		if !start.After(now) && !start.Before(since) {
			current, since = stage.Classification, start
		}
	}
	return current
}
