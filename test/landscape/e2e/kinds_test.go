package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

const (
	created    = corev1beta1.LastOperationTypeCreate
	reconciled = corev1beta1.LastOperationTypeReconcile
)

// extensionKinds are objects of all kinds of extension resources, which a test creates directly in the namespace of a
// Shoot.
type extensionKinds struct {
	*cluster
	fleet *fleet.Fleet
	// shoot is the namespace of the Shoot, infra is the namespace of machines and bastions.
	shoot, infra string
	key          sshKey
	asked        map[client.Object]time.Time

	infrastructure *extensionsv1alpha1.Infrastructure
	osc            *extensionsv1alpha1.OperatingSystemConfig
	controlPlane   *extensionsv1alpha1.ControlPlane
	network        *extensionsv1alpha1.Network
	runtimes       *extensionsv1alpha1.ContainerRuntime
	record         *extensionsv1alpha1.DNSRecord
	bucket         *extensionsv1alpha1.BackupBucket
	entry          *extensionsv1alpha1.BackupEntry
	worker         *extensionsv1alpha1.Worker
	bastion        *extensionsv1alpha1.Bastion
}

// extensionKinds creates an object of each kind for provider-local. Machines and a bastion run. Rejected objects have
// error codes. In the end, nothing is left.
func (c *cluster) extensionKinds(f *fleet.Fleet, shoot string) {
	c.t.Helper()
	began := time.Now()
	k := c.newExtensionKinds(f, shoot)
	c.t.Cleanup(func() {
		if c.t.Failed() {
			k.explainKinds()
		}
	})
	k.add(k.infrastructure, k.osc, k.controlPlane, k.network, k.runtimes, k.record, k.bucket, k.entry)
	k.succeeded(created, k.infrastructure, k.osc)
	k.add(k.worker, k.bastion)
	k.unserved()
	k.succeeded(created, k.controlPlane, k.runtimes, k.record, k.bucket, k.entry, k.bastion)
	k.answers()
	k.succeeded(created, k.worker)
	k.throughBastion(k.machineRuns())
	k.refused()
	k.scaleAndRoll()
	k.moveMachines()
	c.resolves(k.record.Spec.Name, k.record.Spec.Values[0])
	k.removeAll()
	c.t.Logf("All kinds of extension resources: %s", time.Since(began).Round(time.Second))
}

func (c *cluster) newExtensionKinds(f *fleet.Fleet, shoot string) *extensionKinds {
	c.t.Helper()
	must(c.t, extensionsv1alpha1.AddToScheme(c.Scheme()))
	k := &extensionKinds{
		cluster: c, fleet: f, shoot: shoot, infra: local.InfrastructureNamespace(shoot), key: newSSHKey(c.t), asked: map[client.Object]time.Time{},
		infrastructure: &extensionsv1alpha1.Infrastructure{}, osc: &extensionsv1alpha1.OperatingSystemConfig{}, controlPlane: &extensionsv1alpha1.ControlPlane{},
		network: &extensionsv1alpha1.Network{}, runtimes: &extensionsv1alpha1.ContainerRuntime{}, record: &extensionsv1alpha1.DNSRecord{},
		bucket: &extensionsv1alpha1.BackupBucket{}, entry: &extensionsv1alpha1.BackupEntry{}, worker: &extensionsv1alpha1.Worker{}, bastion: &extensionsv1alpha1.Bastion{},
	}
	c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}})
	userData := "#!/bin/bash -eu\nmkdir -p /home/gardener/.ssh\necho '" + k.key.authorized + "' > /home/gardener/.ssh/authorized_keys\n"
	rendered := c.render("extensions.yaml", map[string]string{
		"Shoot": shoot, "Namespace": c.namespace, "Host": base.Network.Host().Addr().String(), "UserData": base64.StdEncoding.EncodeToString([]byte(userData)),
	})
	all := k.all()
	if len(rendered) != len(all) {
		c.t.Fatalf("testdata/extensions.yaml has %d objects, want %d", len(rendered), len(all))
	}
	for i, object := range all {
		must(c.t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(rendered[i].Object, object, true))
	}
	return k
}

