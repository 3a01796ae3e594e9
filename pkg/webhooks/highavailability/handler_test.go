package highavailability

import (
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

// world is the state of a cluster.
type world struct {
	namespace  map[string]string
	autoscaler *autoscalingv2.HorizontalPodAutoscalerSpec
	nodes      int
	options    Options
}

func (w world) handler() admission.Handler {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden", Annotations: w.namespace}}}
	if w.autoscaler != nil {
		objects = append(objects, &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "app"}, Spec: *w.autoscaler,
		})
	}
	for i := range w.nodes {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}})
	}
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	return NewHandler(c, c, w.options)
}

func requestFor(tb testing.TB, manifest string) admission.Request {
	tb.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		tb.Fatal(err)
	}
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		tb.Fatal(err)
	}
	kind := meta.GroupVersionKind()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}, Namespace: "garden", Name: meta.Name,
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}}
}

// admitted returns the object after the webhook, in YAML. It checks that a second call changes nothing.
func (w world) admitted(tb testing.TB, manifest string) string {
	tb.Helper()
	request, handler := requestFor(tb, manifest), w.handler()
	response := handler.Handle(tb.Context(), request)
	if !response.Allowed {
		tb.Fatalf("refused: %+v", response.Result)
	}
	request.Object.Raw = patched(tb, request.Object.Raw, response)
	if again := handler.Handle(tb.Context(), request); !again.Allowed || len(again.Patches) > 0 {
		tb.Errorf("a second call changes the result: %v", again.Patches)
	}
	result, err := yaml.JSONToYAML(request.Object.Raw)
	if err != nil {
		tb.Fatal(err)
	}
	return string(result)
}

func patched(tb testing.TB, raw []byte, response admission.Response) []byte {
	tb.Helper()
	encoded, err := json.Marshal(response.Patches)
	if err != nil {
		tb.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		tb.Fatal(err)
	}
	if len(response.Patches) == 0 {
		return raw
	}
	result, err := patch.Apply(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return result
}

// part returns a part of an object, in YAML without a final line break.
func part(tb testing.TB, object string, path ...string) string {
	tb.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(object), &value); err != nil {
		tb.Fatal(err)
	}
	for _, key := range path {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	if value == nil {
		return ""
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// manifest returns a workload. Labels, annotations, spec and the spec of the Pod are in YAML's flow style.
func manifest(kind, labels, annotations, spec, pod string) string {
	return strings.NewReplacer("$KIND", kind, "$LABELS", labels, "$ANNOTATIONS", annotations, "$SPEC", spec, "$POD", pod).Replace(`
apiVersion: apps/v1
kind: $KIND
metadata: {name: app, labels: {$LABELS}, annotations: {$ANNOTATIONS}}
spec:
  selector: {matchLabels: {app: app}}
  $SPEC
  template:
    metadata: {labels: {app: app, more: pod}}
    spec: {containers: [{name: main, image: "example.org/image:1"}], $POD}
`)
}

const key = "high-availability-config.resources.gardener.cloud/"

func TestReplicas(t *testing.T) {
	tolerance := func(value string) map[string]string { return map[string]string{key + "failure-tolerance-type": value} }
	scaled := func(kind, version string) *autoscalingv2.HorizontalPodAutoscalerSpec {
		return &autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 9, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
			APIVersion: version, Kind: kind, Name: "app",
		}}
	}
	for name, test := range map[string]struct {
		component, annotations, replicas string
		namespace                        map[string]string
		autoscaler                       *autoscalingv2.HorizontalPodAutoscalerSpec
		want                             string
	}{
		"controller, nothing about failures":        {component: "controller", replicas: "1", want: "2"},
		"controller, no failures":                   {component: "controller", replicas: "1", namespace: tolerance(""), want: "1"},
		"controller, node failures":                 {component: "controller", replicas: "1", namespace: tolerance("node"), want: "2"},
		"server, nothing about failures":            {component: "server", replicas: "1", want: "2"},
		"server, no failures":                       {component: "server", replicas: "1", namespace: tolerance(""), want: "2"},
		"server, zone failures":                     {component: "server", replicas: "1", namespace: tolerance("zone"), want: "2"},
		"any other type":                            {component: "worker", replicas: "1", namespace: tolerance(""), want: "2"},
		"downwards":                                 {component: "server", replicas: "5", want: "2"},
		"no type":                                   {replicas: "5", want: "5"},
		"empty type":                                {component: `""`, replicas: "5", want: "5"},
		"hibernated":                                {component: "server", replicas: "0", want: "0"},
		"annotation":                                {component: "server", annotations: key + `replicas: "4"`, replicas: "1", want: "4"},
		"annotation without a type":                 {annotations: key + `replicas: "4"`, replicas: "1", want: "1"},
		"annotation, hibernated":                    {component: "server", annotations: key + `replicas: "4"`, replicas: "0", want: "0"},
		"autoscaled, too few":                       {component: "server", replicas: "1", autoscaler: scaled("KIND", "apps/v1"), want: "2"},
		"autoscaled, more":                          {component: "server", replicas: "5", autoscaler: scaled("KIND", "apps/v1"), want: "5"},
		"autoscaled by another version":             {component: "server", replicas: "5", autoscaler: scaled("KIND", "apps/v1beta2"), want: "5"},
		"autoscaler of another kind":                {component: "server", replicas: "5", autoscaler: scaled("ReplicaSet", "apps/v1"), want: "2"},
		"autoscaler of another group":               {component: "server", replicas: "5", autoscaler: scaled("KIND", "example.org/v1"), want: "2"},
		"autoscaler whose version cannot be parsed": {component: "server", replicas: "5", autoscaler: scaled("KIND", "a/b/c"), want: "2"},
	} {
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				w := world{namespace: test.namespace, nodes: 2}
				if test.autoscaler != nil {
					w.autoscaler = test.autoscaler.DeepCopy()
					w.autoscaler.ScaleTargetRef.Kind = strings.ReplaceAll(w.autoscaler.ScaleTargetRef.Kind, "KIND", kind)
				}
				labels := ""
				if test.component != "" {
					labels = key + "type: " + test.component
				}
				if got := part(t, w.admitted(t, manifest(kind, labels, test.annotations, "replicas: "+test.replicas, "")), "spec", "replicas"); got != test.want {
					t.Errorf("%s replicas, want %s", got, test.want)
				}
			})
		}
	}
}

