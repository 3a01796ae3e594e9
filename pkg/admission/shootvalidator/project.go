package shootvalidator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	// longestNames is how long the names of a Shoot and its Project may be together. They are parts of names in the infrastructure.
	longestNames = 21
	// generatedLength is the number of characters that the API server adds to a generated name.
	generatedLength = 5
)

// checkProject checks that a new Shoot belongs to a Project that stays, and that their names are short enough.
func checkProject(ctx context.Context, c *change) error {
	if c.old != nil {
		return nil
	}
	project, err := c.garden.ProjectOf(ctx, c.request.Namespace)
	switch {
	case err != nil:
		return err
	case project == nil:
		return fmt.Errorf("the namespace %q belongs to no Project: create the Shoot in the namespace of a Project", c.request.Namespace)
	case project.DeletionTimestamp != nil:
		return fmt.Errorf("the Project %q is being deleted, and gets no new Shoots", project.Name)
	}
	return c.request.Invalid(tooLong(c.shoot, project.Name))
}

func tooLong(shoot *gardencorev1beta1.Shoot, project string) field.ErrorList {
	name, length := shoot.Name, len(shoot.Name)
	if name == "" {
		name, length = shoot.GenerateName, len(shoot.GenerateName)+generatedLength
	}
	if length+len(project) <= longestNames {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("name"), name, fmt.Sprintf(
		"the name and that of the Project %q have %d characters, but may have %d: choose a shorter name", project, length+len(project), longestNames))}
}
