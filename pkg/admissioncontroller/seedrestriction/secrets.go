package seedrestriction

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// checkSecret permits Secrets in the namespace of the Seed, the generated Secret of a BackupBucket of the Seed, those of Shoots, documents of
// managed issuers, and bootstrap tokens.
func checkSecret(ctx context.Context, w *write) error {
	if err := w.extension(); err != nil {
		return err
	}
	bucketName, generated := strings.CutPrefix(w.Name, constants.PrefixGeneratedBackupBucketSecret)
	switch {
	case w.Namespace == w.by.SeedNamespace():
		return nil
	case generated && w.Namespace == constants.GardenNamespace:
		bucket := &corev1beta1.BackupBucket{}
		found, err := w.get(ctx, "", bucketName, bucket)
		if err == nil && (!found || ptr.Deref(bucket.Spec.SeedName, "") != w.by.Seed) {
			err = w.refuse("BackupBucket %s is not of this Seed", bucketName)
		}
		return err
	case w.Namespace == constants.SystemShootIssuerNamespace:
		return w.checkIssuer(ctx)
	case w.Namespace == metav1.NamespaceSystem && strings.HasPrefix(w.Name, graph.PrefixTokenSecret):
		return w.checkToken(ctx)
	}
	return checkOfShoot(ctx, w, constants.SuffixCACluster, constants.SuffixSSHKeypair, constants.SuffixSSHKeypairOld, constants.SuffixMonitoring)
}

// checkIssuer permits the documents of a Shoot of the Seed, which its labels name. The UID in the name must be that of the Shoot, because the name decides
// where the documents are served: otherwise a gardenlet could publish keys for a Shoot of another Seed before that has any.
func (w *write) checkIssuer(ctx context.Context) error {
	secret, err := decoded[corev1.Secret](w)
	if err != nil {
		return err
	}
	name, namespace := secret.Labels[constants.LabelShootName], secret.Labels[constants.LabelShootNamespace]
	if name == "" || namespace == "" || secret.Labels[constants.LabelDiscoveryPublic] != issuer.PublicKeys {
		return admit.Refuse(http.StatusUnprocessableEntity, "Secret %s/%s needs the labels %s, %s and %s=%s",
			w.Namespace, w.Name, constants.LabelShootName, constants.LabelShootNamespace, constants.LabelDiscoveryPublic, issuer.PublicKeys)
	}
	if err := w.ownsShoot(ctx, namespace, name, false); err != nil {
		return err
	}
	shoot := &corev1beta1.Shoot{}
	found, err := w.get(ctx, namespace, name, shoot)
	if err == nil && (!found || issuer.UIDOf(w.Name) != shoot.UID) {
		err = w.refuse("its name must end with two dashes and the UID of Shoot %s/%s", namespace, name)
	}
	return err
}

// tokenOf finds the object that the description of a bootstrap token names. Gardenlets write it in this form, as in Gardener.
var tokenOf = regexp.MustCompile(`\bseedmanagement\.gardener\.cloud/v1alpha1\.(ManagedSeed|Gardenlet) resource ([a-z0-9.-]+)/([a-z0-9-]+)\.?$`)

// TokenFor returns the kind and the name of the object that a bootstrap token is for: a token is for one Seed.
func TokenFor(description string) (kind graph.Kind, namespace, name string, found bool) {
	match := tokenOf.FindStringSubmatch(strings.TrimSpace(description))
	if match == nil {
		return "", "", "", false
	}
	return graph.Kind(match[1]), match[2], match[3], true
}

// checkToken permits bootstrap tokens for a gardenlet that the requester starts: that of a ManagedSeed, or its own one.
func (w *write) checkToken(ctx context.Context) error {
	secret, err := decoded[corev1.Secret](w)
	if err != nil {
		return err
	}
	if secret.Type != corev1.SecretTypeBootstrapToken || content(secret, "usage-bootstrap-authentication") != "true" ||
		content(secret, "usage-bootstrap-signing") != "true" || content(secret, "auth-extra-groups") != "" {
		return admit.Refuse(http.StatusUnprocessableEntity, "Secret %s/%s must be a bootstrap token (type %s) with the usages authentication and signing, "+
			"and without auth-extra-groups", w.Namespace, w.Name, corev1.SecretTypeBootstrapToken)
	}
	kind, namespace, name, found := TokenFor(content(secret, "description"))
	if !found || w.Name != graph.TokenSecret(namespace, name) {
		return w.refuse("its description must name the ManagedSeed or Gardenlet that it is for, and its ID must follow from it")
	}
	if kind == graph.ManagedSeed {
		return w.mayBootstrap(ctx, namespace, name)
	}
	return w.mayRenew(ctx, namespace, name)
}

