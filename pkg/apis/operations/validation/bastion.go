// Package validation checks objects of operations.gardener.cloud/v1alpha1. The rules are Gardener's.
package validation

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/crypto/ssh"
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
)

// ValidateBastion checks a Bastion.
func ValidateBastion(bastion *v1alpha1.Bastion) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&bastion.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	spec, path := &bastion.Spec, field.NewPath("spec")
	errs = append(errs, rules.Required(spec.ShootRef.Name, path.Child("shootRef", "name"))...)
	errs = append(errs, validateKey(spec.SSHPublicKey, path.Child("sshPublicKey"))...)
	ingress := path.Child("ingress")
	if len(spec.Ingress) == 0 {
		errs = append(errs, field.Required(ingress, "at least one is required"))
	}
	for i, policy := range spec.Ingress {
		errs = append(errs, validateBlock(policy.IPBlock, ingress.Index(i).Child("ipBlock"))...)
	}
	return errs
}

// ValidateBastionUpdate checks a Bastion that replaces another.
func ValidateBastionUpdate(bastion, old *v1alpha1.Bastion) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&bastion.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, rules.Immutable(bastion.Annotations[constants.AnnotationGardenCreatedBy], old.Annotations[constants.AnnotationGardenCreatedBy],
		field.NewPath("metadata", "annotations").Key(constants.AnnotationGardenCreatedBy))...)
	path := field.NewPath("spec")
	errs = append(errs, rules.Immutable(bastion.Spec.ShootRef.Name, old.Spec.ShootRef.Name, path.Child("shootRef", "name"))...)
	errs = append(errs, rules.Immutable(bastion.Spec.SSHPublicKey, old.Spec.SSHPublicKey, path.Child("sshPublicKey"))...)
	return append(errs, ValidateBastion(bastion)...)
}

// ValidateBastionStatusUpdate checks the status of a Bastion that replaces another.
func ValidateBastionStatusUpdate(bastion, _ *v1alpha1.Bastion, now time.Time) field.ErrorList {
	heartbeat := bastion.Status.LastHeartbeatTimestamp
	if heartbeat != nil && heartbeat.After(now) {
		path := field.NewPath("status", "lastHeartbeatTimestamp")
		return field.ErrorList{field.Invalid(path, heartbeat.Format(time.RFC3339), "must not be in the future")}
	}
	return nil
}

func validateKey(key string, path *field.Path) field.ErrorList {
	if errs := rules.Required(key, path); errs != nil {
		return errs
	}
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key)); err != nil {
		return field.ErrorList{field.Invalid(path, key, "must be a public key in the format of authorized_keys")}
	}
	return nil
}

// validateBlock checks a range of addresses and its exceptions.
func validateBlock(block networkingv1.IPBlock, path *field.Path) field.ErrorList {
	at := path.Child("cidr")
	if errs := rules.Required(block.CIDR, at); errs != nil {
		return errs
	}
	whole, err := netip.ParsePrefix(block.CIDR)
	if err != nil {
		return field.ErrorList{field.Invalid(at, block.CIDR, "must be a range of addresses in CIDR notation, such as 10.0.0.0/16")}
	}
	var errs field.ErrorList
	for i, excepted := range block.Except {
		part, err := netip.ParsePrefix(excepted)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path.Child("except").Index(i), excepted,
				"must be a range of addresses in CIDR notation, such as 10.0.0.0/16"))
		case part.Bits() <= whole.Bits() || !whole.Contains(part.Addr()):
			errs = append(errs, field.Invalid(path.Child("except").Index(i), excepted, fmt.Sprintf("must be part of %s", block.CIDR)))
		}
	}
	return errs
}
