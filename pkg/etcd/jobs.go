package etcd

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/objectstore"
)

// Mount paths in the Pods of Jobs: of the credentials and the buckets of the store that backups are copied from, and of a volume
// for temporary files.
const (
	directorySource        = "/var/etcd-source-backup"
	directorySourceBuckets = "/var/etcd-source-buckets"
	directoryTemporary     = "/tmp"
	volumeTemporary        = "temporary"
	prefixSource           = "source-"
)

// The states of a Job.
const (
	jobRunning   = ""
	jobSucceeded = "Succeeded"
	jobFailed    = "Failed"
)

// jobState returns whether a Job has succeeded, has failed, or runs.
func jobState(job *batchv1.Job) string {
	for _, condition := range job.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == batchv1.JobComplete:
			return jobSucceeded
		case condition.Type == batchv1.JobFailed:
			return jobFailed
		}
	}
	return jobRunning
}

// failureOf returns when and why a Job has failed. The time is zero if it has not.
func failureOf(job *batchv1.Job) (at time.Time, why string) {
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time, condition.Reason + ": " + condition.Message
		}
	}
	return time.Time{}, ""
}

// storeArguments returns the flags of etcd-member that select a store. prefix distinguishes the source of a copy.
func storeArguments(prefix string, location objectstore.Location) []string {
	arguments := []string{
		"--" + prefix + "provider=" + location.Provider, "--" + prefix + "bucket=" + location.Container, "--" + prefix + "prefix=" + location.Prefix,
	}
	if location.CredentialsDirectory != "" {
		arguments = append(arguments, "--"+prefix+"credentials="+location.CredentialsDirectory)
	}
	if location.Directory != "" {
		arguments = append(arguments, "--"+prefix+"directory="+location.Directory)
	}
	return arguments
}

// store is a store with what the operator reads from its Secret.
type store struct {
	spec   *druidv1alpha1.StoreSpec
	secret StoreSecret
}

// problem describes why a store cannot be used, empty if it can.
func (s store) problem(path string) string {
	switch err := objectstore.Supported(ptr.Deref(s.spec.Provider, "")); {
	case err != nil:
		return path + ": " + err.Error()
	case s.spec.Prefix == "":
		return path + ".prefix is missing"
	case s.secret.Missing != "":
		return path + ".secretRef: " + s.secret.Missing
	case locationOf(s.spec, s.secret, "", "").Container == "":
		return path + ".container is missing, and the Secret has no key " + keyBucket
	}
	return ""
}

// jobPod returns the Pod of a Job that runs a command of etcd-member. It has no access to the API server.
func jobPod(name, image string, arguments []string, volumes []corev1.Volume, mounts []corev1.VolumeMount) corev1.PodSpec {
	temporary := corev1.Volume{Name: volumeTemporary, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure, AutomountServiceAccountToken: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nonroot), RunAsGroup: ptr.To[int64](nonroot), FSGroup: ptr.To[int64](nonroot),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: arguments,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: append(mounts, corev1.VolumeMount{Name: volumeTemporary, MountPath: directoryTemporary}),
		}},
		Volumes: append(volumes, temporary),
	}
}
