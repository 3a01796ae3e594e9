package shootmaintenance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// request requests the operations and tasks of the maintenance in the annotations of the Shoot. Operations that the state of the Shoot
// does not allow are left out, and count as failures.
func (p *Plan) request(in *Input) {
	shoot := p.Shoot
	present := slices.DeleteFunc(validation.SplitOperations(shoot.Annotations[constants.AnnotationGardenerOperation]),
		func(operation string) bool { return operation == constants.OperationMaintain })
	if last := shoot.Status.LastOperation; last != nil && last.State == corev1beta1.LastOperationStateFailed {
		if resourcesv1alpha1.Truthy(shoot.Annotations[constants.AnnotationMaintenanceNeedsRetryOperation]) {
			present = []string{constants.OperationRetry}
			delete(shoot.Annotations, constants.AnnotationMaintenanceNeedsRetryOperation)
		}
		annotate(shoot, constants.AnnotationGardenerOperation, strings.Join(present, ";"))
		p.addTasks(in)
		return
	}
	wanted := validation.SplitOperations(shoot.Annotations[constants.AnnotationMaintenanceOperation])
	delete(shoot.Annotations, constants.AnnotationMaintenanceOperation)
	rotations, failures := rotationsDue(shoot, in.Now)
	p.Failures = append(p.Failures, failures...)
	for _, operation := range append(wanted, rotations...) {
		if slices.Contains(present, operation) {
			continue
		}
		if err := validation.OperationAllowed(shoot, operation, present); err != nil {
			p.fail("", fmt.Sprintf("the operation %s is not executed: %s", operation, err))
			continue
		}
		present = append(present, operation)
		if operation != constants.OperationReconcile {
			p.Others = append(p.Others, "operation "+operation+" requested")
		}
	}
	if !validation.Contradict(append([]string{constants.OperationReconcile}, present...)) && !slices.Contains(present, constants.OperationReconcile) {
		present = append(present, constants.OperationReconcile)
	}
	annotate(shoot, constants.AnnotationGardenerOperation, strings.Join(present, ";"))
	p.addTasks(in)
}

// addTasks requests the tasks of each maintenance.
func (p *Plan) addTasks(in *Input) {
	tasks := []string{
		constants.ShootTaskDeployInfrastructure, constants.ShootTaskDeployDNSRecordInternal, constants.ShootTaskDeployDNSRecordExternal,
		constants.ShootTaskDeployDNSRecordIngress,
	}
	if in.RestartsControlPlane {
		tasks = append(tasks, constants.ShootTaskRestartControlPlanePods)
	}
	if in.RestartsAddons {
		tasks = append(tasks, constants.ShootTaskRestartCoreAddons)
	}
	var all []string
	if text := p.Shoot.Annotations[constants.AnnotationShootTasks]; text != "" {
		all = strings.Split(text, ",")
	}
	for _, task := range tasks {
		if !slices.Contains(all, task) {
			all = append(all, task)
		}
	}
	annotate(p.Shoot, constants.AnnotationShootTasks, strings.Join(all, ","))
}

// rotationsDue returns the rotations of credentials whose period has passed since the last one, or since the creation of the Shoot.
func rotationsDue(shoot *corev1beta1.Shoot, now time.Time) (due, failures []string) {
	settings := shoot.Spec.Maintenance
	if settings == nil || settings.AutoRotation == nil || settings.AutoRotation.Credentials == nil {
		return nil, nil
	}
	periods, state := settings.AutoRotation.Credentials, rotationOf(shoot)
	isDue := func(config *corev1beta1.MaintenanceRotationConfig, last *metav1.Time) bool {
		if config == nil || config.RotationPeriod == nil || config.RotationPeriod.Duration == 0 {
			return false
		}
		since := shoot.CreationTimestamp.Time
		if last != nil {
			since = last.Time
		}
		return !now.Before(since.Add(config.RotationPeriod.Duration))
	}
	if isDue(periods.SSHKeypair, ptr.Deref(state.SSHKeypair, corev1beta1.ShootSSHKeypairRotation{}).LastCompletionTime) && hasSSHKey(&shoot.Spec) {
		due = append(due, constants.OperationRotateSSHKeypair)
	}
	if isDue(periods.Observability, ptr.Deref(state.Observability, corev1beta1.ObservabilityRotation{}).LastCompletionTime) {
		due = append(due, constants.OperationRotateObservabilityCredentials)
	}
	key := ptr.Deref(state.ETCDEncryptionKey, corev1beta1.ETCDEncryptionKeyRotation{})
	hibernated := shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
	if isDue(periods.ETCDEncryptionKey, key.LastCompletionTime) && !hibernated {
		if key.Phase != "" && key.Phase != corev1beta1.RotationCompleted {
			return due, []string{fmt.Sprintf("the encryption key of etcd is not rotated: the last rotation is in the phase %s", key.Phase)}
		}
		due = append(due, constants.OperationRotateETCDEncryptionKey)
	}
	return due, nil
}

func rotationOf(shoot *corev1beta1.Shoot) corev1beta1.ShootCredentialsRotation {
	if shoot.Status.Credentials == nil {
		return corev1beta1.ShootCredentialsRotation{}
	}
	return ptr.Deref(shoot.Status.Credentials.Rotation, corev1beta1.ShootCredentialsRotation{})
}

// hasSSHKey reports whether nodes accept SSH connections. A Shoot without nodes has none.
func hasSSHKey(spec *corev1beta1.ShootSpec) bool {
	settings := spec.Provider.WorkersSettings
	return len(spec.Provider.Workers) > 0 && (settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled)
}

// annotate sets an annotation, or removes it if the value is empty.
func annotate(shoot *corev1beta1.Shoot, key, value string) {
	if value == "" {
		delete(shoot.Annotations, key)
		return
	}
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, key, value)
}

// withoutRequest removes the request for maintenance from the annotation of a Shoot.
func withoutRequest(shoot *corev1beta1.Shoot) {
	operations := validation.SplitOperations(shoot.Annotations[constants.AnnotationGardenerOperation])
	kept := slices.DeleteFunc(operations, func(operation string) bool { return operation == constants.OperationMaintain })
	annotate(shoot, constants.AnnotationGardenerOperation, strings.Join(kept, ";"))
}
