package providerlocal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// newWorker returns a Worker with a pool of two machines.
func (w *world) newWorker() *extensionsv1alpha1.Worker {
	w.Helper()
	return read(w, &extensionsv1alpha1.Worker{}, `metadata: {name: blue}
spec:
  type: local
  region: local
  secretRef: {name: cloudprovider, namespace: `+w.shoot+`}
  pools:
  - {name: pool, minimum: 2, maximum: 2, maxSurge: 1, maxUnavailable: 0, machineType: small, machineImage: {name: linux, version: 1.0.0},
     userDataSecretRef: {name: user-data, key: cloud_config}, nodeAgentSecretName: one}
`)
}

// machines returns the Nodes that are machines of the Shoot.
func (w *world) machines() map[string]*corev1.Node {
	w.Helper()
	var nodes corev1.NodeList
	kit.Must(w, w.List(w.Context(), &nodes, client.MatchingLabels{"machine-provider": "local"}))
	found := map[string]*corev1.Node{}
	for i := range nodes.Items {
		if strings.HasPrefix(nodes.Items[i].Name, "machine-"+w.shoot+"-") {
			found[nodes.Items[i].Name] = &nodes.Items[i]
		}
	}
	return found
}

// reported returns the machines in the status with their phases.
func (w *world) reported(object *extensionsv1alpha1.Worker) (phases map[string]string, simulated bool) {
	w.Helper()
	status := &providerlocalv1alpha1.WorkerStatus{}
	kit.Must(w, json.Unmarshal(object.Status.ProviderStatus.Raw, status))
	phases = map[string]string{}
	for _, m := range status.Machines {
		phases["machine-"+m.Name] = m.Phase + " " + m.ImageVersion
	}
	return phases, status.Simulated
}

// ready waits until the wanted number of machines of one version is ready, and the status contains exactly these machines.
func (w *world) ready(object *extensionsv1alpha1.Worker, count int, version string) []string {
	w.Helper()
	var names []string
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("%d machines of version %s are ready", count, version), func() string {
		kit.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		phases, simulated := w.reported(object)
		names = slices.Sorted(maps.Keys(w.machines()))
		if len(names) != count || len(phases) != count || !simulated {
			return fmt.Sprintf("%v, reported %v\n%s", names, phases, w.bundles(object))
		}
		for _, name := range names {
			if phases[name] != "Running "+version {
				return fmt.Sprintf("%v, reported %v", names, phases)
			}
		}
		return ""
	})
	return names
}

// TestWorker runs a pool through its life cycle: created, scaled, rolled out with a drain, repaired, failed, moved to
// another seed, hibernated, deleted.
func TestWorker(t *testing.T) {
	w := newWorld(t)
	object := w.newWorker()
	w.create(object)
	w.succeeded(object, created)
	w.ready(object, 2, "1.0.0")
	if got := object.Status.MachineDeployments; len(got) != 1 || got[0].Name != w.shoot+"-pool-z1" || got[0].Minimum != 2 || object.Status.MachineDeploymentsLastUpdateTime == nil {
		t.Errorf("the deployments are %+v", got)
	}
	w.healthy(object)

	w.change(object, constants.OperationReconcile, func() { object.Spec.Pools[0].Minimum, object.Spec.Pools[0].Maximum = 3, 3 })
	w.succeeded(object, reconciled)
	w.ready(object, 3, "1.0.0")
	w.change(object, constants.OperationReconcile, func() { object.Spec.Pools[0].Minimum, object.Spec.Pools[0].Maximum = 1, 1 })
	w.succeeded(object, reconciled)
	before := w.ready(object, 1, "1.0.0")

	w.rollOut(object, before[0])
	w.repair(object)

	w.change(object, constants.OperationReconcile, func() { object.Spec.Pools[0].MachineImage.Version = "9.9.9" })
	w.failed(object, problem, "uses version 9.9.9 of the machine image linux")
	w.change(object, constants.OperationReconcile, func() { object.Spec.Pools[0].MachineImage.Version = "1.1.0" })
	w.succeeded(object, reconciled)
	before = w.ready(object, 1, "1.1.0")

	object = migrated(w, object, func() *extensionsv1alpha1.Worker {
		fresh := w.newWorker()
		fresh.Spec.Pools = object.Spec.Pools
		return fresh
	})
	if after := w.ready(object, 1, "1.1.0"); !slices.Equal(before, after) {
		t.Errorf("the machines %v have become %v", before, after)
	}

	w.rest()
	w.requests.Forget()
	w.rest()
	if sent := w.requests.All(); len(sent) > 0 {
		t.Errorf("requests at rest: %v", sent)
	}

	w.hibernate(true)
	w.change(object, constants.OperationReconcile, func() {})
	w.succeeded(object, reconciled)
	if left := w.machines(); len(left) != 0 {
		t.Errorf("a hibernated Shoot has the machines %v", left)
	}
	w.hibernate(false)
	w.change(object, constants.OperationReconcile, func() {})
	w.succeeded(object, reconciled)
	w.ready(object, 1, "1.1.0")
	w.gone(object)
	if left := w.machines(); len(left) != 0 {
		t.Errorf("the machines %v still exist", left)
	}
}

