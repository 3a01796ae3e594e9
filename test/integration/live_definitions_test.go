package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// ofGroup returns the definition of a kind that only this test uses, and the manifest of an object of that kind.
func (f *fixture) ofGroup(part string) (definition, object string) {
	group := part + f.namespace + ".example.org"
	return strings.NewReplacer("{name: twins.GROUP}", "{name: twins."+group+", labels: {mine: x}}", "GROUP", group).Replace(twins),
		f.here(fmt.Sprintf("apiVersion: %s/v1\nkind: Twin\nmetadata: {name: x, namespace: NS, labels: {mine: x}}\nspec: {size: 1}\n", group))
}

// TestLiveDefinitionDeleted deletes a CustomResourceDefinition by hand, which deletes all objects of its kind. Both
// are restored without intervention, in one ManagedResource or in two, and are watched again.
func TestLiveDefinitionDeleted(t *testing.T) {
	for name, apart := range map[string]bool{"in one ManagedResource": false, "in two ManagedResources": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.start(onlyEvents)
			definition, object := f.ofGroup("")
			holders := []string{"set"}
			if apart {
				holders = []string{"definitions", "objects"}
				f.manage("definitions", definition)
				f.eventuallySucceeded("definitions")
				f.manage("objects", object, f.configMap("one", "1"))
			} else {
				f.manage("set", definition, object, f.configMap("one", "1"))
			}
			for _, holder := range holders {
				f.eventuallySucceeded(holder)
			}
			uids := f.uidsOf(definition, object)
			for round := range 2 {
				must(t, f.client.Delete(f.ctx, f.object(definition)))
				f.eventually(fmt.Sprintf("both are restored (%d)", round), func() bool {
					now := f.uidsOf(definition, object)
					return now[0] != "" && now[1] != "" && now[0] != uids[0] && now[1] != uids[1]
				})
				uids = f.uidsOf(definition, object)
				for _, holder := range holders {
					f.eventuallySucceeded(holder)
				}
				f.putBack(object)
				f.putBack(definition)
			}
		})
	}
}

// TestLiveDefinitionAway removes a definition until the watch of its kind gives up. When a user restores the
// definition, its objects are restored without intervention and are watched again.
func TestLiveDefinitionAway(t *testing.T) {
	f := newFixture(t)
	p := f.start(onlyEvents)
	definition, object := f.ofGroup("")
	f.createObject(definition, "somebody")
	f.apiService(strings.Fields(object)[1])
	f.manage("set", object, f.configMap("one", "1"))
	f.eventuallySucceeded("set")
	for range 2 {
		must(t, f.client.Delete(f.ctx, f.object(definition)))
		f.eventually("the watch has given up", func() bool { return p.metric(`resource_manager_live_watches{state="impossible"}`) == 1 })
		kit.Eventually(t, "the message names the remedy", func() string { // the message differs while the definition is being deleted
			condition := applied(f.read("set"))
			if condition.Reason != resourcesv1alpha1.ReasonApplyFailed || !strings.Contains(condition.Message, "install its CustomResourceDefinition") {
				return fmt.Sprintf("%+v", condition)
			}
			return ""
		})
		f.createObject(definition, "somebody")
		f.eventually("the object is restored", func() bool { return f.uidIfServed(object) != "" })
		f.eventuallySucceeded("set")
		f.eventually("its kind is watched", func() bool { return p.metric(watchesWatching) == 2 })
		f.putBack(object)
	}
}

// uidsOf returns the UIDs of live objects. The UID of a missing object is empty.
func (f *fixture) uidsOf(manifests ...string) []types.UID {
	f.Helper()
	uids := make([]types.UID, 0, len(manifests))
	for _, manifest := range manifests {
		object := f.parse(manifest)
		err := f.client.Get(f.ctx, client.ObjectKeyFromObject(object), object)
		if !apierrors.IsNotFound(err) {
			must(f, err)
		}
		if err != nil {
			object.SetUID("")
		}
		uids = append(uids, object.GetUID())
	}
	return uids
}

