package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	shootflow "github.com/trellis-k8s/trellis/pkg/shoot"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	shootName = "one"
	// shootWriter is the field manager of gardenlet.
	shootWriter = "gardenlet"
	// shootNamespace replaces the namespace of the control plane, and the ManagedResource of that name, in the names
	// of sites.
	shootNamespace = "TECHNICAL"
	shootVersion   = "1.37.1"
	// shootPatience is the time limit of a step in the life of a Shoot. Several operations are retried one after the
	// other after a fault.
	shootPatience = 2 * kit.WaitTimeout
	// healthEvery is how often the health of the Shoot's API server is checked. A failed check is repeated after this
	// time.
	healthEvery = time.Second
)

// shootIdentity is the identity of gardenlet.
var shootIdentity = corev1beta1.Gardener{ID: "gardenlet-0", Name: "gardenlet", Version: "v1"}

// shootLife is a run of the scenario "shoot": gardenlet creates the control plane of a Shoot, changes it,
// hibernates and wakes it up, and deletes it. The garden, the seed and the cluster of the Shoot have real API
// servers. Fakes do the work of the resource-managers.
type shootLife struct {
	*ground
	*fleet
	// project is the name of the Project, projectNamespace its namespace in the garden, and technical the namespace of the control plane.
	project, projectNamespace, technical string
	// address is the address of the Shoot's API server.
	address string
	// current is the running gardenlet. Its requests arrive at that address.
	current atomic.Pointer[life]
	// deleting is set once the Shoot is deleted.
	deleting atomic.Bool

	// keys are the Secrets that were generated for the control plane. It is set after the creation. Only the test's
	// own goroutine uses it.
	keys     map[string]map[string][]byte
	pictures []string
}

// shootStep is a step in the life of a Shoot. It ends when the Shoot reports that the operation succeeded and no
// check has an objection.
type shootStep struct {
	name       string
	change     func()
	objections func() []string
}

func newShootLife(t *testing.T) *shootLife {
	t.Helper()
	s := &shootLife{ground: newGround(t), fleet: newFleet(t)}
	_, s.project, _ = strings.Cut(s.namespace, "-")
	s.projectNamespace, s.technical = "garden-"+s.project, constants.PrefixTechnicalID+s.project+"--"+shootName
	s.serveCluster()
	s.prepareGarden()
	return s
}

// newLine returns the clients of gardenlet. The names of Secrets and Events end with digits that differ between
// runs.
func (s *shootLife) newLine(plans ...*plan) *line {
	l := s.ground.newLine(plans, s.attest, s.technical, shootNamespace, s.projectNamespace, "PROJECT-NAMESPACE", s.project, "PROJECT")
	l.shorten = withoutDigits
	return l
}

// play runs all steps of the Shoot's life, beginning with the start of gardenlet.
func (s *shootLife) play(l *line) {
	s.Helper()
	l.begin()
	stop := s.keepRunning(l, "", s.run)
	for _, step := range s.steps() {
		step.change()
		kit.EventuallyWithin(s, shootPatience, "step "+step.name+" has ended", func() string {
			s.standIn()
			return strings.Join(slices.Concat(l.pending(false), step.objections()), "; ")
		})
		s.note(step.name)
	}
	stop()
}

func (s *shootLife) steps() []shootStep {
	changed := func(change func(*corev1beta1.ShootSpec)) func() {
		return func() {
			shoot := s.shoot()
			kit.Change(s, s.garden, shoot, func() { change(&shoot.Spec) })
		}
	}
	succeeds := func(asleep bool) func() []string {
		return func() []string { return s.unfinished(asleep) }
	}
	return []shootStep{
		{"create", s.createShoot, succeeds(false)},
		{"change", changed(func(spec *corev1beta1.ShootSpec) {
			spec.Kubernetes.KubeAPIServer.Requests.MaxNonMutatingInflight = ptr.To[int32](333)
		}), succeeds(false)},
		{"hibernate", changed(func(spec *corev1beta1.ShootSpec) { spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} }), succeeds(true)},
		{"wake", changed(func(spec *corev1beta1.ShootSpec) { spec.Hibernation.Enabled = ptr.To(false) }), succeeds(false)},
		{"delete", s.deleteShoot, s.left},
	}
}