// healthy waits until the Worker reports that all nodes are ready.
func (w *world) healthy(object *extensionsv1alpha1.Worker) {
	w.Helper()
	kit.Eventually(w, "the Worker reports that its nodes are ready", func() string {
		kit.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		for _, condition := range object.Status.Conditions {
			if condition.Type == "EveryNodeReady" && condition.Status == "True" {
				return ""
			}
		}
		return fmt.Sprintf("%+v", object.Status.Conditions)
	})
}

// rollOut changes the version of the pool's machine image. The old machine runs a Pod whose disruption budget forbids its
// eviction. Both machines exist until the budget allows the eviction.
func (w *world) rollOut(object *extensionsv1alpha1.Worker, old string) {
	w.Helper()
	labels := map[string]string{"app": "user"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot, Name: "user", Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: old, Containers: []corev1.Container{{Name: "user", Image: "registry.example.org/user:v1"}}, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	kit.Must(w, w.Create(w.Context(), pod))
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.shoot, Name: "user"}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, MinAvailable: ptr.To(intstr.FromInt32(1)),
	}}
	kit.Must(w, w.Create(w.Context(), budget))
	kit.Eventually(w, "the budget counts the Pod", func() string {
		kit.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(budget), budget))
		if budget.Status.ObservedGeneration != budget.Generation || budget.Status.CurrentHealthy != 1 {
			return fmt.Sprintf("%+v", budget.Status)
		}
		return ""
	})
	w.change(object, constants.OperationReconcile, func() { object.Spec.Pools[0].MachineImage.Version = "1.1.0" })
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the old machine is drained, and a new one is ready", func() string {
		kit.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		phases, _ := w.reported(object)
		machines := w.machines()
		if len(machines) != 2 || machines[old] == nil || !machines[old].Spec.Unschedulable || phases[old] != "Draining 1.0.0" {
			return fmt.Sprintf("reported %v\n%s", phases, w.bundles(object))
		}
		return ""
	})
	kit.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		w.Error("a Pod was evicted in violation of its budget")
	}
	w.refusesEvictions(object, old)
	kit.Must(w, w.Delete(w.Context(), budget))
	w.succeeded(object, reconciled)
	w.ready(object, 1, "1.1.0")
	w.missing(pod)
}

// refusesEvictions checks that machines are created while the eviction of a Pod from another one fails, and that the Worker says why.
func (w *world) refusesEvictions(object *extensionsv1alpha1.Worker, old string) {
	w.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "refuses-evictions"}}
	policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no evictions today"}},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	kit.Must(w, w.Create(w.Context(), policy))
	kit.Must(w, w.Create(w.Context(), binding))
	w.failed(object, "", "no evictions today")
	w.change(object, constants.OperationReconcile, func() { object.Spec.Pools[0].Minimum, object.Spec.Pools[0].Maximum = 2, 2 })
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "a machine is created while an eviction fails", func() string {
		machines := w.machines()
		if len(machines) != 3 || machines[old] == nil {
			return fmt.Sprintf("%v\n%s", slices.Sorted(maps.Keys(machines)), w.bundles(object))
		}
		return ""
	})
	kit.Must(w, w.Delete(w.Context(), binding))
	kit.Must(w, w.Delete(w.Context(), policy))
	w.change(object, constants.OperationReconcile, func() { object.Spec.Pools[0].Minimum, object.Spec.Pools[0].Maximum = 1, 1 })
}

// repair deletes the Node of a machine. The ManagedResource of the machine creates the same Node again.
func (w *world) repair(object *extensionsv1alpha1.Worker) {
	w.Helper()
	machines := w.machines()
	for name, node := range machines {
		kit.Must(w, w.Delete(w.Context(), node))
		kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the machine is created again", func() string {
			again := w.machines()[name]
			if again == nil || again.UID == node.UID {
				return "it does not exist"
			}
			if !slices.ContainsFunc(again.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				w.touch(again)
				return "it is not ready"
			}
			return ""
		})
	}
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the machines are reported as running", func() string {
		kit.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(object), object))
		phases, _ := w.reported(object)
		for name, node := range w.machines() {
			if phases[name] != "Running 1.1.0" {
				w.touch(node)
				return fmt.Sprintf("reported %v", phases)
			}
		}
		return ""
	})
	w.ready(object, len(machines), "1.1.0")
}

// touch changes a Node. KWOK ignores a Node that is created again before KWOK has processed the deletion, until the Node
// changes.
func (w *world) touch(node *corev1.Node) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"test/touched":%q}}}`, node.ResourceVersion)
	kit.Must(w, client.IgnoreNotFound(w.Patch(w.Context(), node, client.RawPatch("application/merge-patch+json", patch))))
}

// hibernate writes the Cluster as gardenlet does when the Shoot is hibernated or woken up.
func (w *world) hibernate(hibernated bool) {
	w.Helper()
	cluster := &extensionsv1alpha1.Cluster{}
	kit.Must(w, w.Get(w.Context(), client.ObjectKey{Name: w.shoot}, cluster))
	kit.Change(w, w.Client, cluster, func() {
		shoot := map[string]any{}
		kit.Must(w, json.Unmarshal(cluster.Spec.Shoot.Raw, &shoot))
		spec, is := shoot["spec"].(map[string]any)
		if !is {
			w.Fatal("the Shoot has no spec")
		}
		spec["hibernation"] = map[string]any{"enabled": hibernated}
		content, err := json.Marshal(shoot)
		kit.Must(w, err)
		cluster.Spec.Shoot = runtime.RawExtension{Raw: content}
	})
}
