package shootmaintenance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// profileOf returns what the profile of a Shoot offers, or nil if it does not exist.
func (r *reconciler) profileOf(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.CloudProfileSpec, error) {
	ref := cloudprofile.ReferenceOf(&shoot.Spec)
	if ref.Kind == corev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		profile := &corev1beta1.NamespacedCloudProfile{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: ref.Name}, profile)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil //nolint:nilnil // a profile that does not exist is not an error: operations do not need it
		case err != nil:
			return nil, fmt.Errorf("read NamespacedCloudProfile %s: %w", ref.Name, err)
		case !cloudprofile.IsComputed(profile):
			return nil, fmt.Errorf("the status of NamespacedCloudProfile %s is not computed yet", ref.Name)
		}
		return &profile.Status.CloudProfileSpec, nil
	}
	profile := &corev1beta1.CloudProfile{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: ref.Name}, profile); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // as above
		}
		return nil, fmt.Errorf("read CloudProfile %s: %w", ref.Name, err)
	}
	return &profile.Spec, nil
}

// hold returns why forced updates of a Shoot have to wait, or an empty string.
func (r *reconciler) hold(ctx context.Context, shoot *corev1beta1.Shoot, profile *corev1beta1.CloudProfileSpec, now time.Time) (string, error) {
	ref := cloudprofile.ReferenceOf(&shoot.Spec)
	last, err := r.lastChange(ctx, shoot.Namespace, ref, now)
	if err != nil {
		return "", err
	}
	var list corev1beta1.ShootList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list the Shoots of the %s: %w", last.profile, err)
	}
	var users []*corev1beta1.Shoot
	for i := range list.Items {
		one := &list.Items[i]
		if cloudprofile.ReferenceOf(&one.Spec) == ref && (ref.Kind == corev1beta1.CloudProfileReferenceKindCloudProfile || one.Namespace == shoot.Namespace) {
			users = append(users, one)
		}
	}
	if last.digest, err = digestOf(profile); err != nil {
		return "", err
	}
	return last.hold(massOf(users, profile, now), now), nil
}

// lastChange reads when a profile or its parent were changed last. The cache does not have the managed fields.
func (r *reconciler) lastChange(ctx context.Context, namespace string, ref corev1beta1.CloudProfileReference, now time.Time) (*change, error) {
	found, parent := &change{profile: ref.Kind + " " + ref.Name}, ref.Name
	if ref.Kind == corev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		own := &corev1beta1.NamespacedCloudProfile{}
		if err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, own); err != nil {
			return nil, fmt.Errorf("read the %s: %w", found.profile, err)
		}
		parent, found.at = own.Spec.Parent.Name, changeOf(&own.ObjectMeta, now)
		found.confirmed = own.Annotations[AnnotationConfirm]
	}
	profile := &corev1beta1.CloudProfile{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: parent}, profile); err != nil {
		return nil, fmt.Errorf("read CloudProfile %s: %w", parent, err)
	}
	if at := changeOf(&profile.ObjectMeta, now); at.After(found.at) {
		found.at = at
	}
	if ref.Kind != corev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		found.confirmed = profile.Annotations[AnnotationConfirm]
	}
	return found, nil
}

const (
	// labelBindingStatus and statusMigrated mark CredentialsBindings that were made for a Shoot with a SecretBinding (Gardener).
	labelBindingStatus = "credentialsbinding.gardener.cloud/status"
	statusMigrated     = "force-migrated"
)

// bindingFor returns the CredentialsBinding with the credentials and Quotas of the SecretBinding of a Shoot. If there is none, it is created.
func (r *reconciler) bindingFor(ctx context.Context, shoot *corev1beta1.Shoot) (string, error) {
	name := ptr.Deref(shoot.Spec.SecretBindingName, "")
	secretBinding := &corev1beta1.SecretBinding{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, secretBinding); err != nil {
		return "", fmt.Errorf("read SecretBinding %s: %w", name, err)
	}
	var list securityv1alpha1.CredentialsBindingList
	if err := r.live.List(ctx, &list, client.InNamespace(shoot.Namespace)); err != nil {
		return "", fmt.Errorf("list CredentialsBindings: %w", err)
	}
	wanted := migrated(secretBinding, shoot.Spec.Provider.Type)
	if found := matching(list.Items, wanted); found != "" {
		return found, nil
	}
	if err := r.client.Create(ctx, wanted, controller.FieldManager); err != nil {
		return "", fmt.Errorf("create CredentialsBinding %s: %w", wanted.Name, err)
	}
	return wanted.Name, nil
}

// migrated returns a CredentialsBinding with the credentials and Quotas of a SecretBinding.
func migrated(from *corev1beta1.SecretBinding, provider string) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: from.Namespace, Name: statusMigrated + "-" + from.Name, Labels: map[string]string{labelBindingStatus: statusMigrated},
		},
		Provider: securityv1alpha1.CredentialsBindingProvider{Type: provider},
		CredentialsRef: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: cmp.Or(from.SecretRef.Namespace, from.Namespace), Name: from.SecretRef.Name,
		},
		Quotas: from.Quotas,
	}
}

// matching returns the first binding with the same credentials and Quotas as a wanted one, by name, but one with the wanted name before others.
func matching(all []securityv1alpha1.CredentialsBinding, wanted *securityv1alpha1.CredentialsBinding) string {
	slices.SortFunc(all, func(a, b securityv1alpha1.CredentialsBinding) int { return strings.Compare(a.Name, b.Name) })
	found := ""
	for i := range all {
		one := &all[i]
		same := one.Provider == wanted.Provider && one.CredentialsRef == wanted.CredentialsRef && equality.Semantic.DeepEqual(one.Quotas, wanted.Quotas)
		if same && (found == "" || one.Name == wanted.Name) {
			found = one.Name
		}
	}
	return found
}
