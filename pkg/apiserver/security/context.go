package security

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apiserver/workloadidentity"
)

// resolver finds the objects that are related to the context object of a token.
type resolver struct {
	reader client.Reader
	to     *workloadidentity.Context
}

// resolve adds an object and its related objects. It fails if the object does not exist, or if its UID differs from that
// in the request.
func (r *resolver) resolve(ctx context.Context, of *securityv1alpha1.ContextObject) error {
	version, err := schema.ParseGroupVersion(of.APIVersion)
	if err != nil || version != gardencorev1beta1.SchemeGroupVersion {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.contextObject.apiVersion %q: must be %s", of.APIVersion,
			gardencorev1beta1.SchemeGroupVersion))
	}
	key := client.ObjectKey{Name: of.Name}
	if of.Namespace != nil {
		key.Namespace = *of.Namespace
	}
	var object client.Object
	var add func() error
	switch of.Kind {
	case "Shoot":
		shoot := &gardencorev1beta1.Shoot{}
		object, add = shoot, func() error { return r.addShoot(ctx, shoot) }
	case "Seed":
		seed := &gardencorev1beta1.Seed{}
		object, add = seed, func() error { r.to.Seed = referenceTo(seed); return nil }
	case "BackupBucket":
		bucket := &gardencorev1beta1.BackupBucket{}
		object, add = bucket, func() error { return r.addBucket(ctx, bucket) }
	case "BackupEntry":
		entry := &gardencorev1beta1.BackupEntry{}
		object, add = entry, func() error { return r.addEntry(ctx, entry) }
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("spec.contextObject.kind %q: must be Shoot, Seed, BackupBucket or BackupEntry", of.Kind))
	}
	err = r.reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.contextObject: %s %s does not exist", of.Kind, key))
	}
	if err != nil {
		return fmt.Errorf("read the context object %s %s: %w", of.Kind, key, err)
	}
	if object.GetUID() != of.UID {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.contextObject.uid %s: %s %s has the UID %s", of.UID, of.Kind, key, object.GetUID()))
	}
	return add()
}

func (r *resolver) addShoot(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	r.to.Shoot = referenceTo(shoot)
	if err := r.addProject(ctx, shoot.Namespace); err != nil {
		return err
	}
	return r.addSeed(ctx, shoot.Spec.SeedName)
}

func (r *resolver) addProject(ctx context.Context, namespace string) error {
	projects := &gardencorev1beta1.ProjectList{}
	if err := r.reader.List(ctx, projects, client.MatchingFields{"spec.namespace": namespace}); err != nil {
		return fmt.Errorf("find the Project of namespace %s: %w", namespace, err)
	}
	if len(projects.Items) != 1 {
		return fmt.Errorf("find the Project of namespace %s: there are %d", namespace, len(projects.Items))
	}
	r.to.Project = referenceTo(&projects.Items[0])
	return nil
}

func (r *resolver) addSeed(ctx context.Context, name *string) error {
	if name == nil {
		return nil
	}
	seed := &gardencorev1beta1.Seed{}
	if err := r.reader.Get(ctx, client.ObjectKey{Name: *name}, seed); err != nil {
		return fmt.Errorf("read Seed %s: %w", *name, err)
	}
	r.to.Seed = referenceTo(seed)
	return nil
}

func (r *resolver) addBucket(ctx context.Context, bucket *gardencorev1beta1.BackupBucket) error {
	r.to.BackupBucket = referenceTo(bucket)
	return r.addSeed(ctx, bucket.Spec.SeedName)
}

func (r *resolver) addEntry(ctx context.Context, entry *gardencorev1beta1.BackupEntry) error {
	r.to.BackupEntry = referenceTo(entry)
	bucket := &gardencorev1beta1.BackupBucket{}
	if err := r.reader.Get(ctx, client.ObjectKey{Name: entry.Spec.BucketName}, bucket); err != nil {
		return fmt.Errorf("read BackupBucket %s: %w", entry.Spec.BucketName, err)
	}
	r.to.BackupBucket = referenceTo(bucket)
	if err := r.addSeed(ctx, entry.Spec.SeedName); err != nil {
		return err
	}
	return r.addOwner(ctx, entry)
}

// addOwner adds the Shoot to which a BackupEntry belongs, if it still exists. The name of the entry consists of the
// technical ID and the UID of the Shoot.
func (r *resolver) addOwner(ctx context.Context, entry *gardencorev1beta1.BackupEntry) error {
	technicalID, uid, found := cutLast(entry.Name, "--")
	if !found {
		return nil
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := r.reader.List(ctx, shoots, client.InNamespace(entry.Namespace)); err != nil {
		return fmt.Errorf("find the Shoot of BackupEntry %s/%s: %w", entry.Namespace, entry.Name, err)
	}
	for i := range shoots.Items {
		if shoot := &shoots.Items[i]; shoot.Status.TechnicalID == technicalID && string(shoot.UID) == uid {
			r.to.Shoot = referenceTo(shoot)
			return r.addProject(ctx, shoot.Namespace)
		}
	}
	return nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	index := strings.LastIndex(text, separator)
	if index < 0 {
		return text, "", false
	}
	return text[:index], text[index+len(separator):], true
}
