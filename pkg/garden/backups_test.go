package garden

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// backedUp returns the inputs of a Garden with backups, whose bucket has credentials of its own.
func backedUp(name *string) Inputs {
	garden := small()
	garden.Spec.VirtualCluster.ETCD = &operatorv1alpha1.ETCD{Main: &operatorv1alpha1.ETCDMain{Backup: &operatorv1alpha1.Backup{
		Provider: "local", BucketName: name, Region: ptr.To("here"), SecretRef: corev1.LocalObjectReference{Name: "account"},
	}}}
	in := known(garden)
	in.Bucket = &extensionsv1alpha1.BackupBucket{}
	in.Bucket.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
	in.Bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "generated"}
	return in
}

// TestBackups checks that the main etcd is backed up to the declared bucket, with the credentials of that bucket, and that backups outlive the
// Garden.
func TestBackups(t *testing.T) {
	for name, bucket := range map[string]string{"": "garden-2f4c5f6a", "mine": "mine", "mine/path": "mine"} {
		given := &name
		if name == "" {
			given = nil
		}
		plan := planOf(t, backedUp(given))
		for bundle, texts := range map[string][]string{
			bundleBackupBucket: {`"name":"` + bucket + `"`, `"class":"garden"`, `"region":"here"`, `"secretRef":{"name":"account","namespace":"garden"}`},
			bundleBackupEntry:  {`"name":"garden--2f4c5f6a"`, `"bucketName":"` + bucket + `"`, `"secretRef":{"name":"generated","namespace":"garden"}`},
			bundleEtcdMain:     {`"container":"` + bucket + `"`, `"prefix":"garden--2f4c5f6a/etcd-main"`, `"secretRef":{"name":"etcd-backup","namespace":"garden"}`, `"fullSnapshotSchedule"`},
		} {
			got := bundleOf(t, plan, bundle)
			for _, text := range texts {
				if !strings.Contains(got, text) {
					t.Errorf("%q: %s has no %s: %s", name, bundle, text, got)
				}
			}
		}
		if events := bundleOf(t, plan, bundleEtcdEvents); strings.Contains(events, `"container":`) {
			t.Errorf("%q: Events are backed up: %s", name, events)
		}
		for _, bundle := range plan.Bundles {
			if kept := ptr.Deref(bundle.Spec.KeepObjects, false); (bundle.Name == bundleBackupBucket || bundle.Name == bundleBackupEntry) && !kept {
				t.Errorf("%s: the backups are deleted with the Garden", bundle.Name)
			}
		}
	}
}

// TestBackupsAreNotReady checks that etcd waits for its backups, and that a bucket without region is reported by its fields.
func TestBackupsAreNotReady(t *testing.T) {
	in := backedUp(nil)
	in.Bucket = nil
	if plan := planOf(t, in); len(plan.Waits) != 1 || !strings.Contains(plan.Waits[0].Reason, "BackupBucket garden-2f4c5f6a is not ready yet") {
		t.Errorf("%+v", plan.Waits)
	}
	in = backedUp(nil)
	in.declaredBackup().Region = nil
	if plan := planOf(t, in); len(plan.Waits) == 0 || !strings.Contains(plan.Waits[0].Reason, "etcd.main.backup.region") {
		t.Errorf("%+v", plan.Waits)
	}
}

// TestFirstGarden checks that of two Gardens exactly one is reconciled, also if both were created at once and one of them was already begun.
func TestFirstGarden(t *testing.T) {
	named := func(uid types.UID, finalizers ...string) *operatorv1alpha1.Garden {
		garden := &operatorv1alpha1.Garden{}
		garden.UID, garden.Finalizers = uid, finalizers
		return garden
	}
	for name, test := range map[string]struct {
		a, b *operatorv1alpha1.Garden
		want string
	}{
		"at once":               {named("1"), named("2"), "1"},
		"the other has begun":   {named("1"), named("2", Finalizer), "2"},
		"this one has begun":    {named("1", Finalizer), named("2"), "1"},
		"created one at a time": {named("1", Finalizer), named("0"), "1"},
	} {
		first := ""
		for _, pair := range [][2]*operatorv1alpha1.Garden{{test.a, test.b}, {test.b, test.a}} {
			if !goesFirst(pair[1], pair[0]) {
				first += string(pair[0].UID)
			}
		}
		if first != test.want {
			t.Errorf("%s: %q is reconciled", name, first)
		}
	}
}
