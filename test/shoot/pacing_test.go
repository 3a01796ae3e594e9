package shoot

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	shootflow "github.com/trellis-k8s/trellis/pkg/shoot"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	// pacedShoots is the number of Shoots that wait for a version of gardenlet, in addition to one whose maintenance window is
	// closed. A version changes pacedBundles ManagedResources of each Shoot.
	pacedShoots, pacedBundles = 5, 3
	pacedBudget, pacedFailed  = 6, 2
	outside                   = "outside"
	// rollsFor is how long the rollout of a ManagedResource takes. It is long enough for all Shoots to start before the first
	// one is finished, unless they are held.
	rollsFor = time.Second
)

// TestRolloutOfGardenlet runs new versions of gardenlet, with new images, on a Seed with Shoots. The budget is never
// exceeded. A Shoot outside its maintenance window waits and reports it. If Shoots fail with a version, the others keep the
// previous one, even after a restart, until a user changes them or another version is installed. A simulated
// resource-manager determines the health of each ManagedResource.
func TestRolloutOfGardenlet(t *testing.T) {
	w := newWorld(t)
	p := newPaced(w)
	toGarden, toSeed, stop := p.start("v1")
	p.declareAll(p.names()...)
	quiet(t, toGarden, toSeed)
	stop()

	p.begin(func(string) bool { return true })
	toGarden, toSeed, stop = p.start("v2")
	p.awaitVersion("v2")
	p.says(outside, "the maintenance window is closed")
	quiet(t, toGarden, toSeed)
	stop()
	if changed := p.changed("v2"); slices.Contains(changed, outside) {
		t.Errorf("the Shoots %v have changed", changed)
	}
	p.announced(outside)
	p.withinBudget("v2", 0)

	failing := map[string]bool{}
	p.begin(func(shoot string) bool {
		if len(failing) < pacedFailed {
			failing[shoot] = true
		}
		return !failing[shoot]
	})
	toGarden, toSeed, stop = p.start("v3")
	kit.EventuallyWithin(t, 2*kit.WaitTimeout, "Shoots fail", func() string {
		if changed := p.changed("v3"); len(changed) < pacedFailed {
			return fmt.Sprintf("the Shoots %v have changed", changed)
		}
		return ""
	})
	quiet(t, toGarden, toSeed)
	stop()
	changed := p.changed("v3")
	toGarden, toSeed, stop = p.start("v3") // Shoots that waited for a slot now report that the rollout is stopped
	held := p.heldBy(changed)
	p.says(held, "fail with this version")
	quiet(t, toGarden, toSeed)
	stop()
	reported := p.operations()
	toGarden, toSeed, stop = p.start("v3")
	kit.EventuallyTrue(t, "the Shoots are watched", func() bool { return toSeed.Watched("/managedresources") && toGarden.Watched("/shoots") })
	quiet(t, toGarden, toSeed)
	if sent := writes(toSeed); len(sent) > 0 {
		t.Errorf("the rollout is stopped, but a restart wrote %v", sent)
	}
	if now := p.operations(); !maps.Equal(now, reported) { // the conditions of failing Shoots may change
		t.Errorf("a restart changed the last operations from %v to %v", reported, now)
	}
	if now := p.changed("v3"); !slices.Equal(now, changed) || len(now) != pacedFailed {
		t.Errorf("the Shoots %v had changed when gardenlet was restarted, %v some time later", changed, now)
	}
	shoot := p.shoot(held)
	kit.Change(t, w.garden, shoot, func() { shoot.Spec.Kubernetes.KubeAPIServer.Requests.MaxNonMutatingInflight = ptr.To[int32](333) })
	kit.Eventually(t, "the Shoot that a user changes is not held", func() string {
		if now := p.changed("v3"); !slices.Contains(now, held) {
			return fmt.Sprintf("the Shoots %v have changed", now)
		}
		return ""
	})
	stop()
	p.withinBudget("v3", pacedBundles+1) // a user has changed a Shoot

	p.begin(func(string) bool { return true })
	_, _, stop = p.start("v4")
	p.awaitVersion("v4")
	p.withinBudget("v4", pacedFailed*pacedBundles) // failing Shoots get another version immediately
	stop()
}