// all returns the objects in the order of the file that declares them.
func (k *extensionKinds) all() []extensionsv1alpha1.Object {
	return []extensionsv1alpha1.Object{k.infrastructure, k.osc, k.controlPlane, k.network, k.runtimes, k.record, k.bucket, k.entry, k.worker, k.bastion}
}

// add creates objects, as gardenlet does.
func (k *extensionKinds) add(objects ...extensionsv1alpha1.Object) {
	k.t.Helper()
	for _, object := range objects {
		k.ask(object, constants.OperationReconcile)
		must(k.t, k.Create(k.ctx, object))
	}
}

func (k *extensionKinds) ask(object client.Object, operation string) {
	k.asked[object] = time.Now()
	flow.AskExtension(object, operation, k.asked[object])
}

// change changes an object, and requests an operation.
func (k *extensionKinds) change(object extensionsv1alpha1.Object, operation string, change func()) {
	k.t.Helper()
	k.eventually(fmt.Sprintf("%T is changed", object), func() error { // the extension updates it concurrently
		if err := k.Get(k.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		k.ask(object, operation)
		return k.Update(k.ctx, object)
	})
}

// succeeded waits until the requested operations have succeeded.
func (k *extensionKinds) succeeded(operation corev1beta1.LastOperationType, objects ...extensionsv1alpha1.Object) {
	k.t.Helper()
	k.await(string(operation), objects, func(object extensionsv1alpha1.Object) error {
		status := object.GetExtensionStatus()
		last, asked := status.LastOperation, object.GetAnnotations()[constants.AnnotationGardenerOperation]
		if last == nil || last.State != corev1beta1.LastOperationStateSucceeded || last.Type != operation || asked != "" || status.ObservedGeneration != object.GetGeneration() {
			return fmt.Errorf("operation requested at %q, last operation %+v, last error %+v", asked, last, status.LastError)
		}
		return nil
	})
}

// await polls objects until each of them meets the condition, and logs the time.
func (k *extensionKinds) await(what string, objects []extensionsv1alpha1.Object, wanted func(extensionsv1alpha1.Object) error) {
	k.t.Helper()
	var times []string
	left := slices.Clone(objects)
	k.eventually(what, func() error {
		var errs []error
		left = slices.DeleteFunc(left, func(object extensionsv1alpha1.Object) bool {
			err := k.Get(k.ctx, client.ObjectKeyFromObject(object), object)
			if err == nil {
				err = wanted(object)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%T %s: %w", object, object.GetName(), err))
				return false
			}
			times = append(times, fmt.Sprintf("%s %.1f s", kindOf(object), time.Since(k.asked[object]).Seconds()))
			return true
		})
		return errors.Join(errs...)
	})
	k.t.Logf("%s: %s", what, strings.Join(times, ", "))
}

func kindOf(object client.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1alpha1.")
}

// gone deletes objects with a confirmation, as an operator does, and waits until they no longer exist.
func (k *extensionKinds) gone(objects ...extensionsv1alpha1.Object) {
	k.t.Helper()
	for _, object := range objects {
		k.asked[object] = time.Now()
		confirmed := []byte(`{"metadata":{"annotations":{"` + constants.AnnotationConfirmationDeletion + `":"true"}}}`)
		must(k.t, k.Patch(k.ctx, object, client.RawPatch(types.MergePatchType, confirmed)))
		must(k.t, k.Delete(k.ctx, object))
	}
	var left []extensionsv1alpha1.Object
	k.eventually("deletion", func() error {
		left = slices.DeleteFunc(slices.Clone(objects), func(object extensionsv1alpha1.Object) bool {
			return apierrors.IsNotFound(k.Get(k.ctx, client.ObjectKeyFromObject(object), object))
		})
		if len(left) > 0 {
			return fmt.Errorf("%T %s still exists: %+v", left[0], left[0].GetName(), left[0].GetExtensionStatus())
		}
		return nil
	})
	k.t.Logf("Delete of %d objects: %.1f s", len(objects), time.Since(k.asked[objects[0]]).Seconds())
}
