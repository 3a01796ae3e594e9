package care

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
)

const (
	// etcdMain is the name of the Etcd that is backed up.
	etcdMain = "etcd-main"
	// etcdDefinition is the name of the definition of Etcds.
	etcdDefinition = "etcds." + druidv1alpha1.GroupName
	// reasonBackupPending is the reason while the Etcd is not configured for backups.
	reasonBackupPending = "BackupsNotConfigured"
)

// Backup is the state of the backups of a control plane.
type Backup struct {
	// Declared reports whether the Seed declares backups.
	Declared bool
	// Condition is the condition BackupReady of the Etcd, empty if the Etcd has none.
	Condition druidv1alpha1.Condition
}

// problem returns a finding if backups are declared but not taken.
func (b *Backup) problem() *finding {
	switch {
	case b == nil || !b.Declared:
		return nil
	case b.Condition.Type == "":
		return &finding{
			status: corev1beta1.ConditionFalse, reason: reasonBackupPending,
			message: "the Seed declares backups, but the etcd of this cluster is not configured for them yet: this happens when it is reconciled",
		}
	case b.Condition.Status == druidv1alpha1.ConditionFalse:
		return &finding{status: corev1beta1.ConditionFalse, reason: b.Condition.Reason, message: "the backups of etcd: " + b.Condition.Message}
	}
	return nil
}

// etcdObject returns an Etcd without content. It is unstructured, because gardenlet does not know the kinds of the etcd operator.
func etcdObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(druidv1alpha1.SchemeGroupVersion.WithKind("Etcd"))
	return object
}

// backupOf returns the state of the backups of a control plane, or nil if it is not known.
func (c *care) backupOf(ctx context.Context, seed *corev1beta1.Seed, shoot *corev1beta1.Shoot) *Backup {
	if seed.Spec.Backup == nil {
		return &Backup{}
	}
	object := etcdObject()
	if err := c.extensions.objects.Cache.Get(ctx, client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: etcdMain}, object); err != nil {
		return nil // it does not exist yet, or was not read yet; the watch reports it
	}
	return &Backup{Declared: true, Condition: backupCondition(object)}
}

// backupCondition returns the condition BackupReady of an Etcd, empty if it has none.
func backupCondition(object client.Object) druidv1alpha1.Condition {
	etcd, is := object.(*unstructured.Unstructured)
	if !is {
		return druidv1alpha1.Condition{}
	}
	conditions, _, _ := unstructured.NestedSlice(etcd.Object, "status", "conditions")
	for _, each := range conditions {
		condition, is := each.(map[string]any)
		if !is || condition["type"] != string(druidv1alpha1.ConditionTypeBackupReady) {
			continue
		}
		text := func(key string) string {
			value, _ := condition[key].(string)
			return value
		}
		return druidv1alpha1.Condition{
			Type: druidv1alpha1.ConditionTypeBackupReady, Status: druidv1alpha1.ConditionStatus(text("status")), Reason: text("reason"),
			Message: text("message"),
		}
	}
	return druidv1alpha1.Condition{}
}

// backupChanged passes changes of the condition BackupReady of the main etcd of a control plane.
func backupChanged() predicate.Predicate {
	main := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetName() == etcdMain && object.GetNamespace() != constants.GardenNamespace
	})
	return predicate.And(main, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return backupCondition(e.ObjectOld) != backupCondition(e.ObjectNew)
	}})
}
