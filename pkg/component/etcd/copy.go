package etcd

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// finalTimeout is how long a copy waits for the final snapshot (Gardener). Without one, what exists is copied.
const finalTimeout = 5 * time.Minute

// Copy are the inputs of a copy of the backups of the main etcd to another bucket.
type Copy struct {
	Namespace, Name string
	// Source and Target are where the backups are copied from and to. Both have the same path.
	Source, Target Backup
}

// CopyTask returns the task that copies the backups. Extensions provide the credentials of both stores.
func CopyTask(values Copy) *unstructured.Unstructured {
	store := func(backup Backup, secret string) map[string]any {
		return map[string]any{
			"provider": backup.Provider, "container": backup.Bucket, "prefix": backup.Entry + "/" + Name(RoleMain),
			"secretRef": map[string]any{"namespace": values.Namespace, "name": secret},
		}
	}
	task := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"sourceStore":          store(values.Source, constants.PrefixSourceBackupEntry+constants.SecretNameETCDBackup),
		"targetStore":          store(values.Target, constants.SecretNameETCDBackup),
		"waitForFinalSnapshot": map[string]any{"enabled": true, "timeout": metav1.Duration{Duration: finalTimeout}.Duration.String()},
		"podLabels": map[string]any{
			constants.LabelNetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.LabelNetworkPolicyToPublicNetworks: constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToPrivateNetworks: constants.NetworkPolicyAllowed,
		},
	}}}
	task.SetAPIVersion(druidv1alpha1.SchemeGroupVersion.String())
	task.SetKind("EtcdCopyBackupsTask")
	task.SetNamespace(values.Namespace)
	task.SetName(values.Name)
	return task
}

// CopyHealth returns the health check of a copy. It is healthy once the backups are copied.
func CopyHealth() resourcesv1alpha1.HealthCheck {
	const (
		succeeded = "has(status.conditions) && status.conditions.exists(c, c.type == 'Succeeded' && c.status == 'True')"
		failed    = "has(status.conditions) && status.conditions.exists(c, c.type == 'Failed' && c.status == 'True')"
	)
	return resourcesv1alpha1.HealthCheck{
		Group: druidv1alpha1.GroupName, Kind: "EtcdCopyBackupsTask", Healthy: succeeded, Progressing: "!(" + succeeded + ") && !(" + failed + ")", Failed: failed,
		Message: "has(status.conditions) && status.conditions.size() > 0 ? status.conditions[0].message : " +
			"(has(status.lastError) ? status.lastError : 'the backups are being copied')",
	}
}
