package flow

import (
	"strconv"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// emission is the last time at which a flow wrote something for an owner.
type emission struct {
	number int
	// digest of what it read, and version of the program that wrote.
	digest, version string
}

// inputsOf returns the last emission that ManagedResources record.
func inputsOf(owned []*resourcesv1alpha1.ManagedResource) emission {
	var last emission
	for _, mr := range owned {
		text, digest, found := strings.Cut(mr.Annotations[AnnotationInputs], ".")
		number, err := strconv.Atoi(text)
		if found && err == nil && number > last.number {
			last = emission{number, digest, mr.Annotations[AnnotationVersion]}
		}
	}
	return last
}

// next returns the value of AnnotationInputs for what a version of the program emits after this. What goes on with this emission has its
// number.
func (e emission) next(digest, version string) string {
	if digest == "" {
		return ""
	}
	number := e.number
	if e.digest != digest || e.version != version {
		number++
	}
	return strconv.Itoa(number) + "." + digest
}

// codeOnly reports whether a plan from such inputs differs from what was emitted last because of the program alone.
func (e emission) codeOnly(plan Plan, version string) bool {
	return plan.Inputs != "" && e.digest == plan.Inputs && e.version != version
}
