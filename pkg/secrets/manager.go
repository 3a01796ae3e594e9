package secrets

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// maxRounds limits the number of decisions in one call. Authorities are generated before the certificates that they
// sign.
const maxRounds = 4

// Manager manages the Secrets of a namespace.
type Manager struct {
	// Reader may be a cache of the Secrets with the labels of the manager.
	Reader client.Reader
	// Uncached reads from the API server.
	Uncached client.Reader
	Writer   client.Client
	// Namespace of the Secrets, and Identity of the component that manages them.
	Namespace, Identity string
	Clock               clock.PassiveClock
}

// Wanted is the desired state.
type Wanted struct {
	// Configs are all that are needed, including those of held components.
	Configs []Config
	// Rotations by config name.
	Rotations map[string]Rotation
	// Saved are the Secrets in the saved state of the Shoot: see [Saved].
	Saved []Secret
	// Load reads Saved only if a Secret is missing, which saves reads otherwise; nil if Saved is set.
	Load func(ctx context.Context) ([]Secret, error)
}

// Ensure creates the missing Secrets and returns all of them. If nothing is missing and the reader is a cache, it sends
// no request. It can be repeated at any time: Secrets created before an error or a crash are found again.
func (m *Manager) Ensure(ctx context.Context, wanted Wanted) (Result, error) {
	state, err := m.state(ctx, m.Reader, wanted)
	if err != nil {
		return Result{}, err
	}
	result, err := Resolve(wanted.Configs, state)
	if err == nil && result.Complete() && len(result.Relabel) == 0 {
		return result, nil
	}
	if wanted.Load != nil {
		if wanted.Saved, err = wanted.Load(ctx); err != nil {
			return Result{}, fmt.Errorf("read the saved secrets of namespace %s: %w", m.Namespace, err)
		}
	}
	// Read from the API server before generating anything, because a cache might not show all existing Secrets.
	if state, err = m.state(ctx, m.Uncached, wanted); err != nil {
		return Result{}, err
	}
	if state.Adoptable, err = m.adoptable(ctx); err != nil {
		return Result{}, err
	}
	for range maxRounds {
		if result, err = Resolve(wanted.Configs, state); err != nil {
			return Result{}, err
		}
		if result.Complete() {
			return result, m.relabel(ctx, result.Relabel)
		}
		created, err := m.create(ctx, result)
		if err != nil {
			return Result{}, err
		}
		state.Existing = append(state.Existing, created...)
	}
	return Result{}, errors.New("the secrets cannot be completed: their configs are inconsistent")
}

// Existing returns the Secrets that exist, by their configs. It writes nothing. It returns an error if a Secret is lost.
func (m *Manager) Existing(ctx context.Context, wanted Wanted) (map[string]Item, error) {
	state, err := m.state(ctx, m.Reader, wanted)
	if err != nil {
		return nil, err
	}
	result, err := Resolve(wanted.Configs, state)
	return result.Items, err
}

func (m *Manager) state(ctx context.Context, reader client.Reader, wanted Wanted) (State, error) {
	var list corev1.SecretList
	if err := reader.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingLabels{
		constants.LabelSecretsManagerManagedBy: managedBy, constants.LabelSecretsManagerIdentity: m.Identity,
	}); err != nil {
		return State{}, fmt.Errorf("list the secrets of %s in namespace %s: %w", m.Identity, m.Namespace, err)
	}
	state := State{Identity: m.Identity, Rotations: wanted.Rotations, Saved: wanted.Saved, Now: m.Clock.Now()}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			state.Existing = append(state.Existing, fromObject(&list.Items[i]))
		}
	}
	return state, nil
}

func (m *Manager) adoptable(ctx context.Context) (map[string][]Secret, error) {
	var list corev1.SecretList
	adopted := client.HasLabels{constants.LabelSecretsManagerUseDataForName}
	if err := m.Uncached.List(ctx, &list, client.InNamespace(m.Namespace), adopted); err != nil {
		return nil, fmt.Errorf("list the secrets to adopt in namespace %s: %w", m.Namespace, err)
	}
	adoptable := map[string][]Secret{}
	for i := range list.Items {
		name := list.Items[i].Labels[constants.LabelSecretsManagerUseDataForName]
		adoptable[name] = append(adoptable[name], fromObject(&list.Items[i]))
	}
	return adoptable, nil
}

// create restores lost Secrets, and generates and writes missing ones. If another writer has created a Secret of the
// same name in the meantime, that Secret is used.
func (m *Manager) create(ctx context.Context, result Result) ([]Secret, error) {
	var created []Secret
	write := func(secret Secret) error {
		object := secret.object(m.Namespace)
		err := m.Writer.Create(ctx, object)
		if apierrors.IsAlreadyExists(err) {
			object = &corev1.Secret{}
			err = m.Uncached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: secret.Name}, object)
			if err == nil && object.Labels[constants.LabelSecretsManagerIdentity] != m.Identity {
				err = errors.New("it exists and belongs to another manager")
			}
		}
		if err != nil {
			return fmt.Errorf("create Secret %s/%s: %w", m.Namespace, secret.Name, err)
		}
		created = append(created, fromObject(object))
		return nil
	}
	for _, secret := range result.Restore {
		if err := write(secret); err != nil {
			return nil, err
		}
	}
	for _, request := range result.Missing {
		secret, err := generate(request, m.Clock.Now())
		if err != nil {
			return nil, err
		}
		if err := write(secret); err != nil {
			return nil, err
		}
	}
	for _, bundle := range result.Bundles {
		if err := write(bundle); err != nil {
			return nil, err
		}
	}
	return created, nil
}

func (m *Manager) relabel(ctx context.Context, secrets []Secret) error {
	for _, secret := range secrets {
		var object corev1.Secret
		if err := m.Uncached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: secret.Name}, &object); err != nil {
			return fmt.Errorf("read Secret %s/%s: %w", m.Namespace, secret.Name, err)
		}
		before := client.MergeFromWithOptions(object.DeepCopy(), client.MergeFromWithOptimisticLock{})
		object.Labels = secret.Labels
		if err := m.Writer.Patch(ctx, &object, before); err != nil {
			return fmt.Errorf("label Secret %s/%s: %w", m.Namespace, secret.Name, err)
		}
	}
	return nil
}

// CleanUp deletes unused Secrets, based on reads from the API server: see [Deletable].
func (m *Manager) CleanUp(ctx context.Context, wanted Wanted, unsettled []string, referred func(name string) bool) error {
	state, err := m.state(ctx, m.Uncached, wanted)
	if err != nil {
		return err
	}
	result, err := Resolve(wanted.Configs, state)
	if err != nil {
		return err
	}
	for _, secret := range Deletable(result, unsettled, referred) {
		object := &corev1.Secret{}
		object.Namespace, object.Name = m.Namespace, secret.Name
		err := m.Writer.Delete(ctx, object, client.Preconditions{UID: secret.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret %s/%s: %w", m.Namespace, secret.Name, err)
		}
	}
	return nil
}