// run runs the controllers of Shoots, wired as gardenlet wires them.
func (s *shootLife) run(ctx context.Context, l *life) error {
	config, gardenConfig := s.controlPlane.Config(), s.gardens.Config()
	config.QPS, gardenConfig.QPS = -1, -1
	config.Wrap(l.wrap)
	gardenConfig.Wrap(l.of("garden").wrap)
	options := managerOptions(s.scheme)
	options.Cache.NewInformer = rewatch.NewInformer
	mgr, err := manager.New(config, options)
	if err != nil {
		return err
	}
	garden, err := cluster.New(gardenConfig, s.gardenOptions)
	if err != nil {
		return err
	}
	if err := mgr.Add(garden); err != nil {
		return err
	}
	configuration := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(configuration)
	configuration.Controllers.ShootCare.SyncPeriod = &metav1.Duration{Duration: healthEvery}
	s.current.Store(l)
	if err := shootflow.AddToManager(mgr, garden, shootflow.Options{
		SeedName: s.project, Namespace: s.namespace, Config: configuration, Identity: &shootIdentity, Clock: clock.RealClock{}, Version: "v1",
		Address: func(string) string { return s.address },
	}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// gardenOptions are the options of gardenlet's garden cache, restricted to the objects of this run.
func (s *shootLife) gardenOptions(o *cluster.Options) {
	named := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	}
	o.Scheme, o.Cache.NewInformer = s.scheme, rewatch.NewInformer
	o.Cache.ByObject = map[client.Object]cache.ByObject{
		&corev1beta1.Shoot{}:   {Namespaces: map[string]cache.Config{s.projectNamespace: {}}},
		&corev1beta1.Seed{}:    named(s.project),
		&corev1beta1.Project{}: named(s.project),
	}
	o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1beta1.InternalSecret{}, &corev1beta1.ShootState{}}}
}

// shoot returns the Shoot, or nil if it does not exist.
func (s *shootLife) shoot() *corev1beta1.Shoot {
	s.Helper()
	shoot := &corev1beta1.Shoot{}
	if !s.found(s.garden, client.ObjectKey{Namespace: s.projectNamespace, Name: shootName}, shoot) {
		return nil
	}
	return shoot
}

// found reads an object and reports whether it exists.
func (s *shootLife) found(c client.Client, name client.ObjectKey, into client.Object) bool {
	s.Helper()
	var err error
	kit.Eventually(s, "the object can be read", func() string {
		err = c.Get(s.always(), name, into)
		return kit.TextOf(client.IgnoreNotFound(err))
	})
	return err == nil
}

// list lists objects.
func (s *shootLife) list(c client.Client, into client.ObjectList, options ...client.ListOption) {
	s.Helper()
	kit.Eventually(s, "the objects can be listed", func() string { return kit.TextOf(c.List(s.always(), into, options...)) })
}

func (s *shootLife) createShoot() {
	s.Helper()
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.projectNamespace, Name: shootName},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local", SeedName: ptr.To(s.project),
			Kubernetes: corev1beta1.Kubernetes{Version: shootVersion}, Provider: corev1beta1.Provider{Type: "local"},
		},
	}
	// The API server of the garden sees the Project and the Seed with a short delay.
	kit.Eventually(s, "the Shoot can be created", func() string { return kit.TextOf(s.garden.Create(s.Context(), shoot.DeepCopy())) })
}

func (s *shootLife) deleteShoot() {
	s.Helper()
	s.deleting.Store(true)
	shoot := s.shoot()
	kit.Change(s, s.garden, shoot, func() {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	})
	kit.Must(s, s.garden.Delete(s.Context(), shoot))
}

// verify checks the final state after all processes have stopped.
func (s *shootLife) verify(undisturbed string) {
	s.Helper()
	for _, finding := range slices.Concat(s.left(), s.violated()) {
		s.Error(finding)
	}
	if got := s.snapshot(); undisturbed != "" && got != undisturbed {
		s.Errorf("the outcome differs from that of a run without a fault:\n%s\nwithout a fault:\n%s", got, undisturbed)
	}
}

func (s *shootLife) snapshot() string { return strings.Join(s.pictures, "\n") }

// note records the state after a step.
func (s *shootLife) note(step string) {
	s.Helper()
	s.Logf("step %s has ended", step)
	s.pictures = append(s.pictures, fmt.Sprintf("after %s:\n%s", step, strings.Join(s.picture(), "\n")))
}
