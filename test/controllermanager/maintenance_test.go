package controllermanager

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootmaintenance"
	"github.com/trellis-k8s/trellis/test/kit"
)

// maintains checks that maintenance updates versions and requests operations, and that forced updates of many Shoots wait until they are confirmed.
func (l *lives) maintains() {
	profile := example(l.fixture, "cloudprofile.yaml", &corev1beta1.CloudProfile{})
	profile.Name = "upkeep"
	offer := func(version string, expired bool) {
		one := corev1beta1.ExpirableVersion{Version: version, Classification: ptr.To(corev1beta1.ClassificationSupported)}
		if expired {
			one.Classification = ptr.To(corev1beta1.ClassificationDeprecated)
			one.ExpirationDate = ptr.To(metav1.NewTime(metav1.Now().Add(-1)))
		}
		profile.Spec.Kubernetes.Versions = append(profile.Spec.Kubernetes.Versions, one)
	}
	profile.Spec.Kubernetes.Versions[0].Classification = ptr.To(corev1beta1.ClassificationDeprecated) // only one may be supported
	offer("1.34.9", false)
	image := profile.Spec.MachineImages[0].Versions[0].DeepCopy()
	image.Version = "1.2.7"
	profile.Spec.MachineImages[0].Versions = append(profile.Spec.MachineImages[0].Versions, *image)
	l.create(profile)
	shoots := make([]*corev1beta1.Shoot, 0, 3)
	for _, name := range []string{"upkeep", "upkeep-2", "upkeep-3"} {
		shoots = append(shoots, l.shoot(name, func(s *corev1beta1.Shoot) {
			s.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: profile.Name}
		}))
	}
	shoot := shoots[0]
	l.status(shoot, `{"lastOperation":{"type":"Reconcile","state":"Succeeded","description":"done","progress":100,"lastUpdateTime":"2026-01-01T00:00:00Z"}}`)
	l.maintain(shoot, corev1beta1.LastOperationStateSucceeded)
	if shoot.Spec.Kubernetes.Version != "1.34.9" || *shoot.Spec.Provider.Workers[0].Machine.Image.Version != "1.2.7" ||
		!strings.Contains(shoot.Annotations[constants.AnnotationShootTasks], constants.ShootTaskRestartControlPlanePods) {
		l.Errorf("after the maintenance, the Shoot is %+v", shoot)
	}
	l.eventuallyTold(shoot, "KubernetesVersionMaintenance")
	l.eventuallyTold(shoot, "MachineImageVersionMaintenance")

	for _, one := range shoots {
		kit.Change(l, l.client, one, func() {
			one.Spec.Kubernetes.Version, one.Spec.Maintenance.AutoUpdate.KubernetesVersion = "1.34.9", false
		})
	}
	kit.Change(l, l.client, profile, func() {
		last := len(profile.Spec.Kubernetes.Versions) - 1
		profile.Spec.Kubernetes.Versions = profile.Spec.Kubernetes.Versions[:last]
		offer("1.34.9", true)
		offer("1.34.10", false)
	})
	kit.EventuallyTrue(l, "the version is expired", func() bool {
		return l.exists(profile) && profile.Status.Kubernetes != nil && profile.Status.Kubernetes.Versions[len(profile.Status.Kubernetes.Versions)-1].Version == "1.34.10"
	})
	l.maintain(shoot, corev1beta1.LastOperationStateFailed)
	_, value, found := strings.Cut(ptr.Deref(shoot.Status.LastMaintenance.FailureReason, ""), shootmaintenance.AnnotationConfirm+"=")
	if shoot.Spec.Kubernetes.Version != "1.34.9" || !found {
		l.Fatalf("the forced update does not wait: %s, %+v", shoot.Spec.Kubernetes.Version, shoot.Status.LastMaintenance)
	}
	l.eventuallyTold(shoot, "MaintenanceFailed")
	value, _, _ = strings.Cut(value, ";")
	kit.Change(l, l.client, profile, func() { metav1.SetMetaDataAnnotation(&profile.ObjectMeta, shootmaintenance.AnnotationConfirm, value) })
	l.maintain(shoot, corev1beta1.LastOperationStateSucceeded)
	if shoot.Spec.Kubernetes.Version != "1.34.10" {
		l.Errorf("after the confirmation, the version is %s", shoot.Spec.Kubernetes.Version)
	}
	for _, one := range shoots {
		l.remove(one)
	}
	kit.Must(l, l.client.Delete(l.Context(), profile))
}

// maintain requests maintenance, and waits until it has ended with a state.
func (l *lives) maintain(shoot *corev1beta1.Shoot, want corev1beta1.LastOperationState) {
	l.Helper()
	l.status(shoot, `{"lastMaintenance":null}`)
	kit.Change(l, l.client, shoot, func() {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationGardenerOperation, constants.OperationMaintain)
	})
	kit.Eventually(l, "the maintenance ends as "+string(want), func() string {
		if !l.exists(shoot) || shoot.Status.LastMaintenance == nil || shoot.Annotations[constants.AnnotationGardenerOperation] == constants.OperationMaintain {
			return "it has not ended"
		}
		if last := shoot.Status.LastMaintenance; last.State != want {
			return string(last.State) + ": " + last.Description + " " + ptr.Deref(last.FailureReason, "")
		}
		return ""
	})
}

// status changes the status of a Shoot by a merge patch, whatever else changes the Shoot.
func (l *lives) status(shoot *corev1beta1.Shoot, patch string) {
	l.Helper()
	kit.Must(l, l.client.Status().Patch(l.Context(), shoot, client.RawPatch(types.MergePatchType, []byte(`{"status":`+patch+`}`))))
}
