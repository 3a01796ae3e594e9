// Package dryrun wraps the target cluster for the apply engine and computes the results of writes without writing
// anything. It
// uses the API server's dry run where possible. Steps that depend on earlier ones, such as taking over fields before
// an apply, are
// simulated on a copy with the code that the API server itself uses.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/openapi3"

	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// Cluster is the target cluster with the simulated writes. It is safe for concurrent use.
type Cluster struct {
	*target.Objects
	dynamic dynamic.Interface
	shared  *shared
	// as is the impersonated user. It is empty for the user of the command.
	as string
}

// shared is the state that clusters of different ServiceAccounts share.
type shared struct {
	schemas *schemas
	// impersonate returns a client that impersonates a user.
	impersonate func(user string, groups []string) (dynamic.Interface, error)

	mu     sync.Mutex
	copies map[object.Key]*Copy
	// namespaces are the namespaces that would be created.
	namespaces map[string]bool
	// definedKinds are the kinds that would be defined.
	definedKinds map[schema.GroupKind]bool
	// forbidden are the kinds for which the user may not send dry-run requests.
	forbidden map[string]bool
}

// New returns a dry-run view of a cluster. The function impersonate returns a client that impersonates a user.
func New(objects *target.Objects, client dynamic.Interface, schemas openapi3.Root,
	impersonate func(user string, groups []string) (dynamic.Interface, error),
) *Cluster {
	return &Cluster{Objects: objects, dynamic: client, shared: &shared{
		schemas: newSchemas(schemas), impersonate: impersonate,
		copies: map[object.Key]*Copy{}, namespaces: map[string]bool{}, definedKinds: map[schema.GroupKind]bool{}, forbidden: map[string]bool{},
	}}
}

// Copy is an object before and after the simulated writes.
type Copy struct {
	Ref object.Ref
	// Before and After are nil if the object does not exist.
	Before, After *unstructured.Unstructured
	// Replaced is set if the object would be deleted and re-created.
	Replaced bool

	mu     sync.Mutex
	loaded bool
	// changed is set if After differs from the object on the API server.
	changed bool
}

// Copy returns an object before and after the simulated writes. It returns nil if the object was neither read nor
// written.
func (c *Cluster) Copy(key object.Key) *Copy {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	return c.shared.copies[key]
}

// ForbiddenKinds returns the kinds for which the user may not send dry-run requests. Their results lack the API server's
// defaults and webhooks.
func (c *Cluster) ForbiddenKinds() []string {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	names := make([]string, 0, len(c.shared.forbidden))
	for name := range c.shared.forbidden {
		names = append(names, name)
	}
	return names
}

func (s *shared) addForbidden(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden[name] = true
}

func (s *shared) copyOf(ref object.Ref) *Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.copies[ref.Key()]
	if held == nil {
		held = &Copy{Ref: ref}
		s.copies[ref.Key()] = held
	}
	return held
}

// Discover returns the resource and scope of a kind. A kind whose CRD would be created counts as served, so that
// callers do not
// wait for it.
func (c *Cluster) Discover(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.Objects.Discover(gvk)
	if errors.Is(err, target.ErrKindNotServed) && c.shared.defines(gvk.GroupKind()) {
		return &meta.RESTMapping{GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace}, nil
	}
	return mapping, err
}

// Resource returns a client for the object of ref. It writes only to the copy of the object.
func (c *Cluster) Resource(ref object.Ref) (metadata.ResourceInterface, error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	mapping, err := c.Mapping(ref.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return c.resource(mapping, ref), nil
}

// ResourceInAnyVersion is like Resource, for an object that may be served in another version.
func (c *Cluster) ResourceInAnyVersion(ref object.Ref) (metadata.ResourceInterface, error) {
	if _, err := c.Objects.ResourceInAnyVersion(ref); err != nil {
		return nil, err
	}
	if _, err := c.Mapping(ref.GroupVersionKind); err != nil {
		return nil, fmt.Errorf("%s is served only in another version, which previews do not support: %w", ref, err)
	}
	return c.Resource(ref)
}

func (c *Cluster) resource(mapping *meta.RESTMapping, ref object.Ref) *resource {
	r := &resource{shared: c.shared, copy: c.shared.copyOf(ref), ref: ref, as: c.as}
	r.client = c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		r.client = c.dynamic.Resource(mapping.Resource).Namespace(ref.Namespace)
	}
	return r
}

// Create simulates the creation of an object.
func (c *Cluster) Create(ctx context.Context, ref object.Ref, body []byte) (*metav1.PartialObjectMetadata, error) {
	return c.write(ctx, ref, body)
}

// Replace simulates the update of an object.
func (c *Cluster) Replace(ctx context.Context, ref object.Ref, body []byte, resourceVersion string) (*metav1.PartialObjectMetadata, error) {
	return c.write(ctx, ref, object.Require(body, "resourceVersion", resourceVersion))
}

func (c *Cluster) write(ctx context.Context, ref object.Ref, body []byte) (*metav1.PartialObjectMetadata, error) {
	mapping, err := c.Mapping(ref.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return c.resource(mapping, ref).write(ctx, body)
}

// Delete simulates the deletion of the object.
func (c *Cluster) Delete(ctx context.Context, ref object.Ref, _ metav1.DeleteOptions) (left *metav1.PartialObjectMetadata, err error) {
	deleted, err := c.ResourceInAnyVersion(ref) //nolint:contextcheck // discovery has a time limit of its own
	if err != nil {
		return nil, err
	}
	return nil, deleted.Delete(ctx, ref.Name, metav1.DeleteOptions{})
}

// DeleteClaims does nothing: previews do not show the PersistentVolumeClaims that are deleted with a StatefulSet.
func (c *Cluster) DeleteClaims(context.Context, string, string, types.UID) error { return nil }

// FinalizeNamespace does nothing: it would only speed up the deletion of the namespace.
func (c *Cluster) FinalizeNamespace(context.Context, string) error { return nil }

// As returns the cluster with a client that impersonates a ServiceAccount.
func (c *Cluster) As(serviceAccount types.NamespacedName) (apply.Cluster, error) {
	user := "system:serviceaccount:" + serviceAccount.Namespace + ":" + serviceAccount.Name
	client, err := c.shared.impersonate(user, []string{
		"system:serviceaccounts", "system:serviceaccounts:" + serviceAccount.Namespace, "system:authenticated",
	})
	if err != nil {
		return nil, err
	}
	return &Cluster{Objects: c.Objects, dynamic: client, shared: c.shared, as: user}, nil
}
