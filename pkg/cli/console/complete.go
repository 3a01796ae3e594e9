package console

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CompletionTimeout limits how long a shell waits for names.
const CompletionTimeout = 5 * time.Second

// CompleteNames completes names of ManagedResources that are not on the command line yet. Most limits the number of
// arguments;
// 0 means no limit.
func (c *Console) CompleteNames(most int) cobra.CompletionFunc {
	return func(command *cobra.Command, given []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(given) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := c.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list := metadataList(ManagedResourceKind().GroupVersion().String(), "ManagedResourceList")
		return c.completeObjects(command.Context(), list, given, prefix, client.InNamespace(namespace))
	}
}

// completeNamespaces completes names of namespaces.
func (c *Console) completeNamespaces(command *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.completeObjects(command.Context(), metadataList(corev1.SchemeGroupVersion.String(), "NamespaceList"), nil, prefix)
}

func metadataList(apiVersion, kind string) *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}

func (c *Console) completeObjects(ctx context.Context, list *metav1.PartialObjectMetadataList, given []string, prefix string,
	options ...client.ListOption,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, CompletionTimeout)
	defer cancel()
	source, err := c.Source()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	if err := source.List(ctx, list, options...); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for i := range list.Items {
		name := list.Items[i].Name
		if strings.HasPrefix(name, prefix) && !slices.Contains(given, name) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeContexts completes the contexts of the kubeconfig.
func (c *Console) completeContexts(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	raw, _ := c.clusters.Kubeconfig()
	if raw == nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for name := range raw.Contexts {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteFlags registers completions for the flags that all commands have.
func (c *Console) CompleteFlags(root *cobra.Command) error {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"namespace": c.completeNamespaces, "context": c.completeContexts, "target-context": c.completeContexts,
		"garden-context": c.completeContexts,
	} {
		if err := root.RegisterFlagCompletionFunc(flag, complete); err != nil {
			return err
		}
	}
	return nil
}

// CompleteWith registers fixed values as completions of a flag. It panics if the command has no such flag.
func CompleteWith(command *cobra.Command, flag string, values []string) {
	err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the caller defined the flag
	}
}
