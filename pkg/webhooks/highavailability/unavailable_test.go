package highavailability

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// TestNothingIsDecidedWithoutFacts checks that a client gets a retryable error if a read fails.
func TestNothingIsDecidedWithoutFacts(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
	failing := errors.New("no answer")
	for name, functions := range map[string]interceptor.Funcs{
		"the namespace": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return failing
		}},
		"autoscalers": {List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*autoscalingv2.HorizontalPodAutoscalerList); is {
				return failing
			}
			return c.List(ctx, list, options...)
		}},
		"nodes": {List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.NodeList); is {
				return failing
			}
			return c.List(ctx, list, options...)
		}},
	} {
		c := fake.NewClientBuilder().WithObjects(namespace).WithInterceptorFuncs(functions).Build()
		response := NewHandler(c, c, Options{}).Handle(t.Context(), requestFor(t, manifest("Deployment", "", "", "replicas: 2", "")))
		if response.Allowed || response.Result.Code != 503 || response.Result.Details.RetryAfterSeconds == 0 {
			t.Errorf("%s: the response is %+v", name, response)
		}
	}
}

// TestNewNamespace checks that a namespace that the cache does not have yet is read from the API server.
func TestNewNamespace(t *testing.T) {
	caches := fake.NewClientBuilder().Build()
	direct := fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "garden", Annotations: map[string]string{AnnotationFailureTolerance: ""},
	}}).Build()
	request := requestFor(t, manifest("Deployment", key+"type: controller", "", "replicas: 3", ""))
	response := NewHandler(caches, direct, Options{}).Handle(t.Context(), request)
	if got := part(t, string(patched(t, request.Object.Raw, response)), "spec", "replicas"); got != "1" {
		t.Errorf("%s replicas", got)
	}
	if response := NewHandler(caches, caches, Options{}).Handle(t.Context(), request); response.Allowed || response.Result.Code != 503 {
		t.Errorf("for a missing namespace: %+v", response)
	}
}

// fixed is a fake reader with a namespace and some nodes.
type fixed struct {
	annotations map[string]string
	nodes       int
}

func (f fixed) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetAnnotations(f.annotations)
	return nil
}

func (f fixed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if nodes, is := list.(*corev1.NodeList); is {
		nodes.Items = make([]corev1.Node, f.nodes)
	}
	return nil
}

// FuzzHandler checks, for any input, that the response is well-formed, that the patch applies, and that a second call changes
// nothing.
func FuzzHandler(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"`+key+`type":"controller"},"annotations":{"`+key+`replicas":"3"}},"spec":{"replicas":1,"template":{}}}`), "zone", "a,b", byte(1))
	f.Add([]byte(`{"spec":{"replicas":2,"selector":{},"template":{"spec":{"topologySpreadConstraints":[{"topologyKey":"x"}],"affinity":{"nodeAffinity":{}}}}}}`), "", "", byte(2))
	f.Add([]byte(`{"spec":{"minReplicas":1,"maxReplicas":-1}}`), "node", ",", byte(0))
	kinds := []metav1.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"},
	}
	f.Fuzz(func(t *testing.T, raw []byte, tolerance, zones string, nodes byte) {
		// Annotations in API servers are always valid UTF-8.
		surroundings := fixed{map[string]string{AnnotationFailureTolerance: tolerance, AnnotationZones: strings.ToValidUTF8(zones, "")}, int(nodes % 3)}
		handler := NewHandler(surroundings, surroundings, Options{})
		for _, kind := range kinds {
			request := requestFor(t, "{}")
			request.Kind, request.Object.Raw = kind, raw
			response := handler.Handle(t.Context(), request)
			if !response.Allowed {
				if response.Result.Code < 400 || response.Result.Message == "" {
					t.Fatalf("a refusal without a message: %+v", response)
				}
				continue
			}
			if !json.Valid(raw) && kind.Kind != "DaemonSet" {
				t.Fatal("invalid JSON is allowed")
			}
			request.Object.Raw = patched(t, raw, response)
			if again := handler.Handle(t.Context(), request); !again.Allowed || len(again.Patches) > 0 {
				t.Fatalf("a second call changes the result: %+v", again)
			}
		}
	})
}

func TestRefusalIsTheClients(t *testing.T) {
	_, err := wantedReplicas(&metav1.ObjectMeta{Labels: map[string]string{LabelType: "x"}, Annotations: map[string]string{AnnotationReplicas: "x"}}, nil)
	if !admit.IsRefusal(err) {
		t.Errorf("%v is not a refusal", err)
	}
}
