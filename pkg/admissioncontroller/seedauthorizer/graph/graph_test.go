package graph

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

func shootOn(seed, name string) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name}}
	shoot.Spec.SeedName, shoot.Spec.CloudProfile = ptr.To(seed), &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
	shoot.Spec.CredentialsBindingName = ptr.To("binding-" + name)
	for _, kind := range []string{"Secret", "ConfigMap", "Pod"} {
		shoot.Spec.Resources = append(shoot.Spec.Resources, corev1beta1.NamedResourceReference{
			Name: kind, ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, Name: "named-" + name},
		})
	}
	return shoot
}

// TestPaths checks which objects a Seed reaches while a Shoot is on it, and moves away.
func TestPaths(t *testing.T) {
	g := New()
	w := NewWatcher(g, clock.RealClock{})
	shoots, secret := rowOf(Shoot), Vertex{Secret, "garden-dev", "named-one"}
	shoot := shootOn("a", "one")
	w.Observe(shoots, shoot, false)
	check := func(seed string, access Access, vertex Vertex, want bool) {
		t.Helper()
		if got := g.HasPath(vertex, SeedVertex(seed), access); got != want {
			t.Errorf("%s to Seed %s (%s): %v, want %v", vertex, seed, access, got, want)
		}
	}
	check("a", Read, secret, true)
	check("a", Protect, secret, false)
	check("a", Own, Vertex{ConfigMap, "garden-dev", "one.ca-cluster"}, true)
	check("a", Read, Vertex{Kind: "Pod", Namespace: "garden-dev", Name: "named-one"}, false)
	check("b", Read, secret, false)
	shoot = shoot.DeepCopy()
	shoot.Spec.SeedName, shoot.Status.SeedName = ptr.To("b"), ptr.To("a")
	w.Observe(shoots, shoot, false)
	check("a", Read, secret, true)
	check("b", Read, secret, true)
	shoot = shoot.DeepCopy()
	shoot.Status.SeedName = ptr.To("b")
	w.Observe(shoots, shoot, false)
	check("a", Read, secret, false)
	w.Observe(shoots, shoot, true)
	check("b", Read, secret, false)
	if vertices, edges := g.Size(); vertices+edges+len(g.sources) != 0 {
		t.Errorf("%d vertices, %d edges remain", vertices, edges)
	}
}

// TestEntryThatMoves checks which Seeds reach a BackupEntry and the credentials of its bucket while its Shoot moves. Both Seeds of the Shoot may
// change an entry that no Seed has.
func TestEntryThatMoves(t *testing.T) {
	g := New()
	w := NewWatcher(g, clock.RealClock{})
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}}
	bucket.Spec.SeedName = ptr.To("a")
	w.Observe(rowOf(BackupBucket), bucket, false)
	shoot := shootOn("b", "one")
	shoot.Status.SeedName = ptr.To("a")
	w.Observe(rowOf(Shoot), shoot, false)
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{
		Namespace: shoot.Namespace, Name: "entry", OwnerReferences: []metav1.OwnerReference{{Kind: "Shoot", Name: shoot.Name}},
	}}
	entry.Spec.BucketName = bucket.Name
	vertex, credentials := Vertex{BackupEntry, shoot.Namespace, "entry"}, Vertex{Secret, "garden", "generated-bucket-bucket"}
	for _, step := range []struct {
		spec, status string
		// owns are the Seeds that have the entry. The other Seed of the Shoot may change it.
		owns []string
	}{{"a", "a", []string{"a"}}, {"b", "a", []string{"a", "b"}}, {"b", "", []string{"b"}}} {
		entry = entry.DeepCopy()
		entry.Spec.SeedName, entry.Status.SeedName = ptr.To(step.spec), nil
		if step.status != "" {
			entry.Status.SeedName = ptr.To(step.status)
		}
		w.Observe(rowOf(BackupEntry), entry, false)
		for _, seed := range []string{"a", "b", "c"} {
			for access, want := range map[Access]bool{Own: slices.Contains(step.owns, seed), Protect: seed != "c", Read: seed != "c"} {
				if got := g.HasPath(vertex, SeedVertex(seed), access); got != want {
					t.Errorf("the entry of %s and %s to Seed %s (%s): %v", step.spec, step.status, seed, access, got)
				}
			}
		}
		if !g.HasPath(credentials, SeedVertex("b"), Read) || g.HasPath(credentials, SeedVertex("b"), Protect) || g.HasPath(credentials, SeedVertex("c"), Read) {
			t.Errorf("only Seed b of the others reads the credentials of the bucket, with the entry of %s and %s", step.spec, step.status)
		}
		if !g.HasPath(credentials, SeedVertex("a"), Own) {
			t.Errorf("Seed a does not reach its credentials, with the entry of %s and %s", step.spec, step.status)
		}
	}
}

