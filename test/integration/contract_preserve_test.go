package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

type serviceSpec = corev1.ServiceSpec

// serviceChanges change Services from one spec to another, and check the values that the API server allocated.
var serviceChanges = map[string]struct {
	from, live, to string // live is a change by another client in between
	check          func(before, after serviceSpec) bool
}{
	"no type is ClusterIP, which keeps its address": {"ports: [{port: 80}]", "", "ports: [{port: 81}]",
		func(before, after serviceSpec) bool {
			return after.Type == "ClusterIP" && after.ClusterIP == before.ClusterIP && after.ClusterIP != ""
		}},
	"headless": {"clusterIP: None, ports: [{port: 80}]", "", "clusterIP: None, ports: [{port: 81}]",
		func(_, after serviceSpec) bool { return after.ClusterIP == "None" && after.Ports[0].Port == 81 }},
	"a renamed port keeps its node port": {"type: NodePort, ports: [{name: a, port: 80}]", "", "type: NodePort, ports: [{name: b, port: 80}]",
		func(before, after serviceSpec) bool {
			return after.Ports[0].Name == "b" && after.Ports[0].NodePort == before.Ports[0].NodePort
		}},
	"a port with another number keeps its node port": {"type: NodePort, ports: [{name: a, port: 80}]", "", "type: NodePort, ports: [{name: a, port: 81}]",
		func(before, after serviceSpec) bool {
			return after.Ports[0].Port == 81 && after.Ports[0].NodePort == before.Ports[0].NodePort
		}},
	"the manifest's node port": {"type: NodePort, ports: [{port: 80}]", "", "type: NodePort, ports: [{port: 80, nodePort: 30044}]",
		func(_, after serviceSpec) bool { return after.Ports[0].NodePort == 30044 }},
	"NodePort to LoadBalancer": {"type: NodePort, ports: [{port: 80}]", "", "type: LoadBalancer, ports: [{port: 80}]",
		func(before, after serviceSpec) bool {
			return after.Type == "LoadBalancer" && after.ClusterIP == before.ClusterIP && after.Ports[0].NodePort == before.Ports[0].NodePort
		}},
	"NodePort to ClusterIP": {"type: NodePort, ports: [{port: 80}]", "", "ports: [{port: 80}]",
		func(before, after serviceSpec) bool {
			return after.Type == "ClusterIP" && after.ClusterIP == before.ClusterIP && after.Ports[0].NodePort == 0
		}},
	"ClusterIP to ExternalName": {"ports: [{port: 80}]", "", "type: ExternalName, externalName: example.org",
		func(_, after serviceSpec) bool { return after.Type == "ExternalName" && after.ClusterIP == "" }},
	"ExternalName to ClusterIP": {"type: ExternalName, externalName: example.org", "", "ports: [{port: 80}]",
		func(_, after serviceSpec) bool {
			return after.Type == "ClusterIP" && after.ClusterIP != "" && after.ExternalName == ""
		}},
	"the load balancer's address": {"type: LoadBalancer, ports: [{port: 80}]", `{"spec":{"loadBalancerIP":"192.0.2.7"}}`, "type: LoadBalancer, ports: [{port: 81}]",
		func(_, after serviceSpec) bool { return after.LoadBalancerIP == "192.0.2.7" }},
	"the manifest's address stays": {"type: LoadBalancer, loadBalancerIP: 192.0.2.7, ports: [{port: 80}]", "", "type: LoadBalancer, ports: [{port: 81}]",
		func(before, after serviceSpec) bool {
			return before.LoadBalancerIP == "192.0.2.7" && after.LoadBalancerIP == "192.0.2.7" && after.Ports[0].Port == 81
		}},
	"another port for the health check": {"type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]", "",
		"type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30045, ports: [{port: 81}]",
		func(before, after serviceSpec) bool {
			return after.HealthCheckNodePort == before.HealthCheckNodePort && after.Ports[0].Port == 81
		}},
	"the health check's port": {"type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]", "",
		"type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 81}]",
		func(before, after serviceSpec) bool {
			return after.HealthCheckNodePort == before.HealthCheckNodePort && after.HealthCheckNodePort != 0 && after.Ports[0].Port == 81
		}},
}

