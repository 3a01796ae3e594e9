package images

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// OverwriteVariable is the environment variable with the path of a file whose entries replace those of images.yaml.
const OverwriteVariable = "IMAGEVECTOR_OVERWRITE"

// maxFileSize bounds a file with overwrites, in bytes.
const maxFileSize = 1 << 20

//go:embed images.yaml
var defaults []byte

// Source is one entry of the list. An entry with versions or architectures is only for clusters and nodes that match them.
type Source struct {
	// Name is what components ask for.
	Name string `json:"name"`
	// SourceRepository is where the sources of the image are: a Go module or a directory of this repository. It is for people.
	SourceRepository string `json:"sourceRepository,omitempty"`
	// RuntimeVersion is a constraint for the Kubernetes version of the cluster that the image runs in, for example ">= 1.36".
	RuntimeVersion *string `json:"runtimeVersion,omitempty"`
	// TargetVersion is a constraint for the Kubernetes version of the cluster that the image works on.
	TargetVersion *string `json:"targetVersion,omitempty"`
	// Architectures are those that the image exists for. Left empty, it exists for all.
	Architectures []string `json:"architectures,omitempty"`
	// Repository is the image without tag and digest.
	Repository *string `json:"repository,omitempty"`
	// Tag is the tag or, with the prefix "sha256:", the digest. Left out, it is the version that is asked for.
	Tag *string `json:"tag,omitempty"`
	// Ref is the whole reference; it excludes Repository and Tag.
	Ref *string `json:"ref,omitempty"`
	// Version is the version of what is in the image, if the tag does not say it.
	Version *string `json:"version,omitempty"`
}

// Vector is a list of images.
type Vector []Source

// Options say which of several entries with the same name is wanted. Empty fields match everything.
type Options struct {
	// RuntimeVersion is the Kubernetes version of the cluster that the image runs in, TargetVersion of the one that it works on.
	RuntimeVersion, TargetVersion string
	// Architecture is that of the nodes, for example "amd64".
	Architecture string
}

// Load returns the list of images.yaml, with the entries of the file at path in place of, or after, its own. An empty path names no file.
func Load(path string) (Vector, error) {
	vector, err := Parse(defaults)
	if err != nil {
		return nil, fmt.Errorf("the list of images: %w", err)
	}
	if path == "" {
		return vector, nil
	}
	content, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("the overwrites of images: %w", err)
	}
	overwrites, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("the overwrites of images in %s: %w", path, err)
	}
	return vector.Overwrite(overwrites), nil
}

// read reads a file of at most maxFileSize bytes.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFileSize {
		return nil, fmt.Errorf("%s is too large: it may have at most %d bytes", path, maxFileSize)
	}
	return content, nil
}

// FromEnvironment is [Load] with the file that [OverwriteVariable] names.
func FromEnvironment() (Vector, error) { return Load(os.Getenv(OverwriteVariable)) }

// Parse reads a list, and checks it.
func Parse(content []byte) (Vector, error) {
	var file struct {
		Images Vector `json:"images"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, err
	}
	var errs []error
	for i, source := range file.Images {
		if err := source.check(); err != nil {
			errs = append(errs, fmt.Errorf("images[%d] (%q): %w", i, source.Name, err))
		}
	}
	return file.Images, errors.Join(errs...)
}

func (s *Source) check() error {
	if s.Name == "" {
		return errors.New("name is missing")
	}
	if s.Ref != nil && (s.Repository != nil || s.Tag != nil) {
		return errors.New("ref excludes repository and tag")
	}
	for field, constraint := range map[string]*string{"runtimeVersion": s.RuntimeVersion, "targetVersion": s.TargetVersion} {
		if constraint != nil {
			if _, err := semver.NewConstraint(*constraint); err != nil {
				return fmt.Errorf("%s is %q: %w", field, *constraint, err)
			}
		}
	}
	return nil
}

// Overwrite returns the list with the given entries merged into those with the same name, versions and architectures; others are added.
func (v Vector) Overwrite(overwrites Vector) Vector {
	result := slices.Clone(v)
	for _, overwrite := range overwrites {
		i := slices.IndexFunc(result, func(s Source) bool { return s.key() == overwrite.key() })
		if i < 0 {
			result = append(result, overwrite)
			continue
		}
		result[i] = result[i].merge(overwrite)
	}
	return result
}

// key is what two entries have in common that are about the same image.
func (s *Source) key() string {
	architectures := slices.Sorted(slices.Values(s.Architectures))
	return strings.Join([]string{s.Name, value(s.RuntimeVersion), value(s.TargetVersion), strings.Join(architectures, ",")}, "\n")
}

func (s Source) merge(o Source) Source {
	if o.Ref != nil {
		s.Ref, s.Repository, s.Tag = o.Ref, nil, nil
	}
	if o.Repository != nil || o.Tag != nil {
		s.Ref = nil
	}
	for _, field := range []struct{ to, from **string }{{&s.Repository, &o.Repository}, {&s.Tag, &o.Tag}, {&s.Version, &o.Version}} {
		if *field.from != nil {
			*field.to = *field.from
		}
	}
	if o.SourceRepository != "" {
		s.SourceRepository = o.SourceRepository
	}
	return s
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
