package core

import (
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func ptr[T any](value T) *T { return &value }

func TestEvaluateOperations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		operations string
		ssh        bool
		kept       []string
		asked      bool
	}{
		{"reconcile", true, nil, true},
		{"maintain", true, []string{"maintain"}, false},
		{"force-in-place-update", true, []string{"force-in-place-update"}, false},
		{"rotate-ssh-keypair", true, []string{"rotate-ssh-keypair"}, true},
		{"rotate-ssh-keypair", false, nil, false},
		{"rotate-ssh-keypair; rotate-credentials-start;rotate-etcd-encryption-key", true, []string{"rotate-credentials-start"}, true},
		{"rotate-credentials-complete;rotate-ca-complete;rotate-ca-start", true, []string{"rotate-credentials-complete", "rotate-ca-start"}, true},
		{"rollout-workers=a,b", true, []string{"rollout-workers=a,b"}, true},
		{"rotate-rollout-workers=a", true, []string{"rotate-rollout-workers=a"}, true},
	} {
		kept, asked := evaluateOperations(validation.SplitOperations(test.operations), test.ssh)
		if !slices.Equal(kept, test.kept) || asked != test.asked {
			t.Errorf("%q with SSH %v: kept %v, asked %v; want %v, %v", test.operations, test.ssh, kept, asked, test.kept, test.asked)
		}
	}
}

func TestConfinedSpecRollout(t *testing.T) {
	t.Parallel()
	old := &gardencorev1beta1.Shoot{}
	old.Spec.Maintenance = &gardencorev1beta1.Maintenance{ConfineSpecUpdateRollout: ptr(true)}
	updated := old.DeepCopy()
	updated.Spec.Region = "elsewhere"
	if shootGenerationChanges(updated, old) {
		t.Error("the generation increases for a change that is confined to the maintenance window")
	}
	updated.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr(true)}
	if !shootGenerationChanges(updated, old) {
		t.Error("the generation does not increase for hibernation")
	}
	updated.Spec.Hibernation, updated.Spec.Maintenance.ConfineSpecUpdateRollout = nil, ptr(false)
	if !shootGenerationChanges(updated, old) {
		t.Error("the generation does not increase for a change that is not confined")
	}
}

// TestBindingRemovesTheConstraint checks that the constraint ReadyForMigration, which is about the previous destination, does not let the
// control plane leave for another one.
func TestBindingRemovesTheConstraint(t *testing.T) {
	t.Parallel()
	stored := &gardencorev1beta1.Shoot{}
	stored.Spec.SeedName, stored.Status.SeedName = ptr("destination"), ptr("source")
	stored.Status.Constraints = []gardencorev1beta1.Condition{{Type: gardencorev1beta1.ShootHibernationPossible}, {Type: gardencorev1beta1.ShootReadyForMigration}}
	for seed, want := range map[string]int{"destination": 2, "source": 1, "third": 1} {
		updated := stored.DeepCopy()
		updated.Spec.SeedName = &seed
		bind(updated, stored)
		if got := updated.Status.Constraints; len(got) != want || got[0].Type != gardencorev1beta1.ShootHibernationPossible {
			t.Errorf("bound to %s: %+v", seed, got)
		}
	}
}

func TestRotationIsPrepared(t *testing.T) {
	t.Parallel()
	with := func(phase gardencorev1beta1.CredentialsRotationPhase, auto bool) *gardencorev1beta1.Shoot {
		shoot := &gardencorev1beta1.Shoot{}
		shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
			ETCDEncryptionKey: &gardencorev1beta1.ETCDEncryptionKeyRotation{Phase: phase, AutoCompleteAfterPrepared: &auto},
		}}
		return shoot
	}
	preparing, prepared := with(gardencorev1beta1.RotationPreparing, true), with(gardencorev1beta1.RotationPrepared, true)
	if !shootStatusGenerationChanges(prepared, preparing) || shootStatusGenerationChanges(prepared, prepared) ||
		shootStatusGenerationChanges(with(gardencorev1beta1.RotationPrepared, false), preparing) {
		t.Error("the generation does not increase when a rotation continues automatically")
	}
}

