package gardenletrights

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// syncs is the number of namespaces that are reconciled concurrently.
const syncs = 5

// Controller returns the controller of the rights of gardenlets.
func Controller() controller.Controller {
	// The controller of Projects also writes RoleBindings.
	bindings := controller.Labelled(constants.RoleGardenletRights, constants.RoleProject, constants.RoleExtensionProject)
	return controller.Controller{
		Name: "gardenlet-rights", Add: add,
		Keeps: []controller.Keep{controller.Keeping(Keep)},
		Selects: []controller.Select{
			{Object: &rbacv1.Role{}, Options: controller.Labelled(constants.RoleGardenletRights)}, {Object: &rbacv1.RoleBinding{}, Options: bindings},
		},
		Rights: ownRights(),
	}
}

// ownRights returns the rights to write Roles, and those that the Roles contain: RBAC allows only those who have a right to grant it.
// The alternative, the verb escalate, would allow granting any right. The policies of the chart restrict what the controller-manager
// grants, and what it does with these rights itself.
func ownRights() []controller.Right {
	const grants = "granted to gardenlets by name"
	found := []controller.Right{
		controller.May("rights of gardenlets", rbacv1.GroupName, []string{"roles", "rolebindings"}, "create", "get", "list", "watch", "update", "delete"),
		controller.May("references to objects that gardenlets use", corev1beta1.GroupName,
			[]string{"shoots", "seeds", "projects", "backupbuckets", "backupentries", "controllerinstallations", "controllerdeployments", "secretbindings"}, controller.Reads()...),
		controller.May("references to credentials", securityv1alpha1.GroupName, []string{"credentialsbindings"}, controller.Reads()...),
	}
	found = append(found, controller.May("namespaces of Seeds", "", []string{"namespaces"}, controller.Reads()...), controller.Right{
		For: "rights in the namespaces of Seeds", Rule: rbacv1.PolicyRule{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{namespaceRole}, Verbs: []string{"bind"},
		},
	})
	for _, use := range uses {
		granted := rights[use]
		verbs := slices.Clone(granted.verbs)
		if granted.create {
			verbs = append(verbs, "create")
		}
		found = append(found, controller.May(grants, granted.group, []string{granted.resource}, verbs...))
	}
	return found
}

// add adds the controller to the manager of the garden.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	r := &reconciler{garden: deps.Client, off: !*deps.Config.GardenletRights.Enabled}
	toNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return controller.Requests(object.GetNamespace())
	})
	toReferences := handler.EnqueueRequestsFromMapFunc(r.namespaces)
	toItself := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return controller.Requests(object.GetName())
	})
	generation, version := predicate.GenerationChangedPredicate{}, predicate.ResourceVersionChangedPredicate{}
	own := predicate.And[client.Object](version, predicate.NewPredicateFuncs(func(object client.Object) bool {
		return object.GetLabels()[constants.LabelGardenRole] == constants.RoleGardenletRights
	}))
	return controller.Start(mgr, "gardenlet-rights", r, ptr.To(syncs),
		controller.Watch{Object: &rbacv1.Role{}, Handler: toNamespace, Changed: own},
		controller.Watch{Object: &rbacv1.RoleBinding{}, Handler: toNamespace, Changed: own},
		controller.Watch{Object: &corev1beta1.Shoot{}, Handler: toReferences, Changed: concerns()},
		controller.Watch{Object: &corev1beta1.Project{}, Handler: toReferences, Changed: generation},
		controller.Watch{Object: &corev1beta1.SecretBinding{}, Handler: toReferences, Changed: version},
		controller.Watch{Object: &securityv1alpha1.CredentialsBinding{}, Handler: toReferences, Changed: version},
		controller.Watch{Object: watches.MetadataOf("Namespace"), Handler: toItself, Changed: predicate.And(predicate.NewPredicateFuncs(isOfSeed), controller.Changes(changesOwner))},
		controller.Watch{Object: &corev1beta1.Seed{}, Handler: toReferences, Changed: generation},
		controller.Watch{Object: &corev1beta1.BackupBucket{}, Handler: toReferences, Changed: generation},
		controller.Watch{Object: &corev1beta1.BackupEntry{}, Handler: toReferences, Changed: movesEntry()},
		controller.Watch{Object: &corev1beta1.ControllerInstallation{}, Handler: toReferences, Changed: changesSpec()},
		controller.Watch{Object: &gardencorev1.ControllerDeployment{}, Handler: toReferences, Changed: version}, // it has no generation
	)
}