func TestContractServices(t *testing.T) {
	for name, test := range serviceChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			manifest := func(spec string) string {
				return f.here("apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: NS}\nspec: {" + spec + "}\n")
			}
			get := func() serviceSpec {
				var service corev1.Service
				must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(f.object(manifest("")).Object, &service))
				return service.Spec
			}
			f.manage("set", manifest(test.from))
			f.reconcileOK("set")
			if test.live != "" {
				f.patch(manifest(""), "cloud-controller-manager", test.live)
			}
			before := get()
			f.secret("set", "objects.yaml", manifest(test.to))
			f.reconcileOK("set")
			if after := get(); !test.check(before, after) {
				t.Errorf("before\n%+v\nafter\n%+v", before, after)
			}
			f.wantQuiet("set")
		})
	}
}

// TestContractRestarts: the annotation that kubectl rollout restart writes stays, whichever client wrote it.
func TestContractRestarts(t *testing.T) {
	const apps, selector = "apiVersion: apps/v1\nkind: ", "\nmetadata: META\nspec: {selector: {matchLabels: {app: x}}, "
	for kind, text := range map[string]string{
		"Deployment":  apps + "Deployment" + selector + "template: " + podTemplate + "}\n",
		"DaemonSet":   apps + "DaemonSet" + selector + "template: " + podTemplate + "}\n",
		"StatefulSet": apps + "StatefulSet" + selector + "serviceName: x, template: " + podTemplate + "}\n",
		"CronJob": "apiVersion: batch/v1\nkind: CronJob\nmetadata: META\nspec: {schedule: \"0 0 1 1 *\", jobTemplate: {spec: {template: " +
			jobTemplate + "}}}\n",
	} {
		for _, manager := range []string{"kubectl-rollout", "kubectl-edit", "gardener-resource-manager"} {
			t.Run(kind+" by "+manager, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				manifest := func(more string) string {
					return f.here(strings.Replace(text, "META", "{name: x, namespace: NS"+more+"}", 1))
				}
				f.manage("set", manifest(""))
				f.reconcileOK("set")
				path := []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}
				if kind == "CronJob" {
					path = append([]string{"spec", "jobTemplate"}, path...)
				}
				f.edit(manifest(""), manager, func(object *unstructured.Unstructured) {
					must(t, unstructured.SetNestedField(object.Object, "now", path...))
				})
				f.secret("set", "objects.yaml", manifest(", labels: {new: change}"))
				f.reconcileOK("set")
				live := f.object(manifest(""))
				if at(live, path...) != "now" || live.GetLabels()["new"] != "change" {
					t.Errorf("the restart is %v, labels %v", at(live, path...), live.GetLabels())
				}
				f.wantQuiet("set")
			})
		}
	}
}

