package admission

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// Garden are the facts about the garden that plugins read.
type Garden struct {
	BackupBuckets           Reader[*gardencorev1beta1.BackupBucket]
	CloudProfiles           Reader[*gardencorev1beta1.CloudProfile]
	ClusterOIDCPresets      Reader[*settingsv1alpha1.ClusterOpenIDConnectPreset]
	ControllerRegistrations Reader[*gardencorev1beta1.ControllerRegistration]
	CredentialsBindings     Reader[*securityv1alpha1.CredentialsBinding]
	ExposureClasses         Reader[*gardencorev1beta1.ExposureClass]
	ManagedSeeds            Reader[*seedmanagementv1alpha1.ManagedSeed]
	NamespacedCloudProfiles Reader[*gardencorev1beta1.NamespacedCloudProfile]
	OIDCPresets             Reader[*settingsv1alpha1.OpenIDConnectPreset]
	Projects                Reader[*gardencorev1beta1.Project]
	Quotas                  Reader[*gardencorev1beta1.Quota]
	SecretBindings          Reader[*gardencorev1beta1.SecretBinding]
	Seeds                   Reader[*gardencorev1beta1.Seed]
	// Shoots have only the fields that the function reduceShoot lists.
	Shoots             Reader[*gardencorev1beta1.Shoot]
	WorkloadIdentities Reader[*securityv1alpha1.WorkloadIdentity]
	// Secret reads a Secret live. The error is NotFound only if it does not exist.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Live reads objects of the garden's API, without a memory.
	Live client.Reader
	// Kube reads objects of the garden's kube-apiserver, without a memory.
	Kube Kube
	// Authorizer decides what the users of requests may do in addition.
	Authorizer authorizer.Authorizer
	// Now is the current time.
	Now func() time.Time
}

// Kube reads objects of kube-apiserver and the scope of their kinds.
type Kube interface {
	client.Reader
	RESTMapper() meta.RESTMapper
}

// Reader reads objects of one kind. Its methods fail with 503 if the objects are not known in time. Callers must not change
// the objects.
type Reader[T client.Object] interface {
	// Get returns an object. It is read live if memory does not have it, and the error is NotFound only if it does not exist
	// then, either. The namespace is empty for kinds without namespaces.
	Get(ctx context.Context, namespace, name string) (T, error)
	// By returns the objects in memory to which an index gives a key.
	By(ctx context.Context, index Index[T], key string) ([]T, error)
	// LiveBy is like By, but reads all objects live. It is for decisions before a removal, which must not miss a user of the
	// removed object.
	LiveBy(ctx context.Context, index Index[T], key string) ([]T, error)
}

// May reports whether a user may do something, and an error if this cannot be decided.
func (g *Garden) May(ctx context.Context, of user.Info, verb string, resource schema.GroupResource, subresource, namespace, name string) (bool, error) {
	decision, _, err := g.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: of, Verb: verb, APIGroup: resource.Group, APIVersion: "*", Resource: resource.Resource, Subresource: subresource,
		Namespace: namespace, Name: name, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("authorize user %q to %s %s %s/%s: %w", of.GetName(), verb, resource, namespace, name, err)
	}
	return false, nil
}

// ProjectOf returns the Project of a namespace, or nil if there is none.
func (g *Garden) ProjectOf(ctx context.Context, namespace string) (*gardencorev1beta1.Project, error) {
	projects, err := g.Projects.By(ctx, ProjectsByNamespace, namespace)
	if err == nil && len(projects) == 0 {
		projects, err = g.Projects.LiveBy(ctx, ProjectsByNamespace, namespace)
	}
	if err != nil || len(projects) == 0 {
		return nil, err
	}
	return projects[0], nil
}

// ShootsOn returns the Shoots whose spec or status names a Seed. If memory has none, they are read live, because the answer
// decides about a removal.
func (g *Garden) ShootsOn(ctx context.Context, seed string) ([]*gardencorev1beta1.Shoot, error) {
	shoots, err := g.Shoots.By(ctx, ShootsBySeed, seed)
	if err != nil || len(shoots) > 0 {
		return shoots, err
	}
	return g.Shoots.LiveBy(ctx, ShootsBySeed, seed)
}
