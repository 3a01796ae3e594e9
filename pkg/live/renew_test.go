package live

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
)

// TestForgetVerdicts checks that only the objects whose checks changed lose their verdict. If most objects of their kind are
// affected, none of them loses it, and no names are returned.
func TestForgetVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		shop, others int
		few          bool
	}{
		"none":                {0, 10, true},
		"all of few":          {maxSingleReads, 0, true},
		"some of many":        {maxSingleReads + 1, maxSingleReads + 1, true},
		"most of many":        {maxSingleReads + 1, maxSingleReads, false},
		"all of many":         {maxSingleReads + 1, 0, false},
		"one beside too many": {1, 3 * maxSingleReads, true},
	} {
		s, _ := newTestStore()
		for i := range test.shop + test.others {
			observation := Observation{UID: "u", ResourceVersion: "1", Origin: "bank", Examined: true, Health: &health.Verdict{Unhealthy: "sick"}}
			if i < test.shop {
				observation.Origin = "shop"
			}
			s.objects.put(types.NamespacedName{Name: fmt.Sprint(i)}, &observation)
		}
		names, few := s.clearVerdicts([]string{"shop", "market"})
		forgotten := 0
		for key := range s.objects {
			if held := s.objects.get(key); !held.Examined {
				forgotten++
			}
		}
		want := 0
		if test.few {
			want = test.shop
		}
		if few != test.few || len(names) != want || forgotten != want {
			t.Errorf("%s: %t, %d names, %d verdicts forgotten; want %t, %d", name, few, len(names), forgotten, test.few, want)
		}
	}
}

// TestOutdatedVerdicts checks that an object that was examined while its checks changed has no verdict until it is examined
// again, in whatever way it reaches the store.
func TestOutdatedVerdicts(t *testing.T) {
	examiner := health.NewExaminer("", nil)
	s, _ := newTestStore()
	s.observer = observer{gk: deployments, examiner: examiner}
	var renewed []types.NamespacedName
	s.renew = func(names []types.NamespacedName) { renewed = append(renewed, names...) }
	reduceAt := func(version string) *reduced {
		seen, err := s.observer.reduce(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a", UID: "u", ResourceVersion: version, Annotations: map[string]string{origin: "shop"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	change := func(text string) {
		t.Helper()
		checks := []resourcesv1alpha1.HealthCheck{{Group: "apps", Kind: "Deployment", Healthy: "false", Message: fmt.Sprintf("%q", text)}}
		if _, err := examiner.SetOwn("shop", checks); err != nil {
			t.Fatal(err)
		}
		s.clearVerdicts([]string{"shop"})
	}
	want := func(when, verdict string, renewals int) {
		t.Helper()
		wantHealth(t, s, when, verdict)
		if len(renewed) != renewals {
			t.Errorf("%s: %d renewals, want %d", when, len(renewed), renewals)
		}
		renewed = nil
	}

	change("first")
	_ = s.Add(reduceAt("1"))
	want("up to date", "first", 0)
	seen := reduceAt("2")
	change("second")
	_ = s.Add(seen)
	want("shown", "?", 1)
	late, epoch := reduceAt("2"), examiner.Epoch()
	change("third")
	s.renewed(thing, epoch, late.observation)
	want("renewed by checks that changed again", "?", 0)
	s.renewed(thing, examiner.Epoch(), reduceAt("1").observation)
	want("renewed by an older state", "?", 0)
	s.renewed(thing, examiner.Epoch(), reduceAt("2").observation)
	want("renewed", "third", 0)
	s.renewed(types.NamespacedName{Name: "gone"}, examiner.Epoch(), reduceAt("2").observation)
	if len(s.objects) != 1 {
		t.Error("a deleted object is stored again")
	}

	listed := reduceAt("3")
	change("fourth")
	if err := s.replace([]any{listed}, "3", ""); err != nil {
		t.Fatal(err)
	}
	want("listed", "?", 1)
	_ = s.Add(reduceAt("4"))
	want("shown again", "fourth", 0)
}
