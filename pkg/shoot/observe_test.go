package shoot

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestProjectIsGone checks that a Shoot without a Project can be deleted, but not created. The Project is then the one in the
// technical ID, if there is one.
func TestProjectIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		deleting       bool
		technicalID    string
		label          string
		project, fails string
	}{
		"labelled":             {label: "dev", project: "dev"},
		"created":              {fails: "no Project has the namespace garden-dev"},
		"deleted":              {deleting: true, technicalID: "shoot--dev--one", project: "dev"},
		"deleted, never begun": {deleting: true},
	} {
		in := known(t)
		in.Shoot.Status.TechnicalID, in.Project, in.Namespace, in.Deleting = test.technicalID, "", "", test.deleting
		err := in.setProject(test.label)
		if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if err == nil && (in.Project != test.project || test.technicalID != "" && in.Namespace != test.technicalID) {
			t.Errorf("%s: the Project is %q in namespace %s", name, in.Project, in.Namespace)
		}
	}
}

// TestUnusableSecretsAreReported checks that a deletion that needs Secrets says why it has none.
func TestUnusableSecretsAreReported(t *testing.T) {
	const why = "the ledger shoot-ledger cannot be read"
	in := up(t, func(in *Inputs) { in.Deleting, in.Shoot.DeletionTimestamp = true, &metav1.Time{Time: now} })
	in.Secrets, in.SecretsUnusable = nil, why
	found := false
	for _, wait := range planOf(t, in).Waits {
		found = found || wait.Name == bundleAPIServer+"-known" && strings.Contains(wait.Reason, why)
	}
	if !found {
		t.Errorf("no wait names the cause: %v", planOf(t, in).Waits)
	}
	if _, err := (&reconciler{}).connect(in); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("the error of the access to the shoot is %v", err)
	}
}

// TestUnreadCloudProfile checks that a forced deletion reports why the Cluster cannot be computed, and deletes all else.
func TestUnreadCloudProfile(t *testing.T) {
	in := up(t, forced, func(in *Inputs) { in.CloudProfile, in.Unread = nil, "read CloudProfile local: timeout" })
	plan := planOf(t, in)
	if len(plan.Tombstones) != len(in.Emitted)-1 || len(plan.Waits) != 1 || plan.Waits[0].Reason != in.Unread {
		t.Errorf("%d tombstones of %d bundles, and the waits %v", len(plan.Tombstones), len(in.Emitted), plan.Waits)
	}
}

// TestPendingCloudProfile checks that the Shoot waits for the controller-manager if the status of its profile is not computed yet.
func TestPendingCloudProfile(t *testing.T) {
	in := up(t, func(in *Inputs) { in.CloudProfile, in.ProfilePending = nil, true })
	if reason := in.unknownCloudProfile(); !strings.Contains(reason, "NamespacedCloudProfile") || !strings.Contains(reason, "not yet computed") {
		t.Errorf("the reason is %q", reason)
	}
}
