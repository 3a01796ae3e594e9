package apply

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

func statusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

func TestTerminal(t *testing.T) {
	const untyped = "failed to create typed patch object (shop/x; apps/v1, Kind=Deployment): .spec.relicas: field not declared in schema"
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"bad request":           {statusError(http.StatusBadRequest, metav1.StatusReasonBadRequest, ""), true},
		"invalid":               {statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, ""), true},
		"method not allowed":    {statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, ""), true},
		"too large":             {statusError(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, ""), true},
		"media type":            {statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, ""), true},
		"unknown field":         {statusError(http.StatusInternalServerError, metav1.StatusReasonInternalError, untyped), true},
		"internal error":        {statusError(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd is down"), false},
		"the text alone":        {errors.New(untyped), false},
		"unauthorized":          {statusError(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, ""), false},
		"forbidden":             {statusError(http.StatusForbidden, metav1.StatusReasonForbidden, ""), false},
		"not found":             {statusError(http.StatusNotFound, metav1.StatusReasonNotFound, ""), false},
		"conflict":              {statusError(http.StatusConflict, metav1.StatusReasonConflict, ""), false},
		"gone":                  {statusError(http.StatusGone, metav1.StatusReasonGone, ""), false},
		"too many requests":     {statusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, ""), false},
		"unavailable":           {statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, ""), false},
		"time-out of a gateway": {statusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, ""), false},
		"deadline":              {context.DeadlineExceeded, false},
		"kind not served":       {target.ErrKindNotServed, false},
		"changed":               {ErrChanged, false},
		"permanent":             {Permanent(errors.New("it belongs to somebody else")), true},
		"none":                  {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Terminal(test.err); got != test.want {
				t.Errorf("Terminal is %v, want %v", got, test.want)
			}
			if test.err == nil {
				return
			}
			if got := Terminal(fmt.Errorf("x: %w", test.err)); got != test.want {
				t.Errorf("Terminal of the wrapped error is %v, want %v", got, test.want)
			}
			if got := Terminal(explain(manifestWith("Secret", `{"data":{"a":"aHVudGVyMg=="}}`), false, test.err)); got != test.want {
				t.Errorf("Terminal of the explained error is %v, want %v", got, test.want)
			}
		})
	}
}

func manifestWith(kind, body string) object.Manifest {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
	return object.Manifest{Ref: object.Ref{GroupVersionKind: gvk, Namespace: "shop", Name: "x"}, Body: []byte(body)}
}

func TestExplainHidesSecretsData(t *testing.T) {
	base64Of := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	const secret, longer = "hunter2", "hunter2-and-more"
	for name, test := range map[string]struct{ body, message string }{
		"plain":                         {`{"data":{"a":"` + base64Of(secret) + `"}}`, "denied: " + secret + " is weak"},
		"in base64":                     {`{"data":{"a":"` + base64Of(secret) + `"}}`, "denied: " + base64Of(secret) + " is weak"},
		"more than once":                {`{"data":{"a":"` + base64Of(secret) + `"}}`, secret + base64Of(secret) + secret},
		"that is no base64":             {`{"data":{"a":"hunter2!"}}`, "illegal base64: hunter2!"},
		"a part of another":             {`{"data":{"a":"` + base64Of(secret) + `","b":"` + base64Of(longer) + `"}}`, "denied: " + longer},
		"a number":                      {`{"data":{"pin":271828}}`, "expected string, got 271828"},
		"a great number":                {`{"data":{"pin":2718281828}}`, "expected string, got 2718281828"},
		"nested":                        {`{"data":{"a":{"b":["hunter2"]}}}`, "expected string, got hunter2"},
		"in a nested key":               {`{"data":{"a":{"hunter2":1}}}`, "expected string, got hunter2"},
		"of the wrong shape":            {`{"data":"hunter2"}`, "expected map, got hunter2"},
		"of the wrong shape, in a list": {`{"data":["hunter2"]}`, "expected map, got hunter2"},
		"in a body that is no JSON":     {`hunter2`, "no JSON: hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			cause := statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, test.message)
			err := explain(manifestWith("Secret", test.body), false, cause)
			for _, hidden := range []string{"hunter2", "and-more", base64Of(secret), "2718"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("%q repeats the Secret's data", err)
				}
			}
			if !strings.HasPrefix(err.Error(), "v1/Secret/shop/x: ") {
				t.Errorf("%q does not name the object", err)
			}
			if !errors.Is(err, cause) || !apierrors.IsInvalid(err) {
				t.Errorf("%v does not wrap its cause", err)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	err := explain(manifestWith("Secret", `{"data":{"a":"aHVudGVyMg==","empty":""}}`), false, errors.New("denied: hunter2 is weak"))
	if got, want := err.Error(), "v1/Secret/shop/x: rejected by the API server; details are withheld, as they repeat the Secret's data"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err = explain(manifestWith("ConfigMap", `{"data":{"a":"hunter2"}}`), false, errors.New("denied: hunter2 is weak"))
	if got, want := err.Error(), "v1/ConfigMap/shop/x: denied: hunter2 is weak"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err = explain(manifestWith("ConfigMap", `{}`), false, fmt.Errorf("y: %w", target.ErrKindNotServed))
	if !errors.Is(err, target.ErrKindNotServed) || !strings.Contains(err.Error(), "install its CustomResourceDefinition") {
		t.Errorf("%q contains no advice", err)
	}
}
