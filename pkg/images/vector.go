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

// OverwriteVariable is the environment variable with the path of a file whose entries overwrite those of images.yaml.
const OverwriteVariable = "IMAGEVECTOR_OVERWRITE"

// maxFileSize limits the size of an overwrite file in bytes.
const maxFileSize = 1 << 20

//go:embed images.yaml
var defaults []byte

// Source is one entry of the list. An entry with versions or architectures applies only to matching clusters and nodes.
type Source struct {
	// Name is the name that components request.
	Name string `json:"name"`
	// SourceRepository is the location of the image's source code, a Go module or a directory of this repository. It is
	// informational.
	SourceRepository string `json:"sourceRepository,omitempty"`
	// RuntimeVersion is a constraint for the Kubernetes version of the cluster in which the image runs, for example ">=
	// 1.36".
	RuntimeVersion *string `json:"runtimeVersion,omitempty"`
	// TargetVersion is a constraint for the Kubernetes version of the cluster that the image operates on.
	TargetVersion *string `json:"targetVersion,omitempty"`
	// Architectures are the supported architectures; empty for all.
	Architectures []string `json:"architectures,omitempty"`
	// Repository is the image reference without tag and digest.
	Repository *string `json:"repository,omitempty"`
	// Tag is the tag or, with the prefix "sha256:", the digest. If it is not set, the requested target version is used.
	Tag *string `json:"tag,omitempty"`
	// Ref is the complete reference. It excludes Repository and Tag.
	Ref *string `json:"ref,omitempty"`
	// Version is the version of the image content if it differs from the tag.
	Version *string `json:"version,omitempty"`
}

// Vector is a list of images.
type Vector []Source

// Options select one of several entries with the same name. Empty fields match everything.
type Options struct {
	// RuntimeVersion is the Kubernetes version of the cluster in which the image runs, TargetVersion of the cluster that
	// it operates on.
	RuntimeVersion, TargetVersion string
	// Architecture of the nodes, for example "amd64".
	Architecture string
}

// Load returns the list of images.yaml, overwritten and extended by the entries of the file at path. An empty path
// means no file.
func Load(path string) (Vector, error) {
	vector, err := Parse(defaults)
	if err != nil {
		return nil, fmt.Errorf("read the list of images: %w", err)
	}
	if path == "" {
		return vector, nil
	}
	content, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read the overwrites of images: %w", err)
	}
	overwrites, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read the overwrites of images in %s: %w", path, err)
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
		return nil, fmt.Errorf("%s is too large: the limit is %d bytes", path, maxFileSize)
	}
	return content, nil
}

// FromEnvironment is [Load] for the file in [OverwriteVariable].
func FromEnvironment() (Vector, error) { return Load(os.Getenv(OverwriteVariable)) }

// Parse parses and validates a list.
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

// Overwrite returns the list with the given entries merged into the entries with the same name, versions and
// architectures. Other entries are added.
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

// key identifies entries for the same image.
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
