package seed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	bastionProject, bastionPlane = "garden-bastions", "shoot--bastions--blue"
	bastionHolder                = "example.org/holder"
)

// bastions leads Bastions through their lives. The test acts as the extension. The first one is deleted by its user, the second
// one with its Shoot.
func (w *world) bastions(seed string) {
	w.Helper()
	w.create(w.garden, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bastionProject}})
	w.create(w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bastionPlane}})
	shoot := &corev1beta1.Shoot{}
	w.fromExample(shoot, "core", "shoot.yaml")
	shoot.Namespace, shoot.Name, shoot.Finalizers = bastionProject, "blue", []string{bastionHolder}
	shoot.Spec.SeedName, shoot.Spec.DNS, shoot.Spec.Extensions, shoot.Spec.Resources = &seed, nil, nil, nil
	kit.Must(w, w.garden.Create(w.Context(), shoot))

	first := w.bastion("first", seed)
	w.eventuallyBastion(first, "False FailedReconciling shoot garden-bastions/blue has no control plane yet")
	kit.EventuallyTrue(w, "the Shoot has a technical ID", func() bool {
		kit.Must(w, w.garden.Get(w.Context(), client.ObjectKeyFromObject(shoot), shoot))
		shoot.Status.TechnicalID = bastionPlane
		return w.garden.Status().Update(w.Context(), shoot) == nil
	})
	live := w.awaitHost("first", func(live *extensionsv1alpha1.Bastion) bool {
		return live.Annotations[constants.AnnotationGardenerOperation] == constants.OperationReconcile
	})
	if live.Spec.Type != "local" || len(live.Spec.UserData) == 0 || live.Spec.Ingress[0].IPBlock.CIDR != "192.0.2.0/24" {
		w.Errorf("the extension object is %+v", live.Spec)
	}
	w.hostReports("first", corev1beta1.LastOperationStateError, "no quota")
	w.eventuallyBastion(first, "False FailedReconciling no quota")
	w.hostReports("first", corev1beta1.LastOperationStateSucceeded, "")
	w.eventuallyBastion(first, "True SuccessfullyReconciled The host is ready.")
	if first.Status.Ingress == nil || first.Status.Ingress.IP != "198.51.100.7" || ptr.Deref(first.Status.ObservedGeneration, 0) != first.Generation {
		w.Errorf("the status is %+v", first.Status)
	}

	kit.Change(w, w.garden, first, func() { first.Spec.Ingress[0].IPBlock = networkingv1.IPBlock{CIDR: "203.0.113.0/24"} })
	w.awaitHost("first", func(live *extensionsv1alpha1.Bastion) bool {
		return live.Spec.Ingress[0].IPBlock.CIDR == "203.0.113.0/24" && live.Annotations[constants.AnnotationGardenerOperation] != ""
	})
	w.hostReports("first", corev1beta1.LastOperationStateSucceeded, "")
	kit.EventuallyTrue(w, "the new generation is observed", func() bool {
		kit.Must(w, w.garden.Get(w.Context(), client.ObjectKeyFromObject(first), first))
		return ptr.Deref(first.Status.ObservedGeneration, 0) == first.Generation
	})
	w.deletesBastion(first)
	w.deletesBastionWithShoot(w.bastion("second", seed), shoot)
}

// deletesBastion deletes a Bastion by force, while its extension has a finalizer.
func (w *world) deletesBastion(bastion *operationsv1alpha1.Bastion) {
	w.Helper()
	w.holdHost(bastion.Name, true)
	kit.Change(w, w.garden, bastion, func() {
		metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, constants.AnnotationConfirmationForceDeletion, "true")
	})
	kit.Must(w, w.garden.Delete(w.Context(), bastion))
	w.eventuallyBastion(bastion, "False DeletionInProgress The host is being deleted.")
	w.awaitHost(bastion.Name, func(live *extensionsv1alpha1.Bastion) bool {
		return live.DeletionTimestamp != nil && live.Annotations[constants.AnnotationConfirmationForceDeletion] == "true"
	})
	if err := w.garden.Get(w.Context(), client.ObjectKeyFromObject(bastion), bastion); err != nil {
		w.Errorf("the Bastion is deleted before its host: %v", err)
	}
	w.holdHost(bastion.Name, false)
	w.eventuallyGone(bastion)
}

