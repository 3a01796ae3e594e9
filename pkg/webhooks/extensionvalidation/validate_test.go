package extensionvalidation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func request(kind Kind, operation admissionv1.Operation, object, old string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: operation, Kind: metav1.GroupVersionKind(kind.GroupVersionKind),
		Object: runtime.RawExtension{Raw: []byte(object)}, OldObject: runtime.RawExtension{Raw: []byte(old)},
	}}
}

// objectOf returns an object with valid metadata.
func objectOf(kind Kind, more, spec string) string {
	namespace := ""
	if kind.Namespaced {
		namespace = `"namespace":"shoot",`
	}
	return `{"metadata":{"name":"a",` + namespace + more + `"resourceVersion":"1","uid":"u"},"spec":` + spec + `}`
}

const deleting = `"deletionTimestamp":"2026-01-01T00:00:00Z",`

func fieldsOf(t *testing.T, response admission.Response) []string {
	t.Helper()
	if response.Allowed {
		return nil
	}
	if response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
		t.Fatalf("the response is %+v", response)
	}
	var fields []string
	for _, cause := range response.Result.Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}

// TestMetadata checks the scope of the kind, that names are DNS subdomains, and the rules of Kubernetes for changes of
// metadata. The API server checks most of it, too.
func TestMetadata(t *testing.T) {
	for _, kind := range Kinds() {
		handler := kind.NewHandler()
		wrongScope := strings.Replace(objectOf(kind, "", `{}`), `"name":"a"`, `"name":"a","namespace":"b"`, 1)
		if kind.Namespaced {
			wrongScope = strings.Replace(objectOf(kind, "", `{}`), `"namespace":"shoot",`, "", 1)
		}
		for object, field := range map[string]string{
			wrongScope: "metadata.namespace",
			strings.Replace(objectOf(kind, "", `{}`), `"name":"a"`, `"name":"A_"`, 1): "metadata.name",
			strings.Replace(objectOf(kind, "", `{}`), `"name":"a",`, "", 1):           "metadata.name",
		} {
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
				response := handler.Handle(t.Context(), request(kind, operation, object, objectOf(kind, "", `{}`)))
				if fields := fieldsOf(t, response); !slices.Contains(fields, field) {
					t.Errorf("%s of %s: got %v", operation, object, fields)
				}
			}
		}
		renamed := strings.Replace(objectOf(kind, "", `{}`), `"name":"a"`, `"name":"b"`, 1)
		fields := fieldsOf(t, handler.Handle(t.Context(), request(kind, admissionv1.Update, renamed, objectOf(kind, "", `{}`))))
		if !slices.Equal(fields, []string{"metadata.name"}) {
			t.Errorf("got %v", fields)
		}
	}
}

// TestRequestsNotValidated checks that deletions, subresources and other kinds are not validated.
func TestRequestsNotValidated(t *testing.T) {
	for _, kind := range Kinds() {
		deletion := request(kind, admissionv1.Delete, "", `{}`)
		status := request(kind, admissionv1.Update, `{}`, `{}`)
		status.SubResource = "status"
		other := request(kind, admissionv1.Create, `{}`, "")
		other.Kind.Kind = "Cluster"
		for _, request := range []admission.Request{deletion, status, other} {
			if response := kind.NewHandler().Handle(t.Context(), request); !response.Allowed {
				t.Errorf("%s: the response is %+v", kind.Kind, response)
			}
		}
	}
}

// TestMessages_OmitSecrets checks that refusals do not repeat values that may be secret.
func TestMessages_OmitSecrets(t *testing.T) {
	const secret = "hidden-from-logs"
	for _, test := range []struct{ kind, spec, old string }{
		{"Bastion", `{"userData":"` + secret + `"}`, `{"userData":"other"}`},
		{"OperatingSystemConfig", `{"files":[{"content":{"inline":{"data":"` + secret + `"},"secretRef":{}}}]}`, `{}`},
		{"OperatingSystemConfig", `{"purpose":"reconcile","units":[{"dropIns":[{"content":"` + secret + `"}]}],"criConfig":{"containerd":{
			"registries":[{"upstream":"https://a:` + secret + `@b","server":"ftp://a:` + secret + `@b","hosts":[{"url":"//a:` + secret + `@b"}]}],"plugins":[{"values":["` + secret + `"]}]}}}`, `{}`},
		{"OperatingSystemConfig", `{"purpose":"reconcile","files":[{"content":{"inline":"` + secret + `"}}]}`, `{}`},
		{"Infrastructure", `{"providerConfig":"` + secret + `"}`, `{}`},
		{"Infrastructure", `{"type":{"a":"` + secret + `"}}`, `{}`},
		{"Infrastructure", `{"type":"` + secret, `{}`},
	} {
		kind := Kinds()[slices.IndexFunc(Kinds(), func(kind Kind) bool { return kind.Kind == test.kind })]
		response := kind.NewHandler().Handle(t.Context(), request(kind, admissionv1.Update, objectOf(kind, "", test.spec), objectOf(kind, "", test.old)))
		encoded, err := json.Marshal(response)
		if response.Allowed || err != nil || strings.Contains(string(encoded), secret) {
			t.Errorf("%s: the response is %s, %v", test.spec, encoded, err)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, test := range []struct {
		a, b                 string
		withoutNull, without bool
	}{
		{`{}`, `{}`, true, true},
		{`{"a":1,"b":[1,{"c":"d"}]}`, `{"b":[1,{"c":"d"}],"a":1}`, true, true},
		{`{"a":null}`, `{}`, true, true}, {`null`, `{"a":null}`, false, true}, {`[{}]`, `[null]`, false, true}, {`[""]`, `[]`, false, false}, {`{"a":{"b":null}}`, `{"a":{}}`, true, true},
		{`{"a":""}`, `{}`, false, true}, {`{"a":[]}`, `{}`, false, true}, {`{"a":{}}`, `{}`, false, true},
		{`{"a":0}`, `{"a":null}`, false, true}, {`{"a":0.0}`, `{}`, false, true}, {`{}`, `{"a":false}`, false, true},
		{`{"a":1}`, `{}`, false, false}, {`{"a":1}`, `{"a":2}`, false, false}, {`{"a":1}`, `{"a":"1"}`, false, false},
		{`{"a":1}`, `{"b":1}`, false, false}, {`[1,2]`, `[2,1]`, false, false}, {`[1]`, `[1,2]`, false, false}, {`[1]`, `{"0":1}`, false, false},
	} {
		var a, b any
		if json.Unmarshal([]byte(test.a), &a) != nil || json.Unmarshal([]byte(test.b), &b) != nil {
			t.Fatalf("invalid JSON: %s, %s", test.a, test.b)
		}
		got := fmt.Sprint(equal(a, b, isNull), equal(b, a, isNull), equal(a, b, isEmpty), equal(b, a, isEmpty))
		if want := fmt.Sprint(test.withoutNull, test.withoutNull, test.without, test.without); got != want {
			t.Errorf("%s, %s: got %s, want %s", test.a, test.b, got, want)
		}
	}
}
