package seedrestriction

import (
	"context"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/requester"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// shootChecks are the checks for programs of self-hosted Shoots, by resource.
var shootChecks = map[string]check{
	"backupbuckets": func(_ context.Context, w *write) error {
		bucket, err := decoded[corev1beta1.BackupBucket](w)
		if err != nil {
			return err
		}
		return w.refersToShoot(bucket.Spec.ShootRef)
	},
	"backupentries": checkEntryOfShoot,
	"certificatesigningrequests": func(_ context.Context, w *write) error {
		request, err := decoded[certificatesv1.CertificateSigningRequest](w)
		if err != nil {
			return err
		}
		subject, is := graph.SubjectOf(request)
		if !is || w.by.Program != requester.Gardenlet || subject.Seed != "" || subject.Program != requester.Gardenlet || subject.Shoot != w.by.Shoot {
			return w.refuse("it must request the client certificate of the gardenlet of this Shoot")
		}
		return nil
	},
	"configmaps": func(_ context.Context, w *write) error {
		return w.named(constants.SuffixCACluster, constants.SuffixCAKubelet)
	},
	"internalsecrets": func(_ context.Context, w *write) error { return w.named(constants.SuffixCAClient) },
	"gardenlets":      func(_ context.Context, w *write) error { return w.exactly(graph.PrefixSelfHosted + w.by.Shoot.Name) },
	"leases": func(_ context.Context, w *write) error {
		if w.by.Program == requester.Extension && w.Namespace == w.by.Shoot.Namespace && strings.HasPrefix(w.Name, w.by.Shoot.Name+"--") {
			return nil
		}
		return w.exactly(graph.PrefixSelfHosted+w.by.Shoot.Name, "gardenlet-leader-election")
	},
	"secrets": checkSecretOfShoot,
	"serviceaccounts": func(_ context.Context, w *write) error {
		if w.by.Program == requester.Gardenlet && w.Namespace == w.by.Shoot.Namespace && strings.HasPrefix(w.Name, "extension-shoot--"+w.by.Shoot.Name+"--") {
			return nil
		}
		return w.refuse("it must be that of an extension of this Shoot")
	},
	"shoots":      func(_ context.Context, w *write) error { return w.exactly(w.by.Shoot.Name) },
	"shootstates": func(_ context.Context, w *write) error { return w.exactly(w.by.Shoot.Name) },
	"projects": func(_ context.Context, w *write) error {
		project, err := decoded[corev1beta1.Project](w)
		if err != nil {
			return err
		}
		if w.by.Program != requester.Gardenadm || ptr.Deref(project.Spec.Namespace, "") != w.by.Shoot.Namespace {
			return w.refuse("spec.namespace must be %s", w.by.Shoot.Namespace)
		}
		return nil
	},
}

// exactly permits objects with one of the names in the namespace of the Shoot. gardenadm creates objects with any name there, but only
// its own Shoot.
func (w *write) exactly(names ...string) error {
	if w.Namespace != w.by.Shoot.Namespace || !slices.Contains(names, w.Name) {
		return w.refuse("it must be in namespace %s, and its name one of %s", w.by.Shoot.Namespace, strings.Join(names, ", "))
	}
	return nil
}

// named permits objects with the name of the Shoot and a suffix.
func (w *write) named(suffixes ...string) error {
	if w.by.Program == requester.Gardenadm && w.Namespace == w.by.Shoot.Namespace {
		return nil
	}
	var names []string
	for _, suffix := range suffixes {
		names = append(names, w.by.Shoot.Name+suffix)
	}
	return w.exactly(names...)
}

func (w *write) refersToShoot(ref *corev1.ObjectReference) error {
	if ref == nil || ref.Name != w.by.Shoot.Name || ref.Namespace != w.by.Shoot.Namespace {
		return w.refuse("spec.shootRef must be %s", w.by.Shoot)
	}
	return nil
}

func checkEntryOfShoot(ctx context.Context, w *write) error {
	entry, err := decoded[corev1beta1.BackupEntry](w)
	if err != nil {
		return err
	}
	if err := w.refersToShoot(entry.Spec.ShootRef); err != nil {
		return err
	}
	return w.ownsBucket(ctx, entry.Spec.BucketName)
}

func (w *write) ownsBucket(ctx context.Context, name string) error {
	bucket := &corev1beta1.BackupBucket{}
	found, err := w.get(ctx, "", name, bucket)
	if err != nil {
		return err
	}
	if !found {
		return w.refuse("BackupBucket %s does not exist", name)
	}
	return w.refersToShoot(bucket.Spec.ShootRef)
}

func checkSecretOfShoot(ctx context.Context, w *write) error {
	if bucket, is := strings.CutPrefix(w.Name, constants.PrefixGeneratedBackupBucketSecret); is && w.Namespace == constants.GardenNamespace {
		return w.ownsBucket(ctx, bucket)
	}
	return w.named(constants.SuffixCACluster, constants.SuffixSSHKeypair, constants.SuffixSSHKeypairOld, constants.SuffixMonitoring)
}
