package extension

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/helmchart/values"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	printed = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, namespace: {{ .Release.Namespace }}}\ndata: {all: {{ toJson .Values | quote }}}\n"
	deploys = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: admission, namespace: {{ .Release.Namespace }}}\n" +
		"spec: {template: {spec: {containers: [{name: a, image: b}]}}}\n"
	spec = `metadata: {name: local, uid: "1", annotations: {security.gardener.cloud/pod-security-enforce: baseline}}
spec:
  resources:
  - {kind: Network, type: local}
  - {kind: Extension, type: both, clusterCompatibility: [garden, shoot], autoEnable: [garden, shoot]}
  - {kind: Extension, type: alone, clusterCompatibility: [garden]}
  deployment:
    resources: [{name: settings, resourceRef: {apiVersion: v1, kind: ConfigMap, name: settings}}]
    extension:
      helm: {ociRepository: {ref: "a:1", pullSecretRef: {name: pull}}}
      values: {seed: 1}
      runtimeClusterValues: {region: "{{ .resources.settings.data.region }}"}
      policy: Always
      injectGardenKubeconfig: true
    admission:
      runtimeCluster: {helm: {ociRepository: {ref: "b:1"}}}
      virtualCluster: {helm: {ociRepository: {ref: "c:1"}}}
      values: {both: 2}
`
)

func inputs(t *testing.T, change func(*Inputs)) Inputs {
	t.Helper()
	extension := &operatorv1alpha1.Extension{}
	if err := yaml.UnmarshalStrict([]byte(spec), extension); err != nil {
		t.Fatal(err)
	}
	in := Inputs{
		Extension: extension, Namespace: "garden", Reconciled: true, Required: true, Zones: "a,b", Kubeconfig: "generic-1",
		Charts: map[flow.Key][]byte{
			runtimeKey("garden", "local"): kit.ChartArchive(t, "example", printed), admissionVirtualKey("garden", "local"): kit.ChartArchive(t, "example", printed),
			admissionRuntimeKey("garden", "local"): kit.ChartArchive(t, "example", printed+"---\n"+deploys),
		},
		Resources: values.Resources{Data: map[string]map[string]string{"settings": {"region": "europe"}}, Of: "Extension local"},
	}
	change(&in)
	return in
}

