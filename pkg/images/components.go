package images

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// ComponentsOverwriteVariable is the environment variable with the path of a file that overwrites the images of
// components with their own image lists. Its format is that of Gardener's component image vector overwrites.
const ComponentsOverwriteVariable = "IMAGEVECTOR_OVERWRITE_COMPONENTS"

// Components are the overwrites for components with their own image lists in Gardener, such as etcd-druid, by component
// name.
type Components map[string]Vector

// LoadComponents reads the overwrites in the file at path. An empty path returns no overwrites.
func LoadComponents(path string) (Components, error) {
	if path == "" {
		return Components{}, nil
	}
	content, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read the overwrites of component images: %w", err)
	}
	components, err := ParseComponents(content)
	if err != nil {
		return nil, fmt.Errorf("read the overwrites of component images in %s: %w", path, err)
	}
	return components, nil
}

// ComponentsFromEnvironment is [LoadComponents] for the file in [ComponentsOverwriteVariable].
func ComponentsFromEnvironment() (Components, error) {
	return LoadComponents(os.Getenv(ComponentsOverwriteVariable))
}

// ParseComponents parses overwrites and validates each image list.
func ParseComponents(content []byte) (Components, error) {
	var file struct {
		Components []struct {
			Name                 string `json:"name"`
			ImageVectorOverwrite string `json:"imageVectorOverwrite"`
		} `json:"components"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, err
	}
	components := Components{}
	var errs []error
	for i, component := range file.Components {
		if err := components.add(component.Name, component.ImageVectorOverwrite); err != nil {
			errs = append(errs, fmt.Errorf("components[%d] (%q): %w", i, component.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return components, nil
}

func (c Components) add(name, overwrite string) error {
	if name == "" {
		return errors.New("name is missing")
	}
	if _, exists := c[name]; exists {
		return errors.New("the component occurs twice")
	}
	vector, err := Parse([]byte(overwrite))
	if err != nil {
		return fmt.Errorf("imageVectorOverwrite: %w", err)
	}
	if len(vector) == 0 {
		return errors.New("imageVectorOverwrite has no images")
	}
	c[name] = vector
	return nil
}

// FromEnvironmentWith returns the list of images with the overwrites from the files that the environment names. From the list of the named
// component, only the images with the given names are used. It returns an error if a file cannot be read or is not valid.
func FromEnvironmentWith(component string, names ...string) (Vector, error) {
	vector, err := FromEnvironment()
	if err != nil {
		return nil, err
	}
	components, err := ComponentsFromEnvironment()
	if err != nil {
		return nil, err
	}
	used := slices.DeleteFunc(components[component], func(s Source) bool { return !slices.Contains(names, s.Name) })
	return vector.Overwrite(used), nil
}
