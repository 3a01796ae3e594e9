package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRedactGrows(t *testing.T) {
	var fields []string
	for i := range 16 { // each doubles the length: 32 of them make 4 GiB per letter
		fields = append(fields, fmt.Sprintf(`"k%d":"ZQ=="`, i))
	}
	err := explain(manifestWith("Secret", `{"data":{`+strings.Join(fields, ",")+`}}`), false, errors.New("denied"))
	if len(err.Error()) > 1000 {
		t.Errorf("a message of 6 bytes became %d", len(err.Error()))
	}
}

func TestStringDataLeaks(t *testing.T) {
	err := explain(manifestWith("Secret", `{"stringData":{"pin":123456,"pw":"hunter2"}}`), false, errors.New("expected string, got 123456; hunter2"))
	if strings.Contains(err.Error(), "123456") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestEscapedLeaks(t *testing.T) { // data: a"hunter2\n as a webhook quotes it
	err := explain(manifestWith("Secret", `{"data":{"pw":"YSJodW50ZXIyCg=="}}`), false, fmt.Errorf("bad password %q", "a\"hunter2\n"))
	if strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestTerminalOfRedacted(t *testing.T) {
	cause := statusError(http.StatusInternalServerError, metav1.StatusReasonInternalError, "failed to create typed patch object (x): hunter2")
	for _, body := range []string{`hunter2`, `{"data":{"a":"dHlwZWQ="}}`} {
		if !Terminal(explain(manifestWith("Secret", body), false, cause)) {
			t.Errorf("%s: retried forever", body)
		}
	}
}