func TestCanonicalShoot(t *testing.T) {
	t.Parallel()
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Labels = map[string]string{"name.seed.gardener.cloud/old": "true", "shoot.gardener.cloud/self-hosted": "true", "own": "label"}
	shoot.Spec.SeedName, shoot.Status.SeedName = ptr("new"), ptr("current")
	shoot.Spec.Addons = &gardencorev1beta1.Addons{KubernetesDashboard: &gardencorev1beta1.KubernetesDashboard{}}
	shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{EnableAnonymousAuthentication: ptr(false)}
	shoot.Spec.Kubernetes.ClusterAutoscaler = &gardencorev1beta1.ClusterAutoscaler{MaxEmptyBulkDelete: ptr(int32(3))}
	canonicalizeShoot(shoot)
	if len(shoot.Labels) != 3 || shoot.Labels["name.seed.gardener.cloud/new"] != "true" || shoot.Labels["name.seed.gardener.cloud/current"] != "true" {
		t.Errorf("labels %v", shoot.Labels)
	}
	if shoot.Spec.Addons != nil || shoot.Spec.Kubernetes.KubeAPIServer.EnableAnonymousAuthentication != nil || shoot.Spec.Kubernetes.ClusterAutoscaler.MaxEmptyBulkDelete != nil {
		t.Errorf("specification %+v", shoot.Spec)
	}
	shoot.Spec.Provider.Workers = []gardencorev1beta1.Worker{{ControlPlane: &gardencorev1beta1.WorkerControlPlane{}}}
	if canonicalizeShoot(shoot); shoot.Labels["shoot.gardener.cloud/self-hosted"] != "true" {
		t.Errorf("labels of a self-hosted Shoot: %v", shoot.Labels)
	}
}

func TestOwnerOfProject(t *testing.T) {
	t.Parallel()
	alice, bob := rbacv1.Subject{Kind: "User", Name: "alice"}, rbacv1.Subject{Kind: "User", Name: "bob"}
	project := &gardencorev1beta1.Project{Spec: gardencorev1beta1.ProjectSpec{Owner: &alice, Members: []gardencorev1beta1.ProjectMember{
		{Subject: alice, Role: "admin", Roles: []string{"uam"}}, {Subject: bob, Role: "owner", Roles: []string{"viewer"}},
	}}}
	canonicalizeOwner(project)
	first, second := project.Spec.Members[0], project.Spec.Members[1]
	if first.Role != "admin" || !slices.Equal(first.Roles, []string{"uam", "owner"}) || second.Role != "viewer" || len(second.Roles) > 0 {
		t.Errorf("members %+v", project.Spec.Members)
	}
	project.Spec.Owner = nil
	project.Spec.Members = []gardencorev1beta1.ProjectMember{{Subject: alice, Role: "owner"}, {Subject: bob, Role: "viewer"}}
	canonicalizeOwner(project)
	if first := project.Spec.Members[0]; first.Role != "owner" {
		t.Errorf("members %+v of a Project without an owner", project.Spec.Members)
	}
}

func TestHealthOfSeeds(t *testing.T) {
	t.Parallel()
	condition := func(of gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus) gardencorev1beta1.Condition {
		return gardencorev1beta1.Condition{Type: of, Status: status}
	}
	gardenlet, extensions := gardencorev1beta1.SeedGardenletReady, gardencorev1beta1.SeedExtensionsReady
	for _, test := range []struct {
		conditions []gardencorev1beta1.Condition
		want       string
	}{
		{nil, "Unknown"},
		{[]gardencorev1beta1.Condition{condition(gardenlet, "Unknown"), condition(extensions, "True")}, "Unknown"},
		{[]gardencorev1beta1.Condition{condition(extensions, "True")}, "NotReady"},
		{[]gardencorev1beta1.Condition{condition(gardenlet, "True"), condition(extensions, "False")}, "NotReady"},
		{[]gardencorev1beta1.Condition{condition(gardenlet, "True"), condition(extensions, "True")}, "Ready"},
	} {
		if got := seedHealth(test.conditions); got != test.want {
			t.Errorf("%v: %s, want %s", test.conditions, got, test.want)
		}
	}
}

func TestInactiveVersions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	past, future := metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now.Add(time.Hour))
	stage := func(classification gardencorev1beta1.VersionClassification, start *metav1.Time) gardencorev1beta1.LifecycleStage {
		return gardencorev1beta1.LifecycleStage{Classification: classification, StartTime: start}
	}
	for name, test := range map[string]struct {
		version gardencorev1beta1.ExpirableVersion
		want    bool
	}{
		"without dates":       {gardencorev1beta1.ExpirableVersion{}, false},
		"expires later":       {gardencorev1beta1.ExpirableVersion{ExpirationDate: &future}, false},
		"expired":             {gardencorev1beta1.ExpirableVersion{ExpirationDate: &past}, true},
		"supported, not over": {gardencorev1beta1.ExpirableVersion{Lifecycle: []gardencorev1beta1.LifecycleStage{stage("supported", nil), stage("expired", &future)}}, false},
		"lifecycle is over":   {gardencorev1beta1.ExpirableVersion{Lifecycle: []gardencorev1beta1.LifecycleStage{stage("supported", nil), stage("expired", &past)}}, true},
		"not yet available":   {gardencorev1beta1.ExpirableVersion{Lifecycle: []gardencorev1beta1.LifecycleStage{stage("preview", &future)}}, true},
	} {
		if got := inactive(test.version, now); got != test.want {
			t.Errorf("%s: inactive %v", name, got)
		}
	}
}
