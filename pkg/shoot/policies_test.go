package shoot

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// othersServices are labels for Services that other programs create: the etcd operator and extensions.
var othersServices = []string{"to-etcd-main-client-tcp-2379", "to-etcd-events-client-tcp-2379", "to-extensions-all-webhook-targets"}

// TestLabelsOfPoliciesHaveEffect checks that each label by which a Pod of a control plane may connect to a Service selects the Pod in a policy. A label
// that no policy selects is a connection that is dropped.
func TestLabelsOfPoliciesHaveEffect(t *testing.T) {
	for _, mode := range exposure.Modes() {
		in := upWithWorkers(t, exposedBy(mode))
		pods, services := map[string]map[string]string{}, []*corev1.Service{}
		for _, bundle := range planOf(t, in).Bundles {
			for _, object := range bundle.Objects {
				if object.GetNamespace() != in.Namespace {
					continue
				}
				if service, is := object.(*corev1.Service); is {
					services = append(services, service)
				}
				if template := templateOf(object); template != nil {
					pods[object.GetName()] = template.Labels
				}
			}
		}
		if len(pods) < 5 {
			t.Fatalf("%s: only Pods of %v were found", mode, pods)
		}
		var selectors []labels.Selector
		for _, service := range services {
			result := netpol.Desired(netpol.Read(service), netpol.Input{Namespaces: map[string]netpol.Namespace{
				in.Namespace: {Labels: map[string]string{constants.LabelGardenRole: constants.RoleShoot}},
			}}, netpol.Config{})
			for _, policy := range result.Policies {
				if len(policy.Spec.Egress) > 0 {
					selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
					if err != nil {
						t.Fatal(err)
					}
					selectors = append(selectors, selector)
				}
			}
		}
		for name, all := range pods {
			for _, key := range slices.Sorted(maps.Keys(all)) {
				what, is := strings.CutPrefix(key, "networking.resources.gardener.cloud/")
				selected := slices.ContainsFunc(selectors, func(selector labels.Selector) bool {
					return selector.Matches(labels.Set{key: all[key]})
				})
				if is && !selected && !slices.Contains(othersServices, what) {
					t.Errorf("%s: Pods of %s have the label %s, but no Service of the control plane", mode, name, what)
				}
			}
		}
	}
}

func templateOf(object client.Object) *corev1.PodTemplateSpec {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template
	case *appsv1.StatefulSet:
		return &object.Spec.Template
	}
	return nil
}
