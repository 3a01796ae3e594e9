package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const movedObjects = 100

// TestBinaryMovesObjects moves 100 objects between two ManagedResources, in both orders and in both at once. None may
// be recreated.
func TestBinaryMovesObjects(t *testing.T) {
	f := newFixture(t)
	f.start(noElection)
	var manifests []string
	for i := range movedObjects {
		manifests = append(manifests, f.configMap(fmt.Sprintf("moved-%d", i), "1"))
	}
	all := strings.Join(manifests, "---\n")
	f.secret("left", "objects.yaml", all)
	f.secret("right", "objects.yaml", "")
	f.managedResource("left", "left")
	f.managedResource("right", "right")
	f.eventuallyHolds("left", movedObjects)
	f.eventuallyApplied("left", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
	before := f.uids()

	take := func(name string) { f.secret(name, "objects.yaml", "") }
	give := func(name string) { f.secret(name, "objects.yaml", all) }
	for _, step := range []struct {
		what string
		do   func()
		to   string
		from string
	}{
		{"first added, then removed", func() { give("right"); f.eventuallyHolds("right", movedObjects); take("left") }, "right", "left"},
		{"first removed, then added", func() { take("right"); give("left") }, "left", "right"},
		{"both at once", func() {
			done := make(chan bool)
			go func() { take("left"); close(done) }()
			give("right")
			<-done
		}, "right", "left"},
	} {
		step.do()
		f.eventuallyHolds(step.to, movedObjects)
		f.eventuallyHolds(step.from, 0)
		f.eventuallyApplied(step.to, resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
		after := f.uids()
		changed := 0
		for name, uid := range before {
			if after[name] != uid {
				changed++
			}
		}
		if changed > 0 || len(after) != movedObjects {
			t.Errorf("%s: %d of %d objects were recreated, %d exist", step.what, changed, len(before), len(after))
		}
	}
}

// eventuallyHolds waits until the inventory of a ManagedResource has the given size.
func (f *fixture) eventuallyHolds(name string, count int) {
	f.Helper()
	f.eventually(fmt.Sprintf("%s holds %d objects", name, count), func() bool {
		mr := &resourcesv1alpha1.ManagedResource{}
		must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, mr))
		return len(mr.Status.Resources) == count
	})
}

func (f *fixture) uids() map[string]types.UID {
	f.Helper()
	list := &corev1.ConfigMapList{}
	must(f, f.client.List(f.ctx, list, client.InNamespace(f.namespace), client.HasLabels{resourcesv1alpha1.LabelManagedBy}))
	uids := map[string]types.UID{}
	for _, configMap := range list.Items {
		uids[configMap.Name] = configMap.UID
	}
	return uids
}
