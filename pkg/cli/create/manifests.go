package create

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/chart"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/manifest"
)

const manifestsUsage = "(-f PATH... | -k FOLDER | --chart PATH)"

const longOfManifests = `Manifests are read from files, folders (all files in and below them that end in .yaml, .yml or .json), standard
input (-), kustomizations (-k) and Helm charts (--chart).
The Secrets are immutable and named after their content. Changed manifests result in new Secrets, and one write switches the
ManagedResource to them. The manifests are compressed with Brotli, and split into several Secrets if they are too large for one.

Helm's own library renders a chart without a cluster, like "helm template": --kube-version and --api-versions specify the
capabilities that the chart sees. The CRDs in its folder crds/ come first. Its hooks are omitted with a warning. Its tests are omitted.
No Helm release is created.`

// examplesOfManifests returns further examples of a command.
func examplesOfManifests(command string) string {
	return `

  # a kustomization
  kubectl mr ` + command + ` webshop -n garden -k overlays/production

  # a Helm chart
  kubectl mr ` + command + ` webshop -n garden --chart ./chart --values production.yaml --set-value image.tag=v2 --release-namespace shop`
}

// Manifests are the flags that specify manifests.
type Manifests struct {
	paths          []string
	kustomizations []string
	chart          chartFlags
}

// AddManifestFlags adds the flags.
func (m *Manifests) AddManifestFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&m.paths, "filename", "f", nil, "File or folder with manifests; - for standard input. May be repeated")
	flags.StringSliceVarP(&m.kustomizations, "kustomize", "k", nil, "Folder with a kustomization. May be repeated")
	m.chart.add(flags)
}

// HasNoManifests reports whether no manifests are given.
func (m *Manifests) HasNoManifests() bool {
	return len(m.paths) == 0 && len(m.kustomizations) == 0 && m.chart.path == ""
}

// Paths returns the files and folders of -f.
func (m *Manifests) Paths() []string { return m.paths }

// Check returns an error if flags cannot be combined.
func (m *Manifests) Check() error { return m.chart.check() }

// Read returns the objects for the named ManagedResource.
func (m *Manifests) Read(ctx context.Context, c *console.Console, name types.NamespacedName) ([]manifest.Document, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	if m.HasNoManifests() {
		return nil, errors.New("specify the manifests with -f, -k or --chart")
	}
	if i := slices.IndexFunc(m.paths, chart.Is); i >= 0 {
		return nil, fmt.Errorf("%s is a Helm chart: use --chart instead of -f", m.paths[i])
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
	if m.chart.path != "" {
		rendered, err := m.chart.read(ctx, c, name)
		if err != nil {
			return nil, err
		}
		documents = append(documents, rendered...)
	}
	return documents, nil
}
