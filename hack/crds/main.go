// Command crds copies the CustomResourceDefinitions of other projects, from the Go modules that are pinned in this
// repository, to config/crd.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/test/landscape/build"
)

// source is a file of a module.
type source struct {
	// module is required by the go.mod in directory, which is below the root of the repository.
	module, directory string
	files             []string
	license           string
	// to is the directory to which the definitions are written.
	to string
	// short leaves out the descriptions of fields, which no one reads in a seed.
	short bool
}

var sources = []source{{
	module: "k8s.io/autoscaler/vertical-pod-autoscaler", directory: "test/landscape/binaries/vpa",
	files: []string{"deploy/vpa-v1-crd-gen.yaml"}, license: "Apache License 2.0", to: "config/crd/autoscaling",
}, {
	module: "istio.io/api", directory: "hack/crds/modules",
	files: []string{"kubernetes/customresourcedefinitions.gen.yaml"}, license: "Apache License 2.0", to: "config/crd/istio", short: true,
}, {
	module: "sigs.k8s.io/gateway-api", directory: "hack/crds/modules", files: standard(
		"backendtlspolicies", "gatewayclasses", "gateways", "grpcroutes", "httproutes", "listenersets", "referencegrants", "tlsroutes",
	), license: "Apache License 2.0", to: "config/crd/gatewayapi", short: true,
}}

// standard returns the files of kinds in the standard channel of the Gateway API.
func standard(plurals ...string) []string {
	files := make([]string, 0, len(plurals))
	for _, plural := range plurals {
		files = append(files, "config/crd/standard/gateway.networking.k8s.io_"+plural+".yaml")
	}
	return files
}

func main() {
	for _, s := range sources {
		if err := s.copy("."); err != nil {
			fmt.Fprintf(os.Stderr, "crds: %v\n", err)
			os.Exit(1)
		}
	}
}

// copy writes each definition to a file below the root of the repository, with its origin in the first line.
func (s source) copy(root string) error {
	version, err := build.Version(root, s.directory, s.module)
	if err != nil {
		return err
	}
	path, err := download(filepath.Join(root, s.directory), s.module)
	if err != nil {
		return err
	}
	for _, file := range s.files {
		content, err := os.ReadFile(filepath.Join(path, file))
		if err != nil {
			return err
		}
		header := fmt.Sprintf("# Copied by make generate from %s of %s %s (%s).\n", file, s.module, version, s.license)
		if err := s.write(root, header, content); err != nil {
			return fmt.Errorf("%s of %s: %w", file, s.module, err)
		}
	}
	return nil
}

// write writes each document of a file.
func (s source) write(root, header string, content []byte) error {
	_, content, _ = bytes.Cut(append([]byte("\n"), content...), []byte("\napiVersion:")) // comments at the beginning
	for document := range bytes.SplitSeq(append([]byte("apiVersion:"), content...), []byte("\n---\n")) {
		name, err := nameOf(document)
		if err != nil {
			return err
		}
		text := strings.TrimRight(string(document), "\n") + "\n"
		if s.short {
			if text, err = shorten(document); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(root, s.to, name), []byte(header+text), 0o644); err != nil { //nolint:gosec // a file of the repository
			return err
		}
	}
	return nil
}

// shorten returns a definition without the descriptions in its schemas.
func shorten(document []byte) (string, error) {
	definition := map[string]any{}
	if err := yaml.Unmarshal(document, &definition); err != nil {
		return "", err
	}
	withoutDescriptions(definition["spec"])
	text, err := yaml.Marshal(definition)
	return string(text), err
}

func withoutDescriptions(value any) {
	switch typed := value.(type) {
	case map[string]any:
		if _, is := typed["description"].(string); is { // a field of this name has a schema
			delete(typed, "description")
		}
		for _, each := range typed {
			withoutDescriptions(each)
		}
	case []any:
		for _, each := range typed {
			withoutDescriptions(each)
		}
	}
}

// download returns the directory of a module in the version that the go.mod of a directory pins. It downloads the
// module if necessary.
func download(directory, module string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", module) //nolint:noctx // the module is pinned here
	command.Dir = directory
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("download the module %s: %w\n%s", module, err, output)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(output, &downloaded); err != nil {
		return "", fmt.Errorf("read the directory of the module %s: %w", module, err)
	}
	return downloaded.Dir, nil
}

// nameOf returns the file name of a definition, with the same pattern as the definitions that are generated here.
func nameOf(document []byte) (string, error) {
	var definition struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(document, &definition); err != nil {
		return "", err
	}
	plural, group, found := strings.Cut(definition.Metadata.Name, ".")
	if !found {
		return "", errors.New("a document is not a CustomResourceDefinition")
	}
	return group + "_" + plural + ".yaml", nil
}
