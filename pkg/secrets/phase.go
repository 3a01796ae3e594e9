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

// Advance returns the next phase of a rotation, or the current phase and the reason why it does not change. unsettled
// is the result of flow.Unsettled for the plan of this phase, read from the API server: users would be locked out if
// the phase changed while components still use the Secrets that are about to be removed. workers are the pools that are
// not rolled out yet.
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
		return phase, fmt.Sprintf("worker pools must be rolled out: %s", strings.Join(workers, ", "))
	}
	return next, ""
}

// Deletable returns the unused Secrets that may be deleted. It returns none while the plan is unsettled or the result
// is incomplete, and omits Secrets that an emitted revision or a Pod references.
func Deletable(result Result, unsettled []string, referred func(name string) bool) []Secret {
	if len(unsettled) > 0 || !result.Complete() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(result.Unused), func(secret Secret) bool { return referred(secret.Name) })
}

// Referred returns a function that reports whether one of the objects references a Secret. The references of Pods,
// workloads and ManagedResources are computed. Other objects are searched for the annotations of the garbage collector.
// The objects must include those of all emitted revisions, including held bundles, and all Pods.
func Referred(objects ...client.Object) (func(name string) bool, error) {
	names := map[string]bool{}
	for _, object := range objects {
		object, copied := object.DeepCopyObject().(client.Object)
		if !copied {
			return nil, fmt.Errorf("read the references of a %T: it has no metadata", object)
		}
		switch object.(type) {
		case *corev1.Pod, *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job, *batchv1.CronJob,
			*resourcesv1alpha1.ManagedResource:
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

// ReferredIn is [Referred] for the emitted objects and the Pods of a namespace. The reader must not be a cache, which
// might not show a new Pod yet.
func ReferredIn(
	ctx context.Context, uncached client.Reader, namespace string, emitted []client.Object,
) (func(name string) bool, error) {
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
