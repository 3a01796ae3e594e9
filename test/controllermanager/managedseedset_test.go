package controllermanager

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// managesSeeds runs a set from one replica to two, back to one, and to its deletion. The test reports what gardenlets would report.
func (u *uses) managesSeeds() {
	garden := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
	garden.Spec.Namespace = ptr.To("garden")
	garden.Spec.Tolerations = &corev1beta1.ProjectTolerations{Whitelist: []corev1beta1.Toleration{{Key: "seed.gardener.cloud/protected"}}} // Shoots in namespace garden have it
	u.create(garden)
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "local"}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "seeds"},
	}
	u.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seeds"}})
	u.create(binding)
	set := u.set()
	u.create(set)
	u.hosts(set, "seeds-0")
	u.hosts(set, "seeds-1")
	u.eventually(set, "both replicas are ready", func() bool { return set.Status.ReadyReplicas == 2 && set.Status.PendingReplica == nil })
	if set.Status.NextReplicaNumber != 2 || set.Status.ObservedGeneration != set.Generation {
		u.Errorf("the status is %+v", set.Status)
	}

	first, second := u.managedSeed("seeds-0"), u.managedSeed("seeds-1")
	kit.Must(u, u.client.Get(u.Context(), client.ObjectKeyFromObject(first), first))
	kit.Change(u, u.client, first, func() {
		metav1.SetMetaDataAnnotation(&first.ObjectMeta, constants.AnnotationProtectFromDeletion, "true")
	})
	kit.Change(u, u.client, set, func() { set.Spec.Replicas = ptr.To[int32](1) })
	u.eventually(set, "the replica that is not protected is deleted", func() bool { return set.Status.Replicas == 1 && set.Status.PendingReplica == nil })
	if !u.exists(first) || u.exists(second) || u.exists(replica("seeds-1")) {
		u.Error("not the second replica was deleted")
	}

	u.delete(set)
	kit.EventuallyTrue(u, "an Event says why the set is kept", func() bool {
		var events corev1.EventList
		kit.Must(u, u.client.List(u.Context(), &events, client.InNamespace("garden")))
		for _, event := range events.Items {
			if event.InvolvedObject.UID == set.UID && event.Reason == "ReconcileError" {
				return true
			}
		}
		return false
	})
	if !u.exists(set) || !u.exists(first) {
		u.Error("the set or its protected replica is deleted")
	}
	kit.Change(u, u.client, first, func() { first.Annotations = nil })
	kit.EventuallyTrue(u, "the set and its replicas are deleted", func() bool { return !u.exists(first) && !u.exists(replica("seeds-0")) && !u.exists(set) })
	for _, name := range []string{"seeds-0", "seeds-1"} {
		u.delete(&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	u.delete(binding)
}

func (u *uses) set() *seedmanagementv1alpha1.ManagedSeedSet {
	u.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(u, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "seedmanagement", "managedseedset.yaml"))
	kit.Must(u, err)
	set := &seedmanagementv1alpha1.ManagedSeedSet{}
	kit.Must(u, yaml.UnmarshalStrict(text, set))
	return set
}

func replica(name string) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
}

func (u *uses) managedSeed(name string) *seedmanagementv1alpha1.ManagedSeed {
	return &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
}

// eventually waits for the status of a set.
func (u *uses) eventually(set *seedmanagementv1alpha1.ManagedSeedSet, what string, holds func() bool) {
	u.Helper()
	kit.Eventually(u, what, func() string {
		kit.Must(u, u.client.Get(u.Context(), client.ObjectKeyFromObject(set), set))
		if holds() {
			return ""
		}
		return fmt.Sprintf("%+v, waiting for %+v", set.Status, set.Status.PendingReplica)
	})
}

// waits waits until a set waits for a replica.
func (u *uses) waits(set *seedmanagementv1alpha1.ManagedSeedSet, name string, reason seedmanagementv1alpha1.PendingReplicaReason) {
	u.Helper()
	u.eventually(set, "the set waits for "+name+": "+string(reason), func() bool {
		return set.Status.PendingReplica != nil && set.Status.PendingReplica.Name == name && set.Status.PendingReplica.Reason == reason
	})
}

// hosts lets a replica become a Seed: its Shoot fails once, and is created; its ManagedSeed is registered; its Seed is ready.
func (u *uses) hosts(set *seedmanagementv1alpha1.ManagedSeedSet, name string) {
	u.Helper()
	u.waits(set, name, seedmanagementv1alpha1.ShootReconcilingReason)
	shoot, managed := replica(name), u.managedSeed(name)
	operates := func(state corev1beta1.LastOperationState) {
		u.Helper()
		kit.Must(u, u.client.Get(u.Context(), client.ObjectKeyFromObject(shoot), shoot))
		shoot.Status.ObservedGeneration = shoot.Generation
		shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: state, Description: "test", LastUpdateTime: metav1.Now()}
		kit.WriteStatus(u, u.client, shoot)
	}
	operates(corev1beta1.LastOperationStateFailed)
	failed := shoot.Generation
	kit.EventuallyTrue(u, "the failed operation is retried", func() bool { return u.exists(shoot) && shoot.Generation > failed })
	operates(corev1beta1.LastOperationStateSucceeded)
	u.waits(set, name, seedmanagementv1alpha1.ManagedSeedPreparingReason)
	if !u.exists(managed) || managed.Spec.Shoot.Name != name || !metav1.IsControlledBy(managed, set) || !metav1.IsControlledBy(shoot, set) {
		u.Errorf("the ManagedSeed is %+v", managed)
	}
	seed := example(u.fixture, "seed.yaml", &corev1beta1.Seed{})
	seed.Name, seed.Spec.Backup = name, nil // without backups, no bucket must be ready
	u.create(seed)
	managed.Status.ObservedGeneration, managed.Status.Conditions = managed.Generation, conditions(seedmanagementv1alpha1.SeedRegistered)
	kit.WriteStatus(u, u.client, managed)
	u.waits(set, name, seedmanagementv1alpha1.SeedNotReadyReason)
	kit.Must(u, u.client.Get(u.Context(), client.ObjectKeyFromObject(seed), seed))
	change := client.StrategicMergeFrom(seed.DeepCopy())
	seed.Status.ObservedGeneration = seed.Generation
	seed.Status.Conditions = append(seed.Status.Conditions, conditions(corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy)...)
	kit.Must(u, u.client.Status().Patch(u.Context(), seed, change))
	kit.EventuallyTrue(u, "the Shoot shows the conditions of its Seed", func() bool {
		shown := func(kind corev1beta1.ConditionType) bool {
			condition := corev1beta1.FindCondition(shoot.Status.Conditions, kind)
			return condition != nil && condition.Status == corev1beta1.ConditionTrue && condition.Reason == "Test"
		}
		return u.exists(shoot) && shown(corev1beta1.SeedGardenletReady) && shown(corev1beta1.SeedSystemComponentsHealthy)
	})
}

// conditions returns conditions that are true.
func conditions(kinds ...corev1beta1.ConditionType) []corev1beta1.Condition {
	var found []corev1beta1.Condition
	for _, kind := range kinds {
		found = append(found, corev1beta1.Condition{
			Type: kind, Status: corev1beta1.ConditionTrue, Reason: "Test", Message: "it is a test", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
	}
	return found
}
