// Package diff is the command that shows what applying a ManagedResource would change, by the resource-manager's own plan and
// engine.
package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/create"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

type options struct {
	console.Choice
	create.Manifests
	Settings
	output *console.Output
	set    []string
	brief  bool
}

// NewCommand returns the command.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "diff [NAME...] [-f PATH... | --set SECRET,...]",
		Short: "Show what applying ManagedResources would change",
		Long: `Shows what the resource-manager would change if it applied ManagedResources now: what was changed by hand in ones that are
suspended, what is not applied yet, or, with -f, what other manifests would change. It decides as the resource-manager does, and
asks the API server what it would make of each object (server-side dry run), with defaults and webhooks. Nothing is written. The
values of Secrets are hidden.

  + is created   ~ is changed   - is deleted   ± is replaced   ! fails   … waits

The exit code is 0 if nothing differs, 1 if something does or would fail, and 2 if that cannot be told.

Without permission to patch objects it is found out without the API server's defaults and webhooks, and said so.`,
		Example: `  # what would be put back if it were resumed?
  kubectl mr diff webshop-app -n garden

  # what would these manifests change? (in CI: fails if anything)
  kubectl mr diff webshop-app -n garden -f manifests/

  # what would going back to an earlier revision change?
  kubectl mr diff webshop-app -n garden --set webshop-app-1f2e3d4c`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			if err := o.output.Check(); err != nil {
				return err
			}
			return o.run(command.Context(), c, names)
		},
	}
	flags := command.Flags()
	o.AddFlags(flags)
	o.AddManifestFlags(flags)
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML, console.FormatName)
	flags.StringSliceVar(&o.set, "set", nil, "The Secrets of these names instead of those that the ManagedResource names, such as those of an earlier revision")
	flags.BoolVar(&o.brief, "brief", false, "Only which objects differ")
	flags.StringVar(&o.ClusterID, "cluster-id", "", "Identity of the source cluster in the resource-manager's configuration; default: that on the objects")
	flags.StringVar(&o.ManagedBy, "managed-by", "", "Value of the managed-by label in the resource-manager's configuration; default: that on the objects")
	flags.BoolVar(&o.CollectsGarbage, "garbage-collector", false, "The garbage collector is enabled, and deletes its ConfigMaps and Secrets")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	items, secrets, err := o.subjects(ctx, c, names)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		c.Warn("There are no such ManagedResources.")
		return nil
	}
	var proposed *resourcesv1alpha1.ManagedResource
	if o.proposes() {
		proposed = &items[0]
	}
	forecaster, err := NewForecaster(c, o.Settings, proposed, secrets)
	if err != nil {
		return err
	}
	results := make([]result, 0, len(items))
	for i := range items {
		progress := c.Begin(fmt.Sprintf("Comparing ManagedResource %s", state.NameOf(&items[i])))
		found, err := compare(ctx, forecaster, &items[i])
		progress.End()
		if err != nil {
			return fmt.Errorf("compare ManagedResource %s: %w", state.NameOf(&items[i]), err)
		}
		results = append(results, found)
	}
	if unasked := forecaster.cluster.Unasked(); len(unasked) > 0 {
		slices.Sort(unasked)
		c.Warn("Shown without the API server's defaults and webhooks, as you may not patch them: %s.", strings.Join(unasked, ", "))
	}
	if err := o.print(c, results); err != nil {
		return err
	}
	if slices.ContainsFunc(results, result.differs) {
		return &console.NoError{}
	}
	return nil
}

// subjects returns the ManagedResources that are compared, as they are or as they are proposed, and the Secrets that are proposed.
func (o *options) subjects(ctx context.Context, c *console.Console, names []string) ([]resourcesv1alpha1.ManagedResource, []*corev1.Secret, error) {
	switch {
	case !o.HasNoManifests() && len(o.set) > 0:
		return nil, nil, errors.New("-f and --set cannot be combined")
	case o.proposes() && len(names) != 1:
		return nil, nil, errors.New("name the one ManagedResource for which other manifests are proposed")
	case !o.proposes():
		items, err := c.Choose(ctx, names, o.Choice)
		return items, nil, err
	}
	mr, err := c.ChooseOne(ctx, names[0])
	var unknown *console.UnknownError
	if errors.As(err, &unknown) && len(o.set) == 0 {
		mr, err = newManagedResource(unknown.Name), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if len(o.set) > 0 {
		mr.Spec.SecretRefs = nil
		for _, name := range o.set {
			mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, resourcesv1alpha1.LocalObjectReference{Name: name})
		}
		return []resourcesv1alpha1.ManagedResource{*mr}, nil, nil
	}
	documents, err := o.Read(ctx, c, mr.Name)
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

// proposes tells whether other manifests are compared than those that the cluster has.
func (o *options) proposes() bool { return !o.HasNoManifests() || len(o.set) > 0 }

// newManagedResource returns one that does not exist yet.
func newManagedResource(name types.NamespacedName) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = name.Namespace, name.Name
	return mr
}

// compare finds out what would become of the objects of a ManagedResource.
func compare(ctx context.Context, forecaster *Forecaster, mr *resourcesv1alpha1.ManagedResource) (result, error) {
	found := result{Namespace: mr.Namespace, Name: mr.Name, State: state.Of(mr).Word}
	if mr.UID == "" {
		found.State = ""
	}
	prospect, cluster, err := forecaster.Forecast(ctx, mr)
	if err != nil {
		return found, err
	}
	for _, forecast := range prospect.Forecasts {
		if apierrors.IsUnsupportedMediaType(forecast.Err) {
			return found, forecast.Err // an API server without server-side apply
		}
		entry, err := entryOf(forecast, cluster.Copy(forecast.Key()))
		if err != nil {
			return found, err
		}
		found.Changes = append(found.Changes, entry)
	}
	for _, problem := range prospect.Problems {
		found.Problems = append(found.Problems, problem.Error())
	}
	if prospect.Guarded != nil {
		found.Problems = append(found.Problems, prospect.Guarded.Error())
	}
	found.Blocked = prospect.Blocked
	return found, nil
}
