package extensionvalidation

import (
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// etcdSpec has the fields whose rules hold for every version of etcd-druid: the number of replicas cannot be negative,
// and quantities, durations and schedules must be parseable. All other rules are left to the CustomResourceDefinition of
// etcd-druid.
type etcdSpec struct {
	Replicas        int32 `json:"replicas"`
	StorageCapacity any   `json:"storageCapacity"`
	Etcd            struct {
		Quota                   any     `json:"quota"`
		DefragmentationSchedule string  `json:"defragmentationSchedule"`
		HeartbeatDuration       *string `json:"heartbeatDuration"`
	} `json:"etcd"`
	Backup struct {
		FullSnapshotSchedule     string  `json:"fullSnapshotSchedule"`
		DeltaSnapshotPeriod      *string `json:"deltaSnapshotPeriod"`
		DeltaSnapshotMemoryLimit any     `json:"deltaSnapshotMemoryLimit"`
		GarbageCollectionPeriod  *string `json:"garbageCollectionPeriod"`
	} `json:"backup"`
}

// schedule matches cron schedules of five fields, and is as lenient as any cron parser. After an optional time zone, it
// allows five words of digits, letters and the characters of lists, ranges and steps, or one word that begins with an @.
var schedule = regexp.MustCompile(`^\s*((CRON_)?TZ=\S+\s+)?(@.+|[\w*/,?#-]+(\s+[\w*/,?#-]+){4})\s*$`)

func checkEtcd(etcd *object[etcdSpec]) field.ErrorList {
	spec := &etcd.Spec
	etcdPath, backupPath := specPath.Child("etcd"), specPath.Child("backup")
	var errs field.ErrorList
	if spec.Replicas < 0 {
		errs = append(errs, field.Invalid(specPath.Child("replicas"), spec.Replicas, "must not be negative"))
	}
	for _, quantity := range []struct {
		path  *field.Path
		value any
	}{
		{specPath.Child("storageCapacity"), spec.StorageCapacity},
		{etcdPath.Child("quota"), spec.Etcd.Quota},
		{backupPath.Child("deltaSnapshotMemoryLimit"), spec.Backup.DeltaSnapshotMemoryLimit},
	} {
		_, quantityErrs := checkQuantity(quantity.path, quantity.value)
		errs = append(errs, quantityErrs...)
	}
	for _, one := range []text{
		{backupPath.Child("fullSnapshotSchedule"), spec.Backup.FullSnapshotSchedule},
		{etcdPath.Child("defragmentationSchedule"), spec.Etcd.DefragmentationSchedule},
	} {
		if strings.TrimSpace(one.value) != "" && !schedule.MatchString(one.value) {
			errs = append(errs, field.Invalid(one.path, one.value, "must be a schedule of five fields, such as 0 */24 * * *"))
		}
	}
	for _, one := range []struct {
		path  *field.Path
		value *string
	}{
		{etcdPath.Child("heartbeatDuration"), spec.Etcd.HeartbeatDuration},
		{backupPath.Child("deltaSnapshotPeriod"), spec.Backup.DeltaSnapshotPeriod},
		{backupPath.Child("garbageCollectionPeriod"), spec.Backup.GarbageCollectionPeriod},
	} {
		if one.value == nil {
			continue
		}
		if _, err := time.ParseDuration(*one.value); err != nil {
			errs = append(errs, field.Invalid(one.path, *one.value, "must be a duration with its unit, such as 5m or 12h"))
		}
	}
	return errs
}
