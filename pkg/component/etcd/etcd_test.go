package etcd

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/golden"
)

func TestObjects(t *testing.T) {
	for name, change := range map[string]func(*Values){
		"main":       func(*Values) {},
		"events":     func(v *Values) { v.Role = RoleEvents; v.VerticalPodAutoscaler = false },
		"hibernated": func(v *Values) { v.Replicas = 0 },
		"highly-available": func(v *Values) {
			v.Replicas, v.HighlyAvailable, v.PeerCA, v.Peer = 3, true, "ca-etcd-peer-bundle-1", "etcd-peer-server-main-1"
			v.Autoscaling = &corev1beta1.ControlPlaneAutoscaling{MinAllowed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("900M")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := Values{
				Namespace: "shoot--dev--one", Role: RoleMain, Replicas: 1, Storage: Storage(RoleMain, nil), Defragmentation: "7 22 * * *", VerticalPodAutoscaler: true,
				CA: "ca-etcd-bundle-1", Server: "etcd-server-main-1", Client: "etcd-client-1",
			}
			change(&v)
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, objects)
		})
	}
}

func TestStorage(t *testing.T) {
	for _, test := range []struct {
		role Role
		seed *corev1beta1.SeedVolume
		want string
	}{
		{RoleMain, nil, "25Gi"}, {RoleEvents, &corev1beta1.SeedVolume{}, "10Gi"},
		{RoleEvents, &corev1beta1.SeedVolume{MinimumSize: ptr.To(resource.MustParse("20Gi"))}, "20Gi"},
		{RoleMain, &corev1beta1.SeedVolume{MinimumSize: ptr.To(resource.MustParse("20Gi"))}, "25Gi"},
	} {
		if got := Storage(test.role, test.seed); got.String() != test.want {
			t.Errorf("%s: %s, want %s", test.role, got.String(), test.want)
		}
	}
}

// TestMembersWithoutTLS: members speak TLS with each other.
func TestMembersWithoutTLS(t *testing.T) {
	if _, err := Objects(Values{Role: RoleMain, Replicas: 3}); err == nil {
		t.Error("three members without TLS are accepted")
	}
}
