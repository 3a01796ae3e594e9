// Package create contains the commands that create a ManagedResource from manifests, as YAML or in the cluster.
package create

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/act"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/decode"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
)

// options are the flags of both commands.
type options struct {
	Manifests
	labels, injectLabels map[string]string
	class, account       string
	order                orderFlags
	keepObjects          bool
	plain                bool

	// The following are only for create.
	force   bool
	wait    bool
	timeout time.Duration
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	o.AddManifestFlags(flags)
	flags.StringToStringVar(&o.labels, "labels", nil, "Labels of the ManagedResource, such as app=shop,tier=web")
	flags.StringToStringVar(&o.injectLabels, "inject-labels", nil, "Labels to add to every object")
	flags.StringVar(&o.class, "class", "", "Class of the resource-manager that applies it (default: the default class)")
	flags.StringVar(&o.account, "service-account", "", "ServiceAccount to impersonate when writing the objects, as [NAMESPACE/]NAME")
	o.order.add(flags)
	flags.BoolVar(&o.keepObjects, "keep-objects", false, "Keep the objects when the ManagedResource is deleted")
	flags.BoolVar(&o.plain, "plain", false, "Do not compress the manifests, so that the Secret is readable")
}

// parcel returns the Secrets and the ManagedResource of the manifests.
func (o *options) parcel(ctx context.Context, c *console.Console, name string) (*pack.Parcel, error) {
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	documents, err := o.Read(ctx, c, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	spec := resourcesv1alpha1.ManagedResourceSpec{InjectLabels: o.injectLabels, ServiceAccountName: o.account}
	annotations, err := o.order.apply(&spec, namespace)
	if err != nil {
		return nil, err
	}
	if o.class != "" {
		spec.Class = &o.class
	}
	if o.keepObjects {
		spec.KeepObjects = ptr.To(true)
	}
	return pack.Pack(documents, pack.Options{
		Namespace: namespace, Name: name, Labels: o.labels, Annotations: annotations, Spec: spec, Plain: o.plain,
	})
}

// NewEncodeCommand returns the command that writes a ManagedResource to standard output.
func NewEncodeCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "encode NAME " + manifestsUsage,
		Short: "Create a ManagedResource from manifests, and write it as YAML",
		Long: `Creates Secrets and a ManagedResource from manifests and writes them as YAML, for kubectl apply or for Git. It needs no cluster.

` + longOfManifests,
		Example: `  kubectl mr encode webshop -n garden -f manifests/ > webshop.yaml
  kubectl mr encode webshop -n garden -f manifests/ | kubectl apply --server-side -f -` + examplesOfManifests("encode"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, names []string) error {
			parcel, err := o.parcel(command.Context(), c, names[0])
			if err != nil {
				return err
			}
			return write(c, parcel)
		},
	}
	o.addFlags(command.Flags())
	return command
}

// write writes the Secrets and then the ManagedResource.
func write(c *console.Console, parcel *pack.Parcel) error {
	for _, secret := range parcel.Secrets {
		if err := writeObject(c, secret); err != nil {
			return err
		}
	}
	return writeObject(c, parcel.ManagedResource)
}

// WriteObjects writes objects to standard output as JSON, names or, by default, YAML.
func WriteObjects(c *console.Console, format string, objects []runtime.Object) error {
	items := make([]any, 0, len(objects))
	for _, obj := range objects {
		content, err := contentOf(obj)
		if err != nil {
			return err
		}
		switch format {
		case console.FormatJSON:
			items = append(items, content)
		case console.FormatName:
			fmt.Fprintln(c.Screen, decode.NameOf(content))
		default:
			if err := writeObject(c, obj); err != nil {
				return err
			}
		}
	}
	if format != console.FormatJSON {
		return nil
	}
	return c.PrintValue(format, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

func writeObject(c *console.Console, obj runtime.Object) error {
	content, err := contentOf(obj)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("write a %T: %w", obj, err)
	}
	_, err = fmt.Fprintf(c.Screen, "---\n%s", text)
	return err
}

// contentOf returns an object without the fields that only the API server sets.
func contentOf(obj runtime.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert a %T: %w", obj, err)
	}
	delete(content, "status")
	if meta, is := content["metadata"].(map[string]any); is {
		delete(meta, "creationTimestamp")
	}
	return content, nil
}

