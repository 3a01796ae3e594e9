package pods

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func value(container corev1.Container) string {
	for _, variable := range container.Env {
		if variable.Name == "KUBERNETES_SERVICE_HOST" {
			return variable.Value
		}
	}
	return ""
}

// TestServiceHost checks that every container and init container gets the variable, unless it has the variable, or its Pod or namespace
// opts out.
func TestServiceHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(serviceHost("api.example.org"))
	const spec = "\nspec: {initContainers: [{name: a}], containers: [{name: b}, {name: c, env: [{name: KUBERNETES_SERVICE_HOST, value: other}]}]}"
	check := func(pod *corev1.Pod, want string) {
		t.Helper()
		got := [...]string{value(pod.Spec.InitContainers[0]), value(pod.Spec.Containers[0]), value(pod.Spec.Containers[1])}
		if got != [...]string{want, want, "other"} {
			t.Errorf("the containers have %q", got)
		}
	}
	check(f.would(spec), "api.example.org")
	check(f.would(`metadata: {labels: {apiserver-proxy.networking.gardener.cloud/inject: enable}}`+spec), "api.example.org")
	check(f.would(`metadata: {labels: {apiserver-proxy.networking.gardener.cloud/inject: disable}}`+spec), "")
	check(f.would(`metadata: {labels: {static-pod: "true"}}`+spec), "")
	f.namespace = f.newNamespace()
	check(f.would(spec), "api.example.org") // any namespace
	f.namespace = f.newNamespace("apiserver-proxy.networking.gardener.cloud/inject", "disable")
	check(f.would(spec), "")
}

// TestServiceHostWithoutAHost checks that no empty variable is set. It would break clients.
func TestServiceHostWithoutAHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(serviceHost(""))
	if pod := f.would(`spec: {}`); len(pod.Spec.Containers[0].Env) > 0 {
		t.Errorf("the variables are %v", pod.Spec.Containers[0].Env)
	}
}

// TestSeccompProfile checks that the profile is set for the whole Pod, unless it has one.
func TestSeccompProfile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(seccompProfile())
	check := func(pod *corev1.Pod, want corev1.SeccompProfileType) {
		t.Helper()
		var got corev1.SeccompProfileType
		if pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.SeccompProfile != nil {
			got = pod.Spec.SecurityContext.SeccompProfile.Type
		}
		if got != want {
			t.Errorf("the profile is %q, not %q", got, want)
		}
	}
	check(f.would(`spec: {}`), corev1.SeccompProfileTypeRuntimeDefault)
	check(f.would(`spec: {securityContext: {runAsUser: 1}}`), corev1.SeccompProfileTypeRuntimeDefault)
	check(f.would(`spec: {securityContext: {seccompProfile: {type: Unconfined}}}`), corev1.SeccompProfileTypeUnconfined)
	check(f.would(`spec: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}}`), corev1.SeccompProfileTypeLocalhost)
	pod := f.would(`spec: {containers: [{name: a, securityContext: {seccompProfile: {type: Unconfined}}}]}`)
	check(pod, corev1.SeccompProfileTypeRuntimeDefault)
	if got := pod.Spec.Containers[0].SecurityContext.SeccompProfile.Type; got != corev1.SeccompProfileTypeUnconfined {
		t.Errorf("the container's profile is %q", got)
	}
	check(f.would(`spec: {os: {name: windows}}`), "") // with a profile it would be invalid
	check(f.would(`metadata: {labels: {seccompprofile.resources.gardener.cloud/skip: "false"}}`), "")
	check(f.would(`metadata: {labels: {app: gardener-resource-manager}}`), "")
	f.namespace = f.newNamespace()
	check(f.would(`spec: {}`), "")
}

// TestSchedulerName checks that Pods without a scheduler, or with the default one, get the configured scheduler in any namespace.
func TestSchedulerName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.register(schedulerName("bin-packing-scheduler"))
	f.namespace = f.newNamespace()
	for text, want := range map[string]string{
		`spec: {}`: "bin-packing-scheduler",
		`spec: {schedulerName: default-scheduler}`:     "bin-packing-scheduler",
		`spec: {schedulerName: bin-packing-scheduler}`: "bin-packing-scheduler",
		`spec: {schedulerName: another}`:               "another",
		`metadata: {labels: {static-pod: "true"}}`:     "default-scheduler",
	} {
		if got := f.would(text).Spec.SchedulerName; got != want {
			t.Errorf("%s: the scheduler is %q", text, got)
		}
	}
}

// TestAllWebhooksTogether checks that each webhook sees the changes of the previous ones, and that the API server accepts the result.
func TestAllWebhooksTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	reader := f.reader()
	f.serviceAccount("robot", new(bool))
	f.gateway("hosts", "api.example.org", "istio-namespace", f.namespace)
	selects := map[string]string{"together": f.namespace}
	f.register(serviceHost("api.example.org"), tokenMount(reader, f.client), spreadConstraints(), f.systemComponents(reader, selects),
		seccompProfile(), schedulerName("bin-packing-scheduler"), loadBalancing(f.client))
	const text = `
metadata: {labels: {pod-template-hash: "1", resources.gardener.cloud/managed-by: gardener}}
spec:
  serviceAccountName: robot
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
  volumes: [{name: kubeconfig, secret: {secretName: generic-token-kubeconfig}}]
`
	pod := f.would(text)
	if value(pod.Spec.Containers[0]) == "" || !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "kube-api-access-gardener" }) ||
		pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["pod-template-hash"] != "1" || pod.Spec.NodeSelector["together"] != f.namespace ||
		pod.Spec.SecurityContext.SeccompProfile == nil || pod.Spec.SchedulerName != "bin-packing-scheduler" || len(pod.Spec.HostAliases) != 1 {
		t.Errorf("the Pod is %+v", pod)
	}
}
