package secrets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// Advance returns the phase of a rotation after the present one, or the reason why it stays. Unsettled is what flow.Unsettled says of the plan
// for this phase, read from the API server: a phase that moves on while something still uses what is about to go locks users out. Workers
// are the pools that have not been rolled out yet.
func Advance(phase corev1beta1.CredentialsRotationPhase, unsettled, workers []string) (corev1beta1.CredentialsRotationPhase, string) {
	next, moves := map[corev1beta1.CredentialsRotationPhase]corev1beta1.CredentialsRotationPhase{
		corev1beta1.RotationPreparing:                      corev1beta1.RotationPrepared,
		corev1beta1.RotationPreparingWithoutWorkersRollout: corev1beta1.RotationWaitingForWorkersRollout,
		corev1beta1.RotationWaitingForWorkersRollout:       corev1beta1.RotationPrepared,
		corev1beta1.RotationCompleting:                     corev1beta1.RotationCompleted,
	}[phase]
	switch {
	case !moves:
		return phase, ""
	case len(unsettled) > 0:
		return phase, strings.Join(unsettled, "; ")
	case next == corev1beta1.RotationPrepared && len(workers) > 0:
		return phase, fmt.Sprintf("worker pools have to be rolled out: %s", strings.Join(workers, ", "))
	}
	return next, ""
}

// Deletable returns those of the unused Secrets that may be deleted: none while anything is unsettled or has to be written, and none that is
// referred to by an emitted revision or a Pod.
func Deletable(result Result, unsettled []string, referred func(name string) bool) []Secret {
	if len(unsettled) > 0 || !result.Complete() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(result.Unused), func(secret Secret) bool { return referred(secret.Name) })
}

// Referred returns whether a Secret is referred to by one of these objects: Pods, workloads, ManagedResources, and other objects by the
// annotations for the garbage collector. The list has to have the objects of all emitted revisions, those of held bundles too, and all Pods.
func Referred(objects ...client.Object) (func(name string) bool, error) {
	names := map[string]bool{}
	for _, object := range objects {
		object, copied := object.DeepCopyObject().(client.Object)
		if !copied {
			return nil, fmt.Errorf("read the references of a %T: it has no metadata", object)
		}
		switch object.(type) {
		case *corev1.Pod, *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job, *batchv1.CronJob, *resourcesv1alpha1.ManagedResource:
			if err := references.InjectAnnotations(object); err != nil {
				return nil, fmt.Errorf("read the references of %s/%s: %w", object.GetNamespace(), object.GetName(), err)
			}
		}
		for key, value := range object.GetAnnotations() {
			if reference, found := references.Parse(key, value); found && reference.Kind == references.KindSecret {
				names[reference.Name] = true
			}
		}
	}
	return func(name string) bool { return names[name] }, nil
}

// ReferredIn is [Referred] with the Pods of a namespace, beside the emitted objects. The reader has to be one without a cache, which might not have a new
// Pod yet.
func ReferredIn(ctx context.Context, uncached client.Reader, namespace string, emitted []client.Object) (func(name string) bool, error) {
	var pods corev1.PodList
	if err := uncached.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the Pods in namespace %s: %w", namespace, err)
	}
	users := slices.Clone(emitted)
	for i := range pods.Items {
		users = append(users, &pods.Items[i])
	}
	return Referred(users...)
}
