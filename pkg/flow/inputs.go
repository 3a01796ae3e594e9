package flow

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// emission is one time at which a flow wrote something for an owner, as ManagedResources record it.
type emission struct {
	number int
	// digest of what it read, and version of the program that wrote.
	digest, version string
	// bundles are those of the plan.
	bundles bundleCodes
}

// lastEmission returns the last emission that ManagedResources record.
func lastEmission(owned []*resourcesv1alpha1.ManagedResource) emission {
	var last emission
	for _, mr := range owned {
		text, digest, found := strings.Cut(mr.Annotations[AnnotationInputs], ".")
		number, err := strconv.Atoi(text)
		if !found || err != nil || number < last.number {
			continue
		}
		if number > last.number {
			last = emission{number: number, digest: digest, version: mr.Annotations[AnnotationVersion], bundles: bundleCodes{}}
		}
		last.bundles.parse(mr.Annotations[AnnotationBundles])
	}
	return last
}

// next returns the emission of a plan by a version of the program after this one. What goes on with this emission has its number.
func (e emission) next(plan Plan, version string) emission {
	if plan.Inputs == "" {
		return emission{version: version}
	}
	number := e.number
	if e.digest != plan.Inputs || e.version != version {
		number++
	}
	return emission{number: number, digest: plan.Inputs, version: version, bundles: plan.codes()}
}

// inputs is the value of AnnotationInputs.
func (e emission) inputs() string {
	if e.digest == "" {
		return ""
	}
	return strconv.Itoa(e.number) + "." + e.digest
}

// codeOnly reports whether a plan from such inputs differs from what was emitted last because of the program alone, as far as that is known: inputs of
// another form cannot be compared.
func (e emission) codeOnly(plan Plan, version string) bool {
	if plan.Inputs == "" || e.digest == "" || e.version == version {
		return false
	}
	return e.digest == plan.Inputs || formIn(e.digest) != formIn(plan.Inputs)
}

// codeLength is how many characters stand for a bundle in AnnotationBundles: 24 bits of a digest. Were two the same, a bundle that a version of the
// program adds could be emitted before the turn of its owner.
const codeLength = 4

// bundleCodes is a set of bundles, each by its code.
type bundleCodes map[string]bool

func (c bundleCodes) add(key Key)      { c[codeOf(key)] = true }
func (c bundleCodes) has(key Key) bool { return c[codeOf(key)] }

func codeOf(key Key) string { return object.Digest([]byte(key.String()))[:codeLength] }

// String is the value of AnnotationBundles.
func (c bundleCodes) String() string { return strings.Join(slices.Sorted(maps.Keys(c)), "") }

// parse adds the bundles in a value of AnnotationBundles.
func (c bundleCodes) parse(text string) {
	for ; len(text) >= codeLength; text = text[codeLength:] {
		c[text[:codeLength]] = true
	}
}

// codes are those of all bundles that a plan wants, holds or deletes.
func (p Plan) codes() bundleCodes {
	codes := bundleCodes{}
	for _, bundle := range p.Bundles {
		codes.add(bundle.Key)
	}
	for key := range p.held() {
		codes.add(key)
	}
	for _, tombstone := range p.Tombstones {
		codes.add(tombstone.Key)
	}
	return codes
}
