package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestMigration moves the control plane of a Shoot to another Seed.
func TestMigration(t *testing.T) {
	w := newWorld(t)
	kit.Must(t, w.garden.Create(t.Context(), &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shootName},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local", SeedName: ptr.To(w.source.name),
			Kubernetes: corev1beta1.Kubernetes{Version: version}, Provider: corev1beta1.Provider{Type: "local"},
		},
	}))
	w.eventually(w.source, corev1beta1.LastOperationTypeCreate)
	w.moves(w.source, w.destination)
}

// moves moves the control plane between two Seeds, and checks what arrives and that nothing is left.
func (w *world) moves(from, to *seed) {
	w.Helper()
	before := from.secrets()
	if len(before) == 0 {
		w.Fatal("the control plane has no Secrets")
	}
	bound := fmt.Appendf(nil, `{"spec":{"seedName":%q}}`, to.name)
	kit.Must(w, w.garden.SubResource("binding").Patch(w.Context(), w.shoot(), client.RawPatch(types.MergePatchType, bound)))
	kit.EventuallyWithin(w, 6*kit.WaitTimeout, "the control plane leaves Seed "+from.name, func() string {
		if shoot := w.shoot(); ptr.Deref(shoot.Status.SeedName, "") != to.name {
			return w.describe(shoot)
		}
		return ""
	})
	w.eventually(to, corev1beta1.LastOperationTypeRestore)
	after := to.secrets()
	for name, data := range before {
		if after[name] != data {
			w.Errorf("the Secret %s has changed", name)
		}
	}
	if calls := from.called(); !slices.Equal(calls, []string{"migrate early", "migrate late"}) {
		w.Errorf("the extensions of Seed %s were called: %v", from.name, calls)
	}
	state := `{"made":"` + w.source.name + `"}`
	if calls := to.called(); !slices.Equal(calls, []string{"restore " + state + " of early", "restore " + state + " of late"}) {
		w.Errorf("the extensions of Seed %s were called: %v", to.name, calls)
	}
	if left := from.left(); len(left) > 0 || len(from.deleted) > 0 {
		w.Errorf("on Seed %s, %v are left, and these would have deleted objects in the cluster: %v", from.name, left, from.deleted)
	}
	entry := &corev1beta1.BackupEntry{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: entryName(w.shoot())}, entry))
	if ptr.Deref(entry.Spec.SeedName, "") != to.name || entry.Spec.BucketName != string(w.seedOf(to).UID) {
		w.Errorf("the backups are of %+v", entry.Spec)
	}
	kit.EventuallyTrue(w, "the previous backups are deleted", func() bool {
		entry.Name = constants.PrefixSourceBackupEntry + entryName(w.shoot())
		return apierrors.IsNotFound(w.garden.Get(w.Context(), client.ObjectKeyFromObject(entry), entry))
	})
	kit.EventuallyTrue(w, "the constraint is removed", func() bool {
		return corev1beta1.FindCondition(w.shoot().Status.Constraints, corev1beta1.ShootReadyForMigration) == nil
	})
}

func entryName(shoot *corev1beta1.Shoot) string { return technical + "--" + string(shoot.Status.UID) }

func (w *world) seedOf(s *seed) *corev1beta1.Seed {
	w.Helper()
	found := &corev1beta1.Seed{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Name: s.name}, found))
	return found
}

func (w *world) shoot() *corev1beta1.Shoot {
	w.Helper()
	shoot := &corev1beta1.Shoot{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: shootName}, shoot))
	return shoot
}

// eventually waits until an operation has succeeded on a Seed, or has been followed by a reconciliation.
func (w *world) eventually(on *seed, kind corev1beta1.LastOperationType) {
	w.Helper()
	kit.EventuallyWithin(w, 6*kit.WaitTimeout, fmt.Sprintf("the operation %s succeeds on Seed %s", kind, on.name), func() string {
		shoot := w.shoot()
		last := ptr.Deref(shoot.Status.LastOperation, corev1beta1.LastOperation{})
		done := last.State == corev1beta1.LastOperationStateSucceeded && (last.Type == kind || last.Type == corev1beta1.LastOperationTypeReconcile)
		if done && ptr.Deref(shoot.Status.SeedName, "") == on.name && shoot.Status.ObservedGeneration == shoot.Generation {
			return ""
		}
		return w.describe(shoot)
	})
}

// describe describes the state of the Shoot.
func (w *world) describe(shoot *corev1beta1.Shoot) string {
	status := shoot.Status
	return fmt.Sprintf("%s %+v %+v %v\n%s%s", ptr.Deref(status.SeedName, ""), status.LastOperation, status.LastErrors, status.Constraints, w.source.bundles(), w.destination.bundles())
}

// secrets returns the data of the Secrets that move with a control plane.
func (s *seed) secrets() map[string]string {
	s.Helper()
	var list corev1.SecretList
	persisted := client.MatchingLabels{constants.LabelSecretsManagerPersist: "true", "managed-by": "secrets-manager"}
	kit.Must(s, s.seed.List(s.Context(), &list, client.InNamespace(technical), persisted))
	found := map[string]string{}
	for _, secret := range list.Items {
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
			fmt.Fprintf(&text, "%s=%s\n", key, secret.Data[key])
		}
		found[secret.Name] = text.String()
	}
	return found
}

// called returns the calls of extensions, sorted and without duplicates. Reconciliations may follow at any time.
func (s *seed) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(s.calls), func(call string) bool { return strings.HasPrefix(call, "reconcile ") })
	slices.Sort(calls)
	return slices.Compact(calls)
}

// left lists what exists in the seed and did not before the first control plane.
func (s *seed) left() []string {
	s.Helper()
	return slices.DeleteFunc(s.existing(), func(name string) bool { return slices.Contains(s.before, name) })
}

// existing lists the objects of control planes in the seed, and those in the namespace garden, except what the Seed remembers of Shoots.
func (s *seed) existing() []string {
	s.Helper()
	var names []string
	lists := []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.SecretList{}, &resourcesv1alpha1.ManagedResourceList{}, &extensionsv1alpha1.ClusterList{}, &extensionsv1alpha1.ExtensionList{},
	}
	for _, list := range lists {
		kit.Must(s, s.seed.List(s.Context(), list))
		for _, object := range objectsOf(s, list) {
			if object.GetName() == "shoot-records" {
				continue
			}
			if strings.Contains(object.GetName(), technical) || object.GetNamespace() == technical || object.GetNamespace() == constants.GardenNamespace {
				names = append(names, fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName()))
			}
		}
	}
	return names
}

// objectsOf returns the objects of a list.
func objectsOf(s *seed, list client.ObjectList) []client.Object {
	s.Helper()
	items, err := meta.ExtractList(list)
	kit.Must(s, err)
	var objects []client.Object
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// bundles describes the ManagedResources that are not healthy.
func (s *seed) bundles() string {
	var list resourcesv1alpha1.ManagedResourceList
	if err := s.seed.List(s.Context(), &list); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, mr := range list.Items {
		fmt.Fprintf(&text, "%s: %s/%s deleting %t keeps %t", s.name, mr.Namespace, mr.Name, mr.DeletionTimestamp != nil, ptr.Deref(mr.Spec.KeepObjects, false))
		for _, condition := range mr.Status.Conditions {
			fmt.Fprintf(&text, " %s=%s (%.120s)", condition.Type, condition.Status, condition.Message)
		}
		text.WriteString("\n")
	}
	return text.String()
}