// paced is a Seed with Shoots and a simulated resource-manager.
type paced struct {
	*world
	mu  sync.Mutex
	mrs map[types.NamespacedName]*resourcesv1alpha1.ManagedResource
	// most is the largest number of ManagedResources that were rolling out at the same time since the last call of begin.
	most int
	// version of the running gardenlet.
	version string
	// judge reports whether the ManagedResources of a Shoot become healthy.
	judge func(shoot string) bool
}

func newPaced(w *world) *paced {
	w.Helper()
	p := &paced{world: w, mrs: map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{}, judge: func(string) bool { return true }}
	c, err := client.NewWithWatch(w.seeds.Config(), client.Options{Scheme: w.scheme})
	kit.Must(w, err)
	ctx, cancel := context.WithCancel(w.Context())
	shown, err := c.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{})
	kit.Must(w, err)
	var running sync.WaitGroup
	running.Go(func() {
		for event := range shown.ResultChan() {
			mr, ok := event.Object.(*resourcesv1alpha1.ManagedResource)
			if !ok || event.Type == watch.Bookmark {
				continue
			}
			if healthy, due := p.note(mr); due {
				running.Go(func() {
					if err := p.answer(ctx, mr, healthy); err != nil && ctx.Err() == nil {
						w.Errorf("answer %s/%s: %v", mr.Namespace, mr.Name, err)
					}
				})
			}
		}
	})
	w.Cleanup(func() { cancel(); shown.Stop(); running.Wait() })
	return p
}

// start runs a version of gardenlet, with images of that version.
func (p *paced) start(version string) (toGarden, toSeed *kit.Requests, stop func()) {
	p.Helper()
	var list strings.Builder
	list.WriteString("images:\n")
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "resource-manager"} {
		fmt.Fprintf(&list, "- {name: %s, repository: registry.example.org/%s, tag: %s}\n", name, name, version)
	}
	file := filepath.Join(p.TempDir(), "images.yaml")
	kit.Must(p, os.WriteFile(file, []byte(list.String()), 0o600))
	p.Setenv("IMAGEVECTOR_OVERWRITE", file)
	p.mu.Lock()
	p.version = version
	p.mu.Unlock()
	p.tune = func(o *shootflow.Options) {
		o.Version = version
		o.Config.Controllers.Shoot.Rollout = &gardenletv1alpha1.ShootRollout{Budget: ptr.To(pacedBudget), MaxFailed: ptr.To(pacedFailed)}
		// This test does not cover conditions.
		o.Config.Controllers.ShootCare.SyncPeriod = &metav1.Duration{Duration: time.Hour}
	}
	return p.gardenlet()
}

func (p *paced) names() []string {
	names := []string{outside}
	for i := range pacedShoots {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	return names
}

// declareAll creates Shoots and waits until they have succeeded. The maintenance window of one ended three hours ago.
func (p *paced) declareAll(names ...string) {
	p.Helper()
	for _, name := range names {
		begins := time.Now()
		if name == outside {
			begins = begins.Add(-4 * time.Hour)
		}
		p.declare(func(shoot *corev1beta1.Shoot) {
			shoot.Name = name
			shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{
				Begin: begins.Add(-time.Hour).UTC().Format("150405") + "+0000", End: begins.Add(time.Hour).UTC().Format("150405") + "+0000",
			}}
		})
		p.Cleanup(func() {
			shoot := p.shoot(name)
			ctx := context.WithoutCancel(p.Context())
			metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
			shoot.Finalizers = nil
			_ = p.garden.Update(ctx, shoot)
			_ = p.garden.Delete(ctx, shoot)
		})
	}
	kit.EventuallyWithin(p, 4*kit.WaitTimeout, "the Shoots have succeeded", func() string {
		for _, name := range names {
			if last := p.shoot(name).Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
				return fmt.Sprintf("%s: %+v", name, last)
			}
		}
		return ""
	})
}

