package create

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/manifest"
)

// kustomize builds a kustomization with kustomize's own library and returns its objects. It does not run plugins.
func kustomize(folder string) ([]manifest.Document, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("build the kustomization %s: %w", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build the kustomization %s: %w", folder, err)
	}
	return pack.Parse(folder, text)
}
