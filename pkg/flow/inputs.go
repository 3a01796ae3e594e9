package flow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// emission is one run in which a flow wrote for an owner, as recorded on ManagedResources.
type emission struct {
	number int
	// digest of the inputs, and version of the program.
	digest, version string
	// generation of the owner, 0 if it is not recorded.
	generation int64
	// bundles in the plan.
	bundles bundleCodes
}

// lastEmission returns the most recent emission recorded on ManagedResources.
func lastEmission(owned []*resourcesv1alpha1.ManagedResource) emission {
	var last emission
	for _, mr := range owned {
		text, digest, found := strings.Cut(mr.Annotations[AnnotationInputs], ".")
		number, err := strconv.Atoi(text)
		if !found || err != nil || number < last.number {
			continue
		}
		if number > last.number {
			last = emission{number: number, digest: digest, version: versionIn(mr.Annotations), bundles: bundleCodes{}}
		}
		last.bundles.parse(mr.Annotations[AnnotationBundles])
		if generation, err := strconv.ParseInt(mr.Annotations[AnnotationGeneration], 10, 64); err == nil {
			last.generation = max(last.generation, generation)
		}
	}
	return last
}

// next returns the emission of a plan by a version of the program, following this one. It keeps the number if it
// continues this emission.
func (e emission) next(plan Plan, version string) emission {
	version = plan.version(version)
	if plan.Inputs == "" {
		return emission{version: version}
	}
	number := e.number
	if e.digest != plan.Inputs || e.version != version {
		number++
	}
	return emission{number: number, digest: plan.Inputs, version: version, generation: plan.Generation, bundles: plan.codes()}
}

// LastGeneration returns the generation of an owner in the last emission, 0 if it is not recorded. The reader may be a cache: see
// [IndexOwners].
func LastGeneration(ctx context.Context, reader client.Reader, owner Owner) (int64, error) {
	var list resourcesv1alpha1.ManagedResourceList
	if err := reader.List(ctx, &list, append(ownedBy(reader, owner), client.UnsafeDisableDeepCopy)...); err != nil {
		return 0, fmt.Errorf("list the ManagedResources of %s %s: %w", owner.Flow, owner, err)
	}
	owned := make([]*resourcesv1alpha1.ManagedResource, 0, len(list.Items))
	for i := range list.Items {
		owned = append(owned, &list.Items[i])
	}
	return lastEmission(owned).generation, nil
}

// inputs is the value of AnnotationInputs.
func (e emission) inputs() string {
	if e.digest == "" {
		return ""
	}
	return strconv.Itoa(e.number) + "." + e.digest
}

// recordedGeneration is the value of AnnotationGeneration.
func (e emission) recordedGeneration() string {
	if e.generation == 0 {
		return ""
	}
	return strconv.FormatInt(e.generation, 10)
}

// codeOnly reports whether a plan differs from the last emission only because of the program, as far as this is known:
// inputs of different types cannot be compared.
func (e emission) codeOnly(plan Plan, version string) bool {
	if plan.Inputs == "" || e.digest == "" || e.version == plan.version(version) {
		return false
	}
	return e.digest == plan.Inputs || typesIn(e.digest) != typesIn(plan.Inputs)
}

// programEnd separates the version of the program from [Plan.Program] in the version of an emission.
const programEnd = "/"

// version returns the version of the program together with what operators declare.
func (p Plan) version(program string) string {
	if p.Program == "" {
		return program
	}
	return program + programEnd + p.Program
}

// versionIn returns the version of the emission that annotations record.
func versionIn(annotations map[string]string) string {
	return Plan{Program: annotations[AnnotationProgram]}.version(annotations[AnnotationVersion])
}

// programOf returns the version of the program alone.
func programOf(version string) string {
	program, _, _ := strings.Cut(version, programEnd)
	return program
}

// codeLength is the number of characters for a bundle in AnnotationBundles: 24 bits of a digest. On a collision, a
// bundle that a new version of the program adds could be emitted before its owner gets a rollout slot.
const codeLength = 4

// bundleCodes is a set of bundles, each identified by its code.
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

// codes returns the codes of all bundles that a plan wants, holds, keeps or deletes.
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
	for _, key := range p.Keeps {
		codes.add(key)
	}
	return codes
}
