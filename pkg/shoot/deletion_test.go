package shoot

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/shoot/cleanup"
)

// expiredTokens replaces the tokens with expired ones, as in a cluster that was stopped for a long time.
func expiredTokens(in *Inputs) {
	long := now.Add(-48 * time.Hour)
	in.Tokens = map[string]time.Time{accessSecret(resourcemanager.Account): long, accessSecret(kubecontrollermanager.Name): long}
}

// cleaned records in the ledger that the clean-up of user content is complete.
func cleaned(in *Inputs) {
	done(in, taskCleanUpBegins, cleanup.StageWebhooks, cleanup.StageExtendedAPIs, cleanup.StageResources, cleanup.StageVolumes)
}

func done(in *Inputs, tasks ...string) {
	entries := map[string]flow.Entry{}
	for i, task := range tasks {
		entries[task] = flow.Entry{Value: string(in.Owner.UID), Time: now.Add(time.Duration(i+1) * time.Minute)}
	}
	in.Ledger = flow.NewLedger(in.ledgerKey(), entries)
}

// succeeded sets the status that the first successful operation leaves in the garden.
func succeeded(in *Inputs) {
	in.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{}}
}

func forced(in *Inputs) {
	in.Deleting = true
	metav1.SetMetaDataAnnotation(&in.Shoot.ObjectMeta, constants.AnnotationConfirmationForceDeletion, "true")
}

// TestCleanUpTasks checks that each stage is due until the ledger has an entry of it for this Shoot.
func TestCleanUpTasks(t *testing.T) {
	const skip = constants.AnnotationShootSkipCleanup
	all := []string{taskCleanUpBegins, cleanup.StageWebhooks, cleanup.StageExtendedAPIs, cleanup.StageResources}
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   []string
	}{
		"ledger unknown":       {func(in *Inputs) { in.Ledger = nil }, all},
		"nothing done":         {func(in *Inputs) { done(in) }, all},
		"webhooks done":        {func(in *Inputs) { done(in, all[:2]...) }, all[2:]},
		"all done":             {cleaned, nil},
		"done for another one": {func(in *Inputs) { cleaned(in); in.Owner.UID = "other" }, all},
		"skipped":              {func(in *Inputs) { in.Shoot.Annotations = map[string]string{skip: "true"} }, slices.Delete(slices.Clone(all), 2, 3)},
		"never served":         {func(in *Inputs) { noTokens(in); done(in) }, nil},
		"served, no token":     {func(in *Inputs) { noTokens(in); done(in, entryServed) }, all},
		"another one served":   {func(in *Inputs) { noTokens(in); done(in, entryServed); in.Owner.UID = "other" }, nil},
		"older, no token":      {func(in *Inputs) { noTokens(in); done(in); in.ShootManaged = true }, all},
		"older, ledger lost":   {func(in *Inputs) { noTokens(in); in.Ledger, in.ShootManaged = nil, true }, all},
		"seed restored":        {func(in *Inputs) { noTokens(in); done(in); succeeded(in) }, all},
		"namespace deleted":    {func(in *Inputs) { noTokens(in); succeeded(in); in.NamespaceDeleting = true }, nil},
		"hibernated for long":  {expiredTokens, all},
		"no API server":        {func(in *Inputs) { in.Emitted = nil }, nil},
	} {
		in := up(t, func(in *Inputs) { in.Deleting = true }, test.change)
		var got []string
		for _, task := range in.cleanUpTasks() {
			got = append(got, task.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the tasks are %v, want %v", name, got, test.want)
		}
	}
}

