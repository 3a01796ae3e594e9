package ownership

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestClaims(t *testing.T) {
	x, y := keyNamed("x"), keyNamed("y")
	claims := NewClaims()
	expect := func(step string, key object.Key, first, otherThanShop string) {
		t.Helper()
		text := func(owner types.NamespacedName, ok bool) string {
			if !ok {
				return ""
			}
			return owner.String()
		}
		if got := text(claims.First(key)); got != first {
			t.Errorf("%s: first claim on %s is %q, want %q", step, key.Name, got, first)
		}
		if got := strings.Join(namesOfOwners(claims.others(key, shop)), " "); got != otherThanShop {
			t.Errorf("%s: other claim on %s is %q, want %q", step, key.Name, got, otherThanShop)
		}
	}
	expect("at the start", x, "", "")

	claims.Set(shop, []object.Key{x, y})
	expect("shop claims both", x, "garden/shop", "")

	claims.Set(bank, []object.Key{x})
	expect("bank joins", x, "garden/shop", "garden/bank")
	expect("bank joins", y, "garden/shop", "")

	claims.Set(shop, []object.Key{y, x, x})
	if of := claims.Of(shop); len(of) != 2 {
		t.Errorf("shop claims %v", of)
	}
	expect("shop claims them again", x, "garden/shop", "garden/bank")
	for _, test := range []struct {
		key   object.Key
		owner types.NamespacedName
		want  bool
	}{{x, shop, true}, {x, bank, true}, {y, bank, false}} {
		if has, disowns := claims.has(test.key, test.owner); has != test.want || disowns {
			t.Errorf("%s claims %s: %t, disowns it: %t", test.owner, test.key, has, disowns)
		}
	}
	if sharing := namesOfOwners(claims.Sharing([]object.Key{y, x}, shop)); !slices.Equal(sharing, []string{"garden/bank"}) {
		t.Errorf("shop shares with %v", sharing)
	}

	if successors := namesOfOwners(claims.Set(shop, []object.Key{y})); !slices.Equal(successors, []string{"garden/bank"}) {
		t.Errorf("shop releases x to %v", successors)
	}
	expect("shop releases x", x, "garden/bank", "garden/bank")
	expect("shop releases x", y, "garden/shop", "")

	claims.Set(shop, []object.Key{x, y})
	expect("shop claims x again, after bank", x, "garden/bank", "garden/bank")

	if successors := namesOfOwners(claims.Set(bank, nil)); !slices.Equal(successors, []string{"garden/shop"}) {
		t.Errorf("bank releases everything to %v", successors)
	}
	if successors := claims.Set(shop, []object.Key{}); len(successors) > 0 {
		t.Errorf("shop releases everything to %v", successors)
	}
	claims.Set(shop, nil)
	expect("all released", x, "", "")
	if len(claims.earliest) != 0 || len(claims.later) != 0 || len(claims.byOwner) != 0 {
		t.Errorf("unused entries remain: %v %v %v", claims.earliest, claims.later, claims.byOwner)
	}
}

func TestClaimsDoNotShareTheCallersKeys(t *testing.T) {
	claims, keys := NewClaims(), []object.Key{keyNamed("x")}
	claims.Set(shop, keys)
	keys[0] = keyNamed("y")
	claims.Set(shop, nil)
	if has, _ := claims.has(keyNamed("x"), shop); has {
		t.Error("the claim cannot be removed after the caller has reused its slice")
	}
}

