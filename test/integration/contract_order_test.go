package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// everyKind has one object of every kind that gardener-resource-manager orders, except kinds that are no longer
// served. They live in a namespace of the same set, and the Pod uses its ServiceAccount.
const everyKind = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks: [{name: a.example.org, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, clientConfig: {url: "https://example.org"}, namespaceSelector: {matchLabels: {no: such}}, rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NS}
webhooks: [{name: a.example.org, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, clientConfig: {url: "https://example.org"}, namespaceSelector: {matchLabels: {no: such}}, rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.local.NS.example.org}
spec: {group: local.NS.example.org, version: v1, groupPriorityMinimum: 100, versionPriority: 100}
---
apiVersion: NS.example.org/v1
kind: Twin
metadata: {name: x, namespace: NS-all}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, namespace: NS-all}, spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: NS}, spec: {controller: example.org/x}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: x, namespace: NS-all}, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: JOBTEMPLATE}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: x, namespace: NS-all}, spec: {suspend: true, template: JOBTEMPLATE}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, namespace: NS-all}, spec: {replicas: 0, serviceName: x, selector: {matchLabels: {app: x}}, template: PODTEMPLATE}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x, namespace: NS-all}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nope}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: NS-all}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: PODTEMPLATE}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x, namespace: NS-all}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: PODTEMPLATE}}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: x, namespace: NS-all}, spec: {replicas: 0, selector: {app: x}, template: PODTEMPLATE}}
---
{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: NS-all}, spec: {serviceAccountName: x, automountServiceAccountToken: false, priorityClassName: NS, containers: [{name: c, image: c}]}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x, namespace: NS-all}, spec: {selector: {matchLabels: {app: x}}, template: PODTEMPLATE}}
---
{apiVersion: v1, kind: Service, metadata: {name: x, namespace: NS-all}, spec: {ports: [{port: 80}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x, namespace: NS-all}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x, namespace: NS-all}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS}}
---
TWINS
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, namespace: NS-all}, spec: {storageClassName: NS, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {storageClassName: NS-none, capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS}, provisioner: example.org/none}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: NS-all}}
---
{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: NS-all}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, namespace: NS-all}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x, namespace: NS-all}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: x}}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: x, namespace: NS-all}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: x, namespace: NS-all}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x, namespace: NS-all}, spec: {podSelector: {}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: NS-all}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS}, value: 5}
`

// waves are the kinds of everyKind, in the order in which they must be applied.
var waves = []string{
	"namespaces priorityclasses",
	"customresourcedefinitions",
	"clusterrolebindings clusterroles configmaps ingressclasses limitranges networkpolicies persistentvolumeclaims persistentvolumes " +
		"poddisruptionbudgets resourcequotas rolebindings roles secrets serviceaccounts services storageclasses",
	"cronjobs daemonsets deployments horizontalpodautoscalers ingresses jobs pods replicasets replicationcontrollers statefulsets",
	"twins",
	"apiservices mutatingwebhookconfigurations validatingwebhookconfigurations",
}

// inWaves sorts the requests, which must arrive wave by wave. A request that was repeated because its object changed
// just before its deletion counts once.
func inWaves(sent []sentRequest, sizes []string) []string {
	var result []string
	seen := map[string]bool{}
	sent = slices.DeleteFunc(sent, func(request sentRequest) bool {
		again := seen[request.path]
		seen[request.path] = true
		return again
	})
	for _, wave := range sizes {
		var resources []string
		for range min(len(strings.Fields(wave)), len(sent)) {
			parts := strings.Split(sent[0].path, "/")
			resources, sent = append(resources, parts[len(parts)-2]), sent[1:]
		}
		slices.Sort(resources)
		result = append(result, strings.Join(resources, " "))
	}
	return append(result, fmt.Sprint("and ", len(sent), " more"))
}

// TestContractOrderOfKinds applies and deletes one object of every kind.
func TestContractOrderOfKinds(t *testing.T) {
	f := newFixture(t)
	manifest := strings.NewReplacer("TWINS", strings.ReplaceAll(twins, "GROUP", "NS.example.org"), "JOBTEMPLATE", jobTemplate,
		"PODTEMPLATE", podTemplate).Replace(everyKind)
	mr := f.manage("set", f.here(manifest))
	bodies := f.keepBodies()
	f.reconcileOK("set")
	if got := inWaves(bodies.of(http.MethodPatch), waves); !slices.Equal(got, append(slices.Clone(waves), "and 0 more")) {
		t.Errorf("applied in the order\n%s", strings.Join(got, "\n"))
	}

	f.delete(mr)
	deletions := slices.DeleteFunc(bodies.of(http.MethodDelete), func(r sentRequest) bool { return strings.Contains(r.query, "dryRun") })
	backwards := slices.Clone(waves)
	slices.Reverse(backwards)
	last := len(backwards) - 1
	backwards[last-1], backwards[last] = backwards[last], backwards[last-1] // namespaces before definitions
	if got := inWaves(slices.Clone(deletions), backwards); !slices.Equal(got, append(backwards, "and 0 more")) {
		t.Errorf("deleted in the order\n%s", strings.Join(got, "\n"))
	}
	for _, deletion := range deletions {
		workload := strings.HasPrefix(deletion.path, "/apis/apps/") || strings.HasPrefix(deletion.path, "/apis/batch/")
		if foreground := strings.Contains(deletion.body, `"propagationPolicy":"Foreground"`); foreground != workload ||
			strings.Contains(deletion.body, "propagationPolicy") != workload {
			t.Errorf("%s is deleted with %s", deletion.path, deletion.body)
		}
		wantContains(t, deletion.body, `"preconditions":{"uid":"`, `"resourceVersion":"`)
	}
}

// TestContractClaimsGoFirst: the claims of a StatefulSet are deleted before it. They are found by its selector and
// their names. A StatefulSet without claim templates has no claims.
func TestContractClaimsGoFirst(t *testing.T) {
	f := newFixture(t)
	stateful := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: NAME, namespace: NS}\nspec: {replicas: 0, serviceName: x, " +
		"selector: {matchLabels: {app: x}}, template: " + podTemplate + "CLAIMS}\n"
	mr := f.manage("set", f.here(strings.NewReplacer("NAME", "with", "CLAIMS", ", volumeClaimTemplates: ["+claim+"]").Replace(stateful)),
		f.here(strings.NewReplacer("NAME", "without", "CLAIMS", "").Replace(stateful)))
	f.change(mr, func() { mr.Spec.DeletePersistentVolumeClaims = ptr.To(true) })
	f.reconcileOK("set")
	for _, name := range []string{"with", "without"} {
		must(t, f.client.Create(f.ctx, toObject(f, f.here("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-"+name+"-0, namespace: NS, "+
			"labels: {app: x}}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"), &corev1.PersistentVolumeClaim{})))
	}
	bodies := f.keepBodies()
	f.delete(mr)
	var order []string
	for _, request := range bodies.of(http.MethodDelete) {
		order = append(order, request.path[strings.LastIndex(request.path, "/")+1:])
	}
	// A deletion is retried if the StatefulSet's controller writes its status at the same time.
	order = slices.DeleteFunc(order, func(deletion string) bool { return deletion == "without" })
	if order = slices.Compact(order); !slices.Equal(order, []string{"data-with-0", "with"}) {
		t.Errorf("deleted in the order %q", order)
	}
}

// TestContractGarbageCollectable: with the garbage collector enabled, ConfigMaps and Secrets with its label are left
// to it.
func TestContractGarbageCollectable(t *testing.T) {
	const label = "resources.gardener.cloud/garbage-collectable-reference"
	for _, enabled := range []bool{true, false} {
		for _, deleting := range []bool{true, false} {
			t.Run(fmt.Sprintf("enabled=%t/deleting=%t", enabled, deleting), func(t *testing.T) {
				f := newFixture(t)
				f.reconciler.Options.CollectsGarbage = enabled
				objects := map[string]bool{} // whether the garbage collector is responsible
				add := func(kind, name, labels string, collectable bool) {
					objects[f.here("apiVersion: v1\nkind: "+kind+"\nmetadata: {name: "+name+", namespace: NS, labels: {"+labels+"}}\n")] = collectable
				}
				for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount"} {
					add(kind, "labelled", label+`: "true"`, kind != "ServiceAccount")
					add(kind, "otherwise", label+`: "1"`, kind != "ServiceAccount")
					add(kind, "not", label+`: "false"`, false)
					add(kind, "plain", "", false)
				}
				var manifests []string
				for manifest := range objects {
					manifests = append(manifests, manifest)
				}
				mr := f.manage("gc", manifests...)
				f.reconcileOK("gc")
				if deleting {
					f.delete(mr)
				} else {
					f.secret("gc", "objects.yaml", "# nothing")
					f.reconcileUntil("gc", "all are deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return len(mr.Status.Resources) == 0 })
				}
				for manifest, collectable := range objects {
					object := f.parse(manifest)
					err := f.client.Get(f.ctx, client.ObjectKeyFromObject(object), object)
					if left := err == nil; left != (collectable && enabled) {
						t.Errorf("left to the garbage collector: %t: %s", left, manifest)
					}
				}
			})
		}
	}
}

// TestContractLabelledLater: the label of the live object decides.
func TestContractLabelledLater(t *testing.T) {
	f := newFixture(t)
	f.reconciler.Options.CollectsGarbage = true
	mr := f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.edit(f.configMap("one", ""), "somebody", func(object *unstructured.Unstructured) {
		object.SetLabels(map[string]string{resourcesv1alpha1.LabelGarbageCollectableReference: "true"})
	})
	f.delete(mr)
	f.wantConfigMap("one", "1")
}

// TestContractPendingDeletion: the message names the objects that still exist, and the ManagedResource is reconciled
// again soon.
func TestContractPendingDeletion(t *testing.T) {
	f := newFixture(t)
	stuck := f.here("apiVersion: v1\nkind: Service\nmetadata: {name: stuck, namespace: NS, finalizers: [example.org/stuck]}\nspec: {ports: [{port: 80}]}\n")
	mr := f.manage("set", f.configMap("one", "1"), stuck)
	f.reconcileOK("set")
	f.beginDeletion(mr)
	mr, result, err := f.reconcile("set")
	must(t, err)
	got := applied(mr)
	if got.Status != resourcesv1alpha1.ConditionProgressing || got.Reason != "DeletionPending" || result.RequeueAfter > 30*time.Second || result.RequeueAfter <= 0 {
		t.Errorf("ResourcesApplied is %+v, the requeue interval is %s", got, result.RequeueAfter)
	}
	wantContains(t, got.Message, "Deletion is still pending (1): v1/Service/"+f.namespace+"/stuck")
	f.wantNoConfigMap("one")
	if got := entries(mr); !slices.Equal(got, []string{"v1 Service " + f.namespace + " stuck"}) {
		t.Errorf("the inventory is %v", got)
	}
	must(t, f.client.Patch(f.ctx, f.object(stuck), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	f.reconcileUntil("set", "the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
}

// TestContractFinalizersStayWithoutTime: without a duration, or with a duration of zero, no finalizers are removed.
func TestContractFinalizersStayWithoutTime(t *testing.T) {
	f := newFixture(t)
	stuck := func(name, annotations string) string {
		return f.marked(name, "finalizers: [example.org/stuck]\n  annotations: {"+annotations+"}")
	}
	mr := f.manage("set", stuck("zero", "resources.gardener.cloud/finalize-deletion-after: 0s"), stuck("never", "a: b"))
	f.reconcileOK("set")
	must(t, f.client.Delete(f.ctx, mr))
	for range 3 {
		f.reconcileOnce("set")
		f.clock.SetTime(time.Now().Add(1000 * time.Hour))
	}
	for _, name := range []string{"zero", "never"} {
		live := f.wantConfigMap(name, "1")
		if len(live.Finalizers) != 1 || live.DeletionTimestamp == nil {
			t.Errorf("%s: finalizers %v, deleted %v", name, live.Finalizers, live.DeletionTimestamp)
		}
		f.patch(f.configMap(name, ""), "somebody", `{"metadata":{"finalizers":null}}`)
	}
	f.reconcileUntil("set", "the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
}

// TestContractKindThatIsGone: objects of a kind that is no longer served count as deleted.
func TestContractKindThatIsGone(t *testing.T) {
	f := newFixture(t)
	group := "gone.NS.example.org"
	definitions := f.manage("definitions", f.here(strings.ReplaceAll(twins, "GROUP", group)))
	f.reconcileOK("definitions")
	mr := f.manage("set", f.here("apiVersion: "+group+"/v1\nkind: Twin\nmetadata: {name: x, namespace: NS}\n"), f.configMap("one", "1"))
	f.reconcileOK("set")
	f.delete(definitions)
	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	f.reconcileUntil("set", "the inventory no longer has the object", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return applied(mr).Status == resourcesv1alpha1.ConditionTrue && len(mr.Status.Resources) == 1
	})
	f.wantConfigMap("one", "2")
	f.delete(mr)
}