// deletesBastionWithShoot checks that the host is deleted with the Shoot, before the Bastion is.
func (w *world) deletesBastionWithShoot(bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) {
	w.Helper()
	w.awaitHost(bastion.Name, func(*extensionsv1alpha1.Bastion) bool { return true })
	kit.Change(w, w.garden, shoot, func() {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	})
	kit.Must(w, w.garden.Delete(w.Context(), shoot))
	w.eventuallyBastion(bastion, "False DeletionInProgress The host is being deleted, because Shoot blue is.")
	kit.EventuallyTrue(w, "the host does not exist", func() bool {
		err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: bastionPlane, Name: bastion.Name}, &extensionsv1alpha1.Bastion{})
		return apierrors.IsNotFound(err)
	})
	kit.Must(w, w.garden.Delete(w.Context(), bastion)) // as the controller-manager does
	w.eventuallyGone(bastion)
	kit.Change(w, w.garden, shoot, func() { shoot.Finalizers = nil })
	w.eventuallyGone(shoot)
	kit.Must(w, w.seed.Delete(context.WithoutCancel(w.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bastionPlane}}))
}

// fromExample reads an example object of the garden.
func (w *world) fromExample(into any, path ...string) {
	w.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	text, err := os.ReadFile(filepath.Join(append([]string{root, "examples", "fleet"}, path...)...))
	kit.Must(w, err)
	kit.Must(w, yaml.UnmarshalStrict(text, into))
}

// bastion creates a Bastion of the Shoot.
func (w *world) bastion(name, seed string) *operationsv1alpha1.Bastion {
	w.Helper()
	bastion := &operationsv1alpha1.Bastion{}
	w.fromExample(bastion, "operations", "bastion.yaml")
	bastion.Namespace, bastion.Name, bastion.Spec.SeedName = bastionProject, name, &seed
	kit.Must(w, w.garden.Create(w.Context(), bastion))
	return bastion
}

// eventuallyBastion waits until a Bastion reports a condition.
func (w *world) eventuallyBastion(bastion *operationsv1alpha1.Bastion, want string) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "Bastion "+bastion.Name+" reports "+want, func() string {
		kit.Must(w, w.garden.Get(w.Context(), client.ObjectKeyFromObject(bastion), bastion))
		found := corev1beta1.FindCondition(bastion.Status.Conditions, operationsv1alpha1.BastionReady)
		if found != nil && fmt.Sprintf("%s %s %s", found.Status, found.Reason, found.Message) == want {
			return ""
		}
		return fmt.Sprintf("%+v\n%s", found, w.bundles())
	})
}

// awaitHost waits until the extension object fulfils a condition, and returns it.
func (w *world) awaitHost(name string, holds func(*extensionsv1alpha1.Bastion) bool) *extensionsv1alpha1.Bastion {
	w.Helper()
	live := &extensionsv1alpha1.Bastion{}
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the extension object of Bastion "+name+" is as wanted", func() string {
		if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: bastionPlane, Name: name}, live); err != nil {
			return err.Error() + "\n" + w.bundles()
		}
		if holds(live) {
			return ""
		}
		return fmt.Sprintf("%+v", live)
	})
	return live
}

// hostReports does what an extension does at the end of an operation.
func (w *world) hostReports(name string, state corev1beta1.LastOperationState, problem string) {
	w.Helper()
	kit.Eventually(w, "the extension reports its result", func() string {
		live := &extensionsv1alpha1.Bastion{}
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: bastionPlane, Name: name}, live))
		delete(live.Annotations, constants.AnnotationGardenerOperation)
		if err := w.seed.Update(w.Context(), live); err != nil {
			return err.Error()
		}
		live.Status.ObservedGeneration, live.Status.LastError = live.Generation, nil
		live.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: state, Description: "done", Progress: 100, LastUpdateTime: metav1.Now(),
		}
		if problem != "" {
			live.Status.LastError = &corev1beta1.LastError{Description: problem}
		} else {
			live.Status.Ingress = &corev1.LoadBalancerIngress{IP: "198.51.100.7"}
		}
		return kit.TextOf(w.seed.Status().Update(w.Context(), live))
	})
}

// holdHost adds or removes the finalizer of the extension.
func (w *world) holdHost(name string, hold bool) {
	w.Helper()
	live := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: bastionPlane, Name: name}}
	kit.Change(w, w.seed, live, func() {
		live.Finalizers = nil
		if hold {
			live.Finalizers = []string{bastionHolder}
		}
	})
}
