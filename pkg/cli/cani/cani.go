// Package cani provides the command that explains whether a gardenlet may do something in the garden, and why.
package cani

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
)

// options are the flags of the command.
type options struct {
	extension, labels, fields string
	output                    *console.Output
}

// NewCommand returns the command can-i.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "can-i (seed/NAME | shoot/NAMESPACE/NAME) VERB RESOURCE[/SUBRESOURCE] [[NAMESPACE/]NAME]",
		Short: "Explain whether a gardenlet may do something in the garden",
		Long: `Asks the garden whether the gardenlet of a Seed, or of a self-hosted Shoot, may do something, and prints the reason. If the seed
authorizer permits it, the reason is the path from the object to the Seed: each object on it is needed by the next one. The exit code is 1
if the gardenlet may not do it.

The answer is that of authorization. Admission webhooks and policies check in addition what gardenlets write.`,
		Example: `  # why the gardenlet of a Seed may read a Secret
  kubectl mr can-i seed/local get secrets garden-dev/infra-credentials

  # an extension, and a list
  kubectl mr can-i seed/local --extension extension-provider-local list secrets seed-local/
  kubectl mr can-i seed/local list shoots --selector name.seed.gardener.cloud/local=true`,
		Args:              cobra.RangeArgs(3, 4),
		ValidArgsFunction: fleet.Complete(c, cobra.NoFileCompletions),
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), c, args) },
	}
	flags := command.Flags()
	flags.StringVar(&o.extension, "extension", "", "Name of an extension's ServiceAccount in the namespace of the Seed, instead of the gardenlet")
	flags.StringVarP(&o.labels, "selector", "l", "", "Label selector of a list or watch")
	flags.StringVar(&o.fields, "field-selector", "", "Field selector of a list or watch")
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML)
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, args []string) error {
	review, err := o.reviewOf(args)
	if err != nil {
		return err
	}
	config, httpClient, _, err := c.Garden()
	if err != nil {
		return err
	}
	discovered, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("garden: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(discovered)
	if err != nil {
		return fmt.Errorf("list the resources of the garden %s: %w", config.Host, err)
	}
	if err := resolve(restmapper.NewDiscoveryRESTMapper(groups), review.Spec.ResourceAttributes); err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("garden: %w", err)
	}
	answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask the garden %s, with the right to create subjectaccessreviews: %w", config.Host, err)
	}
	return o.print(c, answer)
}

// reviewOf returns the question of the arguments. The resource may lack its group.
func (o *options) reviewOf(args []string) (*authorizationv1.SubjectAccessReview, error) {
	name, is, err := fleet.Parse(args[0])
	if err != nil {
		return nil, err
	}
	if !is || name.Kind == fleet.Garden {
		return nil, fmt.Errorf("%q is neither seed/NAME nor shoot/NAMESPACE/NAME", args[0])
	}
	attributes := &authorizationv1.ResourceAttributes{Verb: strings.ToLower(args[1])}
	resource, subresource, _ := strings.Cut(args[2], "/")
	attributes.Subresource = subresource
	parsed := schema.ParseGroupResource(strings.ToLower(resource))
	attributes.Resource, attributes.Group = parsed.Resource, parsed.Group
	if len(args) > 3 {
		attributes.Name = args[3]
		if namespace, name, found := strings.Cut(args[3], "/"); found {
			attributes.Namespace, attributes.Name = namespace, name
		}
	}
	if o.labels != "" {
		attributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: o.labels}
	}
	if o.fields != "" {
		attributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: o.fields}
	}
	spec := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: attributes}
	if spec.User, spec.Groups, err = o.userOf(name); err != nil {
		return nil, err
	}
	return &authorizationv1.SubjectAccessReview{Spec: spec}, nil
}

// userOf returns the user and the groups with which a gardenlet or an extension is authenticated.
func (o *options) userOf(name fleet.Name) (user string, groups []string, err error) {
	const authenticated = "system:authenticated"
	switch {
	case o.extension != "" && name.Kind != fleet.Seed:
		return "", nil, errors.New("--extension needs a Seed: its ServiceAccount is in the namespace of the Seed")
	case o.extension != "":
		namespace := constants.PrefixSeedNamespace + name.Name
		return "system:serviceaccount:" + namespace + ":" + o.extension,
			[]string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, authenticated}, nil
	case name.Kind == fleet.Seed:
		return constants.PrefixSeedUser + name.Name, []string{constants.SeedsGroup, authenticated}, nil
	default:
		return constants.PrefixShootUser + name.Namespace + ":" + name.Name, []string{constants.ShootsGroup, authenticated}, nil
	}
}

// resolve completes the group of a resource, and its name, which may be singular or short.
func resolve(mapper meta.RESTMapper, attributes *authorizationv1.ResourceAttributes) error {
	found, err := mapper.ResourceFor(schema.GroupVersionResource{Group: attributes.Group, Resource: attributes.Resource})
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the garden has no resource %q: list them with `kubectl api-resources`", attributes.Resource)
	}
	if err != nil {
		return fmt.Errorf("find the resource %q, such as shoots.core.gardener.cloud: %w", attributes.Resource, err)
	}
	attributes.Group, attributes.Resource = found.Group, found.Resource
	return nil
}

func (o *options) print(c *console.Console, answer *authorizationv1.SubjectAccessReview) error {
	if o.output.Format != "" {
		if err := c.PrintValue(o.output.Format, answer.Status); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(c.Screen, text(answer.Status))
	}
	if !answer.Status.Allowed {
		return &console.NoError{}
	}
	return nil
}

// text returns an answer for people.
func text(status authorizationv1.SubjectAccessReviewStatus) string {
	lines := []string{"no"}
	if status.Allowed {
		lines[0] = "yes"
	}
	for _, reason := range strings.Split(status.Reason, "\n") {
		if reason = strings.TrimSpace(reason); reason != "" {
			lines = append(lines, "  "+reason)
		}
	}
	if status.EvaluationError != "" {
		lines = append(lines, "  not decided: "+status.EvaluationError)
	}
	return strings.Join(lines, "\n")
}
