// Package decode is the command that shows the manifests of a ManagedResource.
package decode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/cli/redact"
	"github.com/trellis-k8s/trellis/pkg/manifest"
)

type options struct {
	output  *console.Output
	secrets []string
	file    string
	masked  bool
}

// NewCommand returns the command decode.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "decode (NAME | -f FILE)",
		Short: "Show the manifests of a ManagedResource as YAML",
		Long: `Shows the decompressed manifests in the Secrets of a ManagedResource, in the order in which they are read. A comment before
each manifest names its source. Manifests that cannot be read are reported on standard error, and the exit code is 2.

The values of Secrets in the manifests are shown, unless --mask is set.`,
		Example: `  kubectl mr decode webshop-app -n garden

  # show an earlier revision, by the name of its Secret
  kubectl mr decode webshop-app -n garden --set webshop-app-1f2e3d4c

  # list the objects in the manifests
  kubectl mr decode webshop-app -n garden -o name

  # without a cluster: the output of kubectl mr encode, or a Secret in Git
  kubectl mr decode -f webshop.yaml`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.CompleteNames(1),
		RunE: func(command *cobra.Command, names []string) error {
			if (len(names) == 0) == (o.file == "") {
				return errors.New("specify a ManagedResource, or a file with -f")
			}
			return o.run(command.Context(), c, names)
		},
	}
	o.output = console.AddOutputFlag(command, console.FormatYAML, console.FormatJSON, console.FormatName)
	flags := command.Flags()
	flags.StringSliceVar(&o.secrets, "set", nil, "Names of Secrets to use instead of those that the ManagedResource references")
	flags.StringVarP(&o.file, "filename", "f", "", "File with Secrets, in YAML or JSON; - for standard input")
	flags.BoolVar(&o.masked, "mask", false, "Hide the values of Secrets")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	secrets, problems := o.read(ctx, c, names)
	if len(secrets) == 0 && problems != nil {
		return problems
	}
	var documents []manifest.Document
	for i := range secrets {
		read, err := manifest.Decode(&secrets[i], manifest.DefaultLimits())
		documents = append(documents, read...)
		problems = errors.Join(problems, err)
	}
	if o.masked {
		for _, document := range documents {
			redact.One(document.Object)
		}
	}
	if err := o.print(c, documents); err != nil {
		return err
	}
	return problems
}

func (o *options) read(ctx context.Context, c *console.Console, names []string) ([]corev1.Secret, error) {
	if o.file != "" {
		return readFile(c, o.file)
	}
	mr, err := c.ChooseOne(ctx, names[0])
	if err != nil {
		return nil, err
	}
	return ReadSecrets(ctx, c, mr.Namespace, firstNonEmpty(o.secrets, pack.SecretNames(mr)))
}

func firstNonEmpty(set, otherwise []string) []string {
	if len(set) > 0 {
		return set
	}
	return otherwise
}

// ReadSecrets reads Secrets by name. The error names each Secret that could not be read.
func ReadSecrets(ctx context.Context, c *console.Console, namespace string, names []string) ([]corev1.Secret, error) {
	source, err := c.Source()
	if err != nil {
		return nil, err
	}
	var secrets []corev1.Secret
	var errs []error
	for _, name := range names {
		secret := &corev1.Secret{}
		err := source.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("no Secret %s/%s exists", namespace, name))
		case err != nil:
			errs = append(errs, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err))
		default:
			secrets = append(secrets, *secret)
		}
	}
	return secrets, errors.Join(errs...)
}

// maxFileBytes is the maximum size of a file, in bytes.
const maxFileBytes = 256 << 20

// readFile returns the Secrets in a file. Other objects are skipped.
func readFile(c *console.Console, file string) ([]corev1.Secret, error) {
	content, err := pack.ReadFile(c.In, file, maxFileBytes)
	if err != nil {
		return nil, err
	}
	var secrets []corev1.Secret
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for i := 0; ; i++ {
		var secret corev1.Secret
		err := decoder.Decode(&secret)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d of %s is not a Secret in YAML or JSON", i, file) // the error could contain its data
		}
		if secret.Kind != "Secret" {
			continue
		}
		for key, text := range secret.StringData { // the API server does the same
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[key] = []byte(text)
		}
		secrets = append(secrets, secret)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("no Secret found in %s", file)
	}
	return secrets, nil
}

func (o *options) print(c *console.Console, documents []manifest.Document) error {
	switch o.output.Format {
	case console.FormatJSON:
		items := make([]any, 0, len(documents))
		for _, document := range documents {
			items = append(items, document.Object)
		}
		return c.PrintValue(console.FormatJSON, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	case console.FormatName:
		for _, document := range documents {
			fmt.Fprintln(c.Screen, NameOf(document.Object))
		}
		return nil
	}
	for _, document := range documents {
		text, err := yaml.Marshal(document.Object)
		if err != nil {
			return fmt.Errorf("write the object %s: %w", document.Source, err)
		}
		if _, err := fmt.Fprintf(c.Screen, "---\n# %s\n%s", document.Source, text); err != nil {
			return err
		}
	}
	return nil
}

// NameOf returns the kind, group, namespace and name of an object, such as deployment.apps/shop/web.
func NameOf(obj map[string]any) string {
	text := func(obj map[string]any, field string) string { value, _ := obj[field].(string); return value }
	meta, _ := obj["metadata"].(map[string]any)
	parts := []string{strings.ToLower(text(obj, "kind"))}
	if group, _, found := strings.Cut(text(obj, "apiVersion"), "/"); found {
		parts[0] += "." + group
	}
	parts = append(parts, text(meta, "namespace"), text(meta, "name"))
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}
