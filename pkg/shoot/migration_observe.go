package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/shoot/state"
)

// observeMove reads what is known about the move of a control plane.
func (r *reconciler) observeMove(ctx context.Context, in *Inputs) error {
	if !in.backedUp() {
		return nil
	}
	in.Move.Asked, in.Move.Applied = map[string]string{}, map[string]bool{}
	for _, key := range in.Emitted {
		if key.Namespace != in.Namespace || key.Name != bundleEtcdMain && (in.Phase == phaseStays || !isOperation(key.Name)) {
			continue
		}
		if err := r.observeRevision(ctx, in, key); err != nil {
			return err
		}
	}
	source := &corev1beta1.BackupEntry{}
	err := r.garden.Get(ctx, client.ObjectKey{Namespace: in.Shoot.Namespace, Name: in.sourceEntry()}, source)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the BackupEntry with the previous backups: %w", err)
	}
	if err == nil {
		in.Move.Source = source
		if in.Move.BackedUp, err = r.isBackedUp(ctx, in); err != nil {
			return err
		}
	}
	switch in.Phase {
	case phaseMigrate:
		return r.observeLeaving(ctx, in)
	case phaseRestore:
		return r.observeArriving(ctx, in)
	}
	return nil
}

// isBackedUp reports whether the main etcd reports complete backups. Its Leases, on which this depends, begin in this Seed.
func (r *reconciler) isBackedUp(ctx context.Context, in *Inputs) (bool, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(druidv1alpha1.SchemeGroupVersion.WithKind("Etcd"))
	err := r.uncached.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: bundleEtcdMain}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the main etcd, whose previous backups exist: %w", err)
	}
	return backupsComplete(object), nil
}

// backupsComplete reports whether an Etcd reports complete backups.
func backupsComplete(etcd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(etcd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(each any) bool {
		condition, is := each.(map[string]any)
		return is && condition["type"] == string(druidv1alpha1.ConditionTypeBackupReady) && condition["status"] == string(druidv1alpha1.ConditionTrue)
	})
}

// observeRevision reads what the revision of a bundle requests, and whether it is applied.
func (r *reconciler) observeRevision(ctx context.Context, in *Inputs, key flow.Key) error {
	mr := &resourcesv1alpha1.ManagedResource{}
	err := r.caches.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	live := flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
	choices := map[string]string{}
	for _, name := range []string{choiceOperation, choiceSnapshot, choiceRestoring} {
		if choices[name], _, err = live.Choice(in.Owner, key, name); err != nil {
			return err
		}
	}
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	in.Move.Asked[key.Name] = choices[choiceOperation]
	in.Move.Applied[key.Name] = mr.Status.ObservedGeneration == mr.Generation && applied.Status == resourcesv1alpha1.ConditionTrue
	if key.Name == bundleEtcdMain {
		in.Move.Restoring, in.Move.Token = choices[choiceRestoring] != "", choices[choiceSnapshot]
		in.Move.Snapshot = in.Move.Token != "" && answered(mr)
	}
	return nil
}

// observeLeaving stores the states of extensions, and reads which objects they have given up and which ManagedResources they still have.
func (r *reconciler) observeLeaving(ctx context.Context, in *Inputs) error {
	if in.Move.Token == "" {
		in.Move.Token = in.Now.UTC().Format(time.RFC3339)
	}
	in.Move.Kept = map[string]string{}
	uses := func(key flow.Key) bool { return isOperation(key.Name) || programs(key.Name) }
	if !in.NamespaceExists || !in.hasManager() && !slices.ContainsFunc(in.Emitted, uses) {
		in.Move.Known = true // nothing is left that could be kept
		return nil
	}
	leaving, err := r.leavingMachines(ctx, in)
	if err != nil {
		return err
	}
	left, err := r.states.SaveLeaving(ctx, in.Shoot, in.Namespace, leaving)
	if err != nil {
		return err
	}
	list := resourcesv1alpha1.ManagedResourceList{}
	if err := r.uncached.List(ctx, &list, client.InNamespace(in.Namespace)); err != nil {
		return fmt.Errorf("list the ManagedResources in namespace %s: %w", in.Namespace, err)
	}
	for i := range list.Items {
		mr := &list.Items[i]
		if ptr.Deref(mr.Spec.Class, "") == "" && mr.Labels[flow.LabelFlow] != FlowName {
			in.Move.Foreign = append(in.Move.Foreign, mr.Name)
		}
		if !isOperation(mr.Name) {
			continue
		}
		for _, entry := range mr.Status.Resources {
			given, exists := left.Objects[state.ObjectName{Kind: entry.Kind, Name: entry.Name}]
			if strings.HasPrefix(entry.APIVersion, extensionsv1alpha1.GroupName+"/") && exists && !given {
				in.Move.Kept[mr.Name] = fmt.Sprintf("the extension has not given up %s %s yet", entry.Kind, entry.Name)
			}
		}
	}
	slices.Sort(in.Move.Foreign)
	if err := r.observeMachinesLeft(ctx, in, left); err != nil {
		return err
	}
	in.Move.Known = true
	return nil
}

