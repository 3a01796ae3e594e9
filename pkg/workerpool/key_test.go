package workerpool

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// smallShoot is a Shoot with one pool that sets only what is required.
func smallShoot() *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Region, shoot.Spec.Kubernetes.Version = "local", "1.37.1"
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{{
		Name: "small", Minimum: 1, Maximum: 2,
		Machine: corev1beta1.Machine{Type: "local", Image: &corev1beta1.ShootMachineImage{Name: "local", Version: ptr.To("1.0.0")}},
	}}
	return shoot
}

// fullShoot sets all values that are in the key.
func fullShoot() *corev1beta1.Shoot {
	shoot := smallShoot()
	worker := &shoot.Spec.Provider.Workers[0]
	worker.Volume = &corev1beta1.Volume{VolumeSize: "50Gi", Type: ptr.To("fast")}
	worker.CRI = &corev1beta1.CRI{Name: corev1beta1.CRINameContainerD}
	shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{NodeLocalDNS: &corev1beta1.NodeLocalDNS{Enabled: true}}
	shoot.Spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Mode: ptr.To(corev1beta1.ProxyModeIPVS)}
	shoot.Spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{
		KubeReserved:     &corev1beta1.KubeletConfigReserved{CPU: ptr.To(resource.MustParse("80m")), Memory: ptr.To(resource.MustParse("1Gi"))},
		EvictionHard:     &corev1beta1.KubeletConfigEviction{MemoryAvailable: ptr.To("100Mi"), NodeFSAvailable: ptr.To("5%")},
		CPUManagerPolicy: ptr.To("static"),
	}
	shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &corev1beta1.CARotation{LastInitiationTime: ptr.To(metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
		ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{LastInitiationTime: ptr.To(metav1.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))},
	}}
	return shoot
}

func keyOf(t *testing.T, shoot *corev1beta1.Shoot) string {
	t.Helper()
	pools, err := Of(shoot, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pools[0].Key()
}

// TestKey compares keys with values that were computed independently from the documented formula, also in another time zone.
func TestKey(t *testing.T) {
	for name, test := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  string
	}{
		"required": {smallShoot(), "gardener-node-agent-small-f17d671e606af101"},
		"volume": {func() *corev1beta1.Shoot {
			shoot := smallShoot()
			shoot.Spec.Provider.Workers[0].Volume = &corev1beta1.Volume{VolumeSize: "50Gi"}
			return shoot
		}(), "gardener-node-agent-small-beffd2acdc237097"},
		"all": {fullShoot(), "gardener-node-agent-small-546f96a434c5abea"},
		"all, elsewhere": {func() *corev1beta1.Shoot {
			shoot := fullShoot()
			rotation := shoot.Status.Credentials.Rotation
			at := rotation.CertificateAuthorities.LastInitiationTime
			at.Time = at.In(time.FixedZone("IST", 19800)).Add(300 * time.Millisecond)
			return shoot
		}(), "gardener-node-agent-small-546f96a434c5abea"},
		"in place": {func() *corev1beta1.Shoot {
			shoot := fullShoot()
			shoot.Spec.Provider.Workers[0].UpdateStrategy = ptr.To(corev1beta1.AutoInPlaceUpdate)
			return shoot
		}(), "gardener-node-agent-small"},
	} {
		if got := keyOf(t, test.shoot); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestPendingRollouts checks that a pool that waits for its rollout keeps its nodes while a rotation is prepared.
func TestPendingRollouts(t *testing.T) {
	shoot := fullShoot()
	before := keyOf(t, shoot)
	authorities := shoot.Status.Credentials.Rotation.CertificateAuthorities
	old := *authorities.LastInitiationTime
	authorities.LastInitiationTime = ptr.To(metav1.NewTime(old.Add(time.Hour)))
	authorities.PendingWorkersRollouts = []corev1beta1.PendingWorkersRollout{{Name: "small", LastInitiationTime: &old}}
	if got := keyOf(t, shoot); got != before {
		t.Errorf("the rotation replaces the nodes of a pool that waits for its rollout: %s, want %s", got, before)
	}
	authorities.PendingWorkersRollouts = nil
	if keyOf(t, shoot) == before {
		t.Error("the rollout of the pool does not replace its nodes")
	}
}
