package shoot

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/kubescheduler"
	"github.com/trellis-k8s/trellis/pkg/component/machinecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// simulation is a seed with the real plans and the real emitter. Its resource-managers follow the rules of
// pkg/managedresource for dependencies and deletion, but need no time.
type simulation struct {
	*testing.T
	in      Inputs
	store   *store
	emitter *flow.Emitter
	// broken are the bundles whose programs do not work.
	broken map[string]bool
	// objects are the objects in the seed and in the shoot cluster.
	objects map[object.Key]simulated
	// applied are the Secrets of each ManagedResource that were last applied. stopped are the bundles without replicas.
	applied map[client.ObjectKey]string
	stopped map[string]bool
	// waits are the reasons why the resource-managers do not finish a ManagedResource.
	waits map[string]string
	// gone are the bundles whose objects were deleted, in this order. faults are the broken rules.
	gone, faults []string
	result       flow.Result
	// lives are the simulations before the deletions of stories: see live.
	lives map[string]*simulation
}

// simulated is an object, the bundle that has it, whether its deletion is confirmed, and the last requested operation.
type simulated struct {
	bundle    string
	confirmed bool
	operation string
}

func newSimulation(t *testing.T, in Inputs) *simulation {
	t.Helper()
	s := &simulation{
		T: t, in: in, store: newStore(), broken: map[string]bool{}, objects: map[object.Key]simulated{},
		applied: map[client.ObjectKey]string{}, stopped: map[string]bool{}, lives: map[string]*simulation{},
	}
	s.emitter = &flow.Emitter{
		Reader: s.store, Uncached: s.store, Writer: s.store, FieldManager: "test",
		Rules: flow.Rules{Scheme: newScheme(t), Protected: flow.DefaultProtected(), Version: "v1"},
	}
	s.store.annotated = func(patched client.Object) {
		kind := patched.GetObjectKind().GroupVersionKind()
		key := object.Key{Group: kind.Group, Kind: kind.Kind, Namespace: patched.GetNamespace(), Name: patched.GetName()}
		if found, exists := s.objects[key]; exists {
			s.objects[key] = simulated{found.bundle, true, found.operation}
		}
	}
	s.in.Tokens = map[string]time.Time{}
	return s
}

// works reports whether the programs of a bundle run and are not broken.
func (s *simulation) works(name string) bool {
	_, exists := s.applied[client.ObjectKey(s.in.key(name))]
	return exists && !s.broken[name] && !s.stopped[name]
}

// copied returns an independent simulation in the same state.
func (s *simulation) copied(t *testing.T) *simulation {
	t.Helper()
	next := newSimulation(t, s.in)
	next.in.Shoot, next.in.Tokens = s.in.Shoot.DeepCopy(), maps.Clone(s.in.Tokens)
	next.store.version, next.store.secrets = s.store.version, maps.Clone(s.store.secrets)
	for key, mr := range s.store.mrs {
		next.store.mrs[key] = mr.DeepCopy()
	}
	next.broken, next.objects = maps.Clone(s.broken), maps.Clone(s.objects)
	next.applied, next.stopped = maps.Clone(s.applied), maps.Clone(s.stopped)
	return next
}

// observe sets the inputs that follow from the state of the seed.
func (s *simulation) observe() {
	s.in.Emitted, s.in.RecordsMade, s.in.Unapplied, s.in.NamespaceExists = nil, map[string]string{}, map[string]bool{}, false
	for _, mr := range s.store.all() {
		s.in.Emitted = append(s.in.Emitted, flow.Key{Namespace: mr.Namespace, Name: mr.Name})
		if isOperation(mr.Name) {
			s.in.Unapplied[mr.Name] = flow.NeverApplied(mr)
		}
		choices := map[string]string{}
		if text := mr.Annotations[flow.AnnotationChoices]; text != "" && json.Unmarshal([]byte(text), &choices) == nil && choices[choiceRecord] != "" {
			s.in.RecordsMade[mr.Name] = choices[choiceRecord]
		}
	}
	for key := range s.objects {
		s.in.NamespaceExists = s.in.NamespaceExists || key.Kind == "Namespace" && key.Name == s.in.Namespace
	}
	if s.in.NamespaceExists {
		placed(&s.in)
	}
	s.observeMachines()
	serves := s.works(bundleAPIServer) && s.works(bundleEtcdMain)
	if serves && s.in.NamespaceExists {
		s.in.Tokens[accessSecret(resourcemanager.Account)] = now.Add(time.Hour)
	}
	if serves && s.works(bundleResourceManager) {
		s.in.Tokens[accessSecret(kubecontrollermanager.Name)] = now.Add(time.Hour)
		if s.in.hasWorkers() {
			for _, account := range []string{kubescheduler.Name, machinecontrollermanager.Name, clusterautoscaler.Name} {
				s.in.Tokens[accessSecret(account)] = now.Add(time.Hour)
			}
		}
		if s.in.scales() {
			scaled(&s.in)
		}
	}
	stops := s.stopped[bundleAPIServer] && s.stopped[bundleResourceManager] && s.stopped[bundleControllerManager]
	s.in.Shoot.Status.IsHibernated = s.in.hibernated() && stops
}

