package shoot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

// withBackups makes the Seed declare backups.
func withBackups(in *Inputs) {
	in.Seed.Spec.Backup = &corev1beta1.Backup{Provider: "local"}
	in.Shoot.Status.UID = "2f4c5f6a"
}

func withEntry(state corev1beta1.LastOperationState) func(*Inputs) {
	return func(in *Inputs) {
		in.Entry = in.entry()
		in.Entry.Status.LastOperation = &corev1beta1.LastOperation{State: state}
	}
}

// TestMainEtcdIsBackedUp checks that only the main etcd is backed up, to the BackupEntry of the Shoot, and only once that is ready.
func TestMainEtcdIsBackedUp(t *testing.T) {
	stores := func(in Inputs) map[etcd.Role]druidv1alpha1.BackupSpec {
		found := map[etcd.Role]druidv1alpha1.BackupSpec{}
		for _, role := range []etcd.Role{etcd.RoleMain, etcd.RoleEvents} {
			if backup := in.backup(role); backup != nil {
				found[role] = druidv1alpha1.BackupSpec{Store: &druidv1alpha1.StoreSpec{Prefix: backup.Entry, Container: &backup.Bucket, Provider: &backup.Provider}}
			}
		}
		return found
	}
	if found := stores(known(t)); len(found) > 0 {
		t.Errorf("without backups: %v", found)
	}
	found := stores(known(t, withBackups, withEntry(corev1beta1.LastOperationStateSucceeded)))
	if store := found[etcd.RoleMain].Store; len(found) != 1 || store.Prefix != "shoot--dev--one--2f4c5f6a" || *store.Container != "seed-1" || *store.Provider != "local" {
		t.Errorf("with backups: %+v", found)
	}
	for name, test := range map[string]struct {
		change []func(*Inputs)
		want   string
	}{
		"no backups":     {nil, ""},
		"no entry":       {[]func(*Inputs){withBackups}, "does not exist yet"},
		"entry in work":  {[]func(*Inputs){withBackups, withEntry(corev1beta1.LastOperationStateProcessing)}, "is not ready yet"},
		"entry is ready": {[]func(*Inputs){withBackups, withEntry(corev1beta1.LastOperationStateSucceeded)}, ""},
		"Shoot is gone":  {[]func(*Inputs){withBackups, func(in *Inputs) { in.Deleting = true }}, ""},
		"entry has failed": {[]func(*Inputs){withBackups, withEntry(corev1beta1.LastOperationStateError), func(in *Inputs) {
			in.Entry.Status.LastError = &corev1beta1.LastError{Description: "no access to the bucket"}
		}}, "no access to the bucket"},
	} {
		in := known(t, test.change...)
		got := in.unknownEntry(etcd.RoleMain)
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q", name, got)
		}
		held := slices.ContainsFunc(planOf(t, in).Waits, func(wait flow.Wait) bool { return strings.Contains(wait.Reason, "BackupEntry") })
		if held != (test.want != "") {
			t.Errorf("%s: the plan waits: %t", name, held)
		}
		if other := in.unknownEntry(etcd.RoleEvents); other != "" {
			t.Errorf("%s: etcd-events waits: %s", name, other)
		}
	}
}

// TestEntry checks that the BackupEntry is found by retention and migration: by its owner, its purpose and its name.
func TestEntry(t *testing.T) {
	entry := known(t, withBackups, func(in *Inputs) { in.Shoot.Spec.Purpose = ptr.To(corev1beta1.ShootPurposeProduction) }).entry()
	owner := metav1.GetControllerOf(entry)
	if owner == nil || owner.Kind != "Shoot" || owner.Name != "one" || ptr.Deref(owner.BlockOwnerDeletion, true) || entry.Annotations[annotationPurpose] != "production" {
		t.Errorf("the entry %+v", entry.ObjectMeta)
	}
	if requests := ofEntry(t.Context(), entry); len(requests) != 1 || requests[0].Name != "one" || requests[0].Namespace != "garden-dev" {
		t.Errorf("the entry belongs to %v", requests)
	}
}

// TestFullSnapshotsAreInTheWindow checks the times of the full snapshots of many Shoots.
func TestFullSnapshotsAreInTheWindow(t *testing.T) {
	in := known(t, func(in *Inputs) {
		in.Shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "223000+0000", End: "233000+0000"}}
	})
	window, _ := maintenance.OfShoot(in.Shoot)
	times := map[string]bool{}
	for i := range 500 {
		in.Owner.UID = types.UID(time.Duration(i).String())
		schedule, err := cron.ParseStandard(in.fullSnapshots())
		if err != nil {
			t.Fatal(err)
		}
		if at := schedule.Next(now.UTC()); !window.Contains(at) {
			t.Fatalf("a full snapshot at %s", at)
		}
		times[in.fullSnapshots()] = true
	}
	if len(times) < 50 {
		t.Errorf("the Shoots have only %d different times", len(times))
	}
}
