package shootmaintenance

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

// windowEnd is how long before its end a maintenance window counts as over (Gardener).
const windowEnd = 15 * time.Minute

// Due is whether a Shoot is maintained now, and when to decide again. Next is zero if only a change of the Shoot matters.
type Due struct {
	Run  bool
	Next time.Time
}

// IsDue returns whether a Shoot is maintained at a time: on request, or once in each maintenance window, from a time of the window that
// depends on the UID of the Shoot. A Shoot that is created during its window waits for the next one.
func IsDue(shoot *corev1beta1.Shoot, now time.Time) Due {
	if shoot.DeletionTimestamp != nil {
		return Due{}
	}
	window, found := maintenance.OfShoot(shoot)
	if found {
		window = window.EndingEarlier(windowEnd)
	}
	turn := window.From(shoot.UID)
	open, next := turn.State(now)
	if isRequested(shoot) {
		return Due{Run: true, Next: turn.Next(now)}
	}
	if !open {
		return Due{Next: next}
	}
	began := next.Add(-turn.Length())
	done := shoot.CreationTimestamp.After(began) || isMaintainedSince(shoot.Status.LastMaintenance, began)
	return Due{Run: !done, Next: turn.Next(now)}
}

// isRequested reports whether an annotation requests maintenance now.
func isRequested(shoot *corev1beta1.Shoot) bool {
	return slices.Contains(validation.SplitOperations(shoot.Annotations[constants.AnnotationGardenerOperation]), constants.OperationMaintain)
}

// isMaintainedSince reports whether the last maintenance began after a time and ended. The status has seconds.
func isMaintainedSince(last *corev1beta1.LastMaintenance, began time.Time) bool {
	return last != nil && last.State != corev1beta1.LastOperationStateProcessing && !last.TriggeredTime.Time.Before(began.Truncate(time.Second))
}

// Keep copies the fields on which decisions about cached Shoots depend.
func Keep(into, shoot *corev1beta1.Shoot) {
	into.CreationTimestamp = shoot.CreationTimestamp
	if isRequested(shoot) {
		if into.Annotations == nil {
			into.Annotations = map[string]string{}
		}
		into.Annotations[constants.AnnotationGardenerOperation] = constants.OperationMaintain
	}
	if settings := shoot.Spec.Maintenance; settings != nil {
		into.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: settings.TimeWindow, AutoUpdate: settings.AutoUpdate}
	}
	if last := shoot.Status.LastMaintenance; last != nil {
		into.Status.LastMaintenance = &corev1beta1.LastMaintenance{TriggeredTime: last.TriggeredTime, State: last.State}
		if strings.Contains(last.Description, forcedUpdate) {
			into.Status.LastMaintenance.Description = forcedUpdate
		}
	}
	if last := shoot.Status.LastOperation; last != nil && into.Status.LastOperation == nil {
		into.Status.LastOperation = &corev1beta1.LastOperation{Type: last.Type, State: last.State}
	}
	into.Spec.CloudProfile, into.Spec.CloudProfileName = shoot.Spec.CloudProfile, shoot.Spec.CloudProfileName
	into.Spec.Kubernetes.Version = shoot.Spec.Kubernetes.Version
	into.Spec.Provider.Workers = keepWorkers(into.Spec.Provider.Workers, shoot.Spec.Provider.Workers)
}

// keepWorkers adds the fields of pools on which the versions of their images depend.
func keepWorkers(into, workers []corev1beta1.Worker) []corev1beta1.Worker {
	kept := make([]corev1beta1.Worker, 0, len(workers))
	for i := range workers {
		worker := workers[i]
		reduced := corev1beta1.Worker{Name: worker.Name}
		if at := slices.IndexFunc(into, func(one corev1beta1.Worker) bool { return one.Name == worker.Name }); at >= 0 {
			reduced = into[at]
		} else if len(into) == len(workers) {
			reduced = into[i]
		}
		reduced.Name, reduced.CRI, reduced.UpdateStrategy = worker.Name, worker.CRI, worker.UpdateStrategy
		reduced.Machine.Type, reduced.Machine.Architecture = worker.Machine.Type, worker.Machine.Architecture
		if image := worker.Machine.Image; image != nil {
			reduced.Machine.Image = ptr.To(ptr.Deref(reduced.Machine.Image, corev1beta1.ShootMachineImage{}))
			reduced.Machine.Image.Name, reduced.Machine.Image.Version = image.Name, image.Version
		}
		if kubernetes := worker.Kubernetes; kubernetes != nil && kubernetes.Version != nil {
			reduced.Kubernetes = &corev1beta1.WorkerKubernetes{Version: kubernetes.Version}
		}
		kept = append(kept, reduced)
	}
	return kept
}
