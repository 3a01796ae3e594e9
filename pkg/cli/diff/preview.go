package diff

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/create"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// Subjects are the ManagedResources whose changes a command previews, with their own or with proposed manifests.
type Subjects struct {
	console.Choice
	create.Manifests
	preview.Settings
	set []string
}

// AddFlags adds the flags.
func (s *Subjects) AddFlags(flags *pflag.FlagSet) {
	s.Choice.AddFlags(flags)
	s.AddManifestFlags(flags)
	flags.StringSliceVar(&s.set, "set", nil,
		"Names of Secrets to use instead of those that the ManagedResource references, such as those of an earlier revision")
	flags.StringVar(&s.ClusterID, "cluster-id", "",
		"Identity of the source cluster in the resource-manager's configuration (default: taken from the objects)")
	flags.StringVar(&s.ManagedBy, "managed-by", "",
		"Value of the managed-by label in the resource-manager's configuration (default: taken from the objects)")
	flags.BoolVar(&s.CollectsGarbage, "garbage-collector", false,
		"Assume that the garbage collector is enabled, and deletes unreferenced ConfigMaps and Secrets")
}

// Preview computes what applying ManagedResources would change. It warns on standard error if the result is
// incomplete.
func (s *Subjects) Preview(ctx context.Context, c *console.Console, names []string) ([]preview.Result, *preview.Previewer, error) {
	items, secrets, err := s.find(ctx, c, names)
	if err != nil {
		return nil, nil, err
	}
	if len(items) == 0 {
		c.Warn("No ManagedResources found.")
		return nil, nil, nil
	}
	var proposed *resourcesv1alpha1.ManagedResource
	if s.proposes() {
		proposed = &items[0]
	}
	previewer, err := preview.NewPreviewer(c, s.Settings, proposed, secrets)
	if err != nil {
		return nil, nil, err
	}
	results := make([]preview.Result, 0, len(items))
	for i := range items {
		progress := c.Begin(fmt.Sprintf("Comparing ManagedResource %s", state.NameOf(&items[i])))
		found, err := previewer.Result(ctx, &items[i])
		progress.End()
		if err != nil {
			return nil, nil, fmt.Errorf("compare ManagedResource %s: %w", state.NameOf(&items[i]), err)
		}
		results = append(results, found)
	}
	previewer.WarnOfForbiddenDryRuns()
	return results, previewer, nil
}

// find returns the ManagedResources and the proposed Secrets.
func (s *Subjects) find(
	ctx context.Context, c *console.Console, names []string,
) ([]resourcesv1alpha1.ManagedResource, []*corev1.Secret, error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	switch {
	case !s.HasNoManifests() && len(s.set) > 0:
		return nil, nil, errors.New("-f and --set cannot be combined")
	case s.proposes() && len(names) != 1:
		return nil, nil, errors.New("specify exactly one ManagedResource for the proposed manifests")
	case !s.proposes():
		items, err := c.Choose(ctx, names, s.Choice)
		return items, nil, err
	}
	mr, err := c.ChooseOne(ctx, names[0])
	var unknown *console.UnknownError
	if errors.As(err, &unknown) && len(s.set) == 0 {
		mr, err = newManagedResource(unknown.Name), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if len(s.set) > 0 {
		mr.Spec.SecretRefs = nil
		for _, name := range s.set {
			mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, resourcesv1alpha1.LocalObjectReference{Name: name})
		}
		return []resourcesv1alpha1.ManagedResource{*mr}, nil, nil
	}
	documents, err := s.Read(ctx, c, state.NameOf(mr))
	if err != nil {
		return nil, nil, err
	}
	parcel, err := pack.Pack(documents, pack.Options{Namespace: mr.Namespace, Name: mr.Name, Spec: mr.Spec})
	if err != nil {
		return nil, nil, err
	}
	mr.Spec.SecretRefs = parcel.ManagedResource.Spec.SecretRefs
	return []resourcesv1alpha1.ManagedResource{*mr}, parcel.Secrets, nil
}

// proposes reports whether the flags specify manifests other than those in the cluster.
func (s *Subjects) proposes() bool { return !s.HasNoManifests() || len(s.set) > 0 }

// newManagedResource returns a ManagedResource that does not exist yet.
func newManagedResource(name types.NamespacedName) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = name.Namespace, name.Name
	return mr
}
