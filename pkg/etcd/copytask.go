package etcd

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// FlowNameCopy is the value of flow.LabelFlow on the objects that are emitted for EtcdCopyBackupsTasks.
const FlowNameCopy = "etcd-copy-backups"

// CopyInputs are the inputs of the flow of an EtcdCopyBackupsTask.
type CopyInputs struct {
	Task *druidv1alpha1.EtcdCopyBackupsTask
	// Class is the class of the resource-manager, and Image the image with the program etcd-member.
	Class, Image string
	// Source and Target are what is used of the Secrets of the stores.
	Source, Target StoreSecret
	// Job is the existing Job, nil if there is none. Emitted is set if its bundle exists.
	Job     *batchv1.Job
	Emitted bool
	Now     time.Time
}

// CopyKey returns the name of the ManagedResource and of the Job of an EtcdCopyBackupsTask.
func CopyKey(task *druidv1alpha1.EtcdCopyBackupsTask) flow.Key {
	return flow.Key{Namespace: task.Namespace, Name: task.Name + "-worker"}
}

// CopyPlan is the flow of an EtcdCopyBackupsTask: a Job that copies the backups. The Job is never changed: a task with another
// specification must be created again. It is a pure function.
func CopyPlan(in CopyInputs) flow.Plan {
	key := CopyKey(in.Task)
	switch problem := in.invalid(); {
	case in.Task.DeletionTimestamp != nil:
		return flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: key}}}
	case in.Emitted:
		return flow.Plan{Keeps: []flow.Key{key}}
	case problem != "":
		plan := flow.Plan{Waits: []flow.Wait{{
			Name: "valid", Reason: problem, Holds: []flow.Key{key}, Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		}}}
		if in.Source.Missing != "" || in.Target.Missing != "" {
			plan.Next = in.Now.Add(secretRetry)
		}
		return plan
	}
	bundle := flow.Bundle{Key: key, Objects: []client.Object{in.job(key.Name)}}
	if in.Class != "" {
		bundle.Spec.Class = ptr.To(in.Class)
	}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}
}

// invalid describes why the backups cannot be copied, empty if they can.
func (in CopyInputs) invalid() string {
	spec := in.Task.Spec
	problem := cmp.Or(store{&spec.SourceStore, in.Source}.problem("spec.sourceStore"), store{&spec.TargetStore, in.Target}.problem("spec.targetStore"))
	if problem != "" {
		return problem
	}
	// A copy onto itself would end with the deletion of the only backups.
	from, to := locationOf(&spec.SourceStore, in.Source, "", ""), locationOf(&spec.TargetStore, in.Target, "", "")
	if from.Provider == to.Provider && from.Container == to.Container && strings.Trim(from.Prefix, "/") == strings.Trim(to.Prefix, "/") {
		return fmt.Sprintf("spec.sourceStore and spec.targetStore are the same: %s in the bucket %s", from.Prefix, from.Container)
	}
	return ""
}

// job returns the Job that copies the backups.
func (in CopyInputs) job(name string) *batchv1.Job {
	spec, labels := in.Task.Spec, labelsOf(in.Task.Name, componentCopy, name)
	volumes, mounts := storeVolumes(&spec.SourceStore, in.Source, prefixSource, directorySource, directorySourceBuckets)
	ofTarget, toTarget := storeVolumes(&spec.TargetStore, in.Target, "", directoryBackup, directoryBuckets)
	podLabels := maps.Clone(spec.PodLabels)
	if podLabels == nil {
		podLabels = map[string]string{}
	}
	maps.Copy(podLabels, labels)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Task.Namespace, Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(in.Task, druidv1alpha1.SchemeGroupVersion.WithKind("EtcdCopyBackupsTask")),
		}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
			Spec:       jobPod("copy-backups", in.Image, in.arguments(), append(volumes, ofTarget...), append(mounts, toTarget...)),
		}},
	}
}

// arguments returns the command line of etcd-member.
func (in CopyInputs) arguments() []string {
	spec := in.Task.Spec
	arguments := append([]string{"copy"}, storeArguments(prefixSource, locationOf(&spec.SourceStore, in.Source, directorySource, directorySourceBuckets))...)
	arguments = append(arguments, storeArguments("", locationOf(&spec.TargetStore, in.Target, directoryBackup, directoryBuckets))...)
	if count := ptr.Deref(spec.MaxBackups, 0); count > 0 {
		arguments = append(arguments, fmt.Sprintf("--max-backups=%d", count))
	}
	if days := ptr.Deref(spec.MaxBackupAge, 0); days > 0 {
		arguments = append(arguments, fmt.Sprintf("--max-age=%dh", 24*int64(days)))
	}
	if final := spec.WaitForFinalSnapshot; final != nil && final.Enabled {
		arguments = append(arguments, "--wait-for-final=true")
		if final.Timeout != nil {
			arguments = append(arguments, "--final-timeout="+final.Timeout.Duration.String())
		}
	}
	return arguments
}

// Reasons of the conditions of an EtcdCopyBackupsTask.
const (
	reasonCopied     = "JobSucceeded"
	reasonCopyFailed = "JobFailed"
)

// CopyStatus returns the status of an EtcdCopyBackupsTask. problem is why its Job could not be emitted, empty if it was.
func CopyStatus(in CopyInputs, problem string) druidv1alpha1.EtcdCopyBackupsTaskStatus {
	status := *in.Task.Status.DeepCopy()
	status.ObservedGeneration, status.LastError, status.Conditions = ptr.To(in.Task.Generation), nil, nil
	if problem != "" {
		status.LastError = ptr.To(problem)
	}
	if in.Job == nil {
		return status
	}
	add := func(kind druidv1alpha1.ConditionType, reason, message string) {
		condition := druidv1alpha1.Condition{
			Type: kind, Status: druidv1alpha1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(in.Now), LastUpdateTime: metav1.NewTime(in.Now),
		}
		for _, before := range in.Task.Status.Conditions {
			if before.Type == kind && before.Status == condition.Status {
				condition.LastTransitionTime = before.LastTransitionTime
				if before.Reason == reason && before.Message == message {
					condition.LastUpdateTime = before.LastUpdateTime
				}
			}
		}
		status.Conditions = append(status.Conditions, condition)
	}
	switch jobState(in.Job) {
	case jobSucceeded:
		add(druidv1alpha1.ConditionTypeSucceeded, reasonCopied, "The backups are copied.")
	case jobFailed:
		_, why := failureOf(in.Job)
		add(druidv1alpha1.ConditionTypeFailed, reasonCopyFailed, "The backups could not be copied: "+why)
	}
	return status
}