// names returns the names of bundles and tombstones, sorted.
func names(plan flow.Plan) string {
	var all []string
	for _, bundle := range plan.Bundles {
		all = append(all, "+"+bundle.Name)
	}
	for _, tombstone := range plan.Tombstones {
		all = append(all, "-"+tombstone.Name)
	}
	for _, key := range plan.Keeps {
		all = append(all, "="+key.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestPlan checks what exists when.
func TestPlan(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   string
	}{
		"all":               {func(*Inputs) {}, "+extension-admission-runtime-local +extension-admission-virtual-local +extension-local-garden +extension-registration-local"},
		"before the garden": {func(in *Inputs) { in.Reconciled = false }, "+extension-local-garden"},
		"not needed":        {func(in *Inputs) { in.Required, in.Reconciled = false, false }, "-extension-local-garden"},
		"no values for the runtime": {func(in *Inputs) {
			in.Reconciled, in.Extension.Spec.Deployment.ExtensionDeployment.RuntimeClusterValues = false, nil
		}, "-extension-local-garden"},
		"no extension": {func(in *Inputs) { in.Extension.Spec.Deployment.ExtensionDeployment = nil },
			"+extension-admission-runtime-local +extension-admission-virtual-local -extension-local-garden -extension-registration-local"},
		"no admission": {func(in *Inputs) { in.Extension.Spec.Deployment.AdmissionDeployment = nil },
			"+extension-local-garden +extension-registration-local -extension-admission-runtime-local -extension-admission-virtual-local"},
		"deleting": {func(in *Inputs) { in.Deleting, in.Required = true, false },
			"-extension-admission-runtime-local -extension-admission-virtual-local -extension-local-garden -extension-registration-local"},
		"deleting, but needed": {func(in *Inputs) { in.Deleting, in.Charts = true, nil },
			"-extension-admission-runtime-local -extension-admission-virtual-local -extension-registration-local =extension-local-garden"},
	} {
		plan, err := inputs(t, test.change).Plan(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := plan.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := names(plan); got != test.want {
			t.Errorf("%s: got %s\nwant %s", name, got, test.want)
		}
	}
}

// bundle returns the objects of a bundle by kind and name, and its class.
func bundle(t *testing.T, plan flow.Plan, key flow.Key) (objects map[string]client.Object, class string) {
	t.Helper()
	at := slices.IndexFunc(plan.Bundles, func(one flow.Bundle) bool { return one.Key == key })
	if at < 0 {
		t.Fatalf("there is no bundle %s", key)
	}
	objects = map[string]client.Object{}
	for _, object := range plan.Bundles[at].Objects {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		objects[kind+"/"+object.GetName()] = object
	}
	if plan.Bundles[at].Spec.Class != nil {
		class = *plan.Bundles[at].Spec.Class
	}
	if plan.Bundles[at].Labels["origin"] != "gardener-operator" {
		t.Errorf("%s has no origin", key)
	}
	return objects, class
}

func text(t *testing.T, object client.Object) string {
	t.Helper()
	content, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestObjects checks the content of the bundles: classes, namespaces, values and access.
func TestObjects(t *testing.T) {
	plan, err := inputs(t, func(*Inputs) {}).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key    flow.Key
		class  string
		object string
		parts  []string
	}{
		{runtimeKey("garden", "local"), "seed", "/runtime-extension-local", []string{"gardener.cloud/role: extension", "pod-security.kubernetes.io/enforce: baseline", "zones: a,b"}},
		{runtimeKey("garden", "local"), "seed", "ConfigMap/values", []string{"namespace: runtime-extension-local", `"region":"europe"`, `"priorityClassName":"gardener-garden-system-200"`, `"enabled":"true"`}},
		{admissionVirtualKey("garden", "local"), "", "ConfigMap/values", []string{"namespace: extension-local", `"both":2`, `"serviceAccount":{"name":"extension-admission-local","namespace":"kube-system"}`}},
		{admissionVirtualKey("garden", "local"), "", "/extension-local", []string{"extensions.operator.gardener.cloud/name: local"}},
		{admissionRuntimeKey("garden", "local"), "seed", "ConfigMap/values", []string{"namespace: garden", `"priorityClassName":"gardener-garden-system-400"`, `"namespace":"extension-local"`}},
		{admissionRuntimeKey("garden", "local"), "seed", "Deployment/admission", []string{"name: GARDEN_KUBECONFIG", "name: generic-1", "name: shoot-access-extension-admission-local"}},
		{admissionRuntimeKey("garden", "local"), "seed", "/shoot-access-extension-admission-local", []string{"resources.gardener.cloud/class: shoot", "serviceaccount.resources.gardener.cloud/namespace: kube-system"}},
	} {
		objects, class := bundle(t, plan, test.key)
		object := objects[test.object]
		if object == nil || class != test.class {
			t.Errorf("%s has the class %q and %v", test.key, class, slices.Collect(maps.Keys(objects)))
			continue
		}
		for _, part := range test.parts {
			if content := text(t, object); !strings.Contains(strings.ReplaceAll(content, "'", ""), part) {
				t.Errorf("%s, %s has no %s:\n%s", test.key, test.object, part, content)
			}
		}
	}
}

// TestRegistration checks what is registered in the virtual garden.
func TestRegistration(t *testing.T) {
	in := inputs(t, func(*Inputs) {})
	plan, err := in.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects, class := bundle(t, plan, registrationKey("garden", "local"))
	deployment, _ := objects["ControllerDeployment/local"].(*gardencorev1.ControllerDeployment)
	registration, _ := objects["ControllerRegistration/local"].(*corev1beta1.ControllerRegistration)
	if deployment == nil || registration == nil || class != "" {
		t.Fatalf("the bundle of class %q has %v", class, objects)
	}
	if got := deployment.Helm.OCIRepository.PullSecretRef.Name; got != "local-pull" || in.Extension.Spec.Deployment.ExtensionDeployment.Helm.OCIRepository.PullSecretRef.Name != "pull" {
		t.Errorf("the pull Secret is %s", got)
	}
	if got := deployment.Resources[0].ResourceRef.Name; got != "local-settings" || !*deployment.InjectGardenKubeconfig || string(deployment.Helm.Values.Raw) != `{"seed":1}` {
		t.Errorf("the deployment is %+v", deployment)
	}
	if got := *registration.Spec.Deployment.Policy; got != "Always" || registration.Annotations["security.gardener.cloud/pod-security-enforce"] != "baseline" {
		t.Errorf("the registration is %+v", registration)
	}
	resources := registration.Spec.Resources
	if len(resources) != 2 || !slices.Equal(resources[1].AutoEnable, []corev1beta1.ClusterType{"shoot"}) || !slices.Equal(resources[1].ClusterCompatibility, []corev1beta1.ClusterType{"shoot"}) {
		t.Errorf("the resources are %+v", resources)
	}
}

// TestErrors checks that the message of a chart's error has no data of Secrets.
func TestErrors(t *testing.T) {
	in := inputs(t, func(in *Inputs) {
		in.Charts[runtimeKey("garden", "local")] = kit.ChartArchive(t, "example", `{{ fail (printf "wrong: %s" .Values.region) }}`)
		in.Resources = values.Resources{Data: map[string]map[string]string{"settings": {"region": "top-secret"}}, Confidential: map[string]bool{"settings": true}}
	})
	_, err := in.Plan(t.Context())
	if err == nil || !strings.Contains(err.Error(), "top-secret") {
		t.Fatalf("got %v", err)
	}
	if got := textOf(&in, err); strings.Contains(got, "top-secret") || !strings.Contains(got, "the chart for the runtime cluster") {
		t.Errorf("got %s", got)
	}
	in = inputs(t, func(in *Inputs) {
		in.Charts[runtimeKey("garden", "local")] = kit.ChartArchive(t, "example", "apiVersion: v1\nkind: Namespace\nmetadata: {name: {{ .Release.Namespace }}}\n")
	})
	if _, err := in.Plan(t.Context()); err == nil || !strings.Contains(err.Error(), "which the operator creates") {
		t.Errorf("got %v", err)
	}
}

// TestUp checks from when on extensions are registered.
func TestUp(t *testing.T) {
	now := metav1.Now()
	last := func(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: kind, State: state}
	}
	for name, test := range map[string]struct {
		last     *corev1beta1.LastOperation
		deleting bool
		want     bool
	}{
		"new": {nil, false, false}, "being created": {last("Create", "Processing"), false, false}, "created": {last("Create", "Succeeded"), false, true},
		"reconciled again": {last("Reconcile", "Processing"), false, true}, "failing": {last("Reconcile", "Error"), false, true},
		"deleted": {last("Delete", "Processing"), true, false}, "deletion starts": {last("Reconcile", "Succeeded"), true, false},
	} {
		garden := &operatorv1alpha1.Garden{Status: operatorv1alpha1.GardenStatus{LastOperation: test.last}}
		if test.deleting {
			garden.DeletionTimestamp = &now
		}
		if got := isUp(garden); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
