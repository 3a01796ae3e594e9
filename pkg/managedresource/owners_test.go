package managedresource

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func keyNamed(name string) object.Key {
	return object.Key{Kind: "ConfigMap", Namespace: "a", Name: name}
}

func TestClaims(t *testing.T) {
	x, y := keyNamed("x"), keyNamed("y")
	claims := newClaims()
	expect := func(step string, key object.Key, first, otherThanShop string) {
		t.Helper()
		text := func(owner types.NamespacedName, ok bool) string {
			if !ok {
				return ""
			}
			return owner.String()
		}
		if got := text(claims.first(key)); got != first {
			t.Errorf("%s: first claim on %s is %q, want %q", step, key.Name, got, first)
		}
		if got := strings.Join(namesOfOwners(claims.others(key, shop)), " "); got != otherThanShop {
			t.Errorf("%s: other claim on %s is %q, want %q", step, key.Name, got, otherThanShop)
		}
	}
	expect("at the start", x, "", "")

	claims.set(shop, []object.Key{x, y})
	expect("shop claims both", x, "garden/shop", "")

	claims.set(bank, []object.Key{x})
	expect("bank joins", x, "garden/shop", "garden/bank")
	expect("bank joins", y, "garden/shop", "")

	claims.set(shop, []object.Key{y, x, x})
	if of := claims.of(shop); len(of) != 2 {
		t.Errorf("shop claims %v", of)
	}
	expect("shop claims them again", x, "garden/shop", "garden/bank")
	for _, test := range []struct {
		key   object.Key
		owner types.NamespacedName
		want  bool
	}{{x, shop, true}, {x, bank, true}, {y, bank, false}} {
		if has, disowns := claims.has(test.key, test.owner); has != test.want || disowns {
			t.Errorf("%s has %s: %t, disowns it: %t", test.owner, test.key, has, disowns)
		}
	}
	if sharing := namesOfOwners(claims.sharing([]object.Key{y, x}, shop)); !slices.Equal(sharing, []string{"garden/bank"}) {
		t.Errorf("shop shares with %v", sharing)
	}

	if heirs := namesOfOwners(claims.set(shop, []object.Key{y})); !slices.Equal(heirs, []string{"garden/bank"}) {
		t.Errorf("shop lets go of x to %v", heirs)
	}
	expect("shop lets go of x", x, "garden/bank", "garden/bank")
	expect("shop lets go of x", y, "garden/shop", "")

	claims.set(shop, []object.Key{x, y})
	expect("shop comes back, behind bank", x, "garden/bank", "garden/bank")

	if heirs := namesOfOwners(claims.set(bank, nil)); !slices.Equal(heirs, []string{"garden/shop"}) {
		t.Errorf("bank lets go of all to %v", heirs)
	}
	if heirs := claims.set(shop, []object.Key{}); len(heirs) > 0 {
		t.Errorf("shop lets go of all to %v", heirs)
	}
	claims.set(shop, nil)
	expect("all let go", x, "", "")
	if len(claims.earliest) != 0 || len(claims.later) != 0 || len(claims.byOwner) != 0 {
		t.Errorf("memory is held for nothing: %v %v %v", claims.earliest, claims.later, claims.byOwner)
	}
}

func TestClaimsDoNotShareTheCallersKeys(t *testing.T) {
	claims, keys := newClaims(), []object.Key{keyNamed("x")}
	claims.set(shop, keys)
	keys[0] = keyNamed("y")
	claims.set(shop, nil)
	if has, _ := claims.has(keyNamed("x"), shop); has {
		t.Error("the claim cannot be taken back once the caller reuses its slice")
	}
}

