package gardenletdeployer

import (
	"context"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// annotationExpires on the Secret with the kubeconfig for the first certificate is when it expires.
const annotationExpires = "gardenlet.gardener.cloud/bootstrap-expires"

// Target is the cluster of a gardenlet. It has what is written there directly: credentials, which the gardenlet deletes and replaces, and
// objects that it takes over. ManagedResources would put them back.
type Target struct {
	// Client reads from the API server.
	Client client.Client
	// Namespace of the gardenlet.
	Namespace string
	// FieldManager of the writes.
	FieldManager client.FieldOwner
}

// Owner returns an error if the cluster runs the gardenlet of another Seed.
func (t Target) Owner(ctx context.Context, seed string) error {
	deployment := &appsv1.Deployment{}
	if err := t.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: Release}, deployment); err != nil {
		return ignoreNotFound(err, "read the Deployment of the gardenlet")
	}
	name := ConfigMapOf(deployment)
	if name == "" {
		return nil
	}
	configMap := &corev1.ConfigMap{}
	if err := t.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: name}, configMap); err != nil {
		return ignoreNotFound(err, "read the configuration of the gardenlet")
	}
	return CheckOwner(configMap, seed)
}

// Ready reports whether the namespace of the gardenlet exists.
func (t Target) Ready(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	err := t.Client.Get(ctx, client.ObjectKey{Name: t.Namespace}, namespace)
	if err != nil {
		return false, ignoreNotFound(err, "read the namespace of the gardenlet")
	}
	return namespace.DeletionTimestamp == nil, nil
}

// Credentials returns the kubeconfig of the gardenlet, and when the credentials for its first certificate expire; zero if there are none.
func (t Target) Credentials(ctx context.Context) (Stored, time.Time, error) {
	own, err := t.secret(ctx, KubeconfigSecret)
	if err != nil {
		return Stored{}, time.Time{}, err
	}
	offered, err := t.secret(ctx, BootstrapSecret)
	if err != nil {
		return Stored{}, time.Time{}, err
	}
	var expires time.Time
	if offered != nil && len(offered.Data[KeyKubeconfig]) > 0 {
		expires, _ = time.Parse(time.RFC3339, offered.Annotations[annotationExpires]) // without it, the credentials are replaced
	}
	return StoredIn(own), expires, nil
}

func (t Target) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := t.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s of the cluster of the gardenlet: %w", t.Namespace, name, err)
	}
	return secret, nil
}

// Offer gives the gardenlet a kubeconfig for its first certificate.
func (t Target) Offer(ctx context.Context, kubeconfig []byte, expires time.Time) error {
	secret := Inputs{Namespace: t.Namespace}.secret(BootstrapSecret, kubeconfig)
	secret.Annotations = map[string]string{annotationExpires: expires.UTC().Format(time.RFC3339)}
	err := t.Client.Create(ctx, secret, t.FieldManager)
	if apierrors.IsAlreadyExists(err) {
		present := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
		err = t.Client.Patch(ctx, secret, client.MergeFrom(present), t.FieldManager)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s of the cluster of the gardenlet: %w", t.Namespace, BootstrapSecret, err)
	}
	return nil
}

// Discard deletes Secrets with credentials, if they exist.
func (t Target) Discard(ctx context.Context, names ...string) error {
	for _, name := range names {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: name}}
		if err := t.Client.Delete(ctx, secret); err != nil {
			if err := ignoreNotFound(err, "delete Secret "+name+" of the cluster of the gardenlet"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Create creates objects that do not exist.
func (t Target) Create(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		if err := t.Client.Create(ctx, object, t.FieldManager); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s in the cluster of the gardenlet: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
		}
	}
	return nil
}

// Apply creates objects, or changes them to what they should be. It takes the part of the resource-manager that does so from the time at which the
// gardenlet upgrades itself, and its field manager: so later revisions remove what they no longer contain.
func (t Target) Apply(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{Object: content}
		err = t.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(resourcesv1alpha1.FieldManager), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s in the cluster of the gardenlet: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

func ignoreNotFound(err error, what string) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Object identifies the object that describes a gardenlet.
type Object struct {
	Kind            Kind
	Namespace, Name string
	Bootstrap       v1alpha1.Bootstrap
	Annotations     map[string]string
}

// Ensure gives the gardenlet of an object credentials if it needs some, and returns the step that this was. annotate changes the annotations of
// the object: an empty value removes one.
func Ensure(
	ctx context.Context, object Object, allowed bool, issuer Issuer, target Target, annotate func(context.Context, map[string]string) error,
) (Step, error) {
	stored, offered, err := target.Credentials(ctx)
	if err != nil {
		return Step{}, err
	}
	step := Next(State{
		Bootstrap: object.Bootstrap, Annotations: object.Annotations, Stored: stored, Offered: offered, Allowed: allowed, Now: issuer.Clock.Now(),
	})
	if step.Mark != "" {
		if err := annotate(ctx, map[string]string{AnnotationReplaces: step.Mark}); err != nil {
			return step, err
		}
	}
	if step.Offer {
		content, expires, err := issuer.Issue(ctx, object.Kind, object.Namespace, object.Name, object.Bootstrap)
		if err != nil {
			return step, err
		}
		if err := target.Offer(ctx, content, expires); err != nil {
			return step, err
		}
	}
	if step.Discard {
		if err := target.Discard(ctx, KubeconfigSecret); err != nil {
			return step, err
		}
	}
	if step.Finish {
		return step, annotate(ctx, map[string]string{AnnotationReplaces: "", operation: ""})
	}
	return step, nil
}

// Annotated returns annotations with changes. An empty value removes one.
func Annotated(annotations, changes map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key, value := range changes {
		annotations[key] = value
		if value == "" {
			delete(annotations, key)
		}
	}
	return annotations
}