// TestContractRestartOfTheManifest: if the manifest has the annotation, the manifest's value applies.
func TestContractRestartOfTheManifest(t *testing.T) {
	f := newFixture(t)
	manifest := strings.Replace(f.web(""), "      labels:", "      annotations: {kubectl.kubernetes.io/restartedAt: manifest}\n      labels:", 1)
	f.manage("set", manifest)
	f.reconcileOK("set")
	f.patch(manifest, "kubectl-rollout", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`)
	f.reconcileOK("set")
	if got := f.liveDeployment().Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; got != "now" {
		t.Errorf("the Deployment was restarted at %q", got)
	}
}

// TestContractPreserveResources: with the annotation, only CPU and memory of existing containers stay.
func TestContractPreserveResources(t *testing.T) {
	resources := func(value string) string {
		return "resources: {requests: {cpu: " + value + ", memory: " + value + ", ephemeral-storage: " + value + "}, limits: {cpu: " + value +
			", memory: " + value + "}}"
	}
	pod := func(value, restart string) string {
		return "{metadata: {labels: {app: x}}, spec: {" + restart + "initContainers: [{name: i, image: i, " + resources(value) + "}], " +
			"containers: [{name: c, image: c, " + resources(value) + "}]}}"
	}
	for kind, text := range map[string]string{
		"Deployment":  "apiVersion: apps/v1\nkind: Deployment\nmetadata: META\nspec: {replicas: 0, selector: {matchLabels: {app: x}}, template: POD}\n",
		"DaemonSet":   "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: META\nspec: {selector: {matchLabels: {app: x}}, template: POD}\n",
		"StatefulSet": "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: META\nspec: {replicas: 0, serviceName: x, selector: {matchLabels: {app: x}}, template: POD}\n",
		"CronJob":     "apiVersion: batch/v1\nkind: CronJob\nmetadata: META\nspec: {schedule: \"0 0 1 1 *\", jobTemplate: {spec: {template: POD}}}\n",
	} {
		for _, preserve := range []string{"true", "1", "false"} {
			t.Run(kind+" "+preserve, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				restart, path := "", []string{"spec", "template", "spec"}
				if kind == "CronJob" {
					restart, path = "restartPolicy: Never, ", []string{"spec", "jobTemplate", "spec", "template", "spec"}
				}
				manifest := func(value, label string) string {
					meta := "{name: x, namespace: NS, labels: {l: " + label + "}, annotations: {resources.gardener.cloud/preserve-resources: \"" + preserve + "\"}}"
					return f.here(strings.NewReplacer("META", meta, "POD", pod(value, restart)).Replace(text))
				}
				f.manage("set", manifest("10Mi", "one"))
				f.reconcileOK("set")
				first := func(object *unstructured.Unstructured, list string) map[string]any {
					containers, _ := at(object, append(path, list)...).([]any)
					container, _ := containers[0].(map[string]any)
					return container
				}
				f.edit(manifest("", ""), "some-autoscaler", func(object *unstructured.Unstructured) {
					for _, list := range []string{"containers", "initContainers"} {
						for _, field := range []string{"requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu", "limits.memory"} {
							must(t, unstructured.SetNestedField(first(object, list), "20Mi", strings.Split("resources."+field, ".")...))
						}
					}
				})
				f.secret("set", "objects.yaml", manifest("30Mi", "two"))
				f.reconcileOK("set")
				live := f.object(manifest("", ""))
				got := map[string]string{}
				for _, list := range []string{"containers", "initContainers"} {
					got[list] = fmt.Sprint(first(live, list)["resources"])
				}
				all := func(kept string) string {
					return "map[limits:map[cpu:" + kept + " memory:" + kept + "] requests:map[cpu:" + kept + " ephemeral-storage:30Mi memory:" + kept + "]]"
				}
				want := map[bool]string{true: "20Mi", false: "30Mi"}[preserve != "false"]
				if got["containers"] != all(want) || got["initContainers"] != all("30Mi") {
					t.Errorf("got %v, want %s and in init containers %s", got, all(want), all("30Mi"))
				}
			})
		}
	}
}

// TestContractReplicas lists when the live replicas are kept.
func TestContractReplicas(t *testing.T) {
	const preserve = "annotations: {resources.gardener.cloud/preserve-replicas: \"true\"}, "
	scaler := func(target string) string {
		return "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: x, namespace: NS}\n" +
			"spec: {maxReplicas: 9, scaleTargetRef: {" + target + "}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}\n"
	}
	for name, test := range map[string]struct {
		kind, meta, replicas, scaler string
		kept                         bool
	}{
		"Deployment":                          {"Deployment", "", "replicas: 1, ", "", false},
		"Deployment without":                  {"Deployment", "", "", "", true},
		"Deployment that asks":                {"Deployment", preserve, "replicas: 1, ", "", true},
		"Deployment scaled":                   {"Deployment", "", "replicas: 1, ", scaler("apiVersion: apps/v1, kind: Deployment, name: x"), true},
		"Deployment scaled by its old group":  {"Deployment", "", "replicas: 1, ", scaler("apiVersion: extensions/v1beta1, kind: Deployment, name: x"), true},
		"Deployment beside a scaled one":      {"Deployment", "", "replicas: 1, ", scaler("apiVersion: apps/v1, kind: Deployment, name: other"), false},
		"Deployment of a scaled name":         {"Deployment", "", "replicas: 1, ", scaler("apiVersion: apps/v1, kind: StatefulSet, name: x"), false},
		"StatefulSet":                         {"StatefulSet", "", "replicas: 1, ", "", false},
		"StatefulSet without":                 {"StatefulSet", "", "", "", true},
		"StatefulSet that asks":               {"StatefulSet", preserve, "replicas: 1, ", "", true},
		"StatefulSet scaled":                  {"StatefulSet", "", "replicas: 1, ", scaler("apiVersion: apps/v1, kind: StatefulSet, name: x"), true},
		"StatefulSet scaled by its old group": {"StatefulSet", "", "replicas: 1, ", scaler("apiVersion: extensions/v1beta1, kind: StatefulSet, name: x"), true},
		"ReplicaSet":                          {"ReplicaSet", "", "replicas: 1, ", "", false},
		"ReplicaSet that asks":                {"ReplicaSet", preserve, "replicas: 1, ", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if test.scaler != "" {
				f.createObject(f.here(test.scaler), "somebody")
			}
			manifest := func(label string) string {
				service := map[string]string{"StatefulSet": "serviceName: x, "}[test.kind]
				return f.here("apiVersion: apps/v1\nkind: " + test.kind + "\nmetadata: {name: x, " + test.meta + "namespace: NS, labels: {l: " + label + "}}\n" +
					"spec: {" + test.replicas + service + "selector: {matchLabels: {app: x}}, template: " + podTemplate + "}\n")
			}
			f.manage("set", manifest("one"))
			f.reconcileOK("set")
			f.edit(manifest(""), "kubectl-edit", func(object *unstructured.Unstructured) {
				must(t, unstructured.SetNestedField(object.Object, int64(3), "spec", "replicas"))
			})
			for _, label := range []string{"one", "two"} {
				f.secret("set", "objects.yaml", manifest(label))
				f.reconcileOK("set")
				live := f.object(manifest(""))
				if kept := at(live, "spec", "replicas") == int64(3); kept != test.kept || live.GetLabels()["l"] != label {
					t.Errorf("label %s: the replicas are %v, the labels %v", label, at(live, "spec", "replicas"), live.GetLabels())
				}
			}
		})
	}
}

// TestContractJobSelector: a Job can be changed where the API server allows it, whichever selector its manifest has.
func TestContractJobSelector(t *testing.T) {
	f := newFixture(t)
	job := func(spec string) string {
		return f.here("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: NS}\nspec: {suspend: true, " + spec + ", template: " + jobTemplate + "}\n")
	}
	f.manage("set", job("parallelism: 1"))
	f.reconcileOK("set")
	before := f.object(job("parallelism: 1"))
	for parallelism, selector := range []string{"", ", selector: {matchLabels: {batch.kubernetes.io/controller-uid: of-another}}"} {
		f.secret("set", "objects.yaml", job(fmt.Sprint("parallelism: ", parallelism+2, selector)))
		f.reconcileOK("set")
		after := f.object(job("parallelism: 1"))
		if at(after, "spec", "parallelism") != int64(parallelism+2) || after.GetUID() != before.GetUID() ||
			fmt.Sprint(at(after, "spec", "selector")) != fmt.Sprint(at(before, "spec", "selector")) || at(after, "spec", "selector") == nil {
			t.Errorf("the Job's spec is now %v", after.Object["spec"])
		}
		f.wantQuiet("set")
	}
}

// TestContractServiceAccountSecrets: both lists belong to the live object once it exists.
func TestContractServiceAccountSecrets(t *testing.T) {
	f := newFixture(t)
	account := func(name string) string {
		return f.here("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x, namespace: NS, labels: {l: " + name + "}}\n" +
			"secrets: [{name: " + name + "}]\nimagePullSecrets: [{name: " + name + "}]\n")
	}
	f.manage("set", account("first"))
	f.reconcileOK("set")
	f.patch(account(""), "some-controller", `{"secrets":[{"name":"first"},{"name":"added"}],"imagePullSecrets":[{"name":"replaced"}]}`)
	for _, name := range []string{"first", "second"} {
		f.secret("set", "objects.yaml", account(name))
		f.reconcileOK("set")
		live := f.object(account(""))
		if got := fmt.Sprint(at(live, "secrets"), at(live, "imagePullSecrets")); got != "[map[name:first] map[name:added]] [map[name:replaced]]" {
			t.Errorf("%s: the ServiceAccount has %s", name, got)
		}
		if live.GetLabels()["l"] != name {
			t.Errorf("%s: the labels are %v", name, live.GetLabels())
		}
	}
}
