package domains

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

var (
	shootsResource = gardencorev1beta1.Resource("shoots")
	claimsResource = gardencorev1beta1.Resource("internalsecrets")
)

// world is a store with several API servers. One request at a time makes one step, which a random number selects.
type world struct {
	random   *rand.Rand
	revision int
	now      time.Time
	shoots   map[string]*gardencorev1beta1.Shoot
	claims   map[string]*gardencorev1beta1.InternalSecret
	// history has the claims at each revision.
	history []map[string]*gardencorev1beta1.InternalSecret
	servers []*server
	running []*running
	uids    int
	// namespace is whether the namespace of claims exists.
	namespace bool
}

// server is an API server. It knows the claims of a revision that is behind.
type server struct {
	*world
	known int
}

// running is a request. Stop ends it as if its server had been killed.
type running struct {
	next func() (struct{}, bool)
	stop func()
}

// killed ends a request in the middle.
type killed struct{}

func newWorld(seed uint64, servers int) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), shoots: map[string]*gardencorev1beta1.Shoot{},
		claims: map[string]*gardencorev1beta1.InternalSecret{},
	}
	w.record()
	for range servers {
		w.servers = append(w.servers, &server{world: w})
	}
	return w
}

// record keeps the claims of the current revision.
func (w *world) record() {
	claims := map[string]*gardencorev1beta1.InternalSecret{}
	for name, claim := range w.claims {
		claims[name] = claim
	}
	w.history = append(w.history, claims)
}

func (w *world) nextRevision() string {
	w.revision++
	return strconv.Itoa(w.revision)
}

// start starts a request on a random server. Work calls step before each access to the store.
func (w *world) start(work func(s *server, claims *Claims, step func())) {
	s := w.servers[w.random.IntN(len(w.servers))]
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if reason := recover(); reason != nil && reason != (killed{}) {
				panic(reason)
			}
		}()
		step := func() {
			if !yield(struct{}{}) {
				panic(killed{})
			}
		}
		work(s, s.claimsOf(step), step)
	})
	w.running = append(w.running, &running{next, stop})
}

// move lets a random request make a step, or a random server learn of writes, and sometimes lets time pass.
func (w *world) move() {
	for _, s := range w.servers {
		if w.random.IntN(3) == 0 {
			s.known += w.random.IntN(w.revision - s.known + 1)
		}
	}
	switch i := w.random.IntN(200); {
	case i == 0: // longer than a request can take
		w.kill()
		w.now = w.now.Add(grace + time.Second)
	case i < 10:
		w.now = w.now.Add(time.Second)
	}
	if len(w.running) == 0 {
		return
	}
	i := w.random.IntN(len(w.running))
	if w.random.IntN(100) == 0 {
		w.running[i].stop()
	} else if _, more := w.running[i].next(); more {
		return
	}
	w.running = append(w.running[:i], w.running[i+1:]...)
}

func (w *world) kill() {
	for _, r := range w.running {
		r.stop()
	}
	w.running = nil
}

// conflict describes two Shoots with the same domain, or with one above that of the other. It is empty if there are none.
func (w *world) conflict() string {
	for key, shoot := range w.shoots {
		for other, another := range w.shoots {
			a, b := domainOf(shoot), domainOf(another)
			if key != other && a != "" && (a == b || strings.HasSuffix(b, "."+a)) {
				return fmt.Sprintf("%s has the domain %s, and %s has %s", key, a, other, b)
			}
		}
	}
	return ""
}

func (w *world) newUID() types.UID {
	w.uids++
	return types.UID(strconv.Itoa(w.uids))
}

// claimsOf returns the claims for a request.
func (s *server) claimsOf(step func()) *Claims {
	return &Claims{
		Client: &store{world: s.world, step: step}, Now: func() time.Time { return s.now },
		MakeNamespace: func(context.Context) error { s.namespace = true; return nil },
		Related: func(_ context.Context, claim *gardencorev1beta1.InternalSecret, domain string) ([]*gardencorev1beta1.InternalSecret, error) {
			for step(); revisionOf(claim) > s.known; step() {
			}
			var found []*gardencorev1beta1.InternalSecret
			for _, other := range s.history[s.known] {
				theirs := other.Annotations[constants.AnnotationDNSDomain]
				if theirs == domain || strings.HasSuffix(theirs, "."+domain) || strings.HasSuffix(domain, "."+theirs) {
					found = append(found, other)
				}
			}
			return found, nil
		},
	}
}

func revisionOf(object client.Object) int {
	revision, err := strconv.Atoi(object.GetResourceVersion())
	if err != nil {
		panic(err)
	}
	return revision
}

// store is a client of a world.
type store struct {
	client.Client
	*world
	step func()
}

func (s *store) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.step()
	switch into := object.(type) {
	case *gardencorev1beta1.Shoot:
		if shoot := s.shoots[key.String()]; shoot != nil {
			shoot.DeepCopyInto(into)
			return nil
		}
		return apierrors.NewNotFound(shootsResource, key.Name)
	case *gardencorev1beta1.InternalSecret:
		if claim := s.claims[key.Name]; claim != nil {
			claim.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(claimsResource, key.Name)
}

func (s *store) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	s.step()
	switch {
	case !s.namespace:
		return apierrors.NewNotFound(claimsResource, object.GetName())
	case s.claims[object.GetName()] != nil:
		return apierrors.NewAlreadyExists(claimsResource, object.GetName())
	}
	object.SetUID(s.newUID())
	s.put(object)
	return nil
}

func (s *store) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	s.step()
	if err := s.unchanged(object.GetName(), object.GetResourceVersion()); err != nil {
		return err
	}
	s.put(object)
	return nil
}

func (s *store) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	s.step()
	given := (&client.DeleteOptions{}).ApplyOptions(options)
	if err := s.unchanged(object.GetName(), *given.Preconditions.ResourceVersion); err != nil {
		return err
	}
	delete(s.claims, object.GetName())
	s.nextRevision()
	s.record()
	return nil
}

func (s *store) put(object client.Object) {
	object.SetResourceVersion(s.nextRevision())
	s.claims[object.GetName()] = object.DeepCopyObject().(*gardencorev1beta1.InternalSecret)
	s.record()
}

func (s *store) unchanged(name, revision string) error {
	found := s.claims[name]
	if found == nil {
		return apierrors.NewNotFound(claimsResource, name)
	}
	if found.ResourceVersion != revision {
		return apierrors.NewConflict(claimsResource, name, nil)
	}
	return nil
}
