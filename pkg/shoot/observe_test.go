package shoot

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestProjectIsGone checks that a Shoot without a Project can be deleted, but not created. The Project is then the one in the
// technical ID, if there is one.
func TestProjectIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		deleting       bool
		technicalID    string
		project, fails string
	}{
		"created":              {fails: "no Project has the namespace garden-dev"},
		"deleted":              {deleting: true, technicalID: "shoot--dev--one", project: "dev"},
		"deleted, never begun": {deleting: true},
	} {
		in := known(t)
		in.Shoot.Status.TechnicalID, in.Project, in.Namespace, in.Deleting = test.technicalID, "", "", test.deleting
		r := &reconciler{projects: fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), owners: map[string]types.NamespacedName{}}
		err := r.observeProject(t.Context(), &in)
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

// TestProjectOfNamespace checks that a Project that claims the namespace of another one does not name its control planes, in any order,
// and that a Project that has failed alone still does.
func TestProjectOfNamespace(t *testing.T) {
	project := func(name, namespace string, phase corev1beta1.ProjectPhase, age time.Duration) corev1beta1.Project {
		return corev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))},
			Spec:       corev1beta1.ProjectSpec{Namespace: &namespace}, Status: corev1beta1.ProjectStatus{Phase: phase},
		}
	}
	owner, claims := project("owner", "a", corev1beta1.ProjectReady, time.Hour), project("claims", "a", corev1beta1.ProjectFailed, 2*time.Hour)
	later, other := project("later", "a", corev1beta1.ProjectReady, time.Minute), project("other", "b", corev1beta1.ProjectReady, time.Hour)
	for _, test := range []struct {
		projects []corev1beta1.Project
		want     string
	}{
		{[]corev1beta1.Project{owner, claims, later, other}, "owner"}, {[]corev1beta1.Project{claims, other, later, owner}, "owner"},
		{[]corev1beta1.Project{claims, other}, "claims"}, {[]corev1beta1.Project{other}, ""},
	} {
		if got := projectWith("a", test.projects); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
