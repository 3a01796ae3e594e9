// Package owner provides the command that shows which ManagedResource an object belongs to.
package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// maxDepth is the maximum number of owner references to follow.
const maxDepth = 8

// NewCommand returns the command owner.
func NewCommand(c *console.Console) *cobra.Command {
	var output *console.Output
	command := &cobra.Command{
		Use:   "owner (KIND NAME | KIND/NAME)",
		Short: "Show which ManagedResource an object belongs to",
		Long: `Shows which ManagedResource an object belongs to. It uses the annotation ` + resourcesv1alpha1.AnnotationOrigin + ` of the
object or of its owner, such as the Deployment of a Pod, and the inventories. The namespace (-n) is that of the object. The
ManagedResource may be in any namespace. The exit code is 1 if the object does not belong to a ManagedResource.`,
		Example: `  kubectl mr owner deployment/storefront -n webshop

  # a Pod belongs to the ManagedResource of its Deployment
  kubectl mr owner pod storefront-6c9d7f8b5-x2x4l -n webshop`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			return run(command.Context(), c, output, args)
		},
	}
	output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML, console.FormatName)
	return command
}

// result is the owner of an object.
type result struct {
	Object string `json:"object"`
	// Via are the owners from the object to the applied object, such as a ReplicaSet and a Deployment.
	Via []string `json:"via,omitempty"`
	// ManagedResource is the owner of the object. It is nil if there is none.
	ManagedResource *ownership `json:"managedResource,omitempty"`
}

type ownership struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ClusterID is the identity of the source cluster in the origin. It may be empty.
	ClusterID string `json:"clusterID,omitempty"`
	// State is empty if the ManagedResource was not found or must not be read.
	State state.Word `json:"state,omitempty"`
	// Note describes inconsistencies.
	Note string `json:"note,omitempty"`
}

func run(ctx context.Context, c *console.Console, output *console.Output, args []string) error {
	kind, name, found := strings.Cut(args[0], "/")
	if len(args) == 2 {
		kind, name, found = args[0], args[1], !found
	}
	if !found || kind == "" || name == "" {
		return errors.New("specify the object as KIND/NAME or KIND NAME, such as deployment/storefront")
	}
	target, err := c.Target()
	if err != nil {
		return err
	}
	start, err := locate(c, target, kind, name)
	if err != nil {
		return err
	}
	result, err := climb(ctx, c, target, start)
	if err != nil {
		return err
	}
	return printResult(c, output, result)
}

// locate returns the object that the arguments specify.
func locate(c *console.Console, target *console.Target, kind, name string) (object.Ref, error) {
	mapper, err := target.Mapper()
	if err != nil {
		return object.Ref{}, err
	}
	resource := schema.ParseGroupResource(strings.ToLower(kind))
	gvk, err := mapper.KindFor(resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return object.Ref{}, fmt.Errorf("the cluster %s has no kind %q: list its kinds with `kubectl api-resources`", target.Host, kind)
	}
	if err != nil {
		return object.Ref{}, fmt.Errorf("find the kind %q: %w", kind, err)
	}
	mapping, err := target.Objects.Mapping(gvk)
	if err != nil {
		return object.Ref{}, err
	}
	ref := object.Ref{GroupVersionKind: gvk, Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if ref.Namespace, err = c.Namespace(); err != nil {
			return object.Ref{}, err
		}
	}
	return ref, ref.Validate()
}

// climb follows owner references from an object to the object that a ManagedResource applied. That is the last one
// with an origin,
// because the Deployment controller copies annotations to ReplicaSets.
func climb(ctx context.Context, c *console.Console, target *console.Target, start object.Ref) (*result, error) {
	found := &result{Object: title(start)}
	var applied object.Ref
	var origin resourcesv1alpha1.Origin
	var via []string
	ref := start
	for range maxDepth {
		meta, err := read(ctx, target, ref)
		if err != nil && applied.Name == "" {
			return nil, err
		}
		if err != nil {
			break // the applied object was found already
		}
		if ref != start {
			via = append(via, title(ref))
		}
		if its, ok := resourcesv1alpha1.ParseOrigin(meta.Annotations[resourcesv1alpha1.AnnotationOrigin]); ok {
			applied, origin, found.Via = ref, its, via
		}
		next, has := controllerOf(meta, ref.Namespace)
		if !has {
			break
		}
		ref = next
	}
	if applied.Name != "" {
		found.ManagedResource = confirm(ctx, c, origin, applied)
		return found, nil
	}
	var err error
	found.ManagedResource, err = inInventory(ctx, c, start)
	return found, err
}

