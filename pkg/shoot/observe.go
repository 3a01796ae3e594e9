package shoot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

// observe reads the inputs of the plan from caches. It sends no requests if nothing has to be done.
func (p *pass) observe(ctx context.Context) (err error) {
	ofSecrets := []func(context.Context, *Inputs) error{p.observeSecrets, p.keepState}
	switch phaseOf(p.shoot) {
	case phaseMigrate:
		ofSecrets = []func(context.Context, *Inputs) error{p.secretsOfMove}
	case phaseRestore:
		ofSecrets = slices.Insert(ofSecrets, 0, p.restoreSaved)
	}
	if p.decision.stopped && !p.maintains() {
		ofSecrets = []func(context.Context, *Inputs) error{p.existingSecrets}
	}
	if p.in, err = p.observeWith(ctx, p.shoot, p.seed, ofSecrets...); err == nil {
		p.observeProxies(ctx)
		p.observeIngress(ctx)
	}
	return err
}

// observeWith reads the inputs with the given steps for the Secrets of the control plane.
func (r *reconciler) observeWith(
	ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, ofSecrets ...func(context.Context, *Inputs) error,
) (Inputs, error) {
	in := Inputs{
		Owner:           flow.Owner{Flow: FlowName, UID: shoot.UID, Namespace: shoot.Namespace, Name: shoot.Name},
		GardenNamespace: r.options.Namespace, Shoot: shoot, Seed: seed, Config: r.options.Config, Version: r.options.Version, Images: r.images,
		Deleting: shoot.DeletionTimestamp != nil, Phase: phaseOf(shoot), Now: r.options.Clock.Now(),
	}
	if in.forced() {
		return r.observeForced(ctx, in)
	}
	readAll := r.objects.Begin(in.user())
	steps := []func(context.Context, *Inputs) error{
		r.observeProject, r.observeIdentity, r.observeEmitted, r.observeServed, r.observeSeed, r.observeExtensions, r.observeMutators,
		r.observeMachines, r.observeBastions, r.observeEntry, r.observeMove,
	}
	if !in.Deleting || shoot.Status.TechnicalID != "" {
		steps = append(steps, r.observeCloudProfile, r.observeLedger)
		steps = append(append(steps, ofSecrets...), r.observeUserFiles, r.observeCredentials, r.observeReferences, r.observeLeft)
	}
	for _, step := range steps {
		if err := step(ctx, &in); err != nil {
			return in, err
		}
	}
	readAll()
	return in, nil
}

// observeForced reads the inputs of a forced deletion: the bundles and the Bastions. It also reads what improves the
// deletion, but does not stop it if that cannot be read: the extensions, for their order, and the CloudProfile, for the
// Cluster, which shows extensions that the deletion is forced.
func (r *reconciler) observeForced(ctx context.Context, in Inputs) (Inputs, error) {
	for _, step := range []func(context.Context, *Inputs) error{r.observeProject, r.observeEmitted, r.observeBastions} {
		if err := step(ctx, &in); err != nil {
			return in, err
		}
	}
	var errs []error
	for _, step := range []func(context.Context, *Inputs) error{r.observeSeed, r.observeExtensions, r.observeCloudProfile} {
		errs = append(errs, step(ctx, &in))
	}
	if err := errors.Join(errs...); err != nil {
		in.Unread = flow.ReasonOf(err)
	}
	return in, nil
}

// user returns the Shoot as the user of the objects of the garden that are read for it.
func (in Inputs) user() gardenobjects.User { return userOf(client.ObjectKeyFromObject(in.Shoot)) }

func userOf(shoot client.ObjectKey) gardenobjects.User {
	return gardenobjects.User{Kind: "Shoot", ObjectKey: shoot}
}

// observeProject reads the name of the Project, which is part of the technical ID, from the label of the Shoot's namespace: the authorizer of a garden
// lets no gardenlet list all Projects.
func (r *reconciler) observeProject(ctx context.Context, in *Inputs) error {
	namespace := &corev1.Namespace{}
	err := r.objects.Get(ctx, in.user(), client.ObjectKey{Name: in.Shoot.Namespace}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the namespace of the Shoot: %w", err)
	}
	if err := in.setProject(namespace.Labels[constants.LabelProjectName]); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[in.Namespace] = types.NamespacedName{Namespace: in.Shoot.Namespace, Name: in.Shoot.Name}
	return nil
}

// setProject sets the Project of the Shoot, and the namespace of its control plane. A deletion does not need the Project, which might have been deleted
// first.
func (in *Inputs) setProject(name string) error {
	in.Project = name
	if name == "" && in.Deleting {
		in.Project = projectIn(in.Shoot)
	}
	if in.Project == "" && !in.Deleting {
		return fmt.Errorf("no Project has the namespace %s of the Shoot: it has no label %s", in.Shoot.Namespace, constants.LabelProjectName)
	}
	in.Namespace = TechnicalID(in.Shoot, in.Project)
	return nil
}

// projectIn returns the name of the Project in the technical ID of a Shoot. It is empty if the Shoot has none yet.
func projectIn(shoot *corev1beta1.Shoot) string {
	name, _ := strings.CutPrefix(shoot.Status.TechnicalID, constants.PrefixTechnicalID)
	return strings.TrimSuffix(name, "--"+shoot.Name)
}

