// Package table turns a table of contents into the plan of a flow. Each row is a [Part], whose columns say when its bundle is
// created, which others it waits for, and in which order it is deleted. A flow declares its rows in one literal, and this
// package derives the order of creation, of hibernation and of deletion from them.
package table

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Target is the cluster that contains the objects of a part.
type Target int

// The targets. A flow without the target must not use it.
const (
	Seed Target = iota
	Shoot
)

// Part is a row of a table: a bundle, with the conditions for its creation, its order and its deletion.
type Part struct {
	// Name identifies the part. [Table.Key] maps it to the key of the bundle.
	Name string
	// Target is the cluster of the objects.
	Target Target
	// Objects returns the objects of the bundle. An error means that the declaration is invalid for this part. Other parts do
	// not depend on it.
	Objects func() ([]client.Object, error)

	// Contains is set for the part that creates what contains all others, such as their namespace. Dependencies between
	// ManagedResources cannot express this, so the others wait for [Table.Uncontained]. It is deleted last.
	Contains bool
	// Needs are the parts that must be ready before a change of this one is applied. NeedsAsleep is the order while the owner
	// hibernates; nil stands for Needs, an empty list for none. Dependencies on absent parts are dropped.
	Needs, NeedsAsleep []Need
	// DeletedAfter are the parts that must be deleted before this one; nil stands for the parts that need it, an empty list for
	// none. Outlives are further ones, which count only if the owner is deleted.
	DeletedAfter, Outlives []string
	// Confirmed makes the flow confirm the deletion of the objects first, as the guards of their kinds require.
	Confirmed bool

	// Unknown names the inputs that are not known yet; empty if all are. Until then the bundle keeps its revision.
	Unknown string
	// ReadsCluster makes the part wait for [Table.OldCluster].
	ReadsCluster bool
	// Absent is why the owner does not have the part; empty if it has. An existing bundle is released for another flow if
	// Released is set, and deleted if Removed is set. Otherwise it is kept, because others may rely on it.
	Absent            string
	Released, Removed bool
	// Unchanged leaves the part out of the plan: an existing bundle keeps its revision, and nothing waits.
	Unchanged bool

	// Adjust changes the bundle before it is added to the plan; nil for no change.
	Adjust func(*flow.Bundle)
}

// Need is a dependency on parts.
type Need struct {
	Until resourcesv1alpha1.DependencyUntil
	Parts []string
}

// Applied is a dependency that is fulfilled when the parts are applied.
func Applied(parts ...string) Need { return Need{resourcesv1alpha1.UntilApplied, parts} }

// Healthy is a dependency that is fulfilled when the objects of the parts are healthy.
func Healthy(parts ...string) Need { return Need{resourcesv1alpha1.UntilHealthy, parts} }

// RolledOut is a dependency that is fulfilled when all replicas of the parts have the current revision.
func RolledOut(parts ...string) Need { return Need{resourcesv1alpha1.UntilRolledOut, parts} }

// needs reports whether a part depends on another one.
func (t Table) needs(part Part, name string) bool {
	return slices.ContainsFunc(t.order(part), func(need Need) bool { return slices.Contains(need.Parts, name) })
}

// order returns the dependencies of a part: those for hibernation while the owner hibernates.
func (t Table) order(part Part) []Need {
	if t.Asleep && part.NeedsAsleep != nil {
		return part.NeedsAsleep
	}
	return part.Needs
}

// Join joins the texts that are not empty, such as reasons why inputs are not known.
func Join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}
