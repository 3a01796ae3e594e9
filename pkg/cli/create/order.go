package create

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/relations"
)

// orderFlags specify dependencies of a ManagedResource, and fields that are sent only when their object changes.
type orderFlags struct {
	dependsOn []string
	// deleteAfter is nil for the default, and empty to wait for no ManagedResource.
	deleteAfter   []string
	onlyOnChange  []string
	finalizeAfter time.Duration
}

func (f *orderFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.dependsOn, "depends-on", nil, "ManagedResources that must be ready first, as [NAMESPACE/]NAME[:UNTIL][:FOR]. "+
		"UNTIL is Applied, Healthy (default) or RolledOut; FOR is Creation or Changes (default)")
	flags.StringSliceVar(&f.deleteAfter, "delete-after", nil, "ManagedResources that must be deleted before the objects of this one are, "+
		"as [NAMESPACE/]NAME; empty to wait for none (default: those that depend on it)")
	flags.StringArrayVar(&f.onlyOnChange, "only-on-change", nil, "Field that is sent only when its object changes, "+
		"as [KIND[.GROUP][/NAME]:]PATH with a JSON pointer. May be repeated")
	flags.DurationVar(&f.finalizeAfter, "finalize-deletion-after", 0,
		"Remove the finalizers of the objects this long after the ManagedResource is deleted (default: never)")
}

// apply sets the fields of a ManagedResource in a namespace, and returns its annotations.
func (f *orderFlags) apply(spec *resourcesv1alpha1.ManagedResourceSpec, namespace string) (map[string]string, error) {
	for _, text := range f.dependsOn {
		dependency, err := relations.ParseDependency(text, namespace)
		if err != nil {
			return nil, fmt.Errorf("--depends-on: %w", err)
		}
		spec.DependsOn = append(spec.DependsOn, dependency)
	}
	if f.deleteAfter != nil {
		spec.DeleteAfter = []resourcesv1alpha1.ManagedResourceReference{}
	}
	for _, text := range f.deleteAfter {
		reference, err := relations.ParseReference(text, namespace)
		if err != nil {
			return nil, fmt.Errorf("--delete-after: %w", err)
		}
		spec.DeleteAfter = append(spec.DeleteAfter, reference)
	}
	for _, text := range f.onlyOnChange {
		rule, err := relations.ParseRule(text)
		if err != nil {
			return nil, fmt.Errorf("--only-on-change: %w", err)
		}
		if spec.DriftDetection == nil {
			spec.DriftDetection = &resourcesv1alpha1.DriftDetection{}
		}
		spec.DriftDetection.OnlyOnChange = append(spec.DriftDetection.OnlyOnChange, rule)
	}
	switch {
	case f.finalizeAfter < 0:
		return nil, fmt.Errorf("--finalize-deletion-after is %s: it must be positive", f.finalizeAfter)
	case f.finalizeAfter > 0:
		return map[string]string{resourcesv1alpha1.AnnotationFinalizeDeletionAfter: f.finalizeAfter.String()}, nil
	}
	return nil, nil
}
