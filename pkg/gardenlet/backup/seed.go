package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/credentials"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
)

const (
	// FieldManager is the field manager of gardenlet.
	FieldManager = "gardenlet"
	// class is the class of ManagedResources of the seed's resource-manager.
	class = "seed"
	// annotationDigest on a Secret in the seed is a digest of its data.
	annotationDigest = "credentials.gardenlet.gardener.cloud/digest"
)

// Seed contains the clients of the seed and the garden.
type Seed struct {
	// Name of the Seed. Namespace of gardenlet in the seed.
	Name, Namespace string
	// Client writes to the seed. Uncached reads from its API server. Emitted reads from a cache of the objects that flows have emitted.
	Client   client.Client
	Uncached client.Reader
	Emitted  flow.IndexedReader
	Emitter  *flow.Emitter
	// Garden is a client with a cache, which contains only the buckets and entries of this Seed. GardenReader reads from the API
	// server of the garden. Objects reads single objects.
	Garden       client.Client
	GardenReader client.Reader
	Objects      Objects
	Clock        clock.PassiveClock

	asked memory
}

// Objects reads single objects of the garden for users, like [gardenobjects.Cache].
type Objects interface {
	Get(ctx context.Context, user gardenobjects.User, name client.ObjectKey, object client.Object) error
	Begin(user gardenobjects.User) (end func())
	Release(user gardenobjects.User)
	OnChange(call func(client.Object))
}

// Bundle returns the bundle with an extension object, and adds the requested operation to the object.
func (s *Seed) Bundle(key flow.Key, object client.Object, operation string, asked Asked, kind string) flow.Bundle {
	flow.AskExtension(object, operation, asked.At)
	return flow.Bundle{
		Key: key, Objects: []client.Object{object}, Choices: asked.Choices(),
		Labels: map[string]string{constants.LabelGardenRole: constants.RoleExtension},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class: ptr.To(class), HealthChecks: []resourcesv1alpha1.HealthCheck{flow.ExtensionHealth(kind)},
			DriftDetection: flow.OperationOnlyOnChange(),
		},
	}
}

// UserOf returns the owner as the user of the objects of the garden that are read for it.
func UserOf(owner flow.Owner) gardenobjects.User {
	return gardenobjects.User{Kind: owner.Flow, ObjectKey: client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}}
}

// Credentials returns a Secret for the seed with credentials of the garden, and the object of the garden. It returns an
// error if the object does not exist.
func (s *Seed) Credentials(
	ctx context.Context, owner flow.Owner, ref *corev1.ObjectReference, name string,
) (secret *corev1.Secret, of client.Object, err error) {
	if ref == nil {
		return nil, nil, errors.New("spec.credentialsRef is not set")
	}
	key := client.ObjectKey{Namespace: s.Namespace, Name: name}
	from := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	switch ref.Kind {
	case "Secret":
		found := &corev1.Secret{}
		if err := s.Objects.Get(ctx, UserOf(owner), from, found); err != nil {
			return nil, nil, fmt.Errorf("read the credentials: %w", err)
		}
		return credentials.Copy(key, found), found, nil
	case "WorkloadIdentity":
		found := &securityv1alpha1.WorkloadIdentity{}
		if err := s.Objects.Get(ctx, UserOf(owner), from, found); err != nil {
			return nil, nil, fmt.Errorf("read the credentials: %w", err)
		}
		secret, err := credentials.ForWorkloadIdentity(key, found, nil)
		return secret, found, err
	}
	return nil, nil, fmt.Errorf("spec.credentialsRef refers to a %s: only Secrets and WorkloadIdentities are supported", ref.Kind)
}