// pass is a reconcile of the Shoot, followed by one of the resource-managers. It reports whether it changed anything.
func (s *simulation) pass() bool {
	s.Helper()
	before, tokens := s.store.version, len(s.in.Tokens)
	s.observe()
	plan, err := Plan(s.in)
	if err != nil {
		s.Fatal(err)
	}
	failing := s.store.writes < s.store.failAt
	if s.result, err = s.emitter.Emit(s.Context(), s.in.Owner, plan); err != nil && !failing {
		s.Fatal(err)
	}
	s.manage()
	return err != nil || s.store.version != before || len(s.in.Tokens) != tokens
}

// manage is a pass of the resource-managers.
func (s *simulation) manage() {
	s.waits = map[string]string{}
	for _, mr := range s.store.all() {
		switch ofShoot := ptr.Deref(mr.Spec.Class, "") == ""; {
		case ofShoot && s.in.forced() && mr.DeletionTimestamp != nil:
			s.end(mr) // as finalizeContents
		case ofShoot && s.in.Phase == phaseMigrate && mr.DeletionTimestamp != nil && !s.works(bundleResourceManager):
			s.end(mr) // as releaseContents
		case ofShoot && (!s.works(bundleResourceManager) || !s.works(bundleAPIServer)):
			s.waits[mr.Name] = "the resource-manager of the shoot does not work"
		case mr.DeletionTimestamp != nil:
			s.cleanUp(mr)
		default:
			s.apply(mr)
		}
	}
}

// settle runs passes until nothing changes any more.
func (s *simulation) settle() {
	s.Helper()
	for quiet := 0; quiet < 2; {
		if quiet++; s.pass() {
			quiet = 0
		}
		if s.store.version > 3000 {
			s.Fatal("the passes never end")
		}
	}
}

// gated returns the dependencies for which changes of a ManagedResource wait.
func (s *simulation) gated(mr *resourcesv1alpha1.ManagedResource) (waits []string) {
	for _, need := range mr.Spec.DependsOn {
		if mr.Status.SecretsDataChecksum != nil && need.For == resourcesv1alpha1.ForCreation {
			continue
		}
		name := need.NameFrom(mr.Namespace)
		switch other := s.store.mrs[name]; {
		case other == nil:
			waits = append(waits, name.Name+" does not exist")
		case other.DeletionTimestamp != nil:
			waits = append(waits, name.Name+" is being deleted")
		case s.applied[name] != fmt.Sprint(other.Spec.SecretRefs):
			waits = append(waits, name.Name+" is not applied")
		case need.Until != resourcesv1alpha1.UntilApplied && s.broken[name.Name]:
			waits = append(waits, name.Name+" is not healthy")
		}
	}
	return waits
}

// apply applies a ManagedResource and reports its health.
func (s *simulation) apply(mr *resourcesv1alpha1.ManagedResource) {
	key, refs := client.ObjectKeyFromObject(mr), fmt.Sprint(mr.Spec.SecretRefs)
	before := mr.DeepCopy()
	mr.Finalizers, mr.Status.ObservedGeneration = []string{resourcesv1alpha1.FinalizerOf(ptr.Deref(mr.Spec.Class, ""))}, mr.Generation
	state := resourcesv1alpha1.ConditionTrue
	if waits := s.gated(mr); s.applied[key] != refs && len(waits) > 0 {
		s.waits[mr.Name] = strings.Join(waits, ", ")
		state = resourcesv1alpha1.ConditionProgressing
	} else if s.applied[key] != refs {
		s.send(mr)
		s.applied[key], mr.Status.SecretsDataChecksum = refs, &refs
	}
	health := resourcesv1alpha1.ConditionTrue
	if s.broken[mr.Name] {
		health = resourcesv1alpha1.ConditionFalse
	}
	mr.Status.Conditions = []resourcesv1alpha1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: state}, {Type: resourcesv1alpha1.ResourcesHealthy, Status: health},
		{Type: resourcesv1alpha1.ResourcesProgressing, Status: resourcesv1alpha1.ConditionFalse},
	}
	if !equality.Semantic.DeepEqual(before, mr) {
		mr.ResourceVersion = s.store.next()
	}
}

