package shootnamespace

import (
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values(change ...func(*Values)) Values {
	v := Values{
		Name: "shoot--dev--one", Zones: []string{"b", "a"}, Extensions: []string{"dns"}, Kubeconfig: "generic-token-kubeconfig-1",
		Shoot: &corev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one", UID: "2f4c", Generation: 3},
			Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Type: "local"}, Networking: &corev1beta1.Networking{Type: ptr.To("calico")}, ControlPlane: &corev1beta1.ControlPlane{
				HighAvailability: &corev1beta1.HighAvailability{FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeNode}},
			}},
		},
		Seed:         &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local"}, Backup: &corev1beta1.Backup{Provider: "store"}}},
		CloudProfile: &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}},
	}
	for _, each := range change {
		each(&v)
	}
	return v
}

func TestObjects(t *testing.T) {
	if err := extensionsv1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	cluster, err := Cluster(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "namespace", append([]client.Object{Namespace(values()), cluster}, Access("shoot--dev--one", false, false)...))
}

// TestReportsDoNotChangeTheCluster checks that the status and other fields outside the specification of a Shoot do not change
// the Cluster.
func TestReportsDoNotChangeTheCluster(t *testing.T) {
	text := func(change ...func(*Values)) string {
		cluster, err := Cluster(values(change...))
		if err != nil {
			t.Fatal(err)
		}
		return string(cluster.Spec.Shoot.Raw) + string(cluster.Spec.Seed.Raw) + string(cluster.Spec.CloudProfile.Raw)
	}
	same := text()
	for name, change := range map[string]func(*Values){
		"last operation": func(v *Values) { v.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Progress: 10} },
		"conditions":     func(v *Values) { v.Shoot.Status.Conditions = []corev1beta1.Condition{{Type: "A"}} },
		"errors":         func(v *Values) { v.Shoot.Status.LastErrors = []corev1beta1.LastError{{Description: "no"}} },
		"version": func(v *Values) {
			v.Shoot.ResourceVersion, v.Seed.ResourceVersion, v.CloudProfile.ResourceVersion = "1", "2", "3"
		},
		"fields":       func(v *Values) { v.Shoot.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} },
		"finalizers":   func(v *Values) { v.Shoot.Finalizers = []string{"gardener"} },
		"operation":    func(v *Values) { v.Shoot.Annotations = map[string]string{"gardener.cloud/operation": "reconcile"} },
		"status label": func(v *Values) { v.Shoot.Labels = map[string]string{"shoot.gardener.cloud/status": "healthy"} },
		"seed's status": func(v *Values) {
			v.Seed.Status.LastOperation = &corev1beta1.LastOperation{LastUpdateTime: metav1.NewTime(time.Unix(1, 0))}
		},
	} {
		if text(change) != same {
			t.Errorf("%s changes the Cluster", name)
		}
	}
	if text(func(v *Values) {
		v.Shoot.Spec.Region = "other"
		v.CloudProfile.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte("{}")}
	}) == same {
		t.Error("a change of the specification does not change the Cluster")
	}
}

// TestStatusesOnlyInRestorations checks that only restorations write the statuses of extension objects.
func TestStatusesOnlyInRestorations(t *testing.T) {
	for restores, want := range map[bool]int{false: 0, true: 8} {
		count := 0
		for _, object := range Access("shoot--dev--one", true, restores) {
			role, is := object.(*rbacv1.Role)
			if !is {
				continue
			}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					if strings.HasSuffix(resource, "/status") && rule.APIGroups[0] == "extensions.gardener.cloud" {
						count++
					}
				}
			}
		}
		if count != want {
			t.Errorf("restores %t: the account writes the statuses of %d kinds instead of %d", restores, count, want)
		}
	}
}
