package etcd

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// compacting returns the inputs of an Etcd whose backups are compacted after 100 changes.
func compacting(changes int64, change ...func(*Inputs)) Inputs {
	in := inputs(sample(1), healthy(0))
	in.Etcd.Spec.Backup.Store = &druidv1alpha1.StoreSpec{Provider: ptr.To("aws"), Container: ptr.To("bucket"), Prefix: "entry/etcd-main"}
	in.Etcd.Spec.Backup.SnapshotCompaction = &druidv1alpha1.SnapshotCompactionSpec{
		EventsThreshold: ptr.To[int64](100), TriggerFullSnapshotThreshold: ptr.To[int64](300),
	}
	in.FullSnapshot, in.DeltaSnapshot = lease.Snapshot{Revision: 1000}, lease.Snapshot{Revision: 1000 + changes}
	for _, each := range change {
		each(&in)
	}
	return in
}

func compacted(revision string) func(*Inputs) {
	return func(in *Inputs) {
		in.Ledger = flow.NewLedger(LedgerKey(keyOf(in.Etcd)), map[string]flow.Entry{entryCompacted: {Value: revision}})
	}
}

// withJob adds the emitted Job.
func withJob(job *batchv1.Job) func(*Inputs) {
	return func(in *Inputs) {
		if in.Compacting, in.Compactor = true, job; job != nil {
			job.Annotations = map[string]string{annotationCompacts: "1100"}
		}
	}
}

// TestCompaction checks when the backups are compacted, and that a Job runs to its end and is deleted then.
func TestCompaction(t *testing.T) {
	key := CompactionKey(keyOf(sample(1)))
	const starts, keeps, buries, nothing = "starts", "keeps", "buries", ""
	for name, test := range map[string]struct {
		in   Inputs
		want string
	}{
		"few changes":             {compacting(99), nothing},
		"many changes":            {compacting(100), starts},
		"not configured":          {compacting(100, func(in *Inputs) { in.Etcd.Spec.Backup.SnapshotCompaction = nil }), nothing},
		"no store":                {compacting(100, func(in *Inputs) { in.Etcd.Spec.Backup.Store = nil }), nothing},
		"hibernated":              {compacting(100, func(in *Inputs) { in.Etcd.Spec.Replicas = 0 }), nothing},
		"Secret missing":          {compacting(100, func(in *Inputs) { in.StoreSecret.Missing = "it does not exist" }), nothing},
		"compacted before":        {compacting(150, compacted("1100")), nothing},
		"compacted, many changes": {compacting(250, compacted("1100")), starts},
		"compacted, full after":   {compacting(50, compacted("500")), nothing},
		"emitted, no Job yet":     {compacting(100, withJob(nil)), keeps},
		"runs":                    {compacting(100, withJob(&batchv1.Job{})), keeps},
		"runs, not configured":    {compacting(100, withJob(&batchv1.Job{}), func(in *Inputs) { in.Etcd.Spec.Backup.SnapshotCompaction = nil }), keeps},
		"succeeded":               {compacting(100, withJob(ended(batchv1.JobComplete, noon)), compacted("1100")), buries},
		"failed":                  {compacting(100, withJob(ended(batchv1.JobFailed, noon.Add(-time.Minute)))), keeps},
		"failed an hour ago":      {compacting(100, withJob(ended(batchv1.JobFailed, noon.Add(-time.Hour)))), buries},
	} {
		plan := flow.Plan{}
		test.in.addCompaction(&plan, false)
		got := nothing
		switch {
		case len(plan.Bundles) == 1 && plan.Bundles[0].Key == key:
			got = starts
		case slices.Contains(plan.Keeps, key):
			got = keeps
		case len(plan.Tombstones) == 1 && plan.Tombstones[0].Key == key:
			got = buries
		}
		if got != test.want {
			t.Errorf("%s: %q instead of %q", name, got, test.want)
		}
	}
	in := compacting(100)
	plan := flow.Plan{}
	in.addCompaction(&plan, false)
	job, is := plan.Bundles[0].Objects[0].(*batchv1.Job)
	want := "compact --provider=aws --bucket=bucket --prefix=entry/etcd-main --temporary-directory=/tmp --compression=none"
	if !is || strings.Join(job.Spec.Template.Spec.Containers[0].Args, " ") != want || job.Annotations[annotationCompacts] != "1100" {
		t.Errorf("the Job is %+v", job)
	}
	for key := range in.Etcd.Spec.Selector.MatchLabels {
		if _, found := job.Spec.Template.Labels[key]; found {
			t.Errorf("the Pod has the label %s, by which members are selected", key)
		}
	}
}

// TestCompactionEnds checks that the result is recorded before the Job is deleted, and stays in the condition.
func TestCompactionEnds(t *testing.T) {
	in := compacting(100, withJob(ended(batchv1.JobComplete, noon)))
	if facts := in.facts(); !slices.Contains(facts, fact{entryCompacted, "1100"}) {
		t.Errorf("recorded: %v", facts)
	}
	s, known := in.compacted()
	if !known || s.status != druidv1alpha1.ConditionTrue {
		t.Errorf("the condition is %+v", s)
	}
	in.Etcd.Status.Conditions = []druidv1alpha1.Condition{{
		Type: druidv1alpha1.ConditionTypeLastSnapshotCompactionSucceeded, Status: s.status, Reason: s.reason, Message: s.message,
	}}
	in.Compactor, in.Compacting = nil, false
	if after, known := in.compacted(); !known || after != s {
		t.Errorf("after the Job is deleted, the condition is %+v", after)
	}
	if s, _ := compacting(100, withJob(ended(batchv1.JobFailed, noon))).compacted(); s.status != druidv1alpha1.ConditionFalse || !strings.Contains(s.message, "text") {
		t.Errorf("after a failure, the condition is %+v", s)
	}
}

// TestRequestedSnapshot checks which snapshot members are requested to take, and what the condition says about it.
func TestRequestedSnapshot(t *testing.T) {
	const request = "final/2027-01-02"
	requested := func(in *Inputs) { metav1.SetMetaDataAnnotation(&in.Etcd.ObjectMeta, AnnotationSnapshot, request) }
	answered := func(taken, failed string) func(*Inputs) {
		return func(in *Inputs) { in.Members[0].SnapshotTaken, in.Members[0].SnapshotError = taken, failed }
	}
	for name, test := range map[string]struct {
		in                 Inputs
		request, statement string
	}{
		"nothing":          {compacting(100), "", ""},
		"very many":        {compacting(300), "full/after-revision-1000", ""},
		"requested":        {compacting(0, requested), request, "Unknown SnapshotPending"},
		"failed":           {compacting(0, requested, answered("", "no space")), request, "False SnapshotFailed"},
		"another is taken": {compacting(0, requested, answered("final/2026", "")), request, "Unknown SnapshotPending"},
		"taken":            {compacting(0, requested, answered(request, "")), request, "True SnapshotStored"},
		"no store":         {compacting(0, requested, func(in *Inputs) { in.Etcd.Spec.Backup.Store = nil }), "", ""},
	} {
		got := ""
		if s, known := test.in.snapshotTaken(); known {
			got = string(s.status) + " " + s.reason
		}
		if test.in.wantedSnapshot() != test.request || got != test.statement {
			t.Errorf("%s: requested %q, condition %q", name, test.in.wantedSnapshot(), got)
		}
		if leases := test.in.leases(); leases[0].Annotations[lease.AnnotationSnapshot] != test.request {
			t.Errorf("%s: the Lease requests %q", name, leases[0].Annotations[lease.AnnotationSnapshot])
		}
	}
}