// observeArriving reads the states of extensions in the ShootState, and the store of the previous backups.
func (r *reconciler) observeArriving(ctx context.Context, in *Inputs) error {
	saved := &corev1beta1.ShootState{}
	if err := r.states.GardenReader.Get(ctx, client.ObjectKeyFromObject(in.Shoot), saved); err != nil {
		return fmt.Errorf("read ShootState %s/%s, from which the control plane is restored: %w", in.Shoot.Namespace, in.Shoot.Name, err)
	}
	in.Move.States = saved.Spec.Extensions
	if err := r.observeRestored(ctx, in, saved); err != nil {
		return err
	}
	if in.Move.Source == nil {
		return nil
	}
	bucket := &corev1beta1.BackupBucket{}
	err := r.objects.Get(ctx, in.user(), client.ObjectKey{Name: in.Move.Source.Spec.BucketName}, bucket)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the BackupBucket with the previous backups: %w", err)
	}
	in.Move.SourceProvider = bucket.Spec.Provider.Type
	return nil
}

// restoreSaved creates the Secrets and other objects in the ShootState in the namespace of the control plane, unless they exist.
func (r *reconciler) restoreSaved(ctx context.Context, in *Inputs) error {
	if in.Phase != phaseRestore || !in.NamespaceExists {
		return nil
	}
	saved := &corev1beta1.ShootState{}
	if err := r.states.GardenReader.Get(ctx, client.ObjectKeyFromObject(in.Shoot), saved); err != nil {
		return fmt.Errorf("read ShootState %s/%s, from which the control plane is restored: %w", in.Shoot.Namespace, in.Shoot.Name, err)
	}
	objects, err := secrets.Objects(saved.Spec.Gardener, in.Namespace)
	if err != nil {
		return err
	}
	var all []client.Object
	for i := range objects {
		all = append(all, &objects[i])
	}
	for _, entry := range saved.Spec.Resources {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(entry.Data.Raw, &object.Object); err != nil {
			return fmt.Errorf("read %s %s in ShootState %s/%s: it is not valid JSON", entry.Kind, entry.Name, in.Shoot.Namespace, in.Shoot.Name)
		}
		object.SetNamespace(in.Namespace)
		all = append(all, object)
	}
	for _, object := range all {
		present, _ := object.DeepCopyObject().(client.Object) // a copy has the same type
		err := r.uncached.Get(ctx, client.ObjectKeyFromObject(object), present)
		if apierrors.IsNotFound(err) {
			err = client.IgnoreAlreadyExists(r.seed.Create(ctx, object, client.FieldOwner(fieldManager)))
		}
		if err != nil {
			return fmt.Errorf("restore %s/%s from the ShootState: %w", object.GetNamespace(), object.GetName(), err)
		}
	}
	return nil
}

// secretsOfMove ensures the Secrets as long as etcd needs them for its last snapshot. Later, they are deleted with the namespace, and
// nothing may remove them from the ShootState.
func (p *pass) secretsOfMove(ctx context.Context, in *Inputs) error {
	if in.isMovedAway() || !in.emitted(bundleEtcdMain) {
		return nil
	}
	if err := p.observeSecrets(ctx, in); err != nil {
		return err
	}
	return p.keepState(ctx, in)
}