// TestManagedSeed checks that the parent reaches the Seed, and nothing that only the Seed needs, and the bootstrap token only while the Seed
// may be bootstrapped.
func TestManagedSeed(t *testing.T) {
	g := New()
	w := NewWatcher(g, clock.RealClock{})
	managed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "child"}}
	managed.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: "child"}
	parent := shootOn("parent", "child")
	parent.Namespace = "garden"
	w.Observe(rowOf(ManagedSeed), managed, false)
	w.Observe(rowOf(Shoot), parent, false)
	w.Observe(rowOf(Shoot), shootOn("child", "one"), false)
	token := Vertex{Secret, "kube-system", TokenSecret("garden", "child")}
	reach := func(vertex Vertex, want bool) {
		t.Helper()
		if got := g.Path(vertex, SeedVertex("parent"), Read); (got != nil) != want {
			t.Errorf("path from %s: %v, want one: %v", vertex, got, want)
		}
	}
	reach(SeedVertex("child"), true)
	reach(token, true)
	reach(ShootVertex("garden-dev", "one"), false)
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "child"}}
	seed.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: time.Now().Add(time.Hour)}
	w.Observe(rowOf(Seed), seed, false)
	reach(token, false)
	seed = seed.DeepCopy()
	seed.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	w.Observe(rowOf(Seed), seed, false)
	reach(token, true)
	w.Observe(rowOf(Seed), seed, true)
	reach(token, true)
}

// TestRandomGraphs compares the search with a simple one.
func TestRandomGraphs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g, all := New(), map[Vertex][]Edge{}
		vertex := func() Vertex {
			number := random.IntN(12)
			return Vertex{[]Kind{Seed, Shoot, Secret}[number%3], "", fmt.Sprint(number)}
		}
		for range 30 {
			source := vertex()
			var edges []Edge
			for range random.IntN(3) {
				edges = append(edges, Edge{vertex(), vertex(), Access(random.IntN(3))})
			}
			g.Set(source, edges)
			all[source] = edges
		}
		from, to, access := vertex(), vertex(), Access(random.IntN(3))
		if g.Has(from) && g.Has(to) {
			if got, want := g.HasPath(from, to, access), simple(all, from, to, access); got != want {
				t.Fatalf("from %s to %s: %v, want %v in %v", from, to, got, want, g.Edges())
			}
		}
	}
}

func simple(all map[Vertex][]Edge, from, to Vertex, access Access) bool {
	seen, next := []Vertex{from}, []Vertex{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if at == to {
			return true
		}
		if at.Kind == Seed && at != from {
			continue
		}
		for _, edges := range all {
			for _, edge := range edges {
				if edge.From == at && edge.Access >= access && !slices.Contains(seen, edge.To) {
					seen, next = append(seen, edge.To), append(next, edge.To)
				}
			}
		}
	}
	return false
}

// BenchmarkHasPath decides about objects of a garden with 100 Seeds and 10,000 Shoots, half of them foreign. It reports the 99th percentile and
// the memory of the graph.
func BenchmarkHasPath(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	g := New()
	w := NewWatcher(g, clock.RealClock{})
	shoots := rowOf(Shoot)
	for i := range 10000 {
		w.Observe(shoots, shootOn(fmt.Sprintf("seed-%d", i%100), fmt.Sprintf("shoot-%d", i)), false)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		number := i % 10000
		from := Vertex{Secret, "garden-dev", fmt.Sprintf("named-shoot-%d", number)}
		if i%5 == 0 {
			from = Vertex{Kind: CloudProfile, Name: "local"}
		}
		begin := time.Now()
		g.HasPath(from, SeedVertex(fmt.Sprintf("seed-%d", (number+i%2*7)%101)), Read)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
}