// TestManagedInShoot checks which ManagedResources show that the shoot's resource-manager has worked.
func TestManagedInShoot(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*resourcesv1alpha1.ManagedResource)
		want   bool
	}{
		"emitted":          {func(*resourcesv1alpha1.ManagedResource) {}, false},
		"another client's": {func(mr *resourcesv1alpha1.ManagedResource) { mr.Finalizers = []string{"example.org/guard"} }, false},
		"begun": {func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Finalizers = []string{resourcesv1alpha1.FinalizerOf("")}
		}, true},
		"applied": {func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.ObservedGeneration = 1 }, true},
		"in the seed": {func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.ObservedGeneration = 1
			mr.Spec.Class = ptr.To("seed")
		}, false},
		"class is empty": {func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.ObservedGeneration = 1
			mr.Spec.Class = ptr.To("")
		}, true},
	} {
		mr := &resourcesv1alpha1.ManagedResource{}
		test.change(mr)
		if got := managedInShoot(mr); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestCleanUpSince checks that a stage begins when the previous one ends.
func TestCleanUpSince(t *testing.T) {
	in := up(t, func(in *Inputs) { in.Deleting, in.Shoot.DeletionTimestamp = true, &metav1.Time{Time: now} })
	for count, want := range []time.Time{now, now.Add(time.Minute), now.Add(2 * time.Minute)} {
		done(&in, []string{taskCleanUpBegins, cleanup.StageWebhooks}[:count]...)
		if got := in.cleanUpSince(); !got.Equal(want) {
			t.Errorf("%d done: %s, want %s", count, got, want)
		}
	}
}

// TestStoppedResourceManager checks that a deletion fails with a code that permits to force it if the objects in the cluster are not deleted in
// time after the users' objects.
func TestStoppedResourceManager(t *testing.T) {
	ended := now.Add(4 * time.Minute) // of the last stage of the clean-up
	for name, test := range map[string]struct {
		after  time.Duration
		errors bool
	}{
		"users' objects are gone":  {0, false},
		"nearly ten minutes later": {cleanUpTimeout - time.Second, false},
		"ten minutes later":        {cleanUpTimeout, true},
		"a day later":              {24 * time.Hour, true},
	} {
		plan := planOf(t, up(t, func(in *Inputs) {
			in.Deleting, in.Shoot.DeletionTimestamp, in.Now = true, &metav1.Time{Time: now}, ended.Add(test.after)
			done(in, taskCleanUpBegins, cleanup.StageWebhooks, cleanup.StageExtendedAPIs, cleanup.StageResources)
		}))
		at := slices.IndexFunc(plan.Waits, func(wait flow.Wait) bool { return wait.Name == waitInCluster })
		if (at >= 0) != test.errors || !test.errors && !plan.Next.Equal(ended.Add(cleanUpTimeout)) {
			t.Errorf("%s: waits %+v, next at %s", name, plan.Waits, plan.Next)
			continue
		}
		if !test.errors {
			continue
		}
		report := flow.Progress(flow.Operation{}, flow.Owner{}, flow.Result{Plan: plan}, ended.Add(test.after))
		failed := slices.ContainsFunc(report.LastErrors, func(one corev1beta1.LastError) bool {
			return slices.Contains(one.Codes, corev1beta1.ErrorCleanupClusterResources) && strings.Contains(one.Description, bundleGardenerAccess)
		})
		if !failed {
			t.Errorf("%s: the errors are %+v", name, report.LastErrors)
		}
	}
}

// TestNothingIsDeletedBeforeUsersContent checks that no bundle is deleted while a stage is due, with any inputs.
func TestNothingIsDeletedBeforeUsersContent(t *testing.T) {
	for number, setting := range settings() {
		plan := planOf(t, up(t, setting, func(in *Inputs) { in.Deleting = true; done(in, taskCleanUpBegins) }))
		if len(plan.Tombstones) > 0 || len(plan.Tasks) == 0 {
			t.Errorf("setting %b: tombstones %v, tasks %v", number, plan.Tombstones, plan.Tasks)
		}
	}
}

// TestForcedDeletionOfNamespace checks that remaining content does not block the deletion of the namespace permanently.
func TestForcedDeletionOfNamespace(t *testing.T) {
	plan := planOf(t, up(t, forced))
	for _, object := range plan.Bundles[0].Objects {
		if namespace, is := object.(*corev1.Namespace); is && namespace.Annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter] != forcedFinalizeAfter {
			t.Errorf("the annotations of the namespace are %v", namespace.Annotations)
		}
	}
	for _, tombstone := range plan.Tombstones {
		if !tombstone.Force || tombstone.Name == "shoot--dev--one" {
			t.Errorf("%+v", tombstone)
		}
	}
}
