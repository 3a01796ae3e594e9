package shoot

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// phase is where a control plane is in its move between Seeds.
type phase int

const (
	// phaseStays is for a control plane that does not move.
	phaseStays phase = iota
	// phaseMigrate is for one that leaves this Seed.
	phaseMigrate
	// phaseRestore is for one that has arrived in this Seed, or that stays after a move was given up.
	phaseRestore
)

// Move is what is observed of a control plane that moves between Seeds.
type Move struct {
	// Known is set once the objects of extensions were read from the seed. Kept are then the bundles with objects that must not be
	// deleted yet, with the reason: their extension has not given them up, or the ShootState does not have their state.
	Known bool
	Kept  map[string]string
	// Foreign are the ManagedResources of extensions with objects of the shoot cluster.
	Foreign []string
	// Token identifies the last snapshot of the main etcd. Snapshot is set once it is stored.
	Token    string
	Snapshot bool
	// Restoring is set if the main etcd was declared to begin with backups. This stays so.
	Restoring bool

	// States are the states of extension objects in the ShootState.
	States []corev1beta1.ExtensionResourceState
	// Asked are the operations that bundles with extension objects request, and Applied are the bundles whose revision is applied.
	Asked   map[string]string
	Applied map[string]bool
	// Source is the BackupEntry with the previous backups, nil if there is none. SourceProvider is the type of its store.
	Source         *corev1beta1.BackupEntry
	SourceProvider string
	// BackedUp is set if etcd has stored complete backups in the bucket of this Seed. It is known only while Source exists.
	BackedUp bool
	// Machines are those of machine-controller-manager.
	Machines MovedMachines
}

// choiceOperation of a bundle with an extension object is the operation that it requests in a restoration. choiceSnapshot of the
// bundle of the main etcd is the token of its last snapshot, and choiceRestoring records that it begins with backups.
const (
	choiceOperation = "operation"
	choiceSnapshot  = "last-snapshot"
	choiceRestoring = "restoring"
)

// migrated returns when an extension is migrated, relative to the API server. That of an extension that the Shoot no longer has is not
// known; it is migrated before, while it can still use the API server.
func (in Inputs) migrated(name string) corev1beta1.ControllerResourceLifecycleStrategy {
	kind := strings.TrimPrefix(name, prefixExtension)
	registered := registeredExtensions(in.Registrations)[kind]
	if registered.Lifecycle == nil {
		return corev1beta1.BeforeKubeAPIServer
	}
	return ptr.Deref(registered.Lifecycle.Migrate, corev1beta1.BeforeKubeAPIServer)
}

// isMigratedLate reports whether a bundle with an extension object is migrated after the API server has stopped.
func (in Inputs) isMigratedLate(name string) bool {
	switch {
	case strings.HasPrefix(name, prefixExtension):
		return in.migrated(name) == corev1beta1.AfterKubeAPIServer
	case strings.HasPrefix(name, prefixRecord):
		return true
	}
	return name == bundleInfrastructure
}

// asleepBefore reports whether the programs of a control plane that moves do not run: see mayBegin.
func (in Inputs) asleepBefore() bool { return Hibernated(in.Shoot) || in.Shoot.Status.IsHibernated }

// unmovable returns why a control plane cannot leave its Seed, empty if it can.
func (in Inputs) unmovable() string {
	if !in.backedUp() {
		return "the Seed " + in.Seed.Name + " has no backups, without which the control plane cannot move"
	}
	return ""
}

// lostOnArrival returns why a control plane that arrives would begin without its data, empty if it would not.
func (in Inputs) lostOnArrival() string {
	if in.Phase == phaseRestore && !in.backedUp() && !in.emitted(bundleEtcdMain) {
		return "the Seed " + in.Seed.Name + " has no backups, from which the control plane could be restored"
	}
	return ""
}

// programs are the bundles of programs that use the API server, and the API server.
func programs(name string) bool {
	return slices.Contains([]string{
		bundleControllerManager, bundleScheduler, bundleScaling, bundleResourceManager, bundleAPIServerAutoscaler, bundleAPIServer,
	}, name)
}
