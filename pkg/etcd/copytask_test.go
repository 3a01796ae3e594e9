package etcd

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
)

// copying returns the inputs of a copy between two buckets of a provider in the cloud.
func copying(change ...func(*CopyInputs)) CopyInputs {
	reference := func(name string) *corev1.SecretReference {
		return &corev1.SecretReference{Namespace: "shoot--dev--blue", Name: name}
	}
	in := CopyInputs{
		Class: "seed", Image: "registry.example.org/etcd-member:v1", Now: noon,
		Task: &druidv1alpha1.EtcdCopyBackupsTask{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: "blue", UID: "uid-2", Generation: 3},
			Spec: druidv1alpha1.EtcdCopyBackupsTaskSpec{
				SourceStore:          druidv1alpha1.StoreSpec{Provider: ptr.To("aws"), Container: ptr.To("old"), Prefix: "entry/etcd-main", SecretRef: reference("source-etcd-backup")},
				TargetStore:          druidv1alpha1.StoreSpec{Provider: ptr.To("aws"), Container: ptr.To("new"), Prefix: "entry/etcd-main", SecretRef: reference("etcd-backup")},
				PodLabels:            map[string]string{"networking.gardener.cloud/to-dns": "allowed"},
				WaitForFinalSnapshot: &druidv1alpha1.WaitForFinalSnapshotSpec{Enabled: true, Timeout: &metav1.Duration{Duration: 5 * time.Minute}},
			},
		},
	}
	for _, each := range change {
		each(&in)
	}
	return in
}

// ended returns a Job with a condition.
func ended(kind batchv1.JobConditionType, at time.Time) *batchv1.Job {
	return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{
		Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at), Reason: "BackoffLimitExceeded", Message: "text",
	}}}}
}

// TestCopyJob checks the command and the Pod of a copy.
func TestCopyJob(t *testing.T) {
	in := copying(func(in *CopyInputs) {
		in.Task.Spec.MaxBackups, in.Task.Spec.MaxBackupAge = ptr.To[uint32](2), ptr.To[uint32](3)
	})
	plan := CopyPlan(in)
	if err := plan.Validate(); err != nil || len(plan.Bundles) != 1 || *plan.Bundles[0].Spec.Class != "seed" {
		t.Fatalf("%+v, %v", plan, err)
	}
	job, is := plan.Bundles[0].Objects[0].(*batchv1.Job)
	if !is || job.Name != "blue-worker" || job.Spec.Template.Labels["networking.gardener.cloud/to-dns"] != "allowed" {
		t.Fatalf("the Job is %+v", job)
	}
	want := "copy --source-provider=aws --source-bucket=old --source-prefix=entry/etcd-main --source-credentials=/var/etcd-source-backup " +
		"--provider=aws --bucket=new --prefix=entry/etcd-main --credentials=/var/etcd-backup --max-backups=2 --max-age=72h " +
		"--wait-for-final=true --final-timeout=5m0s"
	container := job.Spec.Template.Spec.Containers[0]
	if got := strings.Join(container.Args, " "); got != want {
		t.Errorf("the command is %s", got)
	}
	var mounted []string
	for _, mount := range container.VolumeMounts {
		at := slices.IndexFunc(job.Spec.Template.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name })
		if at < 0 {
			t.Fatalf("the volume %s does not exist", mount.Name)
		}
		if secret := job.Spec.Template.Spec.Volumes[at].Secret; secret != nil {
			mounted = append(mounted, secret.SecretName+" at "+mount.MountPath)
		}
	}
	if got := strings.Join(mounted, ", "); got != "source-etcd-backup at /var/etcd-source-backup, etcd-backup at /var/etcd-backup" {
		t.Errorf("mounted: %s", got)
	}
	if *job.Spec.Template.Spec.AutomountServiceAccountToken {
		t.Error("the Pod has access to the API server")
	}
}

// TestCopyPlan checks that a Job is never changed, and what a copy refuses.
func TestCopyPlan(t *testing.T) {
	deleting := func(in *CopyInputs) { in.Task.DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, test := range map[string]struct {
		change        func(*CopyInputs)
		wait          string
		keeps, buries bool
	}{
		"new":               {change: func(*CopyInputs) {}},
		"emitted":           {change: func(in *CopyInputs) { in.Emitted, in.Image = true, "other" }, keeps: true},
		"emitted, deleting": {change: func(in *CopyInputs) { in.Emitted = true; deleting(in) }, buries: true},
		"deleting":          {change: deleting, buries: true},
		"no Secret":         {change: func(in *CopyInputs) { in.Target.Missing = "it does not exist" }, wait: "spec.targetStore.secretRef: it does not exist"},
		"unknown provider":  {change: func(in *CopyInputs) { in.Task.Spec.SourceStore.Provider = ptr.To("tape") }, wait: "spec.sourceStore"},
		"no bucket":         {change: func(in *CopyInputs) { in.Task.Spec.SourceStore.Container = nil }, wait: "spec.sourceStore.container"},
		"bucket in Secret":  {change: func(in *CopyInputs) { in.Task.Spec.SourceStore.Container, in.Source.Bucket = nil, "old" }},
		"onto itself":       {change: func(in *CopyInputs) { in.Task.Spec.TargetStore.Container = ptr.To("old") }, wait: "are the same"},
		"onto itself, by the Secret": {
			change: func(in *CopyInputs) { in.Task.Spec.TargetStore.Container, in.Target.Bucket = nil, "old" }, wait: "are the same",
		},
	} {
		plan := CopyPlan(copying(test.change))
		switch {
		case test.wait != "":
			if len(plan.Bundles) > 0 || len(plan.Waits) != 1 || !strings.Contains(plan.Waits[0].Reason, test.wait) {
				t.Errorf("%s: %+v", name, plan)
			}
		case (len(plan.Keeps) == 1) != test.keeps, (len(plan.Tombstones) == 1) != test.buries, (len(plan.Bundles) == 1) == (test.keeps || test.buries):
			t.Errorf("%s: %+v", name, plan)
		}
	}
}

// TestCopyStatus checks the conditions, and that their times change only with them.
func TestCopyStatus(t *testing.T) {
	for name, test := range map[string]struct {
		job           *batchv1.Job
		problem, want string
	}{
		"no Job":    {},
		"runs":      {job: &batchv1.Job{}},
		"succeeded": {job: ended(batchv1.JobComplete, noon), want: "Succeeded JobSucceeded"},
		"failed":    {job: ended(batchv1.JobFailed, noon), want: "Failed JobFailed"},
		"problem":   {problem: "the Secret does not exist"},
	} {
		in := copying(func(in *CopyInputs) { in.Job = test.job })
		status := CopyStatus(in, test.problem)
		got := ""
		for _, condition := range status.Conditions {
			got += string(condition.Type) + " " + condition.Reason
		}
		if got != test.want || *status.ObservedGeneration != 3 || ptr.Deref(status.LastError, "") != test.problem {
			t.Errorf("%s: %q, %+v", name, got, status)
		}
		in.Task.Status, in.Now = status, noon.Add(time.Hour)
		if again := CopyStatus(in, test.problem); len(again.Conditions) > 0 && again.Conditions[0].LastUpdateTime != status.Conditions[0].LastUpdateTime {
			t.Errorf("%s: the time changes without a reason", name)
		}
	}
}
