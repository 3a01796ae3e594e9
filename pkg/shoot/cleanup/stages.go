// Package cleanup deletes what users have in the cluster of a Shoot before the cluster itself is deleted, in the order and with the times of Gardener.
// Controllers of users, which may run elsewhere, so get the time to delete what their objects stand for.
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

// The names of the stages, in their order.
const (
	StageWebhooks     = "clean-up-webhooks"
	StageExtendedAPIs = "clean-up-extended-apis"
	StageResources    = "clean-up-kubernetes-resources"
)

// The times after which finalizers are removed, counted from the deletion of an object (Gardener).
const (
	usualTime       = 5 * time.Minute
	extendedAPITime = time.Hour
	snapshotTime    = time.Hour
	// gracePeriod is the longest time that Pods have to end.
	gracePeriod = 5 * time.Minute
)

// Stage is a group of kinds. It begins when nothing of the stage before is left.
type Stage struct {
	Name  string
	Kinds []Kind
	// NeedsControllers is set if the stage waits for the cluster's controllers: they delete what depends on an object that is deleted.
	NeedsControllers bool
}

// Kind says how the objects of a kind are deleted.
type Kind struct {
	schema.GroupVersionKind
	// Selector selects what is deleted.
	Selector labels.Selector
	// FinalizeAfter is how long after its deletion began an object loses its finalizers.
	FinalizeAfter time.Duration
	// Graceful is set for objects whose programs have time to end: GracePeriod.
	Graceful    bool
	GracePeriod time.Duration
}

// What selects the objects to delete. What resource-managers apply is theirs to delete.
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
	return Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Selector: parsed, FinalizeAfter: finalizeAfter}
}

// Stages returns what has to be done, by the annotations of the Shoot. Their times count only if they are shorter than the usual ones.
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
	return append(stages, Stage{Name: StageResources, NeedsControllers: true, Kinds: resources(within(times, usualTime), within(times, snapshotTime), skip)})
}

// resources returns the kinds of Kubernetes' own objects, and those of snapshots. If the clean-up is skipped, only those that stand for something outside of
// the cluster. Kinds that the API server does not serve have no objects.
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
