package shoot

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// The Seeds of the simulations.
const (
	sourceSeed      = "local"
	destinationSeed = "other"
)

// backedUpSeed adds a Seed with backups, and the BackupEntry of the Shoot.
func backedUpSeed(in *Inputs) {
	in.Seed.Spec.Backup = &corev1beta1.Backup{Provider: "aws"}
	in.Shoot.Status.SeedName = ptr.To(in.Seed.Name)
	in.Shoot.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded,
	}
	in.Entry = in.entry()
	in.Entry.Status.LastOperation = succeededAs(corev1beta1.LastOperationTypeReconcile)
	in.Entry.Status.SeedName = ptr.To(in.Seed.Name)
}

func succeededAs(kind corev1beta1.LastOperationType) *corev1beta1.LastOperation {
	return &corev1beta1.LastOperation{Type: kind, State: corev1beta1.LastOperationStateSucceeded}
}

// mover moves a simulated control plane between Seeds. Its extensions answer a pass after they are asked.
type mover struct {
	*simulation
	answered map[object.Key]string
	// waited are the extension objects that were created with a state, and stored is set once the last snapshot is.
	waited map[string]bool
	stored bool
	faults []string
	// released is set once the objects for machines are deleted.
	released bool
}

func newMover(s *simulation) *mover {
	return &mover{simulation: s, answered: map[object.Key]string{}, waited: map[string]bool{}}
}

// leaves binds the Shoot to the other Seed.
func (m *mover) leaves() {
	m.in.Shoot.Spec.SeedName, m.in.Phase = ptr.To(destinationSeed), phaseMigrate
}

func (m *mover) choices(name string) map[string]string {
	choices := map[string]string{}
	if mr := m.store.mrs[client.ObjectKey(m.in.key(name))]; mr != nil && mr.Annotations[flow.AnnotationChoices] != "" {
		if err := json.Unmarshal([]byte(mr.Annotations[flow.AnnotationChoices]), &choices); err != nil {
			m.Fatal(err)
		}
	}
	return choices
}

func isApplied(mr *resourcesv1alpha1.ManagedResource) bool {
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	return mr.Status.ObservedGeneration == mr.Generation && applied.Status == resourcesv1alpha1.ConditionTrue
}

// look sets the inputs about the move.
func (m *mover) look() {
	move := &m.in.Move
	move.Known, move.Kept, move.Asked, move.Applied = true, map[string]string{}, map[string]string{}, map[string]bool{}
	for key, each := range m.objects {
		if key.Group == extensionsv1alpha1.GroupName && m.answered[key] != constants.OperationMigrate {
			move.Kept[each.bundle] = fmt.Sprintf("%s is not given up", key)
		}
	}
	for _, mr := range m.store.all() {
		move.Asked[mr.Name], move.Applied[mr.Name] = m.choices(mr.Name)[choiceOperation], isApplied(mr)
	}
	of := m.choices(bundleEtcdMain)
	move.Token, move.Restoring = "token", of[choiceRestoring] != ""
	m.stored = m.stored || of[choiceSnapshot] == move.Token && move.Applied[bundleEtcdMain] && m.works(bundleEtcdMain)
	move.Snapshot = m.stored
	m.lookAtMachines()
}

// step is a pass, and what others do after it.
func (m *mover) step() bool {
	m.Helper()
	before := maps.Clone(m.objects)
	m.look()
	changed := m.pass()
	m.check(before)
	changed = m.moveMachines() || changed
	for key, each := range m.objects {
		if key.Group == extensionsv1alpha1.GroupName && m.answered[key] != each.operation {
			m.answered[key], changed = each.operation, true
			m.waited[key.Name] = m.waited[key.Name] || each.operation == constants.OperationWaitForState
		}
	}
	if m.in.handsOver(m.result.Plan) {
		m.in.Entry = m.in.Entry.DeepCopy()
		m.in.Entry.Spec.SeedName = m.in.Shoot.Spec.SeedName
		return true
	}
	if m.in.Phase == phaseMigrate && m.in.isMovedAway() && m.in.Entry.Status.SeedName != nil {
		m.in.Entry.Status.SeedName, m.in.Entry.Status.LastOperation = nil, succeededAs(corev1beta1.LastOperationTypeMigrate)
		return true
	}
	return changed
}

