// Package applyoptions reads the annotations of an object that control how it is applied: those of Flux and Argo CD,
// which mean here what they mean there, and those of gardener-resource-manager that have the same effect.
package applyoptions

import (
	"strconv"
	"strings"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Annotations of Flux's kustomize-controller (its documentation, "Controlling the apply behavior of resources").
const (
	fluxPrune     = "kustomize.toolkit.fluxcd.io/prune"
	fluxApply     = "kustomize.toolkit.fluxcd.io/ssa"
	fluxForce     = "kustomize.toolkit.fluxcd.io/force"
	fluxReconcile = "kustomize.toolkit.fluxcd.io/reconcile"
)

// Annotations of Argo CD (its documentation, "Sync Options" and "Sync Phases and Waves").
const (
	argoOptions = "argocd.argoproj.io/sync-options"
	argoWave    = "argocd.argoproj.io/sync-wave"
)

// Options is how an object wants to be handled.
type Options struct {
	// Release has the object neither applied nor kept in the inventory.
	Release bool
	// CreateOnly has the object created if it does not exist, and left alone then.
	CreateOnly bool
	// Bare has a CreateOnly object created without any marks.
	Bare bool
	// Merge leaves alone what others add to the object.
	Merge bool
	// Replace deletes and re-creates the object if its update is invalid.
	Replace bool
	// KeepOnPrune keeps the object when it leaves its ManagedResource.
	KeepOnPrune bool
	// KeepOnDelete keeps the object when its ManagedResource is deleted.
	KeepOnDelete bool
	// Suspend has a live object left alone.
	Suspend bool
	// Wave orders objects before their kind does, lower ones first.
	Wave int
}

// Reads reports whether Of reads an annotation.
func Reads(key string) bool {
	switch key {
	case resourcesv1alpha1.AnnotationMode, resourcesv1alpha1.AnnotationIgnore, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate,
		resourcesv1alpha1.AnnotationKeepObject, fluxPrune, fluxApply, fluxForce, fluxReconcile, argoOptions, argoWave:
		return true
	}
	return false
}

// Of reads an object's annotations. Values that are not known count as if they were not there.
func Of(annotations map[string]string) Options {
	var d Options
	if len(annotations) == 0 {
		return d
	}
	d.Release = annotations[resourcesv1alpha1.AnnotationMode] == resourcesv1alpha1.ModeIgnore
	d.CreateOnly = resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationIgnore])
	d.Bare = d.CreateOnly
	d.Replace = resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate])
	d.KeepOnPrune = resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationKeepObject])
	d.KeepOnDelete = d.KeepOnPrune
	d.readFlux(annotations)
	d.readArgo(annotations)
	return d
}

func (d *Options) readFlux(annotations map[string]string) {
	switch strings.ToLower(annotations[fluxApply]) {
	case "merge":
		d.Merge = true
	case "ifnotpresent":
		d.CreateOnly = true
	case "ignore":
		d.Release = true
	}
	d.Replace = d.Replace || strings.EqualFold(annotations[fluxForce], "enabled")
	d.Suspend = strings.EqualFold(annotations[fluxReconcile], "disabled")
	if d.Suspend || strings.EqualFold(annotations[fluxPrune], "disabled") {
		d.KeepOnPrune, d.KeepOnDelete = true, true
	}
}

func (d *Options) readArgo(annotations map[string]string) {
	for option := range strings.SplitSeq(annotations[argoOptions], ",") {
		switch strings.TrimSpace(option) {
		case "Prune=false":
			d.KeepOnPrune = true
		case "Delete=false":
			d.KeepOnDelete = true
		case "Replace=true", "Force=true":
			d.Replace = true
		}
	}
	if wave, err := strconv.Atoi(strings.TrimSpace(annotations[argoWave])); err == nil {
		d.Wave = wave
	}
}