func read(ctx context.Context, target *console.Target, ref object.Ref) (*metav1.PartialObjectMetadata, error) {
	resource, err := target.Objects.ResourceInAnyVersion(ref)
	if err != nil {
		return nil, err
	}
	meta, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s does not exist in the cluster %s", title(ref), target.Host)
	}
	return meta, err
}

// controllerOf returns the owner of an object, preferably its controller. Owners are in the same namespace or cluster-scoped.
func controllerOf(meta *metav1.PartialObjectMetadata, namespace string) (object.Ref, bool) {
	owner := metav1.GetControllerOf(meta)
	if owner == nil && len(meta.OwnerReferences) > 0 {
		owner = &meta.OwnerReferences[0]
	}
	if owner == nil {
		return object.Ref{}, false
	}
	ref := object.Ref{GroupVersionKind: schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), Namespace: namespace, Name: owner.Name}
	return ref, true
}

// confirm reads the ManagedResource of an origin.
func confirm(ctx context.Context, c *console.Console, origin resourcesv1alpha1.Origin, ref object.Ref) *ownership {
	owner := &ownership{Namespace: origin.Owner.Namespace, Name: origin.Owner.Name, ClusterID: origin.ClusterID}
	source, err := c.Source()
	if err != nil {
		owner.Note = err.Error()
		return owner
	}
	mr, err := source.GetManagedResource(ctx, origin.Owner)
	switch {
	case apierrors.IsNotFound(err):
		owner.Note = fmt.Sprintf("the ManagedResource does not exist in the cluster %s: it was deleted without the object, "+
			"or is in another cluster",
			source.Host)
		return owner
	case err != nil:
		owner.Note = err.Error()
		return owner
	}
	owner.State = state.Of(mr).Word
	for _, entry := range snapshot.RefsOf(mr) {
		if entry.Key() == ref.Key() {
			return owner
		}
	}
	owner.Note = "the object is not in its inventory: it was released, or another source cluster has a ManagedResource with this name"
	return owner
}

// inInventory searches the inventories for an object without origin. It returns nil if the user may not list
// ManagedResources.
func inInventory(ctx context.Context, c *console.Console, ref object.Ref) (*ownership, error) {
	all, err := c.Choose(ctx, nil, console.Choice{AllNamespaces: true})
	if apierrors.IsForbidden(err) {
		c.Warn("The inventories were not searched, because you may not list ManagedResources in all namespaces.")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		for _, entry := range snapshot.RefsOf(&all[i]) {
			if entry.Key() == ref.Key() {
				return &ownership{
					Namespace: all[i].Namespace, Name: all[i].Name, State: state.Of(&all[i]).Word,
					Note: "the object is in its inventory, but has no origin annotation",
				}, nil
			}
		}
	}
	return nil, nil
}

func title(ref object.Ref) string {
	return ref.Kind + " " + strings.TrimPrefix(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}.String(), "/")
}

func printResult(c *console.Console, output *console.Output, found *result) error {
	owner := found.ManagedResource
	switch output.Format {
	case console.FormatJSON, console.FormatYAML:
		if err := c.PrintValue(output.Format, found); err != nil {
			return err
		}
	case console.FormatName:
		if owner != nil {
			fmt.Fprintf(c.Screen, "%s/%s\n", owner.Namespace, owner.Name)
		}
	default:
		if owner != nil {
			fmt.Fprintln(c.Screen, describe(found))
		}
	}
	if owner == nil {
		return &console.NoError{Message: found.Object + " does not belong to a ManagedResource"}
	}
	return nil
}

func describe(found *result) string {
	owner := found.ManagedResource
	text := fmt.Sprintf("%s belongs to ManagedResource %s/%s", found.Object, owner.Namespace, owner.Name)
	if owner.State != "" {
		text += fmt.Sprintf(" (%s)", owner.State)
	}
	if len(found.Via) > 0 {
		text += ", through " + strings.Join(found.Via, " and ")
	}
	if owner.ClusterID != "" {
		text += fmt.Sprintf("\nThe source cluster has the identity %q.", owner.ClusterID)
	}
	if owner.Note != "" {
		text += "\nNote: " + owner.Note
	}
	return text
}
