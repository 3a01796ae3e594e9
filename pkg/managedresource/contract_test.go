package managedresource

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

func TestForeignKeys(t *testing.T) {
	manifest := object.Manifest{
		Labels:      map[string]string{"mine": "1"},
		Annotations: map[string]string{"mine": "1", "reference.resources.gardener.cloud/secret-1": "s"},
	}
	observation := live.Observation{
		Labels: "kubernetes.io/metadata.name\nmine\ntheirs",
		Annotations: live.Keys(strings.Join([]string{
			"deployment.kubernetes.io/revision", "loadbalancer.openstack.org/x", "mine",
			"reference.resources.gardener.cloud/secret-1", "reference.resources.gardener.cloud/secret-2",
			resourcesv1alpha1.AnnotationDescription, resourcesv1alpha1.AnnotationOrigin, "theirs",
		}, "\n")),
	}
	stale := []string{"reference.resources.gardener.cloud/secret-2"}
	for name, test := range map[string]struct {
		in        applyInput
		directive applyoptions.Options
		want      apply.Strip
	}{
		"not forced":  {want: apply.Strip{Annotations: stale}},
		"labels":      {in: applyInput{forceLabels: true}, want: apply.Strip{Labels: []string{"theirs"}, Annotations: stale}},
		"annotations": {in: applyInput{forceAnnotations: true}, want: apply.Strip{Annotations: append(stale, "theirs")}},
		"merge":       {in: applyInput{forceLabels: true, forceAnnotations: true}, directive: applyoptions.Options{Merge: true}},
	} {
		manifest.Directive = test.directive
		if got := test.in.foreignKeys(&manifest, observation); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestPlanPruneWaitsAndLeaves(t *testing.T) {
	now := time.Unix(1000, 0)
	ours := live.Observation{UID: "u", Origin: "garden/shop", ManagedBy: "gardener", OwnedDigest: "owned"}
	collectable := ours
	collectable.GarbageCollectable = true
	for name, test := range map[string]struct {
		observation live.Observation
		left        time.Duration
		collects    bool
		claimed     bool
		want        action
	}{
		"just left":                     {observation: ours, left: time.Second, want: actionWait},
		"left long ago":                 {observation: ours, left: 2 * time.Second, want: actionDelete},
		"just left, another wants it":   {observation: ours, left: time.Second, claimed: true, want: actionHandOver},
		"collectable":                   {observation: collectable, left: time.Minute, collects: true, want: actionRelease},
		"collectable, but no collector": {observation: collectable, left: time.Minute, want: actionDelete},
	} {
		recorded := entry(configMapKind, "a", "x", "sent.owned")
		key := refOfEntry(recorded).Key()
		who := owners{}
		if test.claimed {
			who.claiming = []types.NamespacedName{shop, bank}
		}
		got := planPrune(pruneInput{
			entries: inventoryWith(recorded), live: map[object.Key]live.State{key: present(test.observation)},
			ownership: who.ownership(), managedBy: "gardener", collectsGarbage: test.collects, now: now,
			unwantedSince: map[object.Key]time.Time{key: now.Add(-test.left)}, delay: 2 * time.Second,
		})[0]
		if got.action != test.want {
			t.Errorf("%s: %s (%s), want %s", name, got.action, got.reason, test.want)
		}
	}
}

// TestMovedToAnotherGroup checks that an object is still wanted if its manifest now has the API group to which Kubernetes moved
// the kind.
func TestMovedToAnotherGroup(t *testing.T) {
	recorded := resourcesv1alpha1.ObjectReference{APIVersion: "extensions/v1beta1", Kind: "Deployment", Namespace: "a", Name: "x"}
	p := &pass{mr: &resourcesv1alpha1.ManagedResource{}}
	in := input{recorded: inventoryWith(recorded), manifests: []object.Manifest{manifestOf(deploymentKind, "a", "x")}}
	if got := p.unwanted(in); len(got) > 0 {
		t.Errorf("an object that moved to the group apps is unwanted: %v", got)
	}
}
