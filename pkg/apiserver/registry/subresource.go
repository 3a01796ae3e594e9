package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Subresource reads and updates a part of the objects of a kind.
type Subresource struct {
	store *genericregistry.Store
	claim claimFunc
}

var (
	_ rest.Getter              = &Subresource{}
	_ rest.Patcher             = &Subresource{}
	_ rest.TableConvertor      = &Subresource{}
	_ rest.ResetFieldsStrategy = &statusResource{}
)

// Subresource returns a subresource of the kind whose updates follow a strategy.
func (s *Storage[T]) Subresource(strategy rest.RESTUpdateStrategy) *Subresource {
	store := *s.Store
	store.CreateStrategy, store.DeleteStrategy = nil, nil
	store.UpdateStrategy, store.ResetFieldsStrategy = strategy, nil
	return &Subresource{store: &store, claim: s.kind.claim()}
}

// statusResource is the subresource status. Clients that apply it own only its fields.
type statusResource struct {
	*Subresource
	rest.ResetFieldsStrategy
}

// Strategy returns the strategy of the main resource, on which strategies of subresources can be based.
func (s *Storage[T]) Strategy() rest.RESTUpdateStrategy { return s.strategy }

// New implements rest.Storage.
func (s *Subresource) New() runtime.Object { return s.store.New() }

// Destroy implements rest.Storage. It does nothing, because the main resource closes the shared storage.
func (*Subresource) Destroy() {}

// Get implements rest.Getter.
func (s *Subresource) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update implements rest.Updater. A subresource never creates the object.
func (s *Subresource) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, validateCreate rest.ValidateObjectFunc,
	validateUpdate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return s.claim.update(ctx, options, validateUpdate, func(validateUpdate rest.ValidateObjectUpdateFunc) (runtime.Object, bool, error) {
		return s.store.Update(ctx, name, info, validateCreate, validateUpdate, false, options)
	})
}

// ConvertToTable implements rest.TableConvertor.
func (s *Subresource) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}