// namespaces returns requests for the namespaces of the objects to which an object refers. Before a change of a reference,
// it is called with the old object, too.
func (r *reconciler) namespaces(ctx context.Context, object client.Object) []reconcile.Request {
	found := sets.New(constants.GardenNamespace)
	add := func(ref *corev1.ObjectReference) {
		if ref != nil && ref.Namespace != "" {
			found.Insert(ref.Namespace)
		}
	}
	switch object := object.(type) {
	case *corev1beta1.Project:
		found = sets.New(constants.SystemShootIssuerNamespace)
	case *corev1beta1.Shoot:
		found = sets.New(object.Namespace)
		if issuer.IsManaged(object.Annotations) {
			found.Insert(constants.SystemShootIssuerNamespace)
		}
		bindings, _ := r.bindings(ctx) // without the binding there are no credentials, and its watch reports it later
		for _, one := range bindings {
			if one.bindsShoot(object) {
				add(&one.Ref)
			}
		}
	case *corev1beta1.SecretBinding:
		found = sets.New(object.Namespace, bindingOfSecret(object).Ref.Namespace)
	case *securityv1alpha1.CredentialsBinding:
		found = sets.New(object.Namespace, object.CredentialsRef.Namespace)
	case *corev1beta1.Seed:
		found.Insert(constants.PrefixSeedNamespace + object.Name)
		for _, ref := range credentialsOf(&object.Spec) {
			add(ref)
		}
	case *corev1beta1.BackupBucket:
		add(object.Spec.CredentialsRef)
	case *corev1beta1.BackupEntry:
		bucket := &corev1beta1.BackupBucket{}
		// Without the bucket there are no credentials, and its watch reports it later.
		if err := r.garden.Get(ctx, client.ObjectKey{Name: object.Spec.BucketName}, bucket); err == nil {
			add(bucket.Spec.CredentialsRef)
		}
	}
	return controller.Requests(sets.List(found)...)
}

// isOfSeed reports whether a namespace has the name of a namespace of a Seed.
func isOfSeed(namespace client.Object) bool {
	return strings.HasPrefix(namespace.GetName(), constants.PrefixSeedNamespace)
}

// changesOwner passes changes of the owners of namespaces. Those without an owner are not of Seeds.
func changesOwner(before, after *metav1.PartialObjectMetadata) bool {
	return !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

// concerns passes changes of Shoots that affect the rights of their Seeds.
func concerns() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1beta1.Shoot)
		after, is := e.ObjectNew.(*corev1beta1.Shoot)
		return !was || !is || !equality.Semantic.DeepEqual(
			Wanted("", World{Shoots: []corev1beta1.Shoot{*before}}), Wanted("", World{Shoots: []corev1beta1.Shoot{*after}}),
		) || issuer.IsManaged(before.Annotations) != issuer.IsManaged(after.Annotations)
	}}
}

// movesEntry passes changes of BackupEntries that affect their buckets or Seeds.
func movesEntry() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1beta1.BackupEntry)
		after, is := e.ObjectNew.(*corev1beta1.BackupEntry)
		return !was || !is || !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
			!equality.Semantic.DeepEqual(before.Status.SeedName, after.Status.SeedName)
	}}
}

// changesSpec passes changes of ControllerInstallations except of their status.
func changesSpec() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1beta1.ControllerInstallation)
		after, is := e.ObjectNew.(*corev1beta1.ControllerInstallation)
		return !was || !is || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
	}}
}

