package shoot

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// TestEntryOfEachShoot checks that a Shoot gets exactly one BackupEntry, owned by the Shoot, in the bucket of its Seed, as soon as the namespace
// of its control plane exists; and that nothing is written for an existing one, except for a new purpose of the Shoot.
func TestEntryOfEachShoot(t *testing.T) {
	production := func(in *Inputs) { in.Shoot.Spec.Purpose = ptr.To(corev1beta1.ShootPurposeProduction) }
	existing := func(in *Inputs) { in.Entry = in.entry() }
	for name, test := range map[string]struct {
		change []func(*Inputs)
		writes []string
	}{
		"no backups":        {nil, nil},
		"no namespace":      {[]func(*Inputs){withBackups, func(in *Inputs) { in.NamespaceExists = false }}, nil},
		"deleted namespace": {[]func(*Inputs){withBackups, func(in *Inputs) { in.NamespaceDeleting = true }}, nil},
		"deleted Shoot":     {[]func(*Inputs){withBackups, func(in *Inputs) { in.Deleting = true }}, nil},
		"new":               {[]func(*Inputs){withBackups}, []string{"create"}},
		"existing":          {[]func(*Inputs){withBackups, existing}, nil},
		"new purpose":       {[]func(*Inputs){withBackups, existing, production}, []string{"patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := known(t, test.change...)
			scheme := runtime.NewScheme()
			if err := corev1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			var writes []string
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if in.Entry != nil {
				builder = builder.WithObjects(in.Entry)
			}
			garden := interceptor.NewClient(builder.Build(), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					writes = append(writes, "create")
					return c.Create(ctx, object, options...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					writes = append(writes, "patch")
					return c.Patch(ctx, object, patch, options...)
				},
			})
			if err := (&pass{reconciler: &reconciler{garden: garden}, in: in}).ensureEntry(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(writes, test.writes) {
				t.Errorf("the writes are %v, want %v", writes, test.writes)
			}
			var entries corev1beta1.BackupEntryList
			if err := garden.List(t.Context(), &entries); err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries.Items {
				owner := metav1.GetControllerOf(&entry)
				got := fmt.Sprint(entry.Namespace, "/", entry.Name, " ", *entry.Spec.SeedName, " ", entry.Spec.BucketName, " ", owner.Kind, " ", owner.Name, " ", owner.UID)
				if want := "garden-dev/shoot--dev--one--2f4c5f6a local seed-1 Shoot one 2f4c5f6a"; got != want {
					t.Errorf("the entry is %s, want %s", got, want)
				}
				if want := string(ptr.Deref(in.Shoot.Spec.Purpose, corev1beta1.ShootPurposeEvaluation)); len(test.writes) > 0 && entry.Annotations[annotationPurpose] != want {
					t.Errorf("the purpose is %s, want %s", entry.Annotations[annotationPurpose], want)
				}
			}
		})
	}
}
