package seedrestriction

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/requester"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// seedChecks are the checks for programs of Seeds, by resource.
var seedChecks = map[string]check{
	"backupbuckets":              checkBucket,
	"backupentries":              checkEntry,
	"bastions":                   checkBastion,
	"certificatesigningrequests": checkRequest,
	"clusterrolebindings":        checkBootstrapBinding,
	"configmaps": func(ctx context.Context, w *write) error {
		return checkOfShoot(ctx, w, constants.SuffixCACluster, constants.SuffixCAKubelet)
	},
	"gardenlets":      checkGardenlet,
	"internalsecrets": func(ctx context.Context, w *write) error { return checkOfShoot(ctx, w, constants.SuffixCAClient) },
	"leases":          checkLease,
	"managedseeds":    checkManagedSeed,
	"secrets":         checkSecret,
	"seeds":           checkSeed,
	"serviceaccounts": checkAccount,
	"shootstates":     func(ctx context.Context, w *write) error { return w.ownsShoot(ctx, w.Namespace, w.Name, true) },
}

// checkBucket permits the BackupBucket of the own Seed, whose name is the UID of the Seed: with the bucket of another Seed, a gardenlet would
// get the backups of that Seed. Its credentials must be those of the Seed.
func checkBucket(ctx context.Context, w *write) error {
	seed := &corev1beta1.Seed{}
	switch found, err := w.get(ctx, "", w.by.Seed, seed); {
	case err != nil:
		return err
	case !found, w.Name != string(seed.UID):
		return w.refuse("its name must be the UID of the Seed")
	case w.Operation != admissionv1.Create:
		return nil
	}
	bucket, err := decoded[corev1beta1.BackupBucket](w)
	if err != nil {
		return err
	}
	if ptr.Deref(bucket.Spec.SeedName, "") != w.by.Seed {
		return w.refuse("spec.seedName must be %s", w.by.Seed)
	}
	if ref := bucket.Spec.CredentialsRef; ref != nil && !w.MayRead(graph.Vertex{Kind: graph.Kind(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}, graph.SeedVertex(w.by.Seed)) {
		return w.refuse("spec.credentialsRef may only name credentials that the gardenlet may read")
	}
	return nil
}

// checkEntry permits BackupEntries of the own Seed in a bucket of this Seed, and the copy of an entry that is restored from another Seed.
func checkEntry(ctx context.Context, w *write) error {
	entry, err := decoded[corev1beta1.BackupEntry](w)
	if err != nil {
		return err
	}
	if original, is := strings.CutPrefix(w.Name, constants.PrefixSourceBackupEntry); is {
		return w.checkSource(ctx, original, entry)
	}
	if ptr.Deref(entry.Spec.SeedName, "") != w.by.Seed {
		return w.refuse("spec.seedName must be %s", w.by.Seed)
	}
	bucket := &corev1beta1.BackupBucket{}
	switch found, err := w.get(ctx, "", entry.Spec.BucketName, bucket); {
	case err != nil:
		return err
	case !found, ptr.Deref(bucket.Spec.SeedName, "") != w.by.Seed:
		return w.refuse("spec.bucketName must be a BackupBucket of Seed %s", w.by.Seed)
	}
	return nil
}

// checkSource permits the copy of an entry while its Shoot is restored in the own Seed.
func (w *write) checkSource(ctx context.Context, original string, entry *corev1beta1.BackupEntry) error {
	stored := &corev1beta1.BackupEntry{}
	switch found, err := w.get(ctx, w.Namespace, original, stored); {
	case err != nil:
		return err
	case !found, !equality.Semantic.DeepEqual(stored.Spec, entry.Spec):
		return w.refuse("its spec must be that of BackupEntry %s/%s", w.Namespace, original)
	}
	for _, owner := range stored.OwnerReferences {
		if owner.Kind != string(graph.Shoot) {
			continue
		}
		shoot := &corev1beta1.Shoot{}
		found, err := w.get(ctx, w.Namespace, owner.Name, shoot)
		if err != nil {
			return err
		}
		operation := shoot.Status.LastOperation
		if found && ptr.Deref(shoot.Spec.SeedName, "") == w.by.Seed && operation != nil &&
			operation.Type == corev1beta1.LastOperationTypeRestore && operation.State != corev1beta1.LastOperationStateSucceeded {
			return nil
		}
	}
	return w.refuse("its Shoot is not being restored in this Seed")
}

func checkBastion(_ context.Context, w *write) error {
	bastion, err := decoded[operationsv1alpha1.Bastion](w)
	if err != nil {
		return err
	}
	if ptr.Deref(bastion.Spec.SeedName, "") != w.by.Seed {
		return w.refuse("spec.seedName must be %s", w.by.Seed)
	}
	return nil
}

// checkRequest permits requests for the client certificate of the own gardenlet.
func checkRequest(_ context.Context, w *write) error {
	if err := w.extension(); err != nil {
		return err
	}
	request, err := decoded[certificatesv1.CertificateSigningRequest](w)
	if err != nil {
		return err
	}
	if subject, is := graph.SubjectOf(request); !is || subject != (requester.Requester{Program: requester.Gardenlet, Seed: w.by.Seed}) {
		return w.refuse("it must request the client certificate of %s%s with the organization %s only", constants.PrefixSeedUser, w.by.Seed, constants.SeedsGroup)
	}
	return nil
}

// checkOfShoot permits objects with the name of a Shoot of the own Seed and one of the suffixes.
func checkOfShoot(ctx context.Context, w *write, suffixes ...string) error {
	for _, suffix := range suffixes {
		if shoot, is := strings.CutSuffix(w.Name, suffix); is {
			return w.ownsShoot(ctx, w.Namespace, shoot, false)
		}
	}
	return w.refuse("its name must be that of a Shoot with a suffix of %s", strings.Join(suffixes, ", "))
}

// checkLease permits the Lease of the own Seed and that of leader election. Extensions have those in the namespace of the Seed.
func checkLease(_ context.Context, w *write) error {
	switch {
	case w.by.Program == requester.Extension && w.Namespace == w.by.SeedNamespace():
		return nil
	case w.by.Program == requester.Extension:
		return w.refuse("it must be in namespace %s", w.by.SeedNamespace())
	case w.Name == "gardenlet-leader-election", w.Namespace == constants.SystemSeedLeaseNamespace && w.Name == w.by.Seed:
		return nil
	}
	return w.refuse("the Lease of the Seed is %s/%s", constants.SystemSeedLeaseNamespace, w.by.Seed)
}

// checkSeed permits the own Seed. The Seed of a ManagedSeed may also be deleted by the gardenlet of its Shoot.
func checkSeed(ctx context.Context, w *write) error {
	if w.Name == w.by.Seed {
		return nil
	}
	if w.Operation == admissionv1.Delete {
		managed := &seedmanagementv1alpha1.ManagedSeed{}
		found, err := w.get(ctx, constants.GardenNamespace, w.Name, managed)
		if err != nil {
			return err
		}
		if found && managed.DeletionTimestamp != nil && managed.Spec.Shoot != nil {
			return w.ownsShoot(ctx, managed.Namespace, managed.Spec.Shoot.Name, false)
		}
	}
	return w.refuse("it is another Seed")
}

// checkManagedSeed refuses changes of the specification. It refers to credentials, so a gardenlet could extend its rights.
func checkManagedSeed(_ context.Context, w *write) error {
	before, err := former[seedmanagementv1alpha1.ManagedSeed](w)
	if err != nil {
		return err
	}
	after, err := decoded[seedmanagementv1alpha1.ManagedSeed](w)
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return w.refuse("gardenlets do not change spec")
	}
	return nil
}

// checkGardenlet permits the own Gardenlet, which may only name Secrets that the gardenlet may read. It does not change afterwards.
func checkGardenlet(_ context.Context, w *write) error {
	after, err := decoded[seedmanagementv1alpha1.Gardenlet](w)
	if err != nil {
		return err
	}
	if !w.creates() {
		before, err := former[seedmanagementv1alpha1.Gardenlet](w)
		if err == nil && !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
			return w.refuse("gardenlets do not change spec")
		}
		return err
	}
	if w.Namespace != constants.GardenNamespace || w.Name != w.by.Seed {
		return w.refuse("it must be %s/%s", constants.GardenNamespace, w.by.Seed)
	}
	for _, edge := range graph.EdgesOf(graph.Gardenlet, after, graph.Facts{Registration: func(string) *graph.Registration { return nil }, Now: w.Clock.Now()}) {
		if edge.From.Kind != graph.Gardenlet && !w.MayRead(edge.From, graph.SeedVertex(w.by.Seed)) {
			return w.refuse("it may not name %s, which the gardenlet may not read", edge.From)
		}
	}
	return nil
}
