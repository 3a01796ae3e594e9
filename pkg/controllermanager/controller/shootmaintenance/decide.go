package shootmaintenance

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// forcedUpdate is how descriptions of maintenance name updates of expired versions.
const forcedUpdate = "forced update"

// Input is what the maintenance of a Shoot depends on.
type Input struct {
	Shoot *corev1beta1.Shoot
	// Profile is what the profile of the Shoot offers. It is nil if the profile does not exist: then, no version is updated.
	Profile *corev1beta1.CloudProfileSpec
	// Hold is why forced updates have to wait, or an empty string.
	Hold string
	// Binding is the name of the CredentialsBinding that replaces the SecretBinding of the Shoot.
	Binding string
	// RestartsControlPlane and RestartsAddons are the settings of the configuration.
	RestartsControlPlane, RestartsAddons bool
	Now                                  time.Time
}

// Plan is what the maintenance of a Shoot changes.
type Plan struct {
	// Shoot is the Shoot as it should be.
	Shoot *corev1beta1.Shoot
	// Kubernetes, Images and Others describe the changes.
	Kubernetes, Images, Others []string
	// Failures are what could not be done.
	Failures []string
	// Forced is set if a version is updated because it is expired.
	Forced bool
}

// Decide returns what the maintenance of a Shoot changes.
func Decide(in *Input) *Plan {
	plan := &Plan{Shoot: in.Shoot.DeepCopy()}
	before := in.Shoot.Spec.Kubernetes.Version
	if in.Profile == nil {
		plan.fail("", "the CloudProfile of the Shoot does not exist, so that no version is updated")
	} else {
		plan.updateControlPlane(in)
		for i := range plan.Shoot.Spec.Provider.Workers {
			plan.updatePool(in, &plan.Shoot.Spec.Provider.Workers[i])
		}
	}
	plan.Others = append(plan.Others, removeFields(&plan.Shoot.Spec, before, in.Binding)...)
	plan.Others = append(plan.Others, removeUnsupported(&plan.Shoot.Spec)...)
	plan.request(in)
	return plan
}

func (p *Plan) updateControlPlane(in *Input) {
	auto, _ := updates(in.Shoot)
	version := &p.Shoot.Spec.Kubernetes.Version
	found, err := kubernetesUpdate(in.Profile, *version, auto, in.Now)
	if p.accept(in, "control plane", found, err) {
		p.Kubernetes = append(p.Kubernetes, describe("control plane", "Kubernetes", *version, found))
		*version = found.to
	}
}

// updatePool updates the kubelet of a pool, and then its image, because an image can demand a version of the kubelet.
func (p *Plan) updatePool(in *Input, pool *corev1beta1.Worker) {
	what, control := fmt.Sprintf("worker pool %q", pool.Name), p.Shoot.Spec.Kubernetes.Version
	auto, images := updates(in.Shoot)
	if pool.Kubernetes != nil && pool.Kubernetes.Version != nil {
		current := *pool.Kubernetes.Version
		found, err := kubeletUpdate(in.Profile, current, control, auto, in.Now)
		if p.accept(in, what, found, err) {
			p.Kubernetes = append(p.Kubernetes, describe(what, "Kubernetes", current, found))
			pool.Kubernetes.Version = &found.to
		}
	}
	found, err := imageUpdate(in.Profile, pool, kubeletOf(pool, control), images, in.Now)
	if p.accept(in, what, found, err) {
		p.Images = append(p.Images, describe(what, "machine image "+pool.Machine.Image.Name, *pool.Machine.Image.Version, found))
		pool.Machine.Image.Version = ptr.To(found.to)
	}
}

// accept reports whether an update is executed now.
func (p *Plan) accept(in *Input, what string, found update, err error) bool {
	switch {
	case err != nil:
		p.fail(what, err.Error())
		return false
	case found.forced && in.Hold != "":
		p.fail(what, fmt.Sprintf("the update to %s waits: %s", found.to, in.Hold))
		return false
	}
	p.Forced = p.Forced || found.forced
	return found.to != ""
}

func (p *Plan) fail(what, why string) {
	if what != "" {
		why = what + ": " + why
	}
	p.Failures = append(p.Failures, why)
}

// Description describes the changes for the status.
func (p *Plan) Description() string {
	var all []string
	for _, each := range [][]string{p.Kubernetes, p.Images, p.Others} {
		all = append(all, each...)
	}
	if len(all) == 0 {
		all = []string{"no changes of the specification"}
	}
	return strings.Join(all, "; ")
}

func describe(what, of, from string, to update) string {
	why := "automatic update"
	if to.forced {
		why = forcedUpdate + ", because the version is expired"
	}
	return fmt.Sprintf("%s: %s %s updated to %s (%s)", what, of, from, to.to, why)
}
