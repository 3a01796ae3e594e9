// Package references decides which Secrets and ConfigMaps in namespace garden are protected from deletion, because objects of
// several kinds refer to them. All of them share one finalizer, so that it may be removed only if none refers to the object.
package references

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/gardenletrights"
)

// Kinds of referenced objects.
const (
	Secret    = "Secret"
	ConfigMap = "ConfigMap"
)

// Reference is a reference to an object in namespace garden.
type Reference struct {
	Kind, Name string
	// Role is the role that the object must have to be used; empty for any.
	Role string
}

// to reports whether a reference is to an object.
func (r Reference) to(kind string, object *metav1.PartialObjectMetadata) bool {
	return r.Kind == kind && r.Name == object.Name && (r.Role == "" || r.Role == object.Labels[constants.LabelGardenRole])
}

// Of returns the references of a ControllerDeployment, a Seed, or a Shoot in namespace garden.
func Of(object client.Object) []Reference {
	switch object := object.(type) {
	case *gardencorev1.ControllerDeployment:
		return ofDeployment(object)
	case *corev1beta1.Seed:
		return ofSeed(object)
	case *corev1beta1.Shoot:
		if object.Namespace == constants.GardenNamespace {
			return ofShoot(object)
		}
	}
	return nil
}

// Keep keeps the fields of a Shoot that refer to objects, for a cache.
func Keep(kept, shoot *corev1beta1.Shoot) { gardenletrights.Keep(kept, shoot) }

// ofDeployment returns the references of a deployment for its chart and the chart's values.
func ofDeployment(deployment *gardencorev1.ControllerDeployment) []Reference {
	var found []Reference
	if deployment.Helm != nil && deployment.Helm.OCIRepository != nil {
		if ref := deployment.Helm.OCIRepository.PullSecretRef; ref != nil {
			found = append(found, Reference{Secret, ref.Name, constants.RoleHelmPullSecret})
		}
		if ref := deployment.Helm.OCIRepository.CABundleSecretRef; ref != nil {
			found = append(found, Reference{Secret, ref.Name, constants.RoleOCICABundle})
		}
	}
	for _, resource := range deployment.Resources {
		found = append(found, Reference{resource.ResourceRef.Kind, resource.ResourceRef.Name, constants.RoleResourceReference})
	}
	return found
}

// ofSeed returns the references of a Seed to credentials, and for its extensions.
func ofSeed(seed *corev1beta1.Seed) []Reference {
	var found []Reference
	add := func(ref *corev1.ObjectReference) {
		if ref != nil && ref.Namespace == constants.GardenNamespace {
			found = append(found, Reference{Kind: ref.Kind, Name: ref.Name})
		}
	}
	if seed.Spec.Backup != nil {
		add(seed.Spec.Backup.CredentialsRef)
	}
	if provider := seed.Spec.DNS.Provider; provider != nil {
		add(provider.CredentialsRef)
	}
	if internal := seed.Spec.DNS.Internal; internal != nil {
		add(&internal.CredentialsRef)
	}
	for _, domain := range seed.Spec.DNS.Defaults {
		add(&domain.CredentialsRef)
	}
	for _, resource := range seed.Spec.Resources {
		found = append(found, Reference{Kind: resource.ResourceRef.Kind, Name: resource.ResourceRef.Name})
	}
	return found
}

// ofShoot returns the references of a Shoot to objects in its namespace.
func ofShoot(shoot *corev1beta1.Shoot) []Reference {
	var found []Reference
	secrets, configMaps := gardenletrights.Named(shoot)
	for _, name := range secrets {
		found = append(found, Reference{Kind: Secret, Name: name})
	}
	for _, name := range configMaps {
		found = append(found, Reference{Kind: ConfigMap, Name: name})
	}
	return found
}

// Deployments returns the ControllerDeployments that use an object, as texts.
func Deployments(ctx context.Context, reader client.Reader, kind string, object *metav1.PartialObjectMetadata) ([]string, error) {
	return users(ctx, reader, &gardencorev1.ControllerDeploymentList{}, "ControllerDeployment", kind, object)
}

// Users returns all objects that use an object, as texts.
func Users(ctx context.Context, reader client.Reader, kind string, object *metav1.PartialObjectMetadata) ([]string, error) {
	all, err := Deployments(ctx, reader, kind, object)
	if err != nil {
		return nil, err
	}
	seeds, err := users(ctx, reader, &corev1beta1.SeedList{}, "Seed", kind, object)
	if err != nil {
		return nil, err
	}
	shoots, err := users(ctx, reader, &corev1beta1.ShootList{}, "Shoot", kind, object, client.InNamespace(constants.GardenNamespace))
	return append(append(all, seeds...), shoots...), err
}

// users returns the objects of a list that use an object.
func users(
	ctx context.Context, reader client.Reader, list client.ObjectList, of, kind string, object *metav1.PartialObjectMetadata, options ...client.ListOption,
) ([]string, error) {
	if err := reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list the %ss that may refer to %s %s: %w", of, kind, object.Name, err)
	}
	var names []string
	err := meta.EachListItem(list, func(item runtime.Object) error {
		user, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("a %T is not an object", item)
		}
		for _, reference := range Of(user) {
			if reference.to(kind, object) {
				names = append(names, of+" "+user.GetName())
				break
			}
		}
		return nil
	})
	return names, err
}