// EnsureSecret writes a Secret of the seed if its data have changed. It retains tokens, which another controller writes.
func (s *Seed) EnsureSecret(ctx context.Context, owner flow.Owner, wanted *corev1.Secret, at time.Time) error {
	digest := DigestOf(wanted.Data, []byte(wanted.Annotations[constants.AnnotationWorkloadIdentityName]))
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := s.Emitted.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Secret %s: %w", client.ObjectKeyFromObject(wanted), err)
	}
	if err == nil && live.Annotations[annotationDigest] == digest && live.Annotations[constants.AnnotationGardenerTimestamp] != "" {
		return nil
	}
	annotations := map[string]string{
		annotationDigest: digest, constants.AnnotationGardenerTimestamp: at.UTC().Format(time.RFC3339Nano), flow.AnnotationOwner: owner.String(),
	}
	object := wanted.DeepCopy()
	_, err = controllerutil.CreateOrPatch(ctx, s.Client, object, func() error {
		object.Labels = merge(object.Labels, wanted.Labels, owner.Labels())
		object.Annotations = merge(object.Annotations, wanted.Annotations, annotations)
		if wanted.Labels[constants.LabelSecurityPurpose] != "" {
			object.Data = merge(object.Data, wanted.Data)
		} else {
			object.Data = wanted.Data
		}
		return nil
	})
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("write Secret %s: %w", client.ObjectKeyFromObject(wanted), err)
	}
	return err
}

// DeleteSecret deletes a Secret of the seed.
func (s *Seed) DeleteSecret(ctx context.Context, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	if err := client.IgnoreNotFound(s.Client.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete Secret %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}

// Finalizers changes the finalizers of an object of the garden.
func (s *Seed) Finalizers(ctx context.Context, object client.Object, change func(client.Object) bool) error {
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok || !change(object) {
		return nil
	}
	patch := client.MergeFromWithOptions(copied, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(s.Garden.Patch(ctx, object, patch, client.FieldOwner(FieldManager))); err != nil {
		return fmt.Errorf("change the finalizers of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// Report returns the last operation and error with their timestamps, which change only with their content.
func Report(
	before *corev1beta1.LastOperation, beforeError *corev1beta1.LastError,
	next corev1beta1.LastOperation, failed *corev1beta1.LastError, now time.Time,
) (*corev1beta1.LastOperation, *corev1beta1.LastError) {
	operation := corev1beta1.KeepTime(before, next, now)
	if failed == nil {
		return operation, nil
	}
	failed = failed.DeepCopy()
	failed.LastUpdateTime = ptr.To(metav1.NewTime(now))
	if beforeError != nil && beforeError.Description == failed.Description && slices.Equal(beforeError.Codes, failed.Codes) {
		failed.LastUpdateTime = beforeError.LastUpdateTime
	}
	return operation, failed
}

// FailureOf returns the error of a pass for the status, or that of the extension if the pass had none.
func FailureOf(err error, ofExtension *corev1beta1.LastError) *corev1beta1.LastError {
	if err == nil {
		return ofExtension
	}
	text := flow.ReasonOf(err)
	return &corev1beta1.LastError{Description: text, Codes: flow.CodesOfWrite(text)}
}

// Failing returns the error of an extension, or of the bundle with its object, or nil.
func Failing(live *Extension, result flow.Result, key flow.Key) *corev1beta1.LastError {
	if live != nil && live.Status.LastError != nil {
		return &corev1beta1.LastError{Description: live.Status.LastError.Description, Codes: live.Status.LastError.Codes}
	}
	if why := result.Problems[key]; why != "" {
		return &corev1beta1.LastError{Description: why, Codes: flow.CodesOfWrite(why)}
	}
	mr := result.Live.ManagedResources[key]
	if mr == nil || mr.Status.ObservedGeneration != mr.Generation {
		return nil
	}
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if applied.Status != resourcesv1alpha1.ConditionFalse {
		return nil
	}
	why := cmp.Or(applied.Message, applied.Reason)
	return &corev1beta1.LastError{Description: why, Codes: flow.CodesOfWrite(why)}
}

// merge returns the union of maps. Later maps take precedence.
func merge[V any](all ...map[string]V) map[string]V {
	merged := map[string]V{}
	for _, one := range all {
		maps.Copy(merged, one)
	}
	return merged
}
