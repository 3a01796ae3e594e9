package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// memoryShown is the minimum memory, in KiB, of programs that are logged.
const memoryShown = 5 << 10

// TestShoots creates many Shoots on one node at the same time, and logs when each was ready and the memory of the
// programs.
func TestShoots(t *testing.T) {
	if *shoots == 0 {
		t.Skip("takes minutes and gigabytes: -landscape.shoots 10")
	}
	c, f := onFleet(t)
	c.reduceRequests()
	must(t, f.Up(c.ctx))
	before := c.memory("with one Shoot")

	keys := make([]client.ObjectKey, 0, *shoots)
	for i := range *shoots - 1 {
		keys = append(keys, client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: fmt.Sprintf("many-%02d", i+1)})
	}
	began := time.Now()
	times, err := f.CreateShoots(c.ctx, keys...)
	must(t, err)
	slices.Sort(times)
	t.Logf("%d further Shoots are ready after %s: the first one after %s, half of them after %s, the last one after %s",
		len(keys), time.Since(began).Round(time.Second), times[0], times[len(times)/2], times[len(times)-1])
	after := c.memory(fmt.Sprintf("with %d Shoots", *shoots))
	t.Logf("%d MiB for each further Shoot", (after-before)/len(keys)/1024)
}

// memory logs the memory of the programs, and returns the sum in KiB.
func (c *cluster) memory(when string) int {
	c.t.Helper()
	uses, err := base.Memory()
	must(c.t, err)
	total, lines := 0, []string{}
	for _, use := range uses {
		total += use.KiB
		if use.KiB >= memoryShown {
			lines = append(lines, fmt.Sprintf("%4d x %-28s %6d MiB", use.Processes, use.Program, use.KiB/1024))
		}
	}
	c.t.Logf("Memory %s: %d MiB\n%s", when, total/1024, strings.Join(lines, "\n"))
	return total
}

// reduceRequests reduces the requests of control plane Pods, as a VerticalPodAutoscaler would do for idle ones. A small
// node has no room for their initial requests.
func (c *cluster) reduceRequests() {
	c.t.Helper()
	var patches []string
	for name, quantity := range smallRequests() {
		patches = append(patches, fmt.Sprintf(`JSONPatch{op: "add", path: "/spec/containers/0/resources/requests/%s", value: %q}`, name, quantity.String()))
	}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "reduce-requests"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelGardenRole: constants.RoleShoot}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "requests", Expression: "has(object.spec.containers[0].resources) && has(object.spec.containers[0].resources.requests)",
			}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[" + strings.Join(patches, ", ") + "]"},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	for _, object := range []client.Object{policy, binding} {
		must(c.t, c.Create(c.ctx, object))
		c.t.Cleanup(func() { must(c.t, client.IgnoreNotFound(c.Delete(context.Background(), object))) })
	}
}
