package etcd

import (
	"context"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Numbers of changes since the last full snapshot (etcd-druid): at which the backups are compacted, and at which the members take a
// full snapshot instead.
const (
	defaultEventsThreshold int64 = 1_000_000
	defaultFullThreshold   int64 = 3_000_000
)

const (
	// annotationCompacts on the Job is the revision that the backups had when it was created.
	annotationCompacts = "druid.gardener.cloud/compacts-to-revision"
	// compactionDeadline limits the time of a compaction (etcd-druid), and compactionRetry is the time after a failed one.
	compactionDeadline = 3 * time.Hour
	compactionRetry    = time.Hour
)

// Reasons of the condition LastSnapshotCompactionSucceeded.
const (
	reasonCompacted        = "PodSucceeded"
	reasonCompactionFailed = "PodFailed"
)

// CompactionKey returns the name of the ManagedResource with the Job that compacts the backups of an Etcd.
func CompactionKey(etcd types.NamespacedName) flow.Key {
	return flow.Key{Namespace: etcd.Namespace, Name: etcd.Name + "-compactor"}
}

// uncompacted returns the number of changes in the backups since the last full snapshot or compaction.
func (in Inputs) uncompacted() int64 {
	since := in.FullSnapshot.Revision
	if entry, found := in.Ledger.Entry(entryCompacted); found {
		if revision, err := strconv.ParseInt(entry.Value, 10, 64); err == nil {
			since = max(since, revision)
		}
	}
	return in.DeltaSnapshot.Revision - since
}

// addCompaction adds the Job that compacts the backups if they have many changes. It runs to its end whatever changes meanwhile, and
// is deleted then. A failed one stays for some time before the next one.
func (in Inputs) addCompaction(plan *flow.Plan, invalid bool) {
	key, settings := CompactionKey(keyOf(in.Etcd)), in.Etcd.Spec.Backup.SnapshotCompaction
	switch job := in.Compactor; {
	case !in.Compacting:
		wanted := settings != nil && in.store() != nil && !invalid && in.StoreSecret.Missing == "" && in.Etcd.Spec.Replicas > 0
		if wanted && in.uncompacted() >= ptr.Deref(settings.EventsThreshold, defaultEventsThreshold) {
			plan.Bundles = append(plan.Bundles, in.bundle(key, []client.Object{in.compactor(key.Name, settings)}))
		}
	case job == nil, jobState(job) == jobRunning:
		plan.Keeps = append(plan.Keeps, key)
	default:
		if at, _ := failureOf(job); in.Now.Before(at.Add(compactionRetry)) {
			plan.Keeps, plan.Next = append(plan.Keeps, key), requeue.Earlier(plan.Next, at.Add(compactionRetry))
			return
		}
		plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key})
	}
}

// compactor returns the Job that compacts the backups.
func (in Inputs) compactor(name string, settings *druidv1alpha1.SnapshotCompactionSpec) *batchv1.Job {
	volumes, mounts := storeVolumes(in.store(), in.StoreSecret, "", directoryBackup, directoryBuckets)
	arguments := append([]string{"compact"}, storeArguments("", locationOf(in.store(), in.StoreSecret, directoryBackup, directoryBuckets))...)
	arguments = append(arguments, "--temporary-directory="+directoryTemporary, "--compression="+in.memberBackup().Compression)
	pod := jobPod("compact-backup", in.image(), arguments, volumes, mounts)
	pod.RestartPolicy = corev1.RestartPolicyNever
	if settings.Resources != nil {
		pod.Containers[0].Resources = *settings.Resources.DeepCopy()
	}
	job := &batchv1.Job{ObjectMeta: in.meta(componentCompaction, name), Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0), ActiveDeadlineSeconds: ptr.To(int64(compactionDeadline.Seconds())),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: in.meta(componentCompaction, name).Labels}, Spec: pod},
	}}
	for key, value := range in.Etcd.Spec.Labels {
		if _, own := job.Spec.Template.Labels[key]; !own && !in.selects(key) {
			job.Spec.Template.Labels[key] = value // the network policies of members
		}
	}
	job.Annotations = map[string]string{annotationCompacts: strconv.FormatInt(in.DeltaSnapshot.Revision, 10)}
	return job
}

// selects reports whether the Etcd selects its members by a label.
func (in Inputs) selects(label string) bool {
	_, found := in.Etcd.Spec.Selector.MatchLabels[label]
	return found
}

// compacted returns the condition LastSnapshotCompactionSucceeded: of the Job, or what it was after the last one.
func (in Inputs) compacted() (statement, bool) {
	if job := in.Compactor; job != nil {
		switch _, why := failureOf(job); jobState(job) {
		case jobSucceeded:
			return statement{druidv1alpha1.ConditionTrue, reasonCompacted,
				"The backups are compacted up to the revision " + job.Annotations[annotationCompacts] + "."}, true
		case jobFailed:
			return statement{druidv1alpha1.ConditionFalse, reasonCompactionFailed, "The backups could not be compacted: " + why}, true
		}
	}
	before := conditionOf(in.Etcd.Status, druidv1alpha1.ConditionTypeLastSnapshotCompactionSucceeded)
	return statement{before.Status, before.Reason, before.Message}, before.Type != ""
}

// observeCompaction reads the Job that compacts the backups.
func (r *Reconciler) observeCompaction(ctx context.Context, in *Inputs) error {
	key, job := CompactionKey(keyOf(in.Etcd)), &batchv1.Job{}
	name := client.ObjectKey{Namespace: key.Namespace, Name: key.Name}
	err := r.Client.Get(ctx, name, job)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Job %s: %w", key, err)
	}
	if err == nil && metav1.IsControlledBy(job, in.Etcd) {
		in.Compactor = job
	}
	err = r.Client.Get(ctx, name, &resourcesv1alpha1.ManagedResource{})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	in.Compacting = err == nil
	return nil
}
