package admit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","fromTheFuture":1},
  "spec":{"future":{"a":1},"containers":[{"name":"one","image":"x","future":true,"env":[{"name":"A","value":"1","future":2}]},{"name":"two","image":"y","future":true}]}}`

func request(object string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Name: "a", Namespace: "b",
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(object)},
	}}
}

func newPod() *corev1.Pod { return &corev1.Pod{} }

// TestMinimalPatch checks that the patch contains only the changes of the mutation, and keeps fields that the type does not
// know.
func TestMinimalPatch(t *testing.T) {
	handler := Mutating(newPod, func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
		pod.Labels = map[string]string{"a/b": "c"}
		pod.Spec.SchedulerName = "bin-packing"
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Env = append(pod.Spec.Containers[i].Env, corev1.EnvVar{Name: "B", Value: "2"})
		}
		return nil
	})
	response := handler.Handle(t.Context(), request(pod))
	if !response.Allowed || len(response.Patches) != 4 {
		t.Fatalf("the response is %+v", response)
	}
	encoded, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	got, err := patch.Apply([]byte(pod))
	if err != nil {
		t.Fatalf("%v: %s", err, encoded)
	}
	const want = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","fromTheFuture":1,"labels":{"a/b":"c"}},
  "spec":{"future":{"a":1},"schedulerName":"bin-packing","containers":[
    {"name":"one","image":"x","future":true,"env":[{"name":"A","value":"1","future":2},{"name":"B","value":"2"}]},
    {"name":"two","image":"y","future":true,"env":[{"name":"B","value":"2"}]}]}}`
	if !jsonpatch.Equal(got, []byte(want)) {
		t.Errorf("the patch %s results in %s", encoded, got)
	}
}

func TestUnchangedObjects(t *testing.T) {
	changes := Mutating(newPod, func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
		pod.Spec.SchedulerName = "other"
		return nil
	})
	unchanged := Mutating(newPod, func(context.Context, *admission.Request, *corev1.Pod) error { return nil })
	deletion, status := request(""), request(pod)
	deletion.Operation, status.SubResource = admissionv1.Delete, "status"
	byKind := ByKind(map[schema.GroupKind]admission.Handler{{Group: "apps", Kind: "Deployment"}: changes})
	for name, test := range map[string]struct {
		handler admission.Handler
		request admission.Request
	}{
		"nothing to change": {unchanged, request(pod)}, "a deletion": {changes, deletion}, "a status": {changes, status},
		"another kind": {byKind, request(pod)},
	} {
		if response := test.handler.Handle(t.Context(), test.request); !response.Allowed || len(response.Patches) > 0 {
			t.Errorf("%s: the response is %+v", name, response)
		}
	}
	if response := ByKind(map[schema.GroupKind]admission.Handler{{Kind: "Pod"}: changes}).Handle(t.Context(), request(pod)); len(response.Patches) != 1 {
		t.Errorf("the handler of the kind is not called: %+v", response)
	}
}

func TestRefusals(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil).Status()
	cause := errors.New("the cause")
	for name, test := range map[string]struct {
		err     error
		code    int32
		reason  metav1.StatusReason
		message string
		retry   bool
	}{
		"own words":   {Refuse(http.StatusForbidden, "annotation %q: %w", "x", cause), 403, metav1.StatusReasonForbidden, `annotation "x": the cause`, false},
		"wrapped":     {fmt.Errorf("more: %w", Refuse(400, "bad")), 400, metav1.StatusReasonBadRequest, "bad", false},
		"status":      {RefuseWith(invalid), 422, metav1.StatusReasonInvalid, invalid.Message, false},
		"unavailable": {Unavailable("no nodes yet: %w", cause), 503, metav1.StatusReasonServiceUnavailable, "no nodes yet: the cause", true},
		"late": {
			context.DeadlineExceeded, 503, metav1.StatusReasonServiceUnavailable,
			`Pod "a" in namespace "b" could not be checked in time: context deadline exceeded`, true,
		},
		"any other": {cause, 500, metav1.StatusReasonInternalError, `Pod "a" in namespace "b" could not be checked: the cause`, false},
	} {
		mutating := Mutating(newPod, func(context.Context, *admission.Request, *corev1.Pod) error { return test.err })
		validating := Validating(func(context.Context, *admission.Request) error { return test.err })
		for _, handler := range []admission.Handler{mutating, validating} {
			response := handler.Handle(t.Context(), request(pod))
			got := response.Result
			if response.Allowed || got.Code != test.code || got.Reason != test.reason || got.Message != test.message ||
				(got.Details != nil && got.Details.RetryAfterSeconds > 0) != test.retry {
				t.Errorf("%s: the response is %+v", name, response)
			}
		}
	}
	if !IsRefusal(fmt.Errorf("x: %w", Refuse(400, "bad"))) || IsRefusal(cause) || !errors.Is(Refuse(400, "x: %w", cause), cause) {
		t.Error("refusals and other errors are not distinguished")
	}
}