// TestDisownedClaims checks that other owners do not rely on an owner that disowns an object, until the claim ends.
func TestDisownedClaims(t *testing.T) {
	x, y := keyNamed("x"), keyNamed("y")
	claims := NewClaims()
	claims.Set(shop, []object.Key{x, y})
	claims.Set(bank, []object.Key{x})
	claims.Disown(shop, []object.Key{x})
	if has, disowns := claims.has(x, shop); !has || !disowns {
		t.Errorf("shop claims x: %t, disowns it: %t", has, disowns)
	}
	if _, disowns := claims.has(y, shop); disowns {
		t.Error("shop disowns y")
	}
	if others := claims.others(x, bank); len(others) > 0 {
		t.Errorf("bank may rely on %v", others)
	}
	if others := namesOfOwners(claims.others(x, shop)); !slices.Equal(others, []string{"garden/bank"}) {
		t.Errorf("shop may rely on %v", others)
	}
	claims.Disown(bank, []object.Key{x})
	if others := claims.others(x, shop); len(others) > 0 {
		t.Errorf("both disown x, but shop may rely on %v", others)
	}
	if all := claims.All(x); len(all) != 2 {
		t.Errorf("the changes of x concern %v", all)
	}
	claims.Set(shop, []object.Key{x, y})
	if _, disowns := claims.has(x, shop); !disowns {
		t.Error("a repeated claim must not end the disowning")
	}
	claims.Own(shop)
	if _, disowns := claims.has(x, shop); disowns {
		t.Error("shop still disowns x after Own")
	}
	for _, owner := range []types.NamespacedName{shop, bank} {
		claims.Disown(owner, []object.Key{x})
		claims.Set(owner, nil)
	}
	if len(claims.disowned) != 0 {
		t.Errorf("unused entries remain: %v", claims.disowned)
	}
}

// TestTwoThatDisownAnObject checks that two owners never both leave an object to each other.
func TestTwoThatDisownAnObject(t *testing.T) {
	for range 1000 {
		claims := NewClaims()
		x := keyNamed("x")
		owners := []types.NamespacedName{shop, bank}
		for _, owner := range owners {
			claims.Set(owner, []object.Key{x})
		}
		var relying atomic.Int32
		var group sync.WaitGroup
		for _, owner := range owners {
			group.Go(func() {
				claims.Disown(owner, []object.Key{x})
				if len(claims.others(x, owner)) > 0 {
					relying.Add(1)
				}
			})
		}
		group.Wait()
		if relying.Load() == 2 {
			t.Fatal("each relies on the other one")
		}
	}
}

func TestClaimsAreSafeForConcurrentUse(t *testing.T) {
	const workers, rounds = 8, 200
	claims := NewClaims()
	shared := keyNamed("shared")
	var wins, inside atomic.Int32
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			self := types.NamespacedName{Namespace: "garden", Name: fmt.Sprint(worker)}
			for round := range rounds {
				claims.Set(self, []object.Key{shared, keyNamed(fmt.Sprint(worker, round))})
				if first, ok := claims.First(shared); !ok {
					t.Error("First finds no claim although the object is claimed")
				} else if first == self {
					wins.Add(1)
					if inside.Add(1) != 1 {
						t.Error("two owners have the first claim at the same time")
					}
					runtime.Gosched()
					inside.Add(-1)
				}
				claims.others(shared, self)
				if has, _ := claims.has(shared, self); !has {
					t.Error("the owner's own claim is lost")
				}
				claims.Set(self, nil)
			}
		})
	}
	group.Wait()
	if wins.Load() == 0 {
		t.Error("no owner ever had the first claim")
	}
	if len(claims.earliest) != 0 || len(claims.later) != 0 || len(claims.byOwner) != 0 {
		t.Errorf("unused entries remain: %v %v %v", claims.earliest, claims.later, claims.byOwner)
	}
}

func namesOfOwners(owners []types.NamespacedName) []string {
	names := make([]string, 0, len(owners))
	for _, owner := range owners {
		names = append(names, owner.String())
	}
	return names
}

// TestClaimsAreSmall checks that the claim of one ManagedResource on an object takes at most 170 bytes, not counting its name.
func TestClaimsAreSmall(t *testing.T) {
	const owners, objects, wanted = 1000, 10, 170
	keys := make([][]object.Key, owners)
	for i := range keys {
		for n := range objects {
			keys[i] = append(keys[i], keyNamed(fmt.Sprintf("object-%d-%d", i, n)))
		}
	}
	before := heapInUse()
	claims := NewClaims()
	for i := range keys {
		claims.Set(types.NamespacedName{Namespace: "garden", Name: fmt.Sprint(i)}, keys[i])
	}
	if each := (heapInUse() - before) / (owners * objects); each > wanted {
		t.Errorf("a claim takes %d bytes, more than %d", each, wanted)
	}
	runtime.KeepAlive(claims)
	runtime.KeepAlive(keys)
}

// heapInUse returns the size of all reachable objects in bytes.
func heapInUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
