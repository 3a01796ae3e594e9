// Package bastion contains gardenlet's controller of Bastions. For each Bastion of its Seed it emits an extension object into the
// namespace of the Shoot's control plane, and reports the address and the state of the host. See docs/gardenlet.md.
package bastion

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
)

// FlowName is the value of flow.LabelFlow on objects that the controller emits.
const FlowName = "bastion"

// Reasons of the condition BastionReady, which are Gardener's.
const (
	reasonReconciled = "SuccessfullyReconciled"
	reasonFailed     = "FailedReconciling"
	reasonDeleting   = "DeletionInProgress"
)

// inputs are the inputs of the plan and of the condition.
type inputs struct {
	owner flow.Owner
	// namespace of the bundle: that of gardenlet.
	namespace string
	bastion   *operationsv1alpha1.Bastion
	// shoot is nil if it does not exist on this Seed.
	shoot *corev1beta1.Shoot
	// emitted are the existing bundles of the Bastion.
	emitted []flow.Key
	// asked is the last request to the extension. live is the extension object, or nil if it does not exist.
	asked backup.Asked
	live  *backup.Extension
	now   time.Time
}

// ending returns why the host is deleted, or an empty string. It is deleted with its Shoot, because the extension object would
// otherwise be applied again while the Shoot waits for its deletion.
func (in inputs) ending() string {
	switch {
	case in.bastion.DeletionTimestamp != nil:
		return "The host is being deleted."
	case in.shoot != nil && in.shoot.DeletionTimestamp != nil:
		return fmt.Sprintf("The host is being deleted, because Shoot %s is.", in.shoot.Name)
	}
	return ""
}

// forced reports whether the extension may leave resources of the infrastructure behind.
func (in inputs) forced() bool {
	forced, err := strconv.ParseBool(in.bastion.Annotations[constants.AnnotationConfirmationForceDeletion])
	return err == nil && forced
}

// controlPlane returns the namespace of the Shoot's control plane, or an error if it is not known.
func (in inputs) controlPlane() (string, error) {
	name := in.bastion.Spec.ShootRef.Name
	switch {
	case in.shoot == nil:
		return "", fmt.Errorf("shoot %s/%s does not exist on this Seed", in.bastion.Namespace, name)
	case in.shoot.Status.TechnicalID == "":
		return "", fmt.Errorf("shoot %s/%s has no control plane yet", in.bastion.Namespace, name)
	}
	return in.shoot.Status.TechnicalID, nil
}

// keyOf returns the key of the bundle. Technical IDs have two parts after their prefix, so that the name is unique.
func (in inputs) keyOf(controlPlane string) flow.Key {
	return flow.Key{Namespace: in.namespace, Name: "bastion-" + controlPlane + "--" + in.bastion.Name}
}

// plan returns the plan for a Bastion, and the request to the extension. It is a pure function.
func (in inputs) plan(bundle func(flow.Key, *extensionsv1alpha1.Bastion, backup.Asked) flow.Bundle) (flow.Plan, backup.Asked, error) {
	if in.ending() != "" {
		plan := flow.Plan{Deleting: true}
		for _, key := range in.emitted {
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key})
		}
		return plan, in.asked, nil
	}
	controlPlane, err := in.controlPlane()
	if err != nil {
		return flow.Plan{}, in.asked, err
	}
	object := in.object(controlPlane)
	text, err := json.Marshal(object.Spec)
	if err != nil {
		return flow.Plan{}, in.asked, fmt.Errorf("encode the Bastion: %w", err)
	}
	asked, next := backup.Ask(in.asked, backup.DigestFor(constants.OperationReconcile, text), in.live, 0, in.now)
	return flow.Plan{Bundles: []flow.Bundle{bundle(in.keyOf(controlPlane), object, asked)}, Next: next}, asked, nil
}

// object returns the extension object, without a requested operation.
func (in inputs) object(controlPlane string) *extensionsv1alpha1.Bastion {
	object := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{
		Namespace: controlPlane, Name: in.bastion.Name, Annotations: map[string]string{flow.AnnotationOwner: in.owner.String()},
	}}
	object.Spec.Type = ptr.Deref(in.bastion.Spec.ProviderType, in.shoot.Spec.Provider.Type)
	object.Spec.UserData = userData(in.bastion.Spec.SSHPublicKey)
	for _, from := range in.bastion.Spec.Ingress {
		object.Spec.Ingress = append(object.Spec.Ingress, extensionsv1alpha1.BastionIngressPolicy{IPBlock: *from.IPBlock.DeepCopy()})
	}
	return object
}

// userData returns the script that lets the owner of a key log in as the user gardener (Gardener).
func userData(publicKey string) []byte {
	quoted := "'" + strings.ReplaceAll(strings.TrimSpace(publicKey), "'", `'\''`) + "'"
	return []byte(`#!/bin/bash -eu

id gardener || useradd gardener -mU
mkdir -p /home/gardener/.ssh
echo ` + quoted + ` > /home/gardener/.ssh/authorized_keys
chown gardener:gardener /home/gardener/.ssh/authorized_keys
echo "gardener ALL=(ALL) NOPASSWD:ALL" > /etc/sudoers.d/99-gardener-user
systemctl start sshd || systemctl start ssh
`)
}

// condition returns the condition BastionReady without times. changed is false while an operation runs: then the condition stays as it is.
// why is the reason why the extension has not finished, or empty. failed is the error of the extension or of the bundle, or nil.
func (in inputs) condition(why string, failed *corev1beta1.LastError) (next corev1beta1.Condition, changed bool) {
	next = corev1beta1.Condition{Type: operationsv1alpha1.BastionReady, Status: corev1beta1.ConditionFalse}
	ending := in.ending()
	switch {
	case failed != nil && ending == "":
		next.Reason, next.Message, next.Codes = reasonFailed, failed.Description, failed.Codes
	case failed != nil:
		next.Reason, next.Message, next.Codes = reasonDeleting, ending+" It failed so far: "+failed.Description, failed.Codes
	case ending != "":
		next.Reason, next.Message = reasonDeleting, ending
	case why == "":
		next.Status, next.Reason, next.Message = corev1beta1.ConditionTrue, reasonReconciled, "The host is ready."
	default:
		return next, false
	}
	return next, true
}
