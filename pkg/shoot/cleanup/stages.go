// Package cleanup deletes users' objects in a shoot cluster before the cluster itself is deleted, with the order and time
// limits of Gardener. This gives users' controllers, which may run elsewhere, time to delete the resources that these
// objects represent.
package cleanup

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Names of the stages, in order.
const (
	StageWebhooks     = "clean-up-webhooks"
	StageExtendedAPIs = "clean-up-extended-apis"
	StageResources    = "clean-up-kubernetes-resources"
)

// Times after which finalizers are removed, starting at the deletion of an object (Gardener).
const (
	usualTime       = 5 * time.Minute
	extendedAPITime = time.Hour
	snapshotTime    = time.Hour
	// gracePeriod is the longest grace period of Pods.
	gracePeriod = 5 * time.Minute
)

// Stage is a group of kinds. It starts once the previous stage is complete.
type Stage struct {
	Name  string
	Kinds []Kind
	// NeedsControllers is set if the stage requires the cluster's controllers, which delete dependent objects.
	NeedsControllers bool
}

// Kind defines how the objects of a kind are deleted.
type Kind struct {
	schema.GroupVersionKind
	// Selector selects the objects to delete.
	Selector labels.Selector
	// FinalizeAfter is the time between the deletion of an object and the removal of its finalizers.
	FinalizeAfter time.Duration
	// Graceful is set for kinds whose deletion has a grace period.
	Graceful    bool
	GracePeriod time.Duration
}

// Selectors of the objects to delete. They exclude objects of resource-managers.
const (
	notSystem  = constants.LabelGardenRole + "!=" + constants.RoleSystemComponent + ",!" + resourcesv1alpha1.LabelManagedBy
	deletable  = notSystem + "," + constants.LabelShootNoCleanup + "!=true"
	services   = deletable + ",provider!=kubernetes"
	registered = notSystem + ",!kube-aggregator.kubernetes.io/automanaged"
)

func kindOf(group, kind, selector string, finalizeAfter time.Duration) Kind {
	parsed, err := labels.Parse(selector)
	if err != nil {
		panic(err) // the selectors are constants
	}
	return Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Selector: parsed,
		FinalizeAfter: finalizeAfter,
	}
}

// Stages returns the stages for the annotations of a Shoot. Annotations can only reduce the times.
func Stages(annotations map[string]string) []Stage {
	within := func(key string, usual time.Duration) time.Duration {
		seconds, err := strconv.Atoi(annotations[key])
		if err != nil || seconds < 0 {
			return usual
		}
		return min(usual, time.Duration(seconds)*time.Second)
	}
	webhooks := within(constants.AnnotationShootCleanupWebhooksFinalizeGracePeriodSeconds, usualTime)
	stages := []Stage{{Name: StageWebhooks, Kinds: []Kind{
		kindOf("admissionregistration.k8s.io", "MutatingWebhookConfiguration", deletable, webhooks),
		kindOf("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", deletable, webhooks),
	}}}
	skip, _ := strconv.ParseBool(annotations[constants.AnnotationShootSkipCleanup])
	if !skip {
		extended := within(constants.AnnotationShootCleanupExtendedAPIsFinalizeGracePeriodSeconds, extendedAPITime)
		stages = append(stages, Stage{Name: StageExtendedAPIs, NeedsControllers: true, Kinds: []Kind{
			kindOf("apiregistration.k8s.io", "APIService", registered, extended),
			kindOf("apiextensions.k8s.io", "CustomResourceDefinition", deletable, extended),
		}})
	}
	const times = constants.AnnotationShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds
	kinds := resources(within(times, usualTime), within(times, snapshotTime), skip)
	return append(stages, Stage{Name: StageResources, NeedsControllers: true, Kinds: kinds})
}

// resources returns the kinds of Kubernetes itself and of snapshots. If the clean-up is skipped, it returns only kinds
// that represent resources outside the cluster. Kinds that the API server does not serve have no objects.
func resources(usual, snapshots time.Duration, skip bool) []Kind {
	kinds := []Kind{
		kindOf("", "Service", services, usual),
		kindOf("", "PersistentVolumeClaim", deletable, usual),
		kindOf("snapshot.storage.k8s.io", "VolumeSnapshot", deletable, snapshots),
		kindOf("snapshot.storage.k8s.io", "VolumeSnapshotContent", deletable, snapshots),
	}
	if skip {
		return kinds
	}
	for _, each := range []struct{ group, kind string }{
		{"batch", "CronJob"}, {"batch", "Job"}, {"apps", "DaemonSet"}, {"apps", "Deployment"}, {"apps", "StatefulSet"}, {"apps", "ReplicaSet"},
		{"", "ReplicationController"}, {"networking.k8s.io", "Ingress"},
	} {
		kinds = append(kinds, kindOf(each.group, each.kind, deletable, usual))
	}
	pods := kindOf("", "Pod", deletable, usual)
	pods.Graceful, pods.GracePeriod = true, min(usual, gracePeriod)
	return slices.Insert(kinds, 0, pods)
}
