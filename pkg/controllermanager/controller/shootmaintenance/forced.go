package shootmaintenance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	// AnnotationConfirm is an annotation of CloudProfiles and NamespacedCloudProfiles. Its value is a digest of their versions: updates that
	// these versions force are executed, even of many Shoots at once.
	AnnotationConfirm = "confirmation.gardener.cloud/forced-updates"
	// settling is how long after a change of a profile it is checked how many Shoots the change forces to update.
	settling = 24 * time.Hour
	// If more than massShare of the Shoots of a profile are forced to update, and at least massCount, they wait.
	massShare = 0.1
	massCount = 3
	// If failureCount Shoots fail after a forced update, those of the others wait.
	failureCount = 3
)

// mass is how many Shoots of a profile are forced to update, and how many fail after a forced update of the last day.
type mass struct {
	forced, failed, all int
}

// massOf counts the Shoots that use a profile.
func massOf(shoots []*corev1beta1.Shoot, profile *corev1beta1.CloudProfileSpec, now time.Time) mass {
	var found mass
	for _, shoot := range shoots {
		if shoot.DeletionTimestamp != nil {
			continue
		}
		found.all++
		if isForced(shoot, profile, now) {
			found.forced++
		}
		if hasFailed(shoot, now) {
			found.failed++
		}
	}
	return found
}

// hasFailed reports whether the last operation of a Shoot fails that had a forced update within the last day.
func hasFailed(shoot *corev1beta1.Shoot, now time.Time) bool {
	maintained, last := shoot.Status.LastMaintenance, shoot.Status.LastOperation
	if maintained == nil || last == nil || now.Sub(maintained.TriggeredTime.Time) > settling || !strings.Contains(maintained.Description, forcedUpdate) {
		return false
	}
	return last.State == corev1beta1.LastOperationStateFailed || last.State == corev1beta1.LastOperationStateError
}

// change is the last change of the versions of a profile.
type change struct {
	// profile is the kind and the name of the profile.
	profile string
	at      time.Time
	// digest is that of the versions, and confirmed the value of the annotation of the profile.
	digest, confirmed string
}

// hold returns why forced updates of the Shoots of a profile have to wait at a time, or an empty string. A wrong expiration date would
// otherwise update a fleet within a day.
func (c *change) hold(found mass, now time.Time) string {
	if found.failed >= failureCount {
		return fmt.Sprintf("%d Shoots of the %s fail after a forced update in the last 24 hours: repair them first", found.failed, c.profile)
	}
	few := found.forced < massCount || float64(found.forced) <= massShare*float64(found.all)
	if few || now.Sub(c.at) >= settling || c.confirmed == c.digest {
		return ""
	}
	return fmt.Sprintf("%d of %d Shoots of the %s must be updated since its versions were changed at %s; this continues at %s, or when the %s is annotated with %s=%s",
		found.forced, found.all, c.profile, c.at.UTC().Format(time.RFC3339), c.at.Add(settling).UTC().Format(time.RFC3339), c.profile, AnnotationConfirm, c.digest)
}

// digestOf returns a digest of the versions of a profile, as 16 hexadecimal digits.
func digestOf(profile *corev1beta1.CloudProfileSpec) (string, error) {
	text, err := json.Marshal([]any{profile.Kubernetes, profile.MachineImages})
	if err != nil {
		return "", fmt.Errorf("encode the versions of a profile: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// changeOf returns when the versions of a profile were changed last, as its managed fields show. Managers also change their time when
// they change other fields: the result may be too late. Without managed fields, it is the present.
func changeOf(meta *metav1.ObjectMeta, now time.Time) time.Time {
	latest := meta.CreationTimestamp.Time
	if len(meta.ManagedFields) == 0 {
		return now
	}
	for _, entry := range meta.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(latest) && ownsVersions(entry.FieldsV1) {
			latest = entry.Time.Time
		}
	}
	return latest
}

// ownsVersions reports whether managed fields include versions. Fields that cannot be read count.
func ownsVersions(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	var owned struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if err := json.Unmarshal(fields.GetRawBytes(), &owned); err != nil {
		return true
	}
	_, kubernetes := owned.Spec["f:kubernetes"]
	_, images := owned.Spec["f:machineImages"]
	return kubernetes || images
}
