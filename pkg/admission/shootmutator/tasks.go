package shootmutator

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

var (
	tasksOfDNS = []string{
		constants.ShootTaskDeployDNSRecordInternal, constants.ShootTaskDeployDNSRecordExternal, constants.ShootTaskDeployDNSRecordIngress,
	}
	tasksOfCreation = append([]string{constants.ShootTaskDeployInfrastructure}, tasksOfDNS...)
	// rotationsOfSSHKey are the operations that change the SSH key of machines.
	rotationsOfSSHKey = []string{
		constants.OperationRotateSSHKeypair, constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout,
	}
)

// tasksOfUpdate returns the tasks that an update needs.
func tasksOfUpdate(shoot, old *gardencorev1beta1.Shoot) []string {
	if isHibernated(&old.Spec) && !isHibernated(&shoot.Spec) {
		return tasksOfCreation
	}
	var tasks []string
	if needsInfrastructure(shoot, old) {
		tasks = append(tasks, constants.ShootTaskDeployInfrastructure)
	}
	if !equality.Semantic.DeepEqual(shoot.Spec.DNS, old.Spec.DNS) {
		tasks = append(tasks, tasksOfDNS...)
	}
	return tasks
}

func needsInfrastructure(shoot, old *gardencorev1beta1.Shoot) bool {
	added := func(family gardencorev1beta1.IPFamily) bool { return !slices.Contains(familiesOf(old), family) }
	rotates := slices.ContainsFunc(operationsOf(shoot), func(operation string) bool {
		return slices.Contains(rotationsOfSSHKey, operation) && !slices.Contains(operationsOf(old), operation)
	})
	return !equality.Semantic.DeepEqual(shoot.Spec.Provider.InfrastructureConfig, old.Spec.Provider.InfrastructureConfig) ||
		len(familiesOf(old)) > 0 && slices.ContainsFunc(familiesOf(shoot), added) || hasSSHAccess(&shoot.Spec) != hasSSHAccess(&old.Spec) ||
		rotates && hasSSHAccess(&shoot.Spec)
}

func operationsOf(shoot *gardencorev1beta1.Shoot) []string {
	return validation.SplitOperations(shoot.Annotations[constants.AnnotationGardenerOperation])
}

func familiesOf(shoot *gardencorev1beta1.Shoot) []gardencorev1beta1.IPFamily {
	if shoot.Spec.Networking == nil {
		return nil
	}
	return shoot.Spec.Networking.IPFamilies
}

// hasSSHAccess reports whether nodes accept SSH connections. A Shoot without nodes has none.
func hasSSHAccess(spec *gardencorev1beta1.ShootSpec) bool {
	settings := spec.Provider.WorkersSettings
	return len(spec.Provider.Workers) > 0 && (settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled)
}

func isHibernated(spec *gardencorev1beta1.ShootSpec) bool {
	return spec.Hibernation != nil && ptr.Deref(spec.Hibernation.Enabled, false)
}

// needsRetry reports whether the next maintenance has to retry a failed Shoot, because its specification changed and is rolled out
// only in the maintenance window.
func needsRetry(shoot, old *gardencorev1beta1.Shoot) bool {
	maintenance, last := shoot.Spec.Maintenance, shoot.Status.LastOperation
	return maintenance != nil && ptr.Deref(maintenance.ConfineSpecUpdateRollout, false) && last != nil &&
		last.State == gardencorev1beta1.LastOperationStateFailed && !equality.Semantic.DeepEqual(shoot.Spec, old.Spec)
}

// addTasks adds tasks to those that the next reconciliation executes.
func addTasks(shoot *gardencorev1beta1.Shoot, tasks ...string) {
	var all []string
	if text := shoot.Annotations[constants.AnnotationShootTasks]; text != "" {
		all = strings.Split(text, ",")
	}
	count := len(all)
	for _, task := range tasks {
		if !slices.Contains(all, task) {
			all = append(all, task)
		}
	}
	if len(all) > count {
		annotate(shoot, constants.AnnotationShootTasks, strings.Join(all, ","))
	}
}