// check records what a pass has deleted although it must not.
func (m *mover) check(before map[object.Key]simulated) {
	if m.in.Phase != phaseMigrate {
		return
	}
	exists := func(has func(string) bool) bool {
		for _, each := range before {
			if has(each.bundle) {
				return true
			}
		}
		return false
	}
	for key, each := range before {
		if _, still := m.objects[key]; still {
			continue
		}
		fault := ""
		switch {
		case isOfShoot(each.bundle):
			fault = "it is in the cluster"
		case key.Group == extensionsv1alpha1.GroupName && key.Kind != "Cluster" && m.answered[key] != constants.OperationMigrate:
			fault = "its extension has not given it up"
		case key.Kind == "Etcd" && (!m.stored || m.in.Entry.Status.SeedName != nil):
			fault = "its backups are not handed over"
		case key.Kind == "Deployment" && each.bundle == bundleAPIServer && !m.in.asleepBefore() && exists(func(name string) bool {
			return isOperation(name) && !m.in.isMigratedLate(name)
		}):
			fault = "extensions need it"
		case key.Kind == "Namespace" && exists(func(name string) bool { return name != each.bundle && !isOfShoot(name) }):
			fault = "others are in it"
		case isOperation(each.bundle) && m.in.isMigratedLate(each.bundle) && exists(func(name string) bool { return name == bundleAPIServer }):
			fault = "it is migrated after the API server"
		}
		if fault != "" {
			m.faults = append(m.faults, fmt.Sprintf("%s of %s is deleted, but %s", key, each.bundle, fault))
		}
	}
}

// ends runs passes until nothing changes any more.
func (m *mover) ends() {
	m.Helper()
	for quiet := 0; quiet < 3; {
		if quiet++; m.step() {
			quiet = 0
		}
		if m.store.version > 6000 {
			m.Fatal("the passes never end")
		}
	}
}

// left returns the bundles of the objects that exist, and the ManagedResources that do.
func (m *mover) left() (bundles, mrs []string) {
	for _, each := range m.objects {
		if !isOfShoot(each.bundle) && !slices.Contains(bundles, each.bundle) {
			bundles = append(bundles, each.bundle)
		}
	}
	for _, mr := range m.store.all() {
		mrs = append(mrs, mr.Name)
	}
	slices.Sort(bundles)
	return bundles, mrs
}

// withOwnMachines adds workers whose extension makes machines itself.
func withOwnMachines(in *Inputs) {
	withWorkers(in)
	registration := corev1beta1.ControllerRegistration{}
	registration.Name, registration.Annotations = "machines", map[string]string{constants.AnnotationMachinesWithoutManager: "true"}
	registration.Spec.Resources = []corev1beta1.ControllerResource{{Kind: kindWorker, Type: in.Shoot.Spec.Provider.Type}}
	in.Registrations = append(slices.Clone(in.Registrations), registration)
}

// kinds of Shoots that move.
func movingShoots() map[string][]func(*Inputs) {
	return map[string][]func(*Inputs){
		"without workers":             {withExtensions(lifecycles...)},
		"with workers":                {withExtensions(lifecycles...), withOwnMachines},
		"with managed machines":       {withExtensions("before-after"), withWorkers},
		"hibernated, managed":         {withExtensions("before-after"), withWorkers, hibernate},
		"hibernated":                  {withExtensions(lifecycles...), hibernate},
		"hibernated, with workers":    {withExtensions("before-after", "after-before"), withOwnMachines, hibernate},
		"tolerates failures of zones": {available(corev1beta1.FailureToleranceTypeZone), withExtensions("after-after")},
	}
}

// settledMover returns a Shoot that is completely reconciled on the source.
func settledMover(t *testing.T, change ...func(*Inputs)) *mover {
	t.Helper()
	in := known(t, append(change, backedUpSeed)...)
	sleeps := Hibernated(in.Shoot)
	if sleeps {
		in.Shoot.Spec.Hibernation = nil
	}
	s := newSimulation(t, in)
	s.settle()
	if sleeps {
		hibernate(&s.in)
		s.settle()
	}
	return newMover(s)
}

func (m *mover) copiedMover(t *testing.T) *mover {
	t.Helper()
	next := newMover(m.copied(t))
	next.released = m.released
	next.answered, next.stored, next.in.Entry = maps.Clone(m.answered), m.stored, m.in.Entry.DeepCopy()
	return next
}

func (m *mover) text() string {
	var waits []string
	for _, wait := range m.result.Plan.Waits {
		waits = append(waits, wait.Name+": "+wait.Reason)
	}
	for _, reasons := range []map[flow.Key]string{m.result.Pending, m.result.Problems, m.result.Held} {
		for key, why := range reasons {
			waits = append(waits, key.Name+": "+why)
		}
	}
	for name, why := range m.waits {
		waits = append(waits, name+" (resource-manager): "+why)
	}
	return strings.Join(waits, "\n")
}