// observeIdentity sets the identity of the cluster. If the status does not have it yet, it is composed, with the identity
// of the garden at its end.
func (r *reconciler) observeIdentity(ctx context.Context, in *Inputs) error {
	in.ClusterIdentity = ptr.Deref(in.Shoot.Status.ClusterIdentity, "")
	if in.ClusterIdentity != "" || in.Deleting {
		return nil
	}
	var given corev1.ConfigMap
	err := r.objects.Get(ctx, in.user(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentityName}, &given)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the identity of the garden: %w", err)
	}
	garden := given.Data[constants.ClusterIdentityName]
	if garden == "" {
		var system corev1.Namespace
		if err := r.objects.Get(ctx, in.user(), client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
			return fmt.Errorf("read the namespace whose UID is the identity of the garden: %w", err)
		}
		garden = string(system.UID)
	}
	in.ClusterIdentity = in.Namespace + "-" + string(in.Owner.UID) + "-" + garden
	return nil
}

// observeEmitted reads the keys of the Shoot's bundles.
func (r *reconciler) observeEmitted(ctx context.Context, in *Inputs) error {
	var err error
	in.Emitted, err = flow.Emitted(ctx, r.emitter.Reader, in.Owner)
	return err
}

// observeSeed reads the state of the control plane in the seed: nodes, the namespace and access tokens.
func (r *reconciler) observeSeed(ctx context.Context, in *Inputs) error {
	nodes, namespace := metav1.PartialObjectMetadataList{}, metav1.PartialObjectMetadata{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.caches.access.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the nodes of the seed: %w", err)
	}
	in.Nodes = len(nodes.Items)
	err := r.caches.access.Get(ctx, client.ObjectKey{Name: in.Namespace}, &namespace)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the namespace %s: %w", in.Namespace, err)
	}
	in.NamespaceDeleting = err == nil && namespace.DeletionTimestamp != nil
	in.NamespaceExists, in.Placement = err == nil && !in.NamespaceDeleting, placementOf(namespace.Annotations)
	secrets := metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.caches.access.List(ctx, &secrets, client.InNamespace(in.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the access Secrets in namespace %s: %w", in.Namespace, err)
	}
	in.Tokens = map[string]time.Time{}
	for _, secret := range secrets.Items {
		at, err := time.Parse(time.RFC3339, secret.Annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp])
		if err == nil && secret.DeletionTimestamp == nil {
			in.Tokens[secret.Name] = at
		}
	}
	return nil
}

// observeCloudProfile reads the CloudProfile, if it exists. The status of a NamespacedCloudProfile contains the merged
// spec of itself and its parent; as long as the controller-manager has not computed it, the profile is not known.
func (r *reconciler) observeCloudProfile(ctx context.Context, in *Inputs) error {
	reference := cloudprofile.ReferenceOf(&in.Shoot.Spec)
	profile, namespaced := &corev1beta1.CloudProfile{}, &corev1beta1.NamespacedCloudProfile{}
	object, key := client.Object(profile), client.ObjectKey{Name: reference.Name}
	if reference.Kind == corev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		object, key = namespaced, client.ObjectKey{Namespace: in.Shoot.Namespace, Name: reference.Name}
	}
	err := r.objects.Get(ctx, in.user(), key, object)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read %s %s of spec.cloudProfile: %w", reference.Kind, reference.Name, err)
	}
	if object == client.Object(namespaced) {
		profile.ObjectMeta, profile.Spec = namespaced.ObjectMeta, namespaced.Status.CloudProfileSpec
	}
	in.ProfilePending = err == nil && object == client.Object(namespaced) && !cloudprofile.IsComputed(namespaced)
	if err == nil && !in.ProfilePending {
		in.CloudProfile = profile
	}
	return nil
}

// observeSecrets ensures the Secrets of the control plane once its namespace exists. A failure does not stop a deletion,
// which does not need the Secrets of components that were never created. The plan reports it for those that it needs.
func (r *reconciler) observeSecrets(ctx context.Context, in *Inputs) error {
	if !in.NamespaceExists {
		return nil
	}
	manager, wanted := r.secretsManager(*in), in.wantedSecrets()
	wanted.Load = func(ctx context.Context) ([]secrets.Secret, error) { return r.states.Saved(ctx, in.Shoot) }
	result, err := manager.Ensure(ctx, wanted)
	if err != nil {
		if in.Deleting {
			in.SecretsUnusable = flow.ReasonOf(err)
			return nil
		}
		return err
	}
	in.Secrets, in.SecretsRenewed, in.LastRenewal, in.SecretsUnused = result.Items, result.Next, result.LastRenewal, len(result.Unused) > 0
	return nil
}

// existingSecrets reads the Secrets of the control plane, and generates none. If one is lost, they are not known.
func (r *reconciler) existingSecrets(ctx context.Context, in *Inputs) error {
	if in.NamespaceExists {
		in.Secrets, _ = r.secretsManager(*in).Existing(ctx, in.wantedSecrets())
	}
	return nil
}

// keepState stores the data from which Secrets are restored in the ShootState, before any component uses them.
func (r *reconciler) keepState(ctx context.Context, in *Inputs) error {
	if in.Deleting || in.Secrets == nil {
		return nil
	}
	return r.states.Keep(ctx, in.Shoot, in.Namespace, in.Secrets)
}

// observeUserFiles reads the objects of the garden to which spec.kubernetes.kubeAPIServer refers. It skips objects that do not exist.
func (r *reconciler) observeUserFiles(ctx context.Context, in *Inputs) error {
	files, err := userfiles.Read(userfiles.Of(in.server(), fieldServer), func(name string, into client.Object) error {
		return r.objects.Get(ctx, in.user(), client.ObjectKey{Namespace: in.Shoot.Namespace, Name: name}, into)
	})
	in.UserFiles = files
	return err
}
