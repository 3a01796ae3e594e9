package etcd

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health/expression"
	"github.com/trellis-k8s/trellis/test/kit/golden"
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

// TestHealth checks that a growing cluster is healthy as long as it has a majority, and that the change is complete when all
// members are ready.
func TestHealth(t *testing.T) {
	checks, err := expression.Compile([]resourcesv1alpha1.HealthCheck{Health()})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change                 func(*druidv1alpha1.Etcd)
		unhealthy, progressing bool
	}{
		"all members are ready":                    {func(*druidv1alpha1.Etcd) {}, false, false},
		"the third member is not ready":            {func(e *druidv1alpha1.Etcd) { e.Status.Ready = ptr.To(false) }, false, true},
		"one of three members reports nothing yet": {func(e *druidv1alpha1.Etcd) { e.Status.Ready = nil }, false, true},
		"no majority is ready": {func(e *druidv1alpha1.Etcd) {
			e.Status.Ready, e.Status.Conditions[0].Status = ptr.To(false), druidv1alpha1.ConditionFalse
		}, true, true},
		"members are replaced":       {func(e *druidv1alpha1.Etcd) { e.Status.Conditions[1].Status = druidv1alpha1.ConditionFalse }, false, true},
		"the change is not observed": {func(e *druidv1alpha1.Etcd) { e.Generation = 3 }, true, true},
		"the Shoot hibernates": {func(e *druidv1alpha1.Etcd) {
			e.Spec.Replicas, e.Status.Conditions[0].Status = 0, druidv1alpha1.ConditionUnknown
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := &druidv1alpha1.Etcd{
				ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: druidv1alpha1.EtcdSpec{Replicas: 3},
				Status: druidv1alpha1.EtcdStatus{ObservedGeneration: ptr.To[int64](2), Ready: ptr.To(true), Conditions: []druidv1alpha1.Condition{
					{Type: druidv1alpha1.ConditionTypeReady, Status: druidv1alpha1.ConditionTrue},
					{Type: druidv1alpha1.ConditionTypeAllMembersUpdated, Status: druidv1alpha1.ConditionTrue},
				}},
			}
			test.change(etcd)
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(etcd)
			if err != nil {
				t.Fatal(err)
			}
			verdict := checks.For(schema.GroupKind{Group: druidv1alpha1.GroupName, Kind: "Etcd"}).Evaluate(t.Context(), object)
			if verdict.Err != "" || (verdict.Unhealthy != "") != test.unhealthy || (verdict.Progressing != "") != test.progressing {
				t.Errorf("%+v, want unhealthy %t, progressing %t", verdict, test.unhealthy, test.progressing)
			}
		})
	}
}

// TestMembersWithoutTLS checks that several members require TLS between each other.
func TestMembersWithoutTLS(t *testing.T) {
	if _, err := Objects(Values{Role: RoleMain, Replicas: 3}); err == nil {
		t.Error("three members without TLS are accepted")
	}
}
