// Package applyoptions reads the annotations of an object that control how it is applied: those of Flux, Argo CD and
// Helm, which have the same meaning here, and those of gardener-resource-manager with the same effect.
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

// helmPolicy is the annotation of Helm (its documentation, "Chart Development Tips and Tricks"). Charts set it on
// objects whose deletion would delete data of users, such as CustomResourceDefinitions.
const helmPolicy = "helm.sh/resource-policy"

// Options control how an object is handled.
type Options struct {
	// Release is set if the object is neither applied nor kept in the inventory.
	Release bool
	// CreateOnly is set if the object is created if it does not exist, and never updated.
	CreateOnly bool
	// Bare is set if a CreateOnly object is created without labels and annotations of the resource-manager.
	Bare bool
	// Merge is set if fields that other clients add to the object are kept.
	Merge bool
	// Replace is set if the object is deleted and created again if its update is invalid.
	Replace bool
	// KeepOnPrune is set if the object is kept when it is removed from the manifests.
	KeepOnPrune bool
	// KeepOnDelete is set if the object is kept when its ManagedResource is deleted.
	KeepOnDelete bool
	// Suspend is set if a live object is not changed.
	Suspend bool
	// Wave is the sync wave of the object. It takes precedence over the wave of its kind. Lower waves come first.
	Wave int
}

// Reads reports whether Of uses an annotation.
func Reads(key string) bool {
	switch key {
	case resourcesv1alpha1.AnnotationMode, resourcesv1alpha1.AnnotationIgnore, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate,
		resourcesv1alpha1.AnnotationKeepObject, fluxPrune, fluxApply, fluxForce, fluxReconcile,
		argoOptions, argoWave, helmPolicy:
		return true
	}
	return false
}

// Of returns the options in the annotations of an object. Unknown values are ignored.
func Of(annotations map[string]string) Options {
	var d Options
	if len(annotations) == 0 {
		return d
	}
	d.Release = annotations[resourcesv1alpha1.AnnotationMode] == resourcesv1alpha1.ModeIgnore
	d.CreateOnly = resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationIgnore])
	d.Bare = d.CreateOnly
	d.Replace = resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate])
	d.KeepOnPrune = resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationKeepObject]) ||
		strings.EqualFold(strings.TrimSpace(annotations[helmPolicy]), "keep") // Helm trims and folds it, too
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
		case "Prune=false", "Prune=confirm": // a confirmation is given to Argo CD, which does not exist here
			d.KeepOnPrune = true
		case "Delete=false", "Delete=confirm":
			d.KeepOnDelete = true
		case "Replace=true", "Force=true":
			d.Replace = true
		}
	}
	if wave, err := strconv.Atoi(strings.TrimSpace(annotations[argoWave])); err == nil {
		d.Wave = wave
	}
}
