package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// eventuallyTakenIn waits until the controllers of the control plane have processed the current state of objects.
func (f *fixture) eventuallyTakenIn(objects ...*unstructured.Unstructured) {
	f.Helper()
	for _, object := range objects {
		f.eventually(object.GetKind()+" "+object.GetName()+" is seen by its controller", func() bool {
			must(f, f.client.Get(f.ctx, client.ObjectKeyFromObject(object), object))
			switch object.GetKind() {
			case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "PodDisruptionBudget":
				observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
				return observed == object.GetGeneration()
			case "CustomResourceDefinition":
				return established(object)
			case "Namespace":
				account := types.NamespacedName{Namespace: object.GetName(), Name: "default"}
				return f.client.Get(f.ctx, account, &corev1.ServiceAccount{}) == nil
			}
			return true // no controller writes to it
		})
	}
}

// ofInventory returns the objects in the inventory of a ManagedResource.
func (f *fixture) ofInventory(mr *resourcesv1alpha1.ManagedResource) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, reference := range mr.Status.Resources {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(reference.APIVersion)
		object.SetKind(reference.Kind)
		object.SetNamespace(reference.Namespace)
		object.SetName(reference.Name)
		objects = append(objects, object)
	}
	return objects
}

func (f *fixture) wantQuiet(name string) {
	f.Helper()
	for i := range 2 {
		f.requests.writes()
		before := &resourcesv1alpha1.ManagedResource{}
		must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, before))
		after, result, err := f.reconcile(name)
		if w := f.requests.writes(); len(w) > 0 {
			f.Errorf("reconcile %d writes %v", i+2, w)
		}
		if after.ResourceVersion != before.ResourceVersion {
			f.Errorf("reconcile %d writes the status: %s", i+2, applied(after).Message)
		}
		if err != nil || !atRest(result) {
			f.Errorf("reconcile %d: %v %v", i+2, result, err)
		}
	}
}

// atRest reports whether the next reconcile happens at the next event or, if not every change is an event, at the end
// of the sync period.
func atRest(result reconcile.Result) bool {
	return result.RequeueAfter == 0 || result.RequeueAfter == syncPeriod
}

// Kinds at rest, with and without forced labels and annotations.
func TestRest(t *testing.T) {
	for name, manifest := range map[string]string{
		"DaemonSet": `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: x, namespace: NS, creationTimestamp: null, labels: {app: x}}
spec:
  selector: {matchLabels: {app: x}}
  template: {metadata: {creationTimestamp: null, labels: {app: x}}, spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 1000m, memory: 1024Mi}}}]}}
status: {currentNumberScheduled: 0}`,
		"Deployment": `apiVersion: apps/v1
kind: Deployment
metadata: {name: x, namespace: NS, annotations: null}
spec:
  selector: {matchLabels: {app: x}}
  strategy: {}
  template: {metadata: {labels: {app: x}, annotations: null}, spec: {volumes: null, initContainers: [], containers: [{name: c, image: c, env: null, args: [], securityContext: {}, resources: {requests: {cpu: 1, memory: 1.5Gi}}, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}}
status: {}`,
		"Service": `apiVersion: v1
kind: Service
metadata: {name: x, namespace: NS}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {}, ports: [{port: 80, name: a}, {port: 81, name: b, targetPort: 81}]}
status: {loadBalancer: {}}`,
		"Job": `apiVersion: batch/v1
kind: Job
metadata: {name: x, namespace: NS}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}`,
		"CronJob": `apiVersion: batch/v1
kind: CronJob
metadata: {name: x, namespace: NS}
spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}`,
		"StatefulSet": `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: x, namespace: NS}
spec:
  replicas: 0
  serviceName: x
  selector: {matchLabels: {app: x}}
  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: c}]}}
  volumeClaimTemplates: [{metadata: {name: d, creationTimestamp: null}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}, status: {}}]`,
		"HPAv1": `apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: x, namespace: NS}
spec: {maxReplicas: 3, targetCPUUtilizationPercentage: 80, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nope}}`,
		"HPAv2": `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: x, namespace: NS}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nope}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}`,
		"PDB": `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: x, namespace: NS}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: x}}}
status: {currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0}`,
		"PVC": `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: x, namespace: NS}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
status: {}`,
		"ConfigMapNull": `apiVersion: v1
kind: ConfigMap
metadata: {name: x, namespace: NS, labels: {}, annotations: {}}
data: {a: null, b: "1"}
binaryData: null`,
		"SecretNull": `apiVersion: v1
kind: Secret
metadata: {name: x, namespace: NS}
data: {a: null, b: eA==}
stringData: null
type: Opaque`,
		"ServiceAccount": `apiVersion: v1
kind: ServiceAccount
metadata: {name: x, namespace: NS}
imagePullSecrets: [{name: a}]
automountServiceAccountToken: false`,
		"Namespace": `apiVersion: v1
kind: Namespace
metadata: {name: zz-NS}
spec: {finalizers: [kubernetes]}
status: {phase: Active}`,
		"NetworkPolicy": `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: x, namespace: NS}
spec: {podSelector: {}, ingress: [{}], policyTypes: [Ingress]}`,
		"AggregatedClusterRole": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: zz-NS}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}]}
