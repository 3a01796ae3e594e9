package flow

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

var (
	owner = Owner{Flow: "shoot", UID: "uid-1", Namespace: "garden-dev", Name: "one"}
	start = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
)

var testScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
})

func rules() Rules {
	return Rules{Scheme: testScheme(), Protected: DefaultProtected(), Version: "v1"}
}

func named(name string) Key { return Key{Namespace: "shoot--dev--one", Name: name} }

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--one", Name: name}, Data: map[string]string{"value": value}}
}

func extension(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("extensions.gardener.cloud/v1alpha1")
	u.SetKind(kind)
	u.SetNamespace("shoot--dev--one")
	u.SetName(name)
	return u
}

// bundle returns a bundle with a ConfigMap and dependencies on others.
func bundle(name, value string, on ...string) Bundle {
	b := Bundle{Key: named(name), Objects: []client.Object{configMap(name, value)}}
	for _, dependency := range on {
		b.Spec.DependsOn = append(b.Spec.DependsOn, On(named(dependency)))
	}
	return b
}

func tombstones(names ...string) []Tombstone {
	var list []Tombstone
	for _, name := range names {
		list = append(list, Tombstone{Key: named(name)})
	}
	return list
}

func decide(t *testing.T, plan Plan, live Live) Decision {
	t.Helper()
	decision, err := Decide(owner, plan, live, rules())
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

// steps returns the steps of a decision as text, such as "Create app".
func steps(decision Decision) string {
	var texts []string
	for _, step := range decision.Steps {
		texts = append(texts, fmt.Sprint(step.Action, " ", step.Key.Name))
	}
	return strings.Join(texts, ", ")
}

func nothingLive() Live {
	return Live{
		ManagedResources: map[Key]*resourcesv1alpha1.ManagedResource{}, Secrets: map[Key]bool{}, Uncached: true,
	}
}

// carriedOut returns the live state after the steps of a decision, and after the resource-manager has reconciled the bundles. A
// deleted bundle no longer exists.
func carriedOut(t *testing.T, live Live, decision Decision) Live {
	t.Helper()
	next := Live{ManagedResources: maps.Clone(live.ManagedResources), Secrets: maps.Clone(live.Secrets), Uncached: true}
	for _, step := range decision.Steps {
		switch step.Action {
		case ActionDelete:
			delete(next.ManagedResources, step.Key)
			continue
		case ActionKeepObjects:
			mr := next.ManagedResources[step.Key].DeepCopy()
			mr.Spec.KeepObjects, mr.Generation = ptr.To(true), mr.Generation+1
			next.ManagedResources[step.Key] = mr
			continue
		case ActionHandOver:
			mr := next.ManagedResources[step.Key].DeepCopy()
			mr.Labels[LabelFlow] = FlowReleased
			delete(mr.Labels, LabelOwner)
			next.ManagedResources[step.Key] = mr
			continue
		case ActionConfirm:
			mr := next.ManagedResources[step.Key].DeepCopy()
			mr.Annotations[AnnotationConfirmed] = digestOfNames(mr.Spec.SecretRefs)
			mr.Generation++
			next.ManagedResources[step.Key] = mr
			continue
		}
		secrets, mr, err := step.revision.render(owner, step.emission)
		if err != nil {
			t.Fatal(err)
		}
		mr.UID, mr.Generation = types.UID("uid of "+step.Key.Name), 1
		if before := next.ManagedResources[step.Key]; before != nil {
			mr.Generation = before.Generation + 1
		}
		for _, secret := range secrets {
			next.Secrets[keyOf(secret)] = true
		}
		for _, key := range step.revision.keys {
			apiVersion := "v1"
			if key.Group != "" {
				apiVersion = key.Group + "/v1alpha1"
			}
			mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{APIVersion: apiVersion, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name})
		}
		ready(mr)
		next.ManagedResources[step.Key] = mr
	}
	return next
}

// ready sets the status of a ManagedResource that is applied and healthy.
func ready(mr *resourcesv1alpha1.ManagedResource) {
	mr.Status.ObservedGeneration = mr.Generation
	mr.Status.Conditions = []resourcesv1alpha1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionTrue},
		{Type: resourcesv1alpha1.ResourcesHealthy, Status: resourcesv1alpha1.ConditionTrue},
		{Type: resourcesv1alpha1.ResourcesProgressing, Status: resourcesv1alpha1.ConditionFalse},
	}
}

func emitted(t *testing.T, plan Plan) Live {
	t.Helper()
	return carriedOut(t, nothingLive(), decide(t, plan, nothingLive()))
}

func condition(mr *resourcesv1alpha1.ManagedResource, kind resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus, reason, message string) {
	for i := range mr.Status.Conditions {
		if c := &mr.Status.Conditions[i]; c.Type == kind {
			c.Status, c.Reason, c.Message = status, reason, message
		}
	}
}

func sortedKeys[V any](of map[Key]V) []string {
	var names []string
	for key := range of {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	return names
}

// incompressible returns text that Brotli compresses by at most a quarter.
func incompressible(seed string, size int) string {
	random := rand.New(rand.NewPCG(uint64(seed[0]), 1))
	text := make([]byte, size)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[random.IntN(64)]
	}
	return string(text)
}

// deleteAt marks a ManagedResource as deleted by hand.
func deleteAt(mr *resourcesv1alpha1.ManagedResource) {
	at := metav1.NewTime(start)
	mr.DeletionTimestamp = &at
}
