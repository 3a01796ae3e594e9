package create

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
)

const manifestsUsage = "(-f PATH... | -k FOLDER)"

const longOfManifests = `Manifests are read from files, folders (all files in and below it that end in .yaml, .yml or .json) standard input (-),
and kustomizations (-k).
The Secrets are immutable and named after their content: other manifests make other Secrets, and the ManagedResource changes over
to them in one write. The manifests are compressed with Brotli, and divided among several Secrets if they are too large for one.`

// examplesOfManifests returns further examples of a command.
func examplesOfManifests(command string) string {
	return `

  # a kustomization
  kubectl mr ` + command + ` webshop -n garden -k overlays/production

  # a Helm chart, without its hooks
  helm template webshop ./chart --no-hooks | kubectl mr ` + command + ` webshop -n garden -f -`
}

// Manifests are where objects come from.
type Manifests struct {
	paths          []string
	kustomizations []string
}

// AddManifestFlags adds the flags.
func (m *Manifests) AddManifestFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&m.paths, "filename", "f", nil, "File or folder with manifests; - for standard input. May be repeated")
	flags.StringSliceVarP(&m.kustomizations, "kustomize", "k", nil, "Folder with a kustomization. May be repeated")
}

// HasNoManifests tells whether none are given.
func (m *Manifests) HasNoManifests() bool { return len(m.paths) == 0 && len(m.kustomizations) == 0 }

// Read returns the objects.
func (m *Manifests) Read(_ context.Context, c *console.Console, _ string) ([]managedresource.Document, error) {
	if m.HasNoManifests() {
		return nil, errors.New("say with -f or -k where the manifests are")
	}
	documents, err := pack.ReadPaths(c.In, m.paths)
	if err != nil {
		return nil, err
	}
	for _, folder := range m.kustomizations {
		built, err := kustomize(folder)
		if err != nil {
			return nil, err
		}
		documents = append(documents, built...)
	}
	return documents, nil
}