rules: []`,
		"Webhook": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: zz-NS}
webhooks: [{name: a.example.org, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, clientConfig: {url: "https://example.org"}, namespaceSelector: {matchLabels: {no: such}}, rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}]`,
		"PriorityClass": `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: zz-NS}
value: 5`,
		"ListNoItems": "apiVersion: v1\nkind: List\nmetadata: {}\nitems: []",
		"ListNull":    "apiVersion: v1\nkind: List\nmetadata: {}\nitems: null",
		"CRD": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.NS.example.org, creationTimestamp: null}
spec:
  group: NS.example.org
  scope: Namespaced
  names: {plural: foos, kind: Foo}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
---
apiVersion: NS.example.org/v1
kind: Foo
metadata: {name: a, namespace: NS, creationTimestamp: null}
spec: {a: null, b: {}, c: [], template: {metadata: {creationTimestamp: null}}, n: 1.0, big: 12345678901234567890, list: [{name: a},{name: a}]}
status: {}`,
	} {
		for _, force := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/force=%t", name, force), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				mr := f.manage("set", strings.ReplaceAll(manifest, "NS", f.namespace))
				if force {
					f.change(mr, func() { mr.Spec.ForceOverwriteLabels, mr.Spec.ForceOverwriteAnnotations = ptr.To(true), ptr.To(true) })
				}
				mr, result, err := f.reconcile("set")
				if err != nil || result.RequeueAfter != syncPeriod || applied(mr).Status != "True" {
					t.Errorf("first: %v %v %v", result, err, applied(mr).Message)
				}
				f.eventuallyTakenIn(f.ofInventory(mr)...)
				f.wantQuiet("set")
				f.delete(mr)
			})
		}
	}
}

// A custom resource without a status subresource whose manifest has a status.
func TestStatusWithoutSubresource(t *testing.T) {
	f := newFixture(t)
	m := strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: quxes.NS.example.org}
spec: {group: NS.example.org, scope: Namespaced, names: {plural: quxes, kind: Qux}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}
---
apiVersion: NS.example.org/v1
kind: Qux
metadata: {name: a, namespace: NS}
spec: {a: 1}
status: {phase: Pending}`, "NS", f.namespace)
	mr := f.manage("set", m)
	f.reconcileOK("set")
	u := f.getObject(f.namespace+".example.org/v1", "Qux", "a")
	must(t, f.client.Patch(f.ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`)), client.FieldOwner("controller")))
	f.requests.writes()
	f.reconcileOK("set")
	t.Log(f.requests.writes())
	u = f.getObject(f.namespace+".example.org/v1", "Qux", "a")
	if p, _, _ := unstructured.NestedString(u.Object, "status", "phase"); p != "Running" {
		t.Errorf("the controller's status was reset to %q", p)
	}
	f.delete(mr)
}
