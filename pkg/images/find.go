package images

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Image is the image for a component.
type Image struct {
	// Reference is the image reference for containers.
	Reference string
	// Version is the version of the entry, or its tag if the entry has no version. It is empty for an image that is
	// referenced only by digest.
	Version string
}

// Find returns the image with a name. If several entries match, the one with the most constraints wins, then the first
// one. It returns an error if no entry matches.
func (v Vector) Find(name string, options Options) (Image, error) {
	var best *Source
	constraints := -1
	for i := range v {
		s := &v[i]
		if s.Name != name {
			continue
		}
		matches, err := s.matches(options)
		if err != nil {
			return Image{}, fmt.Errorf("image %q: %w", name, err)
		}
		if count := s.constraints(); matches && count > constraints {
			best, constraints = s, count
		}
	}
	if best == nil {
		return Image{}, fmt.Errorf("no image %q for %s: add it to pkg/images/images.yaml or to the file of %s", name, options, OverwriteVariable)
	}
	return best.image(options)
}

func (o Options) String() string {
	return fmt.Sprintf("runtime version %q, target version %q, architecture %q", o.RuntimeVersion, o.TargetVersion, o.Architecture)
}

func (s *Source) constraints() int {
	count := 0
	for _, given := range []bool{s.RuntimeVersion != nil, s.TargetVersion != nil, len(s.Architectures) > 0} {
		if given {
			count++
		}
	}
	return count
}

func (s *Source) matches(o Options) (bool, error) {
	if o.Architecture != "" && len(s.Architectures) > 0 && !slices.Contains(s.Architectures, o.Architecture) {
		return false, nil
	}
	runtime, err := within(s.RuntimeVersion, o.RuntimeVersion)
	if err != nil || !runtime {
		return false, err
	}
	return within(s.TargetVersion, o.TargetVersion)
}

func within(constraint *string, version string) (bool, error) {
	if constraint == nil || version == "" {
		return true, nil
	}
	allowed, err := semver.NewConstraint(*constraint)
	if err != nil {
		return false, fmt.Errorf("invalid constraint %q: %w", *constraint, err)
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return false, fmt.Errorf("invalid version %q: %w", version, err)
	}
	// A pre-release or a build of a version is treated as that version.
	plain := semver.New(v.Major(), v.Minor(), v.Patch(), "", "")
	return allowed.Check(plain), nil
}

func (s *Source) image(o Options) (Image, error) {
	if s.Ref != nil {
		return Image{Reference: *s.Ref, Version: value(s.Version)}, nil
	}
	if s.Repository == nil {
		return Image{}, fmt.Errorf("image %q has neither repository nor ref", s.Name)
	}
	tag := value(s.Tag)
	if tag == "" && s.Version == nil && o.TargetVersion != "" {
		tag = "v" + strings.TrimPrefix(o.TargetVersion, "v")
	}
	image := Image{Reference: *s.Repository, Version: value(s.Version)}
	switch {
	case strings.HasPrefix(tag, "sha256:"):
		image.Reference += "@" + tag
	case tag != "":
		image.Reference += ":" + tag
		if image.Version == "" {
			image.Version = tag
		}
	}
	return image, nil
}
