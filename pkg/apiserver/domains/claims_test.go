package domains

import (
	"context"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

var (
	domainsOfTest = []string{"x", "a.x", "b.x", "c.a.x", "d.c.a.x", "y", "a.y"}
	namesOfTest   = []string{"one", "two", "three", "four"}
)

// TestOneShootForEachDomain runs random requests on two API servers that know the claims of some time ago, and kills requests in the
// middle. No two Shoots ever have the same domain, or one above that of the other. In the end, each domain that no Shoot hides is free.
func TestOneShootForEachDomain(t *testing.T) {
	t.Parallel()
	const runs, moves = 1000, 400
	results := map[string]int{}
	for seed := range uint64(runs) {
		w := newWorld(seed, 2)
		for range moves {
			if len(w.running) < 4 {
				w.startRandom(results)
			}
			w.move()
			if conflict := w.conflict(); conflict != "" {
				t.Fatalf("seed %d: %s", seed, conflict)
			}
		}
		w.kill()
		w.now = w.now.Add(grace)
		for _, domain := range domainsOfTest {
			probe := &gardencorev1beta1.Shoot{}
			probe.Namespace, probe.Name, probe.UID, probe.Spec.DNS = "garden-probe", "probe", w.newUID(), &gardencorev1beta1.DNS{Domain: ptr.To(domain)}
			w.shoots["garden-probe/probe"] = probe
			free := w.conflict() == ""
			delete(w.shoots, "garden-probe/probe")
			s := w.servers[0]
			undo, err := s.claimsOf(func() { s.known = w.revision }).Take(t.Context(), probe, nil)
			if free != (err == nil) || !free && !apierrors.IsForbidden(err) {
				t.Fatalf("seed %d: the domain %s is free: %v; its claim: %v", seed, domain, free, err)
			}
			if err := undo(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range []string{"stored", "403", "503", "409", "updated", "deleted"} {
		if results[want] < runs/10 {
			t.Errorf("only %d requests ended as %s", results[want], want)
		}
	}
	if results["500"] > 0 {
		t.Errorf("%d requests ended with an error that is not one of the API", results["500"])
	}
}

// startRandom starts a request that creates, changes or deletes a random Shoot.
func (w *world) startRandom(results map[string]int) {
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Namespace, shoot.Name = "garden-dev", namesOfTest[w.random.IntN(len(namesOfTest))]
	key := shoot.Namespace + "/" + shoot.Name
	domain := domainsOfTest[w.random.IntN(len(domainsOfTest))]
	kind, fails := w.random.IntN(4), w.random.IntN(10) == 0
	w.start(func(_ *server, claims *Claims, step func()) {
		switch kind {
		case 0, 1:
			shoot.UID = w.newUID()
			if kind == 0 {
				shoot.Spec.DNS = &gardencorev1beta1.DNS{Domain: &domain}
			}
			results[w.create(claims, shoot, key, step, fails)]++
		case 2:
			results[w.setDomain(claims, key, domain, step, fails)]++
		case 3:
			results[w.remove(claims, key, step)]++
		}
	})
}

// create stores a new Shoot. If it fails, the server does not know whether it is stored.
func (w *world) create(claims *Claims, shoot *gardencorev1beta1.Shoot, key string, step func(), fails bool) string {
	undo, err := claims.Take(context.Background(), shoot, nil)
	if err != nil {
		return codeOf(err)
	}
	step()
	switch {
	case fails:
		return "unknown"
	case w.shoots[key] != nil:
		return conflict(undo)
	}
	shoot.ResourceVersion = w.nextRevision()
	w.record()
	w.shoots[key] = shoot
	return "stored"
}

// conflict ends a request that certainly stored nothing.
func conflict(undo func(context.Context) error) string {
	if err := undo(context.Background()); err != nil {
		panic(err)
	}
	return "409"
}

// setDomain stores the domain of a Shoot that has none.
func (w *world) setDomain(claims *Claims, key, domain string, step func(), fails bool) string {
	step()
	old := w.shoots[key]
	if old == nil || domainOf(old) != "" {
		return "nothing to do"
	}
	updated := old.DeepCopy()
	updated.Spec.DNS = &gardencorev1beta1.DNS{Domain: &domain}
	undo, err := claims.Take(context.Background(), updated, old)
	if err != nil {
		return codeOf(err)
	}
	step()
	switch {
	case fails:
		return "unknown"
	case w.shoots[key] == nil || w.shoots[key].ResourceVersion != old.ResourceVersion:
		return conflict(undo)
	}
	updated.ResourceVersion = w.nextRevision()
	w.record()
	w.shoots[key] = updated
	return "updated"
}

// remove deletes a Shoot, and then releases its domain.
func (w *world) remove(claims *Claims, key string, step func()) string {
	step()
	shoot := w.shoots[key]
	if shoot == nil {
		return "nothing to do"
	}
	delete(w.shoots, key)
	w.nextRevision()
	w.record()
	if err := claims.Release(context.Background(), shoot); err != nil {
		panic(err)
	}
	return "deleted"
}

// codeOf returns the code that a client gets. The API server answers 500 for errors that only contain one of the API.
func codeOf(err error) string {
	status, is := err.(apierrors.APIStatus)
	if !is {
		return "500"
	}
	return strconv.Itoa(int(status.Status().Code))
}