func TestAutoscalerBounds(t *testing.T) {
	for name, test := range map[string]struct{ labels, annotations, bounds, want string }{
		"raised":                {key + "type: server", "", "minReplicas: 1, maxReplicas: 5", "maxReplicas: 5\nminReplicas: 2"},
		"high enough":           {key + "type: server", "", "minReplicas: 3, maxReplicas: 5", "maxReplicas: 5\nminReplicas: 3"},
		"most below":            {key + "type: server", "", "minReplicas: 1, maxReplicas: 1", "maxReplicas: 2\nminReplicas: 2"},
		"annotation":            {key + "type: server", key + `replicas: "4"`, "minReplicas: 1, maxReplicas: 3", "maxReplicas: 4\nminReplicas: 4"},
		"no type":               {"", "", "minReplicas: 1, maxReplicas: 1", "maxReplicas: 1\nminReplicas: 1"},
		"scaled down to zero":   {key + "type: server", "", "minReplicas: 0, maxReplicas: 1", "maxReplicas: 1\nminReplicas: 0"},
		"without a lower bound": {key + "type: server", "", "maxReplicas: 1", "maxReplicas: 1"},
	} {
		got := world{}.admitted(t, strings.NewReplacer("$LABELS", test.labels, "$ANNOTATIONS", test.annotations, "$BOUNDS", test.bounds).Replace(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: app, labels: {$LABELS}, annotations: {$ANNOTATIONS}}
spec: {$BOUNDS}
`))
		if got := part(t, got, "spec"); got != test.want {
			t.Errorf("%s: the bounds are %q, want %q", name, got, test.want)
		}
	}
}

func TestBadReplicas(t *testing.T) {
	for _, value := range []string{"many", "", "-1", "1.5", "99999999999", " 2"} {
		for _, kind := range []string{"Deployment", "StatefulSet"} {
			response := world{}.handler().Handle(t.Context(), requestFor(t, manifest(kind, key+"type: server", key+`replicas: "`+value+`"`, "replicas: 1", "")))
			want := `the annotation ` + key + `replicas is "` + value + `", but must be a whole number from 0 to 2147483647`
			if response.Allowed || response.Result.Code != 400 || response.Result.Message != want {
				t.Errorf("%q: the response is %+v", value, response.Result)
			}
		}
	}
}

// TestBadReplicasOfHibernatedWorkloads checks that an invalid number does not block hibernated workloads, which do not need it.
func TestBadReplicasOfHibernatedWorkloads(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		response := world{}.handler().Handle(t.Context(), requestFor(t, manifest(kind, key+"type: server", key+`replicas: "many"`, "replicas: 0", "")))
		if !response.Allowed {
			t.Errorf("%s: the response is %+v", kind, response.Result)
		}
	}
}

func TestTolerations(t *testing.T) {
	options := Options{NotReadySeconds: ptr.To[int64](60), UnreachableSeconds: ptr.To[int64](0)}
	const added = `- effect: NoExecute
  key: node.kubernetes.io/not-ready
  operator: Exists
  tolerationSeconds: 60
- effect: NoExecute
  key: node.kubernetes.io/unreachable
  operator: Exists
  tolerationSeconds: 0`
	for name, test := range map[string]struct {
		options   Options
		pod, want string
	}{
		"added":          {options, "", added},
		"not configured": {Options{}, "", ""},
		"one configured": {Options{NotReadySeconds: ptr.To[int64](60)}, "", strings.Join(strings.Split(added, "\n")[:4], "\n")},
		"there already, with any effect": {
			options, "tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}, {key: node.kubernetes.io/unreachable, effect: NoExecute, tolerationSeconds: 5}]",
			"- key: node.kubernetes.io/not-ready\n  operator: Exists\n- effect: NoExecute\n  key: node.kubernetes.io/unreachable\n  tolerationSeconds: 5",
		},
		"there with another effect": {
			Options{NotReadySeconds: ptr.To[int64](60)}, "tolerations: [{key: node.kubernetes.io/not-ready, effect: NoSchedule, operator: Exists}]",
			"- effect: NoSchedule\n  key: node.kubernetes.io/not-ready\n  operator: Exists\n" + strings.Join(strings.Split(added, "\n")[:4], "\n"),
		},
	} {
		if got := part(t, world{options: test.options}.admitted(t, manifest("Deployment", "", "", "replicas: 1", test.pod)), "spec", "template", "spec", "tolerations"); got != test.want {
			t.Errorf("%s: the tolerations are\n%s\nwant\n%s", name, got, test.want)
		}
	}
}