// send applies the objects of a ManagedResource, and deletes those that are no longer wanted.
func (s *simulation) send(mr *resourcesv1alpha1.ManagedResource) {
	wanted := map[object.Key]bool{}
	mr.Status.Resources = nil
	delete(s.stopped, mr.Name)
	for _, reference := range mr.Spec.SecretRefs {
		secret := s.store.secrets[client.ObjectKey{Namespace: mr.Namespace, Name: reference.Name}]
		if secret == nil {
			s.Fatalf("%s refers to the Secret %s, which does not exist", mr.Name, reference.Name)
		}
		objects, err := manifestsecret.Read(secret, 1<<20)
		if err != nil {
			s.Fatal(err)
		}
		for _, each := range objects {
			key := object.Key{Group: each.GroupVersionKind().Group, Kind: each.GetKind(), Namespace: each.GetNamespace(), Name: each.GetName()}
			if _, exists := s.objects[key]; !exists && s.in.Deleting && guarded(key) {
				s.faults = append(s.faults, fmt.Sprintf("%s is created during the deletion", key))
			}
			wanted[key] = true
			annotations := each.GetAnnotations()
			s.objects[key] = simulated{mr.Name, annotations[flow.AnnotationConfirmDeletion] == "true", annotations[constants.AnnotationGardenerOperation]}
			mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{})
			last := &mr.Status.Resources[len(mr.Status.Resources)-1]
			last.APIVersion, last.Kind, last.Namespace, last.Name = each.GetAPIVersion(), each.GetKind(), each.GetNamespace(), each.GetName()
			if spec, is := each.Object["spec"].(map[string]any); is && each.GetKind() == "Deployment" && fmt.Sprint(spec["replicas"]) == "0" {
				s.stopped[mr.Name] = true
			}
		}
	}
	for key, of := range s.objects {
		if of.bundle == mr.Name && !wanted[key] {
			delete(s.objects, key)
		}
	}
}

// guarded reports whether a webhook denies the deletion of an object without a confirmation.
func guarded(key object.Key) bool {
	return key.Kind == "Etcd" || key.Group == extensionsv1alpha1.GroupName && key.Kind != "Cluster"
}

// cleanUp deletes the objects of a ManagedResource that is being deleted, after the ManagedResources that must be deleted
// first.
func (s *simulation) cleanUp(mr *resourcesv1alpha1.ManagedResource) {
	if ptr.Deref(mr.Spec.KeepObjects, false) {
		s.end(mr)
		return
	}
	self := client.ObjectKeyFromObject(mr)
	named, set := mr.DeletedAfter()
	for _, other := range s.store.all() {
		key := client.ObjectKeyFromObject(other)
		if set && slices.Contains(named, key) || !set && slices.Contains(other.Dependencies(), self) {
			s.waits[mr.Name] = "its objects are deleted after " + key.Name
			return
		}
	}
	for key, of := range s.objects {
		if of.bundle == mr.Name && guarded(key) && !of.confirmed {
			s.waits[mr.Name] = fmt.Sprintf("the deletion of %s is not confirmed", key)
			return
		}
	}
	s.removed(mr.Name)
	s.end(mr)
}

// removed deletes the objects of a bundle.
func (s *simulation) removed(name string) {
	count := len(s.objects)
	maps.DeleteFunc(s.objects, func(_ object.Key, of simulated) bool { return of.bundle == name })
	if len(s.objects) == count {
		return
	}
	s.gone = append(s.gone, name)
	for _, before := range s.precedes(name) {
		for _, of := range s.objects {
			if of.bundle == before {
				s.faults = append(s.faults, fmt.Sprintf("%s is deleted before %s", name, before))
				break
			}
		}
	}
}

// end removes the finalizer.
func (s *simulation) end(mr *resourcesv1alpha1.ManagedResource) {
	key := client.ObjectKeyFromObject(mr)
	delete(s.store.mrs, key)
	delete(s.applied, key)
	s.store.next()
}
