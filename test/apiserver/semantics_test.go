package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// exampleOf returns the example of a kind as its Go type, with another name and namespace, and without a status.
func exampleOf[T client.Object](t *testing.T, kind, namespace, name string, into T) T {
	t.Helper()
	for _, example := range examples(t) {
		if example.GetKind() != kind {
			continue
		}
		delete(example.Object, "status")
		kit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(example.Object, into))
		into.SetName(name)
		into.SetNamespace(namespace)
		into.SetFinalizers(nil)
		return into
	}
	t.Fatalf("found no example of kind %s", kind)
	return into
}

// ensureParent creates a CloudProfile as the parent of an object, if that is a NamespacedCloudProfile.
func ensureParent(t *testing.T, c client.Client, object *unstructured.Unstructured, name string) {
	t.Helper()
	if object.GetKind() != "NamespacedCloudProfile" {
		return
	}
	setField(t, object, "spec.parent.name", name)
	kit.Must(t, c.Create(t.Context(), exampleOf(t, "CloudProfile", "", name, &gardencorev1beta1.CloudProfile{})))
}

func newShoot(t *testing.T, c client.Client, namespace, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	ensureNamespace(t, c, namespace)
	shoot := exampleOf(t, "Shoot", namespace, name, &gardencorev1beta1.Shoot{})
	shoot.Annotations, shoot.Labels, shoot.Spec.SeedName = nil, nil, nil
	kit.Must(t, c.Create(t.Context(), shoot))
	return shoot
}

func TestStatusIsApart(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, unique("garden-status"), "apart")

	shoot.Status.TechnicalID = "shoot--status--apart"
	shoot.Labels = map[string]string{"changed": "with-the-status"}
	region := shoot.Spec.Region
	shoot.Spec.Region = "elsewhere"
	kit.Must(t, c.Status().Update(t.Context(), shoot))
	if shoot.Status.TechnicalID == "" || shoot.Spec.Region != region || shoot.Labels["changed"] != "" || shoot.Generation != 1 {
		t.Errorf("after an update of the status: technical ID %q, region %q, labels %v, generation %d", shoot.Status.TechnicalID, shoot.Spec.Region, shoot.Labels, shoot.Generation)
	}

	for uid, refused := range map[string]bool{"another": true, string(shoot.UID): false} {
		patch := client.RawPatch(types.StrategicMergePatchType, []byte(fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"gardener":{"name":"gardenlet"}}}`, uid)))
		stored := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
		if err := c.Status().Patch(t.Context(), stored, patch); apierrors.IsInvalid(err) != refused || !refused && (err != nil || stored.UID != shoot.UID) {
			t.Errorf("a status for the UID %s: %v, UID %s", uid, err, stored.UID)
		}
	}
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot))

	shoot.Status.TechnicalID = "changed-with-the-specification"
	shoot.Spec.Purpose = ptr(gardencorev1beta1.ShootPurposeTesting)
	kit.Must(t, c.Update(t.Context(), shoot))
	if shoot.Status.TechnicalID != "shoot--status--apart" || shoot.Generation != 2 {
		t.Errorf("after an update of the spec: technical ID %q, generation %d", shoot.Status.TechnicalID, shoot.Generation)
	}
}

func TestFieldSelectors(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, unique("garden-selectors"), "selected")
	newShoot(t, c, shoot.Namespace, "other")
	shoot.Spec.SeedName = ptr("chosen")
	kit.Must(t, c.SubResource("binding").Update(t.Context(), shoot))
	for selector, want := range map[string][]string{
		"spec.seedName=chosen":            {"selected"},
		"spec.seedName=":                  {"other"},
		"metadata.name=other":             {"other"},
		"spec.cloudProfile.Name=missing":  nil,
		"spec.cloudProfile.Kind!=missing": {"other", "selected"},
	} {
		shoots := &gardencorev1beta1.ShootList{}
		kit.Must(t, c.List(t.Context(), shoots, client.InNamespace(shoot.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: selector}}))
		var found []string
		for _, shoot := range shoots.Items {
			found = append(found, shoot.Name)
		}
		if slices.Sort(found); !slices.Equal(found, want) {
			t.Errorf("%s selects %v, want %v", selector, found, want)
		}
	}
	err := c.List(t.Context(), &gardencorev1beta1.ShootList{}, &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "spec.region=here"}})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field label not supported: spec.region") {
		t.Errorf("an unknown field selector: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ensureNamespace(t, c, "garden-bad")
	manifest := func(kind, version, extra string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "bad", "namespace": "garden-bad"},
			"spec": map[string]any{"region": "here", extra: "value"},
		}}
	}
	err := c.Create(t.Context(), manifest("Shoot", "core.gardener.cloud/v1beta1", "unheardOf"), client.FieldValidation("Strict"))
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.unheardOf"`) {
		t.Errorf("an unknown field: %v", err)
	}
	output, err := kubectl(t, "apiVersion: core.gardener.cloud/v9\nkind: Shoot\nmetadata: {name: bad, namespace: garden-bad}\n", "create", "-f", "-")
	if err == nil || !strings.Contains(output, "no matches for kind") {
		t.Errorf("an unknown version: %v, %s", err, output)
	}
	large := exampleOf(t, "Shoot", "garden-bad", "large", &gardencorev1beta1.Shoot{})
	large.Annotations = map[string]string{"large": strings.Repeat("x", 1<<20)}
	if err := c.Create(t.Context(), large); !apierrors.IsInvalid(err) {
		t.Errorf("a Shoot with an annotation of 1 MiB: %v, want Invalid", err)
	}
	large.Annotations, large.Spec.Provider.Workers[0].CABundle = nil, ptr(strings.Repeat("x", 4<<20))
	if err := c.Create(t.Context(), large); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("a Shoot of 4 MiB: %v, want RequestEntityTooLarge", err)
	}
}