// TestDisownedClaims: nobody relies on who disowns an object, and that ends with the claim.
func TestDisownedClaims(t *testing.T) {
	x, y := keyNamed("x"), keyNamed("y")
	claims := newClaims()
	claims.set(shop, []object.Key{x, y})
	claims.set(bank, []object.Key{x})
	claims.disown(shop, []object.Key{x})
	if has, disowns := claims.has(x, shop); !has || !disowns {
		t.Errorf("shop has x: %t, disowns it: %t", has, disowns)
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
	claims.disown(bank, []object.Key{x})
	if others := claims.others(x, shop); len(others) > 0 {
		t.Errorf("both disown x, and shop may rely on %v", others)
	}
	if all := claims.all(x); len(all) != 2 {
		t.Errorf("the changes of x concern %v", all)
	}
	claims.set(shop, []object.Key{x, y})
	if _, disowns := claims.has(x, shop); !disowns {
		t.Error("a claim that is repeated takes back nothing")
	}
	claims.own(shop)
	if _, disowns := claims.has(x, shop); disowns {
		t.Error("shop disowns x after it has owned up to it")
	}
	for _, owner := range []types.NamespacedName{shop, bank} {
		claims.disown(owner, []object.Key{x})
		claims.set(owner, nil)
	}
	if len(claims.disowned) != 0 {
		t.Errorf("memory is held for nothing: %v", claims.disowned)
	}
}

// TestTwoThatDisownAnObject: never do both leave it to the other one.
func TestTwoThatDisownAnObject(t *testing.T) {
	for range 1000 {
		claims := newClaims()
		x := keyNamed("x")
		owners := []types.NamespacedName{shop, bank}
		for _, owner := range owners {
			claims.set(owner, []object.Key{x})
		}
		var relying atomic.Int32
		var group sync.WaitGroup
		for _, owner := range owners {
			group.Go(func() {
				claims.disown(owner, []object.Key{x})
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

func TestSupersededDoubts(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	s := newSuperseded(now)
	if s.doubts(shop) {
		t.Error("there is doubt before any write")
	}
	s.doubt(shop, "7")
	if !s.doubts(shop) || s.has(shop, "7") {
		t.Error("a write of which nobody knows is not in doubt, or is taken as done")
	}
	s.settle(shop, "7")
	if s.doubts(shop) || s.has(shop, "7") {
		t.Error("the write was not carried out, and is in doubt, or taken as done")
	}
	s.doubt(shop, "7")
	s.settle(shop, "8")
	if s.doubts(shop) || !s.has(shop, "7") {
		t.Error("the write was carried out, and is in doubt, or not taken as done")
	}
	now.Step(cacheLag - 1)
	if !s.has(shop, "7") || s.doubts(shop) {
		t.Error("a cache that is behind is not waited for")
	}
	now.Step(1)
	if s.has(shop, "7") || !s.doubts(shop) {
		t.Error("a cache is waited for that has gone back to an old state")
	}
	s.settle(shop, "7")
	if s.has(shop, "7") || s.doubts(shop) {
		t.Error("the old state is the present one, and is in doubt, or not worked on")
	}
	s.doubt(shop, "8")
	if s.forget(shop); s.doubts(shop) {
		t.Error("what is gone is in doubt")
	}
}

func TestClaimsAreSafeForConcurrentUse(t *testing.T) {
	const workers, rounds = 8, 200
	claims := newClaims()
	shared := keyNamed("shared")
	var wins, inside atomic.Int32
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			self := types.NamespacedName{Namespace: "garden", Name: fmt.Sprint(worker)}
			for round := range rounds {
				claims.set(self, []object.Key{shared, keyNamed(fmt.Sprint(worker, round))})
				if first, ok := claims.first(shared); !ok {
					t.Error("nobody claims what at least one claims")
				} else if first == self {
					wins.Add(1)
					if inside.Add(1) != 1 {
						t.Error("two owners have the first claim at once")
					}
					runtime.Gosched()
					inside.Add(-1)
				}
				claims.others(shared, self)
				if has, _ := claims.has(shared, self); !has {
					t.Error("an own claim got lost")
				}
				claims.set(self, nil)
			}
		})
	}
	group.Wait()
	if wins.Load() == 0 {
		t.Error("nobody was ever first")
	}
	if len(claims.earliest) != 0 || len(claims.later) != 0 || len(claims.byOwner) != 0 {
		t.Errorf("memory is held for nothing: %v %v %v", claims.earliest, claims.later, claims.byOwner)
	}
}

const (
	ownFinalizer = "resources.gardener.cloud/gardener-resource-manager"
	blue         = ownFinalizer + "-blue"
	red          = ownFinalizer + "-red"
)

func TestDutyOf(t *testing.T) {
	const ignore, operation = "resources.gardener.cloud/ignore", "gardener.cloud/operation"
	now := metav1.Now()
	for name, test := range map[string]struct {
		class       string // of the ManagedResource
		configured  string // "resources" if empty
		finalizers  []string
		annotations map[string]string
		deleting    bool
		want        duty
	}{
		"new":                                  {want: dutyApply},
		"known":                                {finalizers: []string{ownFinalizer}, want: dutyApply},
		"with a foreign finalizer":             {finalizers: []string{"example.com/x", ownFinalizer}, want: dutyApply},
		"deleting":                             {finalizers: []string{ownFinalizer}, deleting: true, want: dutyCleanUp},
		"deleting, done":                       {finalizers: []string{"example.com/x"}, deleting: true, want: dutyNone},
		"another class":                        {class: "blue", want: dutyNone},
		"another class, held by it":            {class: "blue", finalizers: []string{blue}, want: dutyNone},
		"went to another class":                {class: "blue", finalizers: []string{ownFinalizer}, want: dutyCleanUp},
		"went to another class, taken over":    {class: "blue", finalizers: []string{blue, ownFinalizer}, want: dutyCleanUp},
		"went to another class, deleting":      {class: "blue", finalizers: []string{ownFinalizer}, deleting: true, want: dutyCleanUp},
		"came from another class":              {finalizers: []string{blue}, want: dutyNone},
		"came from another class, handed over": {finalizers: []string{ownFinalizer}, want: dutyApply},
		"came from two classes, both held":     {finalizers: []string{ownFinalizer, blue}, want: dutyNone},
		"came from another class, deleting":    {finalizers: []string{blue}, deleting: true, want: dutyNone},
		"own class":                            {class: "blue", configured: "blue", want: dutyApply},
		"own class, held by the default":       {class: "blue", configured: "blue", finalizers: []string{ownFinalizer}, want: dutyNone},
		"own class, held by a third":           {class: "blue", configured: "blue", finalizers: []string{red}, want: dutyNone},
		"left own class":                       {configured: "blue", finalizers: []string{blue}, want: dutyCleanUp},
		"all classes":                          {class: "blue", configured: "*", want: dutyApply},
		"all classes, held by one":             {class: "blue", configured: "*", finalizers: []string{blue}, want: dutyNone},
		"all classes, deleting":                {class: "blue", configured: "*", finalizers: []string{ownFinalizer}, deleting: true, want: dutyCleanUp},
		"ignored":                              {annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, want: dutyIgnore},
		"ignored, spelt otherwise":             {annotations: map[string]string{ignore: "1"}, want: dutyIgnore},
		"not ignored":                          {annotations: map[string]string{ignore: "false"}, want: dutyApply},
		"ignored, misspelt":                    {annotations: map[string]string{ignore: "yes"}, want: dutyApply},
		"ignored, of another class":            {class: "blue", annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, want: dutyNone},
		"ignored, deleting":                    {annotations: map[string]string{ignore: "true"}, finalizers: []string{ownFinalizer}, deleting: true, want: dutyCleanUp},
		"to reconcile":                         {annotations: map[string]string{operation: "reconcile"}, want: dutyApply},
		"to restore":                           {annotations: map[string]string{operation: "restore"}, want: dutyApply},
		"to migrate":                           {annotations: map[string]string{operation: "migrate"}, want: dutyApply},
		"waits for its state":                  {annotations: map[string]string{operation: "wait-for-state"}, finalizers: []string{ownFinalizer}, want: dutyNone},
		"waits for its state, deleting":        {annotations: map[string]string{operation: "wait-for-state"}, finalizers: []string{ownFinalizer}, deleting: true, want: dutyNone},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
				Finalizers: test.finalizers, Annotations: test.annotations,
			}}
			if test.class != "" {
				mr.Spec.Class = &test.class
			}
			if test.deleting {
				mr.DeletionTimestamp = &now
			}
			configured := test.configured
			if configured == "" {
				configured = resourcesv1alpha1.DefaultClass
			}
			if got := dutyOf(mr, configured); got != test.want {
				t.Errorf("got duty %d, want %d", got, test.want)
			}
		})
	}
}

func namesOfOwners(owners []types.NamespacedName) []string {
	names := make([]string, 0, len(owners))
	for _, owner := range owners {
		names = append(names, owner.String())
	}
	return names
}

// TestClaimsAreSmall: claims hold an object that one ManagedResource has in 170 bytes at most, its name aside.
func TestClaimsAreSmall(t *testing.T) {
	const owners, objects, wanted = 1000, 10, 170
	keys := make([][]object.Key, owners)
	for i := range keys {
		for n := range objects {
			keys[i] = append(keys[i], keyNamed(fmt.Sprintf("object-%d-%d", i, n)))
		}
	}
	before := heapInUse()
	claims := newClaims()
	for i := range keys {
		claims.set(types.NamespacedName{Namespace: "garden", Name: fmt.Sprint(i)}, keys[i])
	}
	if each := (heapInUse() - before) / (owners * objects); each > wanted {
		t.Errorf("a claim takes %d bytes, more than %d", each, wanted)
	}
	runtime.KeepAlive(claims)
	runtime.KeepAlive(keys)
}

// heapInUse returns the bytes of all objects that are reachable.
func heapInUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
