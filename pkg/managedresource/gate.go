package managedresource

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// gate says what keeps the changes of a ManagedResource waiting. The zero value is open: nothing does.
//
// It gates changes, and not objects: what is applied is kept as it is, whatever becomes of a dependency. The manifests that were
// applied may be gone, as Secrets can be overwritten, so this goes object by object: an object whose manifest is the one that was
// applied is kept up, all others are left as they are until the gate opens.
type gate struct {
	// cycle is the path of dependencies that leads back to the ManagedResource; nil if there is none.
	cycle []types.NamespacedName
	// waits say which dependencies are not ready, sorted.
	waits []string
	// closedHere is set if a change of the ManagedResource itself has closed the cycle, which is reported even if no object changes.
	closedHere bool
}

func (g gate) open() bool { return len(g.cycle) == 0 && len(g.waits) == 0 }

// holds reports whether a change has to wait until the gate opens. Applied is the digest of the manifest that was applied last, empty if
// none was. The change of an object that is in no manifest any more has no manifest.
func (g gate) holds(change change, applied string) bool {
	switch {
	case g.open(), change.action == actionSkip:
		return false
	case change.manifest != nil:
		return applied == "" || applied != change.manifest.Digest
	}
	// What is gone is gone. What another ManagedResource gets stays as it is, and that one may be a dependency.
	return change.action == actionDelete || change.action == actionRelease
}

// hold has the changes wait that have to.
func (g gate) hold(changes []change, recorded inventory) {
	for i := range changes {
		if c := &changes[i]; g.holds(*c, sentDigest(recorded[c.Key()])) {
			*c = change{Ref: c.Ref, action: actionHold, reason: g.why(), manifest: c.manifest, observation: c.observation}
		}
	}
}

// sentDigest returns the digest of the manifest that was applied last for a recorded object, empty if none was.
func sentDigest(entry resourcesv1alpha1.ObjectReference) string {
	sent, _, _ := strings.Cut(entry.Digest, digestSeparator)
	return sent
}

// why says what has to happen before the gate opens.
func (g gate) why() string {
	if len(g.cycle) > 0 {
		return "ManagedResources wait for each other: " + joinNames(g.cycle) + ": remove one of these dependencies"
	}
	return strings.Join(g.waits, "; ")
}

// verdict returns what ResourcesApplied says while changes wait; nil if none does, and there is nothing else to be said.
func (g gate) verdict(held []change, text string) *resourcesv1alpha1.Statement {
	switch {
	case len(g.cycle) > 0 && (len(held) > 0 || g.closedHere):
		return &resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionFalse, Reason: resourcesv1alpha1.ReasonDependencyCycle, Message: text}
	case len(held) > 0:
		return &resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionProgressing, Reason: resourcesv1alpha1.ReasonDependencyNotReady, Message: text}
	}
	return nil
}

// shortChecksum is how many characters of a checksum are shown, which is enough to distinguish two of them.
const shortChecksum = 12

// section says which changes wait for what. Revision names the inputs that they come from.
func (g gate) section(held []change, revision string) string {
	if len(held) == 0 {
		if g.closedHere {
			return g.why()
		}
		return ""
	}
	var parts []string
	for _, kind := range []struct {
		name string
		is   func(change) bool
	}{
		{"to create", func(c change) bool { return c.manifest != nil && c.observation.UID == "" }},
		{"to update", func(c change) bool { return c.manifest != nil && c.observation.UID != "" }},
		{"to remove", func(c change) bool { return c.manifest == nil }},
	} {
		if of := slices.DeleteFunc(slices.Clone(held), func(c change) bool { return !kind.is(c) }); len(of) > 0 {
			parts = append(parts, kind.name+" "+names(of))
		}
	}
	return conditiontext.Stable(fmt.Sprintf("Waiting: %s. Until then %s waits, and what is applied is kept: %s", g.why(), revision, strings.Join(parts, ", ")))
}

// revisionOf names the inputs of a pass.
func (p *pass) revisionOf(in input) string {
	return fmt.Sprintf("the change of generation %d with the manifests of checksum %.*s", p.mr.Generation, shortChecksum, in.checksum)
}
