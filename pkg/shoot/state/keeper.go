package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// Keeper writes the ShootStates of a Seed's Shoots. It is safe for concurrent use, with one caller per Shoot at a time.
type Keeper struct {
	// Garden writes to the garden. GardenReader reads from its API server.
	Garden       client.Client
	GardenReader client.Reader
	// Seed reads from the API server of the seed.
	Seed client.Reader
	// Identity of the manager of the control planes' Secrets.
	Identity string
	// FieldManager of writes.
	FieldManager string
	// Period is how often a ShootState is compared with Secrets even if the flow still uses the same ones. Secrets of others may have changed.
	Period time.Duration
	Clock  clock.PassiveClock

	mu    sync.Mutex
	known map[types.UID]known
}

// known is when a ShootState was last compared, and the Secrets that were in use.
type known struct {
	inUse string
	at    time.Time
}

// Keep stores the Secrets of a control plane with the persist label in the ShootState. It returns an error unless all
// Secrets in use are stored, in which case nothing must use them. It sends requests only if other Secrets are in use or
// the period is over, and writes only changes.
func (k *Keeper) Keep(ctx context.Context, shoot *corev1beta1.Shoot, namespace string, inUse map[string]secrets.Item) error {
	used, now := namesOf(inUse), k.Clock.Now()
	k.mu.Lock()
	last, found := k.known[shoot.UID]
	k.mu.Unlock()
	if found && last.inUse == used && now.Before(last.at.Add(k.Period)) {
		return nil
	}
	if err := k.write(ctx, shoot, namespace, inUse); err != nil {
		return fmt.Errorf("store the Secrets of the control plane in ShootState %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[types.UID]known{}
	}
	k.known[shoot.UID] = known{inUse: used, at: now}
	return nil
}

// namesOf returns the names of the Secrets in use that must be stored. Secrets with the same name always have the same data.
func namesOf(inUse map[string]secrets.Item) string {
	var names []string
	for _, item := range inUse {
		if !item.Config.Persist {
			continue
		}
		names = append(names, item.Current.Name)
		if item.Old != nil {
			names = append(names, item.Old.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// write compares the ShootState with the Secrets and creates or changes it.
func (k *Keeper) write(ctx context.Context, shoot *corev1beta1.Shoot, namespace string, inUse map[string]secrets.Item) error {
	var list corev1.SecretList
	persisted := client.MatchingLabels{constants.LabelSecretsManagerPersist: "true"}
	if err := k.Seed.List(ctx, &list, client.InNamespace(namespace), persisted); err != nil {
		return fmt.Errorf("list the Secrets in namespace %s: %w", namespace, err)
	}
	existing := slices.DeleteFunc(list.Items, func(secret corev1.Secret) bool { return secret.DeletionTimestamp != nil })
	present := &corev1beta1.ShootState{}
	err := k.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), present)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read it: %w", err)
	}
	missing := err != nil
	next, err := Next(present.Spec, existing, k.Identity)
	if err != nil {
		return err
	}
	lost, err := Lost(inUse, next)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		// The flow's cache is outdated. The next reconcile restores the Secrets from the ShootState.
		return fmt.Errorf("these Secrets were deleted or changed a moment ago: %s", strings.Join(lost, ", "))
	}
	at := k.Clock.Now().UTC().Format(time.RFC3339Nano)
	if missing {
		state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}, Spec: next}
		state.Annotations = map[string]string{constants.AnnotationGardenerTimestamp: at}
		return k.Garden.Create(ctx, state, client.FieldOwner(k.FieldManager))
	}
	if Equal(present.Spec, next) {
		return nil
	}
	before := client.MergeFromWithOptions(present.DeepCopy(), client.MergeFromWithOptimisticLock{})
	present.Spec = next
	metav1.SetMetaDataAnnotation(&present.ObjectMeta, constants.AnnotationGardenerTimestamp, at)
	return k.Garden.Patch(ctx, present, before, client.FieldOwner(k.FieldManager))
}

// Delete deletes the ShootState of a Shoot whose control plane is deleted. The garden requires a confirmation.
func (k *Keeper) Delete(ctx context.Context, shoot *corev1beta1.Shoot) error {
	state := &corev1beta1.ShootState{}
	err := k.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), state)
	if apierrors.IsNotFound(err) {
		k.Forget(shoot.UID)
		return nil
	}
	if err == nil && state.Annotations[constants.AnnotationConfirmationDeletion] != "true" {
		before := client.MergeFrom(state.DeepCopy())
		metav1.SetMetaDataAnnotation(&state.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
		err = k.Garden.Patch(ctx, state, before, client.FieldOwner(k.FieldManager))
	}
	if err == nil {
		err = k.Garden.Delete(ctx, state, client.Preconditions{UID: &state.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ShootState %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	k.Forget(shoot.UID)
	return nil
}

// Forget removes a Shoot from memory: it was deleted, or its ShootState must be compared again.
func (k *Keeper) Forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, uid)
}

// Saved returns the Secrets in the ShootState of a Shoot, or none if it does not exist.
func (k *Keeper) Saved(ctx context.Context, shoot *corev1beta1.Shoot) ([]secrets.Secret, error) {
	state := &corev1beta1.ShootState{}
	if err := k.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), state); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return secrets.Saved(state.Spec.Gardener)
}
