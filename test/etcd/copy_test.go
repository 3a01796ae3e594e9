package etcd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/objectstore"
	"github.com/trellis-k8s/trellis/test/kit"
)

// inBucket returns the store of a bucket in a directory of the node.
func inBucket(bucket string) druidv1alpha1.StoreSpec {
	return druidv1alpha1.StoreSpec{Provider: ptr.To("local"), Container: ptr.To(bucket), Prefix: "entry/etcd-main"}
}

// jobOf waits for the ManagedResource of a task, and returns the Job in it.
func (w *world) jobOf(task *druidv1alpha1.EtcdCopyBackupsTask) *batchv1.Job {
	w.Helper()
	key, mr, job := etcd.CopyKey(task), &resourcesv1alpha1.ManagedResource{}, &batchv1.Job{}
	kit.EventuallyTrue(w, "the Job is emitted", func() bool { return w.get(mr, key.Name) })
	objects, err := flow.Content(w.Context(), w.client, mr)
	kit.Must(w, err)
	if len(objects) != 1 {
		w.Fatalf("the ManagedResource contains %d objects", len(objects))
	}
	kit.Must(w, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, job))
	return job
}

// runs runs the command of a Job, whose buckets are in a directory.
func (w *world) runs(job *batchv1.Job, buckets string) {
	w.Helper()
	program, err := memberBinary()
	kit.Must(w, err)
	var arguments []string
	for _, each := range job.Spec.Template.Spec.Containers[0].Args {
		arguments = append(arguments, strings.NewReplacer("/var/etcd-buckets", buckets, "/var/etcd-source-buckets", buckets).Replace(each))
	}
	output, err := exec.CommandContext(w.Context(), program, arguments...).CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// completes reports a Job as complete.
func (w *world) completes(job *batchv1.Job) {
	w.Helper()
	job.Spec.ManagedBy = ptr.To("example.org/test") // so that the controller of Jobs creates no Pods, and writes no status
	kit.Must(w, w.client.Create(w.Context(), job))
	now := metav1.Now()
	before := job.DeepCopy()
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	kit.Must(w, w.client.Status().Patch(w.Context(), job, client.MergeFrom(before)))
}

// TestBackupsMove takes the final snapshot of a cluster on request, copies the backups to another bucket with the command of a Job, and
// begins another cluster with them. It has all that was acknowledged, and its revisions are higher. Without backups it does not begin.
func TestBackupsMove(t *testing.T) {
	source := newWorld(t)
	_, stop := source.startOperator("v1")
	defer stop()
	s := newSaved(source)
	buckets := filepath.Dir(s.bucket)
	s.put("before", "1")
	last := s.put("last", "2")
	const request = "final/1"
	source.change(func(e *druidv1alpha1.Etcd) { e.Annotations[etcd.AnnotationSnapshot] = request })
	source.eventually(etcd.ConditionTypeSnapshotTaken, "True SnapshotStored: "+request)
	s.p.stop()

	destination := newWorld(t)
	_, stopOther := destination.startOperator("v1")
	defer stopOther()
	kit.Must(t, os.Mkdir(filepath.Join(buckets, "other"), 0o700))
	destination.declare(func(e *druidv1alpha1.Etcd) {
		withTLS(e)
		e.Annotations = map[string]string{etcd.AnnotationRestore: "latest"}
		e.Spec.Backup.Store = ptr.To(inBucket("other"))
	})
	again := &saved{site: newSite(destination, 1)}
	again.p = again.members[0]
	again.p.backup = &config.Backup{
		Store:       objectstore.Location{Provider: "local", Container: "other", Prefix: "entry/etcd-main", Directory: buckets},
		DeltaPeriod: metav1.Duration{Duration: time.Minute}, Port: kit.FreePort(t),
	}
	again.p.start()
	again.waits("the store has none")

	task := &druidv1alpha1.EtcdCopyBackupsTask{
		ObjectMeta: metav1.ObjectMeta{Namespace: destination.namespace, Name: "move"},
		Spec: druidv1alpha1.EtcdCopyBackupsTaskSpec{
			SourceStore: inBucket("bucket"), TargetStore: inBucket("other"),
			WaitForFinalSnapshot: &druidv1alpha1.WaitForFinalSnapshotSpec{Enabled: true, Timeout: &metav1.Duration{Duration: time.Minute}},
		},
	}
	kit.Must(t, destination.client.Create(t.Context(), task))
	job := destination.jobOf(task)
	destination.runs(job, buckets)
	destination.completes(job)
	kit.Eventually(t, "the task has succeeded", func() string {
		destination.get(task, task.Name)
		for _, condition := range task.Status.Conditions {
			if condition.Type == druidv1alpha1.ConditionTypeSucceeded && condition.Status == druidv1alpha1.ConditionTrue {
				return ""
			}
		}
		return fmt.Sprintf("%+v", task.Status)
	})

	again.p.start()
	again.p.eventuallyReady()
	again.has("before", "1")
	again.has("last", "2")
	if revision := again.put("after", "3"); revision < last+snapshot.RevisionBump {
		t.Errorf("the revision is %d after %d", revision, last)
	}

	kit.Must(t, destination.client.Delete(t.Context(), task))
	kit.EventuallyTrue(t, "the task is gone", func() bool { return !destination.get(&druidv1alpha1.EtcdCopyBackupsTask{}, task.Name) })
	key := etcd.CopyKey(task)
	if destination.get(&resourcesv1alpha1.ManagedResource{}, key.Name) {
		t.Error("the ManagedResource of the Job still exists")
	}
}