// NewCreateCommand returns the command that writes a ManagedResource to the cluster.
func NewCreateCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "create NAME " + manifestsUsage,
		Short: "Deliver manifests as a ManagedResource, or as a new revision of one",
		Long: `Creates Secrets and a ManagedResource from manifests and writes them to the cluster. If the ManagedResource already exists,
it is switched to the new Secrets. Fields that another tool manages are not overwritten, unless --force is set.

` + longOfManifests,
		Example: `  # deliver a folder, and wait until it is rolled out
  kubectl mr create webshop -n garden -f manifests/ --wait

  # preview the changes
  kubectl mr diff webshop -n garden -f manifests/

  # create the objects after the database is rolled out; later changes do not wait for it
  kubectl mr create webshop -n garden -f manifests/ --depends-on database:RolledOut:Creation

  # on deletion, wait until the jobs are deleted, and remove the finalizers of the objects after an hour
  kubectl mr create webshop -n garden -f manifests/ --delete-after jobs --finalize-deletion-after 1h` + examplesOfManifests("create"),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames(1),
		RunE: func(command *cobra.Command, names []string) error {
			parcel, err := o.parcel(command.Context(), c, names[0])
			if err != nil {
				return err
			}
			return o.deliver(command.Context(), c, parcel)
		},
	}
	o.addFlags(command.Flags())
	command.Flags().BoolVar(&o.force, "force", false, "Overwrite fields of the ManagedResource that another tool manages")
	command.Flags().BoolVar(&o.wait, "wait", false, "Wait until it is ready")
	command.Flags().DurationVar(&o.timeout, "timeout", act.DefaultTimeout, "Maximum time to wait")
	return command
}

// deliver creates the Secrets and then applies the ManagedResource that references them. The Secrets exist already if
// nothing changed.
func (o *options) deliver(ctx context.Context, c *console.Console, parcel *pack.Parcel) error {
	source, err := c.Source()
	if err != nil {
		return err
	}
	for _, secret := range parcel.Secrets {
		err := source.Create(ctx, secret.DeepCopy(), client.FieldOwner(console.FieldManager))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
	}
	mr := parcel.ManagedResource
	name := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
	before, err := source.GetManagedResource(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) || console.HasNoKind(err) {
		return fmt.Errorf("look for ManagedResource %s: %w", name, err)
	}
	exists := err == nil
	after, err := o.apply(ctx, source, mr)
	if err != nil {
		return err
	}
	for _, secret := range parcel.Secrets {
		if err := own(ctx, source, secret, after); err != nil {
			return err
		}
	}
	what := "created"
	switch {
	case exists && before.Generation == after.Generation && before.ResourceVersion == after.ResourceVersion:
		what = "unchanged"
	case exists:
		what = "changed"
	}
	fmt.Fprintf(c.Screen, "managedresource %s: %s (%s)\n", name, what, parcel.Describe())
	if !o.wait {
		return nil
	}
	return act.WaitReady(ctx, c, []string{name.String()}, o.timeout)
}

func (o *options) apply(
	ctx context.Context, source *console.Source, mr *resourcesv1alpha1.ManagedResource,
) (*resourcesv1alpha1.ManagedResource, error) {
	content, err := contentOf(mr)
	if err != nil {
		return nil, err
	}
	body, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("write ManagedResource %s/%s: %w", mr.Namespace, mr.Name, err)
	}
	written := &resourcesv1alpha1.ManagedResource{}
	written.Namespace, written.Name = mr.Namespace, mr.Name
	patchOptions := []client.PatchOption{client.FieldOwner(console.FieldManager)}
	if o.force {
		patchOptions = append(patchOptions, client.ForceOwnership)
	}
	err = source.Patch(ctx, written, client.RawPatch(types.ApplyYAMLPatchType, body), patchOptions...)
	if apierrors.IsConflict(err) {
		return nil, errors.Join(fmt.Errorf("ManagedResource %s/%s is managed by another tool: %w", mr.Namespace, mr.Name, err),
			errors.New("deliver the manifests with that tool, or take ownership with --force"))
	}
	if err != nil {
		return nil, fmt.Errorf("write ManagedResource %s/%s: %w", mr.Namespace, mr.Name, err)
	}
	return written, nil
}

// own makes a ManagedResource the owner of a Secret, so that Kubernetes deletes the Secret with it, also where the garbage
// collector of the resource-manager is not enabled. A Secret that is gone belonged to a deleted ManagedResource of the
// same name and content: it is created again.
func own(ctx context.Context, source *console.Source, secret *corev1.Secret, mr *resourcesv1alpha1.ManagedResource) error {
	owned := secret.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedResource", Name: mr.Name, UID: mr.UID,
	}}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": owned.OwnerReferences}})
	if err != nil {
		return fmt.Errorf("write the owner of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	err = source.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(console.FieldManager))
	if apierrors.IsNotFound(err) {
		err = source.Create(ctx, owned, client.FieldOwner(console.FieldManager))
	}
	if err != nil {
		return fmt.Errorf("make ManagedResource %s/%s the owner of Secret %s: %w", mr.Namespace, mr.Name, secret.Name, err)
	}
	return nil
}
