package apply

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/confidential"
	"github.com/trellis-k8s/trellis/pkg/object"
)

const hunter = "hunter2-of-the-canary"

// said returns an error with a text from an API server.
func said(text string) error {
	return statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, text)
}

// TestConceal checks that values of manifests that may be confidential are redacted, and that everything else is kept.
func TestConceal(t *testing.T) {
	for name, test := range map[string]struct{ kind, body, text, want string }{
		"a digest":                {"Pod", `{}`, "no image x@sha256:" + strings.Repeat("0a", 32), "no image x@sha256:" + strings.Repeat("0a", 32)},
		"data of a ConfigMap":     {"ConfigMap", `{"data":{"a":"` + hunter + `"}}`, "denied: " + hunter + " is weak", "denied: … is weak"},
		"a part of it":            {"ConfigMap", `{"data":{"a":"` + hunter + `"}}`, "denied: " + hunter[:18] + " is weak", "denied: … is weak"},
		"more than once":          {"ConfigMap", `{"data":{"a":"` + hunter + `"}}`, hunter + " and " + hunter, "… and …"},
		"short":                   {"ConfigMap", `{"data":{"a":"passw0rd"}}`, "denied: passw0rd, again passw0rd", "denied: …, again …"},
		"too short to be told":    {"ConfigMap", `{"data":{"a":"true"}}`, "denied: true", "denied: true"},
		"of the wrong shape":      {"ConfigMap", `{"data":["` + hunter + `"]}`, "expected map, got [" + hunter + "]", "expected map, got […]"},
		"a number":                {"ConfigMap", `{"data":{"a":31337313373}}`, "expected string, got 31337313373", "expected string, got …"},
		"an environment variable": {"Pod", `{"spec":{"containers":[{"env":[{"name":"PASS","value":"` + hunter + `"}]}]}}`, "PASS is " + hunter, "PASS is …"},
		"an argument":             {"Pod", `{"spec":{"containers":[{"args":["--token=` + hunter + `"]}]}}`, "bad --token=" + hunter, "bad …"},
		"a password":              {"Widget", `{"spec":{"adminPassword":"` + hunter + `"}}`, "bad " + hunter, "bad …"},
		"an access-key":           {"Widget", `{"spec":{"access-key":"` + hunter + `"}}`, "bad " + hunter, "bad …"},
		"the name of a Secret":    {"Pod", `{"spec":{"volumes":[{"secret":{"secretName":"the-secret-of-shop"}}]}}`, `"the-secret-of-shop" not found`, `"the-secret-of-shop" not found`},
		"an image":                {"Pod", `{"spec":{"containers":[{"image":"registry.example.org/shop"}]}}`, "registry.example.org/shop is not allowed", "registry.example.org/shop is not allowed"},
		"a label":                 {"Pod", `{"metadata":{"labels":{"a":"not a label at all"}}}`, `Invalid value: "not a label at all"`, `Invalid value: "not a label at all"`},
		"kubectl's annotation": {"ConfigMap", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + hunter + `"}}}`,
			"too long: " + hunter, "too long: …"},
		"an object as JSON":     {"ConfigMap", `{"data":{}}`, `denied: {"kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"old"}} is bad`, "denied: … is bad"},
		"an object, quoted":     {"ConfigMap", `{"data":{}}`, `denied: {\"metadata\":{},\"data\":{\"a\":\"old\"}} is bad`, "denied: … is bad"},
		"an object as of Go":    {"ConfigMap", `{"data":{}}`, `denied: &ConfigMap{ObjectMeta:{x},Data:map[string]string{a: old}} is bad`, "denied: &ConfigMap… is bad"},
		"an object in base64":   {"ConfigMap", `{"data":{}}`, "denied: " + strings.Repeat("eyJk", 25) + "= is bad", "denied: … is bad"},
		"an object as bytes":    {"ConfigMap", `{"data":{}}`, "denied: [" + strings.Repeat("101 ", 40) + "99] is bad", "denied: […] is bad"},
		"rights":                {"Role", `{}`, `not held: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}`, `not held: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
		"a body that is broken": {"ConfigMap", `x`, "denied: " + hunter, "rejected by the API server; details are withheld, as the manifest cannot be read again"},
	} {
		if got := redact(brief(test.text), manifestWith(test.kind, test.body)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestConcealTakesNoTime redacts a long value from a long message if both consist of one repeated letter, which is the worst
// case for the search for common parts.
func TestConcealTakesNoTime(t *testing.T) {
	letters := strings.Repeat("a", 1<<20)
	if got := redact(letters, manifestWith("ConfigMap", `{"data":{"a":"`+letters+`"}}`)); got != redacted {
		t.Errorf("%d bytes are left", len(got))
	}
}

// TestConcealForms checks that a value is redacted in any encoding that a webhook might use, for Secrets and other kinds.
func TestConcealForms(t *testing.T) {
	const value = "canary \"<7>\"\nof two lines"
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	for name, form := range map[string]string{
		"plain": value, "quoted by Go": strconv.Quote(value), "in JSON": string(quoted),
		"in base64": encoded, "in base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(value)), "cut off": encoded[:20],
		"in hexadecimal digits": hex.EncodeToString([]byte(value)), "as bytes": fmt.Sprintf("%d", []byte(value)),
		"in capital digits": strings.ToUpper(hex.EncodeToString([]byte(value))),
	} {
		for kind, body := range map[string]string{
			"Secret": `{"data":{"a":"` + encoded + `"}}`, "ConfigMap": `{"data":{"a":` + string(quoted) + `}}`,
		} {
			err := explain(manifestWith(kind, body), false, said("denied: "+form))
			if rest := strings.TrimPrefix(err.Error(), "v1/"+kind+"/shop/x: "); strings.Contains(rest, form) || confidential.Contains(rest, []string{value}, minLength) {
				t.Errorf("%s in a %s: %v", name, kind, err)
			}
		}
	}
}

// TestConnectionsAndRightsAreTold checks that errors about connections and permissions are reported in full, even if a
// kubeconfig contains the same address.
func TestConnectionsAndRightsAreTold(t *testing.T) {
	for text, err := range map[string]error{
		"https://api.shoot.example.org": fmt.Errorf("Patch %q: connection refused", "https://api.shoot.example.org/api"),
		"system:serviceaccount:kube-system:robot": statusError(http.StatusForbidden, metav1.StatusReasonForbidden,
			`secrets "x" is forbidden: User "system:serviceaccount:kube-system:robot" cannot patch resource "secrets" in API group ""`),
	} {
		encoded := base64.StdEncoding.EncodeToString([]byte("kubeconfig of " + text))
		for _, manifest := range []object.Manifest{
			manifestWith("Secret", `{"data":{"a":"`+encoded+`"}}`), manifestWith("ConfigMap", `{"data":{"a":"`+text+`"}}`),
		} {
			if got := explain(manifest, true, err).Error(); !strings.Contains(got, text) {
				t.Errorf("%s is missing: %s", text, got)
			}
		}
	}
}

// TestWebhooksSeeFormerData checks that the previous data of a Secret is redacted from messages of webhooks. No manifest
// contains that data.
func TestWebhooksSeeFormerData(t *testing.T) {
	manifest := manifestWith("Secret", `{"data":{"a":"bmV3"}}`)
	for _, text := range []string{
		`admission webhook "check.example.org" denied the request: it was ` + hunter,
		`Internal error occurred: failed calling webhook "check.example.org": an error on the server ("` + hunter + `") has prevented the request from succeeding`,
	} {
		cause := statusError(http.StatusForbidden, metav1.StatusReasonForbidden, text)
		for name, err := range map[string]error{
			"update": explain(manifest, true, cause), "deletion": redactWebhookMessage(manifest.Ref, true, cause),
		} {
			if strings.Contains(err.Error(), hunter) || !strings.Contains(err.Error(), `admission webhook "check.example.org"`) || !apierrors.IsForbidden(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := explain(manifest, false, cause); !strings.Contains(err.Error(), hunter) {
			t.Errorf("redacted although there was no Secret before: %v", err)
		}
		if err := explain(manifestWith("ConfigMap", `{}`), true, cause); !strings.Contains(err.Error(), hunter) {
			t.Errorf("redacted although the object is not a Secret: %v", err)
		}
	}
	err := statusError(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	if got := redactWebhookMessage(manifest.Ref, true, err); got.Error() != err.Error() {
		t.Errorf("redacted although the message is not from a webhook: %v", got)
	}
}

// FuzzExplain checks that an error does not repeat a confidential value of a manifest, whatever text surrounds the value.
func FuzzExplain(f *testing.F) {
	f.Add("denied: %s is weak", hunter, false)
	f.Add("%s%s", "a\"b<c>\n\x00\xff12345678", true)
	f.Add(`Invalid value: {"a":"%s"}: x errors:`+"\n%s", "aaaaaaaaaaaaaaaaaaaaaaaa", true)
	f.Add("%s", "%s%s%s%s%s", false)
	f.Fuzz(func(t *testing.T, text, value string, isSecret bool) {
		if len(strings.TrimSpace(value)) < minLength || strings.Contains(value, redacted) || len(text)+len(value) > 4096 {
			t.Skip()
		}
		if unauthorized.MatchString(text) {
			t.Skip("the text is about permissions")
		}
		kind, field := "ConfigMap", value
		if isSecret {
			kind, field = "Secret", base64.StdEncoding.EncodeToString([]byte(value))
		}
		body, err := json.Marshal(map[string]any{"data": map[string]string{"a": field}})
		if err != nil {
			t.Fatal(err)
		}
		if !isSecret {
			var sent struct{ Data map[string]string }
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatal(err)
			}
			value = sent.Data["a"] // valid UTF-8
		}
		trimmed := strings.TrimSpace(value)
		for _, form := range confidential.Encodings(trimmed) {
			if strings.Contains("v1/"+kind+"/shop/x: "+(&withheldError{err: errors.New("")}).Error(), form) {
				t.Skip("the value is part of the fixed text")
			}
		}
		for _, form := range append(confidential.Encodings(trimmed), trimmed) {
			got := explain(manifestWith(kind, string(body)), false, said(strings.ReplaceAll(text, "%s", form))).Error()
			if strings.Contains(got, form) {
				t.Fatalf("%q repeats %q", got, form)
			}
		}
	})
}
