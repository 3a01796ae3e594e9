package seed

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestSeed runs the flow through the life cycle of a Seed.
func TestSeed(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.seeds.Kubeconfig(), nil, "controllers: {resourceClass: seed}")
	before := w.objects()
	const name = "life"
	w.declare(name)
	w.extensions()
	toGarden, toSeed, stop := w.gardenlet(name)

	w.eventually(name, corev1beta1.LastOperationStateProcessing, "Extension/networking-filter (ControllerRegistration life has no ControllerInstallation in the seed)", "")
	installation := w.install(name)
	w.eventually(name, corev1beta1.LastOperationStateSucceeded, "Not active in this version", corev1beta1.ConditionTrue)
	seed := w.get(name)
	if seed.Status.KubernetesVersion == nil || seed.Status.ClusterIdentity == nil || *seed.Status.ClusterIdentity == "" || seed.Status.Gardener.ID != "gardenlet-0" {
		t.Errorf("the status is %+v", seed.Status)
	}
	if !slices.Contains(seed.Finalizers, constants.GardenerName) {
		t.Errorf("the finalizers are %v", seed.Finalizers)
	}
	quiet(t, toGarden, toSeed)
	t.Logf("the Seed was ready after %d requests to the seed, %d of them writes, and %d writes to the garden", len(toSeed.Single()), len(writes(toSeed)), len(writes(toGarden)))
	w.rendered(name)
	toGarden.Forget()
	toSeed.Forget()
	quiet(t, toGarden, toSeed)
	if rest := slices.Concat(toGarden.All(), toSeed.All()); len(rest) > 0 {
		t.Errorf("requests at rest: %v", rest)
	}
	stop()

	toGarden, toSeed, stop = w.gardenlet(name)
	kit.EventuallyTrue(t, "the Seed is watched", func() bool { return toSeed.Watched("/managedresources") && toGarden.Watched("/seeds") })
	quiet(t, toGarden, toSeed)
	if sent := slices.Concat(writes(toGarden), writes(toSeed)); len(sent) > 0 {
		t.Errorf("a restart wrote %v", sent)
	}

	kit.Change(t, w.garden, seed, func() { seed.Spec.Settings.ExcessCapacityReservation.Enabled = ptr.To(false) })
	w.eventually(name, corev1beta1.LastOperationStateSucceeded, "", corev1beta1.ConditionTrue)
	quiet(t, toGarden, toSeed)
	t.Logf("one setting changed: %v %v", writes(toSeed), writes(toGarden))
	if sent := writes(toSeed); len(sent) != 2 || !strings.HasPrefix(sent[0], "POST /api/v1/namespaces/garden/secrets") ||
		sent[1] != "PATCH /apis/resources.gardener.cloud/v1alpha1/namespaces/garden/managedresources/system" {
		t.Errorf("one setting changed, but gardenlet wrote to the seed: %v", sent)
	}

	w.degrades(name)
	w.backups(name)
	w.bastions(name)
	stop()
	stop = w.ingress(name)
	w.deletion(name, installation)
	stop()
	w.same(before)
}

// deletion deletes the Seed. At first, another object refers to it.
func (w *world) deletion(name string, installation *corev1beta1.ControllerInstallation) {
	w.Helper()
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	bucket.Spec.Provider, bucket.Spec.SeedName = corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, ptr.To(name)
	bucket.Spec.CredentialsRef = w.get(name).Spec.DNS.Provider.CredentialsRef
	kit.Must(w, w.garden.Create(w.Context(), bucket))
	w.deleteSeed(name)
	w.eventually(name, corev1beta1.LastOperationStateError, "BackupBucket other", "")
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(w, w.seed.List(w.Context(), &list))
	for _, mr := range list.Items {
		if mr.DeletionTimestamp != nil {
			w.Errorf("%s is being deleted although BackupBucket other refers to the Seed", mr.Name)
		}
	}

	kit.Must(w, w.garden.Delete(w.Context(), bucket))
	w.eventuallyWaits(name, "ControllerInstallation "+installation.Name)
	kit.Must(w, w.garden.Delete(w.Context(), installation))
	w.eventuallySeedGone(name)
}

// deleteSeed deletes the Seed.
func (w *world) deleteSeed(name string) {
	w.Helper()
	seed := w.get(name)
	kit.Change(w, w.garden, seed, func() {
		metav1.SetMetaDataAnnotation(&seed.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	})
	kit.Must(w, w.garden.Delete(w.Context(), seed))
}

func (w *world) eventuallySeedGone(name string) {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "the Seed is deleted", func() string {
		if seed := w.get(name); seed != nil {
			return fmt.Sprintf("%+v\n%s", seed.Status.LastOperation, w.bundles())
		}
		return ""
	})
}

// eventuallyWaits waits until the last operation contains a text.
func (w *world) eventuallyWaits(name, text string) {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "the Seed waits for "+text, func() string {
		if description := w.get(name).Status.LastOperation.Description; !strings.Contains(description, text) {
			return description + "\n" + w.bundles()
		}
		return ""
	})
}

// same compares the objects of the seed with those that existed before the Seed.
func (w *world) same(before map[string]bool) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the seed has the same objects as before", func() string {
		var differences []string
		now := w.objects()
		for object := range now {
			if !before[object] {
				differences = append(differences, object+" is left")
			}
		}
		for object := range before {
			if !now[object] {
				differences = append(differences, object+" no longer exists")
			}
		}
		sort.Strings(differences)
		return strings.Join(differences, "\n")
	})
}