func (p *paced) shoot(name string) *corev1beta1.Shoot {
	p.Helper()
	shoot := &corev1beta1.Shoot{}
	kit.Must(p, p.garden.Get(context.WithoutCancel(p.Context()), client.ObjectKey{Namespace: namespace, Name: name}, shoot))
	return shoot
}

// changed returns the Shoots whose API servers a version of gardenlet has written.
func (p *paced) changed(version string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for key, mr := range p.mrs {
		if key.Name == "kube-apiserver" && mr.Annotations[flow.AnnotationVersion] == version {
			owner, _ := flow.ParseOwner(mr.Annotations[flow.AnnotationOwner])
			names = append(names, owner.Name)
		}
	}
	slices.Sort(names)
	return names
}

// operations describes the last operations of the Shoots.
func (p *paced) operations() map[string]string {
	p.Helper()
	all := map[string]string{}
	for _, name := range p.names() {
		last := p.shoot(name).Status.LastOperation
		all[name] = fmt.Sprint(last.State, last.Progress, last.Description, last.LastUpdateTime)
	}
	return all
}

// heldBy returns a Shoot that is in its maintenance window and has not changed.
func (p *paced) heldBy(changed []string) string {
	p.Helper()
	for _, name := range p.names() {
		if name != outside && !slices.Contains(changed, name) {
			return name
		}
	}
	p.Fatal("all Shoots have changed")
	return ""
}

// awaitVersion waits until a version has changed all Shoots except the one outside its window, and all changes are rolled out.
func (p *paced) awaitVersion(version string) {
	p.Helper()
	kit.EventuallyWithin(p, 4*kit.WaitTimeout, "the Shoots are updated to "+version, func() string {
		p.mu.Lock()
		rolling := 0
		for _, mr := range p.mrs {
			rolling += flow.FleetOf([]resourcesv1alpha1.ManagedResource{*mr}, version).Rolling
		}
		p.mu.Unlock()
		if changed := p.changed(version); len(changed) < pacedShoots || rolling > 0 {
			return fmt.Sprintf("%v have changed, and %d ManagedResources are rolling out", changed, rolling)
		}
		return ""
	})
}

// says waits until the last operation of a Shoot contains a text although it has succeeded.
func (p *paced) says(name, text string) {
	p.Helper()
	kit.Eventually(p, "Shoot "+name+" reports: "+text, func() string {
		if last := p.shoot(name).Status.LastOperation; last.State != corev1beta1.LastOperationStateSucceeded || !strings.Contains(last.Description, text) {
			return fmt.Sprintf("%+v", last)
		}
		return ""
	})
}

// announced waits for the Event of a held Shoot.
func (p *paced) announced(name string) {
	p.Helper()
	kit.Eventually(p, "an Event reports that the rollout is held", func() string {
		var list eventsv1.EventList
		kit.Must(p, p.garden.List(p.Context(), &list, client.InNamespace(namespace)))
		for _, event := range list.Items {
			if event.Regarding.Name == name && event.Reason == "RolloutHeld" {
				return ""
			}
		}
		return "no Event found"
	})
}

// begin changes how the simulated resource-manager judges, and restarts the count of concurrent rollouts.
func (p *paced) begin(judge func(shoot string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge, p.most = judge, 0
}

// withinBudget checks that the number of concurrent rollouts since begin never exceeded the budget, except for rollouts
// that are not paced.
func (p *paced) withinBudget(version string, notHeld int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Logf("%s: at most %d ManagedResources were rolling out at the same time", version, p.most)
	if allowed := pacedBudget + notHeld; p.most > allowed || p.most == 0 {
		p.Errorf("%s: %d ManagedResources were rolling out at the same time, want at most %d", version, p.most, allowed)
	}
	p.most = 0
}