func TestNoRequest(t *testing.T) {
	handler := Validating(func(context.Context, *admission.Request) error { return nil })
	if response := handler.Handle(t.Context(), admission.Request{}); response.Allowed || response.Result.Code != http.StatusBadRequest {
		t.Errorf("the response is %+v", response)
	}
}

// TestMalformedObject checks that an object that cannot be decoded is refused, and that the message does not contain it.
func TestMalformedObject(t *testing.T) {
	handler := Mutating(newPod, func(context.Context, *admission.Request, *corev1.Pod) error { return nil })
	for _, object := range []string{"", "null", "[]", `"text"`, `{"spec":{"containers":"top-secret"}}`, `{"metadata":{"labels":{"a":1}}}`, `{`} {
		response := handler.Handle(t.Context(), request(object))
		if object == "null" {
			continue // decodes to an empty object, which this package allows
		}
		const want = "the object is not a valid Pod of version v1: its fields do not have the types of the API"
		if response.Allowed || response.Result.Code != http.StatusBadRequest || response.Result.Message != want {
			t.Errorf("%s: the response is %+v", object, response)
		}
	}
}

// TestPatchOfWhatWasNotSent checks objects in which the type encodes fields that the request did not have, or encodes values in
// another format.
func TestPatchOfWhatWasNotSent(t *testing.T) {
	handler := Mutating(func() *appsv1.Deployment { return &appsv1.Deployment{} }, func(_ context.Context, _ *admission.Request, deployment *appsv1.Deployment) error {
		deployment.Spec.Template.Spec.SchedulerName = "other"
		deployment.Spec.Template.Spec.Tolerations = nil
		return nil
	})
	for sent, want := range map[string]string{
		`{}`:                       `{"spec":{"template":{"spec":{"schedulerName":"other"}}}}`,
		`{"spec":null}`:            `{"spec":{"template":{"spec":{"schedulerName":"other"}}}}`,
		`{"spec":{"template":{}}}`: `{"spec":{"template":{"spec":{"schedulerName":"other"}}}}`,
		`{"spec":{"template":{"spec":{"tolerations":[{"key":"a"}],"containers":[{"resources":{"limits":{"cpu":"1000m"}}}]}}}}`: `{"spec":{"template":{"spec":{"schedulerName":"other","containers":[{"resources":{"limits":{"cpu":"1000m"}}}]}}}}`,
	} {
		response := handler.Handle(t.Context(), request(sent))
		encoded, err := json.Marshal(response.Patches)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(encoded)
		if err != nil {
			t.Fatal(err)
		}
		got, err := patch.Apply([]byte(sent))
		if err != nil {
			t.Fatalf("%s: %v: %s", sent, err, encoded)
		}
		if !jsonpatch.Equal(got, []byte(want)) {
			t.Errorf("for %s got %s, want %s", sent, got, want)
		}
	}
}

// TestValueInTwoPlaces checks that a mutation may copy a value of the object to another place in it.
func TestValueInTwoPlaces(t *testing.T) {
	handler := Mutating(func() *appsv1.Deployment { return &appsv1.Deployment{} }, func(_ context.Context, _ *admission.Request, deployment *appsv1.Deployment) error {
		deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector = deployment.Spec.Selector
		return nil
	})
	response := handler.Handle(t.Context(), request(`{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"topologySpreadConstraints":[{"maxSkew":1,"labelSelector":{"matchLabels":{"a":"c"}}}]}}}}`))
	const want = `[{"op":"replace","path":"/spec/template/spec/topologySpreadConstraints/0/labelSelector/matchLabels/a","value":"b"}]`
	if encoded, err := json.Marshal(response.Patches); err != nil || string(encoded) != want {
		t.Errorf("the patch is %s, %v", encoded, err)
	}
}