// content returns a value of a Secret as it will be stored.
func content(secret *corev1.Secret, key string) string {
	if value, found := secret.StringData[key]; found {
		return value
	}
	return string(secret.Data[key])
}

// mayBootstrap permits to start the gardenlet of a ManagedSeed whose Shoot is on the Seed.
func (w *write) mayBootstrap(ctx context.Context, namespace, name string) error {
	managed := &seedmanagementv1alpha1.ManagedSeed{}
	switch found, err := w.get(ctx, namespace, name, managed); {
	case err != nil:
		return err
	case !found, managed.Spec.Shoot == nil:
		return w.refuse("ManagedSeed %s/%s does not exist", namespace, name)
	}
	if err := w.ownsShoot(ctx, namespace, managed.Spec.Shoot.Name, false); err != nil {
		return err
	}
	return w.notBootstrapped(ctx, name, managed.Annotations, true)
}

// mayRenew permits to restart the own gardenlet, described by a Gardenlet, if its certificate has expired.
func (w *write) mayRenew(ctx context.Context, namespace, name string) error {
	if namespace != constants.GardenNamespace || name != w.by.Seed {
		return w.refuse("the own Gardenlet is %s/%s", constants.GardenNamespace, w.by.Seed)
	}
	gardenlet := &seedmanagementv1alpha1.Gardenlet{}
	switch found, err := w.get(ctx, namespace, name, gardenlet); {
	case err != nil:
		return err
	case !found:
		return w.refuse("Gardenlet %s/%s does not exist", namespace, name)
	}
	return w.notBootstrapped(ctx, name, gardenlet.Annotations, false)
}

// notBootstrapped refuses credentials for a gardenlet that has valid ones.
func (w *write) notBootstrapped(ctx context.Context, name string, annotations map[string]string, absent bool) error {
	seed := &corev1beta1.Seed{}
	found, err := w.get(ctx, "", name, seed)
	if err != nil {
		return err
	}
	if !found {
		if absent {
			return nil
		}
		return w.refuse("Seed %s does not exist", name)
	}
	if !graph.MayBootstrap(graph.RegistrationOf(seed), annotations, w.Clock.Now()) {
		return admit.Refuse(http.StatusBadRequest, "the gardenlet of Seed %s is already bootstrapped: to renew its credentials, annotate its ManagedSeed or Gardenlet "+
			"with %s=%s", name, constants.AnnotationGardenerOperation, constants.OperationRenewKubeconfig)
	}
	return nil
}

// checkAccount permits ServiceAccounts in the namespace of the Seed, and those with which gardenlets of ManagedSeeds are started.
func checkAccount(ctx context.Context, w *write) error {
	if err := w.extension(); err != nil {
		return err
	}
	if w.Namespace == w.by.SeedNamespace() {
		return nil
	}
	if managed, is := strings.CutPrefix(w.Name, constants.PrefixBootstrapServiceAccount); is {
		return w.mayBootstrap(ctx, w.Namespace, managed)
	}
	return w.refuse("it must be in namespace %s", w.by.SeedNamespace())
}

// checkBootstrapBinding permits the binding of such a ServiceAccount to the rights of bootstrap tokens.
func checkBootstrapBinding(ctx context.Context, w *write) error {
	if err := w.extension(); err != nil {
		return err
	}
	binding, err := decoded[rbacv1.ClusterRoleBinding](w)
	if err != nil {
		return err
	}
	const role = "gardener.cloud:system:seed-bootstrapper"
	if len(binding.Subjects) != 1 || binding.RoleRef.Kind != "ClusterRole" || binding.RoleRef.Name != role {
		return w.refuse("it must bind ClusterRole %s to one ServiceAccount", role)
	}
	subject := binding.Subjects[0]
	managed, is := strings.CutPrefix(subject.Name, constants.PrefixBootstrapServiceAccount)
	if !is || subject.Kind != rbacv1.ServiceAccountKind || w.Name != graph.BootstrapBinding(subject.Namespace, subject.Name) {
		return w.refuse("it must bind the ServiceAccount %s<ManagedSeed> that its name contains", constants.PrefixBootstrapServiceAccount)
	}
	return w.mayBootstrap(ctx, subject.Namespace, managed)
}
