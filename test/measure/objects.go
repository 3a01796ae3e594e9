package measure

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	// writers is the number of concurrent requests of [Each].
	writers = 16
	// version is that of Kubernetes in all Shoots.
	version = "1.37.1"
)

// Each calls a function for the numbers from first up to last, excluding last, with several at once. It stops at the first error.
func Each(ctx context.Context, first, last int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := first; i < last; i++ {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// CloudProfile returns the profile of [Shoot].
func CloudProfile() *corev1beta1.CloudProfile {
	return &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: corev1beta1.CloudProfileSpec{
		Type: "local", Regions: []corev1beta1.Region{{Name: "local"}},
		Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{{Version: version}}},
		MachineImages: []corev1beta1.MachineImage{{Name: "local", Versions: []corev1beta1.MachineImageVersion{{
			ExpirableVersion: corev1beta1.ExpirableVersion{Version: "1.0.0"}, CRI: []corev1beta1.CRI{{Name: corev1beta1.CRINameContainerD}},
			Architectures: []string{"amd64"},
		}}}},
		MachineTypes: []corev1beta1.MachineType{{
			Name: "local", CPU: resource.MustParse("2"), GPU: resource.MustParse("0"), Memory: resource.MustParse("4Gi"), Architecture: ptr.To("amd64"),
		}},
	}}
}

// Registration returns the registration of the extension that Seeds and Shoots of the type local need.
func Registration() *corev1beta1.ControllerRegistration {
	made := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "provider-local"}}
	for _, kind := range []string{
		corev1beta1.KindControlPlane, corev1beta1.KindInfrastructure, corev1beta1.KindWorker, corev1beta1.KindDNSRecord,
	} {
		made.Spec.Resources = append(made.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: "local"})
	}
	return made
}

// Shoot returns a Shoot without workers, whose maintenance is half a day away.
func Shoot(namespace, name string) *corev1beta1.Shoot {
	begin := time.Now().UTC().Add(12 * time.Hour)
	return &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local",
			Kubernetes: corev1beta1.Kubernetes{Version: version}, Provider: corev1beta1.Provider{Type: "local"},
			Maintenance: &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{
				Begin: begin.Format("150405+0000"), End: begin.Add(time.Hour).Format("150405+0000"),
			}},
		},
	}
}