// TestLiveManyKinds applies 200 kinds with one object each. Each kind is watched exactly as long as it exists.
func TestLiveManyKinds(t *testing.T) {
	const kinds = 200
	f := newFixture(t)
	p := f.start(onlyEvents)
	var documents []string
	var objects []*unstructured.Unstructured
	for i := range kinds {
		definition, object := f.ofGroup(fmt.Sprintf("g%d.", i))
		documents = append(documents, definition, object)
		objects = append(objects, f.parse(object))
	}
	mr := f.manage("set", documents...)
	f.patiently("everything is applied", func() bool { return f.read("set").Status.AppliedInputs != "" })
	for _, object := range objects {
		must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(object), object))
	}
	const definitionsToo = kinds + 1
	f.eventually("all kinds are watched", func() bool { return p.metric(watchesWatching) == definitionsToo })
	t.Logf("resident memory: %.0f MiB", p.metric("process_resident_memory_bytes")/(1<<20))
	f.putBack(documents[2*kinds-1])

	must(t, f.client.Delete(f.ctx, mr))
	f.patiently("the ManagedResource is deleted", func() bool {
		return apierrors.IsNotFound(f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), &resourcesv1alpha1.ManagedResource{}))
	})
	f.eventually("nothing is watched", func() bool { return p.metric(watchesWatching) == -1 })
	for i := range documents {
		if uid := f.uidIfServed(documents[i]); uid != "" {
			t.Fatalf("%s still exists", documents[i])
		}
	}
}

// uidIfServed returns the UID of an object. It is empty if the object does not exist or its kind is not served.
func (f *fixture) uidIfServed(manifest string) types.UID {
	f.Helper()
	object := f.parse(manifest)
	if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(object), object); err == nil {
		return object.GetUID()
	}
	return ""
}

// patiently is eventually with a longer timeout.
func (f *fixture) patiently(reason string, done func() bool) {
	f.Helper()
	err := wait.PollUntilContextTimeout(f.ctx, 100*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		f.Fatalf("not within 3 minutes: %s", reason)
	}
}

// TestLiveDefinitionNotEstablished applies a CustomResourceDefinition whose short name is taken by another one.
// Objects that do not depend on it are applied at once, and its own objects when it is established.
func TestLiveDefinitionNotEstablished(t *testing.T) {
	f := newFixture(t)
	f.start(onlyEvents)
	first, _ := f.ofGroup("")
	first = strings.Replace(first, "plural: twins,", "plural: twins, shortNames: [tw],", 1)
	second, object := strings.NewReplacer("twins", "others", "Twin", "Other"), f.here
	f.createObject(first, "somebody")
	f.eventually("the first definition is established", func() bool { return established(f.object(first)) })
	_, twin := f.ofGroup("")
	other := second.Replace(object(twin))
	f.manage("set", second.Replace(first), other, f.configMap("one", "1"), f.here(driftKinds()["Deployment"].named("x")))
	kit.Eventually(t, "the condition names the pending definition", func() string {
		condition := applied(f.read("set"))
		if condition.Status == resourcesv1alpha1.ConditionProgressing && strings.Contains(condition.Message, "its CustomResourceDefinition is not ready") {
			return ""
		}
		return fmt.Sprintf("%+v", condition)
	})
	f.wantConfigMap("one", "1")
	f.object(f.here(driftKinds()["Deployment"].named("x")))
	must(t, f.client.Delete(f.ctx, f.object(first)))
	f.eventually("the object is applied", func() bool { return f.uidIfServed(other) != "" })
	f.eventuallySucceeded("set")
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range conditions {
		if condition, is := condition.(map[string]any); is && condition["type"] == "Established" {
			return condition["status"] == "True"
		}
	}
	return false
}
