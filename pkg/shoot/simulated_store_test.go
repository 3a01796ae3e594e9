package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// store is an API server with the requests of the emitter. It stores ManagedResources and Secrets.
type store struct {
	client.Client
	mrs     map[client.ObjectKey]*resourcesv1alpha1.ManagedResource
	secrets map[client.ObjectKey]*corev1.Secret
	version int
	// writes counts the writes of the emitter. The one with the number failAt fails.
	writes, failAt int
	// applied is called after each ManagedResource that the flow applies.
	applied func(*resourcesv1alpha1.ManagedResource)
	// annotated is called for each patch of an object that is not a ManagedResource.
	annotated func(client.Object)
}

func newStore() *store {
	return &store{mrs: map[client.ObjectKey]*resourcesv1alpha1.ManagedResource{}, secrets: map[client.ObjectKey]*corev1.Secret{}}
}

// all returns the ManagedResources, sorted by name.
func (s *store) all() []*resourcesv1alpha1.ManagedResource {
	var all []*resourcesv1alpha1.ManagedResource
	for _, key := range slices.SortedFunc(maps.Keys(s.mrs), func(a, b client.ObjectKey) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	}) {
		all = append(all, s.mrs[key])
	}
	return all
}

// next returns the next resource version.
func (s *store) next() string {
	s.version++
	return fmt.Sprint(s.version)
}

// write counts a write.
func (s *store) write() error {
	if s.writes++; s.writes == s.failAt {
		return fmt.Errorf("the API server does not answer to the write %d", s.writes)
	}
	return nil
}

func notFound(key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *resourcesv1alpha1.ManagedResource:
		if found := s.mrs[key]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	case *corev1.Secret:
		if found := s.secrets[key]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	}
	return notFound(key)
}

func (s *store) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch into := into.(type) {
	case *resourcesv1alpha1.ManagedResourceList:
		for _, mr := range s.all() {
			into.Items = append(into.Items, *mr.DeepCopy())
		}
	case *metav1.PartialObjectMetadataList:
		for _, secret := range s.secrets {
			into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta})
		}
	}
	return nil
}

func (s *store) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	if err := s.write(); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(object)
	if s.secrets[key] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, object.GetName())
	}
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("the flow creates a %T", object)
	}
	s.secrets[key] = secret
	return nil
}

// Apply replaces what the flow has written in a ManagedResource.
func (s *store) Apply(_ context.Context, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	if err := s.write(); err != nil {
		return err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := json.Unmarshal(text, mr); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(mr)
	if old := s.mrs[key]; old != nil {
		if mr.UID != old.UID {
			return apierrors.NewConflict(schema.GroupResource{}, mr.Name, fmt.Errorf("it has another UID"))
		}
		mr.Generation, mr.Finalizers, mr.DeletionTimestamp, mr.Status = old.Generation, old.Finalizers, old.DeletionTimestamp, old.Status
		if !equality.Semantic.DeepEqual(mr.Spec, old.Spec) {
			mr.Generation++
		}
	} else {
		if mr.UID != "" {
			return notFound(key)
		}
		mr.Generation, mr.UID = 1, types.UID("uid-"+s.next())
	}
	mr.ResourceVersion = s.next()
	s.mrs[key] = mr
	if s.applied != nil {
		s.applied(mr)
	}
	return nil
}

func (s *store) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := s.write(); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(object)
	mr := s.mrs[key]
	if mr == nil {
		return notFound(key)
	}
	given := (&client.DeleteOptions{}).ApplyOptions(options)
	if conditions := given.Preconditions; conditions != nil &&
		(conditions.UID != nil && *conditions.UID != mr.UID || conditions.ResourceVersion != nil && *conditions.ResourceVersion != mr.ResourceVersion) {
		return apierrors.NewConflict(schema.GroupResource{}, mr.Name, fmt.Errorf("the preconditions are not met"))
	}
	if len(mr.Finalizers) == 0 {
		delete(s.mrs, key)
		return nil
	}
	if mr.DeletionTimestamp == nil {
		mr.DeletionTimestamp, mr.ResourceVersion = &metav1.Time{Time: now}, s.next()
		mr.Generation++
	}
	return nil
}

// Patch merges a patch of a ManagedResource.
func (s *store) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if err := s.write(); err != nil {
		return err
	}
	if _, is := object.(*resourcesv1alpha1.ManagedResource); !is {
		s.annotated(object)
		return nil
	}
	key := client.ObjectKeyFromObject(object)
	mr := s.mrs[key]
	if mr == nil {
		return notFound(key)
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	mr.Generation++
	mr.ResourceVersion = s.next()
	return json.Unmarshal(data, mr)
}