func TestServerSideApply(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, unique("garden-apply"), "applied")
	apply := func(owner, field string, value any) error {
		configuration := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": map[string]any{"name": shoot.Name, "namespace": shoot.Namespace},
			"spec": map[string]any{field: value},
		}})
		return c.Apply(t.Context(), configuration, client.FieldOwner(owner))
	}
	kit.Must(t, apply("first", "exposureClassName", "internet"))
	kit.Must(t, apply("second", "extensions", []any{map[string]any{"type": "mine"}}))
	if err := apply("second", "exposureClassName", "intranet"); !apierrors.IsConflict(err) {
		t.Errorf("applying another manager's field: %v, want Conflict", err)
	}
	kit.Must(t, apply("second", "schedulerName", "default-scheduler"))
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot))
	if shoot.Spec.ExposureClassName == nil || slices.ContainsFunc(shoot.Spec.Extensions, func(e gardencorev1beta1.Extension) bool { return e.Type == "mine" }) {
		t.Errorf("after the second manager stopped applying its extension: %v %v", shoot.Spec.ExposureClassName, shoot.Spec.Extensions)
	}
}

func TestSeedOperations(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	seed := exampleOf(t, "Seed", "", unique("operated"), &gardencorev1beta1.Seed{})
	seed.Annotations = nil
	kit.Must(t, c.Create(t.Context(), seed))
	if seed.Labels[constants.LabelSeedProvider] != seed.Spec.Provider.Type || seed.Labels[constants.LabelSeedRegion] != seed.Spec.Provider.Region {
		t.Errorf("labels %v", seed.Labels)
	}
	for _, step := range []struct {
		operation  string
		generation int64
		left       string
	}{
		{"reconcile", 2, ""}, {"reconcile", 3, ""}, {"renew-kubeconfig", 4, "renew-kubeconfig"}, {"renew-kubeconfig", 4, "renew-kubeconfig"}, {"", 4, ""}, {"renew-garden-access-secrets", 5, "renew-garden-access-secrets"},
	} {
		seed.Annotations = map[string]string{constants.AnnotationGardenerOperation: step.operation, "test": step.operation}
		kit.Must(t, c.Update(t.Context(), seed))
		if left := seed.Annotations[constants.AnnotationGardenerOperation]; seed.Generation != step.generation || left != step.left {
			t.Errorf("%s: generation %d and operation %q, want %d and %q", step.operation, seed.Generation, left, step.generation, step.left)
		}
	}
	seed.Annotations = map[string]string{constants.AnnotationGardenerOperation: "renew-kubeconfig"}
	if err := c.Update(t.Context(), seed); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `must not overwrite operation "renew-garden-access-secrets"`) {
		t.Errorf("an operation other than the one in progress: %v, want Invalid", err)
	}
}

func TestGarbageAndNamespacesAreDeleted(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	namespace := unique("garden-garbage")
	owner := newShoot(t, c, namespace, "owner")
	secret := exampleOf(t, "InternalSecret", namespace, "owned", &gardencorev1beta1.InternalSecret{})
	secret.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))}
	kit.Must(t, c.Create(t.Context(), secret))
	confirmDeletion(owner)
	kit.Must(t, c.Update(t.Context(), owner))
	kit.Must(t, c.Delete(t.Context(), owner))
	kit.EventuallyTrue(t, "the owned InternalSecret is collected", func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	})

	inside := newShoot(t, c, namespace, "inside")
	confirmDeletion(inside)
	kit.Must(t, c.Update(t.Context(), inside))
	kit.Must(t, c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	kit.EventuallyTrue(t, "the namespace is deleted with the Shoot in it", func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}))
	})
}

// unique returns a name that no earlier run of the test has used for an object that it leaves.
func unique(name string) string { return name + "-" + rand.String(5) }

func ptr[T any](value T) *T { return &value }