// reconciler grants gardenlets the rights to objects of a namespace. If it is off, it deletes what it has granted.
type reconciler struct {
	garden client.Client
	off    bool
}

// Reconcile writes and deletes the Roles and RoleBindings in a namespace. It reads from the cache, and sends no requests
// if nothing has to be done.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := client.InNamespace(request.Name)
	allowed, own, err := r.wanted(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	var roles rbacv1.RoleList
	var bindings rbacv1.RoleBindingList
	labelled := client.MatchingLabels{constants.LabelGardenRole: constants.RoleGardenletRights}
	if err := errors.Join(r.garden.List(ctx, &roles, namespace, labelled), r.garden.List(ctx, &bindings, namespace, labelled)); err != nil {
		return reconcile.Result{}, fmt.Errorf("read the Roles and RoleBindings of namespace %s: %w", request.Name, err)
	}
	var errs []error
	kept := map[string]bool{}
	if own != "" {
		delete(allowed, own) // it has all rights that a Role would contain
		binding := Binding(request.Name, own, true)
		kept[binding.Name] = true
		errs = append(errs, r.ensureBinding(ctx, binding, bindings.Items))
	}
	for _, seed := range slices.Sorted(maps.Keys(allowed)) {
		role, binding := Role(request.Name, seed, allowed[seed]), Binding(request.Name, seed, false)
		kept[role.Name] = true
		// Write the Role first, so that the RoleBinding is effective as soon as it exists.
		errs = append(errs, r.ensureRole(ctx, role, roles.Items), r.ensureBinding(ctx, binding, bindings.Items))
	}
	for i := range bindings.Items {
		if !kept[bindings.Items[i].Name] {
			errs = append(errs, r.delete(ctx, &bindings.Items[i], "RoleBinding"))
		}
	}
	for i := range roles.Items {
		if !kept[roles.Items[i].Name] || own != "" && roles.Items[i].Name == meta("", own).Name {
			errs = append(errs, r.delete(ctx, &roles.Items[i], "Role"))
		}
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// wanted returns the rights in a namespace by the names of the Seeds, and the name of the Seed whose namespace this is, or an empty text.
func (r *reconciler) wanted(ctx context.Context, namespace string) (allowed map[string]Grants, own string, err error) {
	if r.off {
		return nil, "", nil
	}
	world, err := r.world(ctx, namespace)
	if err != nil {
		return nil, "", err
	}
	own, err = r.ownSeed(ctx, namespace, world.Seeds)
	return Wanted(namespace, world), own, err
}

// ownSeed returns the name of the Seed whose namespace this is, or an empty text.
func (r *reconciler) ownSeed(ctx context.Context, name string, seeds []corev1beta1.Seed) (string, error) {
	if !strings.HasPrefix(name, constants.PrefixSeedNamespace) {
		return "", nil
	}
	namespace := watches.MetadataOf("Namespace")
	if err := r.garden.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil // the watch reports it
		}
		return "", fmt.Errorf("read namespace %s: %w", name, err)
	}
	return OwnSeed(namespace, seeds), nil
}

// world reads the objects from which the rights in a namespace follow from the cache.
func (r *reconciler) world(ctx context.Context, namespace string) (World, error) {
	var (
		shoots        corev1beta1.ShootList
		seeds         corev1beta1.SeedList
		buckets       corev1beta1.BackupBucketList
		entries       corev1beta1.BackupEntryList
		installations corev1beta1.ControllerInstallationList
		deployments   gardencorev1.ControllerDeploymentList
	)
	err := r.garden.List(ctx, &shoots, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	for _, list := range []client.ObjectList{&seeds, &buckets, &entries, &installations, &deployments} {
		err = errors.Join(err, r.garden.List(ctx, list, client.UnsafeDisableDeepCopy))
	}
	if err != nil {
		return World{}, fmt.Errorf("read the objects that gardenlets use in namespace %s: %w", namespace, err)
	}
	world := World{
		Shoots: shoots.Items, Seeds: seeds.Items, Buckets: buckets.Items, Entries: entries.Items,
		Installations: installations.Items, Deployments: deployments.Items,
	}
	if world.Bindings, err = r.bindings(ctx); err != nil {
		return World{}, err
	}
	if namespace == constants.SystemShootIssuerNamespace {
		err = r.issuers(ctx, &world)
	}
	if err == nil {
		world.Others, err = r.others(ctx, namespace, world.Bindings)
	}
	return world, err
}

// bindings reads all bindings to credentials.
func (r *reconciler) bindings(ctx context.Context) ([]Bound, error) {
	var ofSecrets corev1beta1.SecretBindingList
	var ofCredentials securityv1alpha1.CredentialsBindingList
	for _, list := range []client.ObjectList{&ofSecrets, &ofCredentials} {
		if err := r.garden.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("read the bindings to credentials: %w", err)
		}
	}
	var found []Bound
	for i := range ofSecrets.Items {
		found = append(found, bindingOfSecret(&ofSecrets.Items[i]))
	}
	for _, one := range ofCredentials.Items {
		found = append(found, Bound{Namespace: one.Namespace, CredentialsBinding: one.Name, Ref: one.CredentialsRef})
	}
	return found, nil
}

// others reads the Shoots of other namespaces whose credentials are in a namespace.
func (r *reconciler) others(ctx context.Context, namespace string, bindings []Bound) ([]corev1beta1.Shoot, error) {
	from := sets.New[string]()
	for _, one := range bindings {
		if one.Ref.Namespace == namespace && one.Namespace != namespace {
			from.Insert(one.Namespace)
		}
	}
	var found []corev1beta1.Shoot
	for _, other := range sets.List(from) {
		var shoots corev1beta1.ShootList
		if err := r.garden.List(ctx, &shoots, client.InNamespace(other), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("read the Shoots of namespace %s: %w", other, err)
		}
		found = append(found, shoots.Items...)
	}
	return found, nil
}

// ensureRole writes a Role if it differs from the existing one.
func (r *reconciler) ensureRole(ctx context.Context, role *rbacv1.Role, present []rbacv1.Role) error {
	at := slices.IndexFunc(present, func(each rbacv1.Role) bool { return each.Name == role.Name })
	if at >= 0 && equality.Semantic.DeepEqual(present[at].Rules, role.Rules) {
		return nil
	}
	return r.write(ctx, role, "Role")
}

// ensureBinding writes a RoleBinding if it differs from the existing one.
func (r *reconciler) ensureBinding(ctx context.Context, binding *rbacv1.RoleBinding, present []rbacv1.RoleBinding) error {
	at := slices.IndexFunc(present, func(each rbacv1.RoleBinding) bool { return each.Name == binding.Name })
	switch {
	case at < 0:
	case present[at].RoleRef != binding.RoleRef: // roleRef is immutable
		return r.delete(ctx, &present[at], "RoleBinding") // the watch triggers its creation
	case equality.Semantic.DeepEqual(present[at].Subjects, binding.Subjects):
		return nil
	}
	return r.write(ctx, binding, "RoleBinding")
}

// write creates or replaces an object, because no other writer adds to it.
func (r *reconciler) write(ctx context.Context, object client.Object, kind string) error {
	wanted, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy %s %s: it has no metadata", kind, object.GetName())
	}
	err := r.garden.Create(ctx, object, controller.FieldManager)
	if apierrors.IsAlreadyExists(err) {
		err = r.garden.Update(ctx, wanted, controller.FieldManager)
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // its Shoots are deleted
	case err != nil:
		return fmt.Errorf("write %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	log.FromContext(ctx).Info("Changed the permissions of the gardenlet of a Seed", "kind", kind, "name", object.GetName())
	return nil
}

// delete deletes an object.
func (r *reconciler) delete(ctx context.Context, object client.Object, kind string) error {
	uid := object.GetUID()
	if err := client.IgnoreNotFound(r.garden.Delete(ctx, object, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("delete %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
