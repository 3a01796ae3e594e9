package managedresource

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/object"
)

var (
	errTimeout = errors.New("timed out")
	errInvalid = &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "invalid",
	}}
)

// wanted and unwanted return a change of an object that is, or is not, in the manifests.
func wanted(name string, action action, err error) change {
	manifest := manifestOf(configMapKind, "a", name)
	return change{Ref: manifest.Ref, manifest: &manifest, action: action, reason: "because", err: err}
}

func unwanted(name string, action action, err error) change {
	return change{Ref: object.Ref{GroupVersionKind: configMapKind, Namespace: "a", Name: name}, action: action, reason: "because", err: err}
}

func badManifest(text string) problem {
	return problem{reason: resourcesv1alpha1.ReasonDecodingFailed, err: errors.New(text)}
}

func refusal(text string) problem {
	return problem{reason: resourcesv1alpha1.ReasonApplyFailed, err: errors.New(text), refuses: true}
}

func unreadableSecret(transient bool) problem {
	return problem{reason: resourcesv1alpha1.ReasonCannotReadSecret, err: errors.New("could not read secret"), transient: transient}
}

func TestVerdict(t *testing.T) {
	const isTrue, isFalse, progressing = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionProgressing
	all := []change{
		wanted("f", actionApply, errors.New("failure of f")), unwanted("u", actionDelete, errors.New("failure of u")),
		wanted("w", actionWait, nil), unwanted("p", actionWait, nil),
	}
	for name, test := range map[string]struct {
		problems []problem
		changes  []change
		status   resourcesv1alpha1.ConditionStatus
		reason   string
		says     []string
	}{
		"nothing to do": {nil, nil, isTrue, "ApplySucceeded", []string{"All resources are applied."}},
		"all done": {
			nil, []change{
				wanted("a", actionCreate, nil), wanted("b", actionApply, nil), wanted("c", actionSkip, nil),
				unwanted("d", actionDelete, nil), unwanted("e", actionForget, nil), unwanted("f", actionRelease, nil),
			}, isTrue, "ApplySucceeded", []string{"All resources are applied."},
		},
		"pending":     {nil, all[3:], progressing, "DeletionPending", []string{"Deletion is still pending (1): v1/ConfigMap/a/p: because"}},
		"waiting":     {nil, all[2:], progressing, "ApplyProgressing", []string{"Waiting to apply (1): v1/ConfigMap/a/w: because", "still pending (1)"}},
		"undeletable": {nil, all[1:], isFalse, "DeletionFailed", []string{"Could not delete (1): failure of u", "Waiting to apply", "still pending"}},
		"failed":      {nil, all, isFalse, "ApplyFailed", []string{"Could not apply (1): failure of f", "Could not delete", "Waiting to apply", "still pending"}},
		"bad manifests": {
			[]problem{badManifest("bad 2"), badManifest("bad 1")}, all, isFalse, "DecodingFailed",
			[]string{"Could not read all manifests, so nothing is pruned (2): bad 1; bad 2\nCould not apply (1)"},
		},
		"what has nothing to do with manifests": {
			[]problem{refusal("spec.serviceAccountName: missing")}, nil, isFalse, "ApplyFailed",
			[]string{"Nothing is applied or pruned (1): spec.serviceAccountName: missing"},
		},
		"that, and bad manifests": {
			[]problem{badManifest("bad"), refusal("missing")}, nil, isFalse, "DecodingFailed",
			[]string{"Nothing is applied or pruned (1): missing\nCould not read all manifests, so nothing is pruned (1): bad"},
		},
		"an unreadable Secret is the gravest": {
			[]problem{badManifest("bad"), unreadableSecret(false)}, nil, isFalse, "CannotReadSecret", []string{"bad; could not read secret"},
		},
		"handed over": {
			nil, []change{unwanted("h", actionHandOver, nil)}, isTrue, "ApplySucceeded", []string{"Handing over (1): v1/ConfigMap/a/h: because"},
		},
		"a failed handover": {
			nil, []change{unwanted("h", actionHandOver, errTimeout)}, isFalse, "DeletionFailed", []string{"timed out"},
		},
		"applied without unknown fields": {
			nil, []change{{Ref: wanted("a", actionApply, nil).Ref, action: actionApply, dropped: []string{"spec.b", "spec.c"}}}, isTrue, "ApplySucceeded",
			[]string{"Applied without fields that the API server does not know (1): v1/ConfigMap/a/a: spec.b, spec.c"},
		},
		"a conflict":      {nil, []change{wanted("a", actionConflict, errors.New("belongs to another"))}, isFalse, "ApplyFailed", []string{"belongs to another"}},
		"a failed wait":   {nil, []change{wanted("a", actionWait, errTimeout)}, isFalse, "ApplyFailed", []string{"timed out"}},
		"a failed forget": {nil, []change{unwanted("a", actionFail, errTimeout)}, isFalse, "DeletionFailed", []string{"timed out"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tallyOf(test.problems, test.changes).verdict()
			if got.Status != test.status || got.Reason != test.reason {
				t.Errorf("got %s/%s, want %s/%s", got.Status, got.Reason, test.status, test.reason)
			}
			expectContains(t, got.Message, test.says...)
		})
	}
}

// TestVerdictOfDeletionThatIsRefused checks the message for a ManagedResource that is being deleted, and therefore has nothing
// to apply.
func TestVerdictOfDeletionThatIsRefused(t *testing.T) {
	tally := tallyOf([]problem{refusal("spec.serviceAccountName: missing")}, nil)
	tally.deleting = true
	expectContains(t, tally.verdict().Message, "Nothing is deleted (1): spec.serviceAccountName: missing")
}

// TestVerdictOfDeletionThatHandsOver checks that a ManagedResource that is being deleted waits for the new owners of its
// objects, and reports that.
func TestVerdictOfDeletionThatHandsOver(t *testing.T) {
	tally := tallyOf(nil, []change{unwanted("h", actionHandOver, nil)})
	tally.deleting = true
	got := tally.verdict()
	if got.Status != resourcesv1alpha1.ConditionProgressing || got.Reason != resourcesv1alpha1.ReasonDeletionPending {
		t.Errorf("got %s/%s", got.Status, got.Reason)
	}
	expectContains(t, got.Message, "Handing over (1): v1/ConfigMap/a/h: because")
}

func TestVerdictsAreStable(t *testing.T) {
	changes := []change{wanted("a", actionFail, errors.New("one")), wanted("b", actionFail, errors.New("two")), unwanted("c", actionWait, nil), unwanted("d", actionWait, nil)}
	want := tallyOf(nil, changes).verdict()
	slices.Reverse(changes)
	if got := tallyOf(nil, changes).verdict(); got != want {
		t.Errorf("in another order the verdict is %+v, want %+v", got, want)
	}
}

func TestRetryable(t *testing.T) {
	for name, test := range map[string]struct {
		problems []problem
		changes  []change
		want     bool
	}{
		"nothing":                  {nil, nil, false},
		"pending":                  {nil, []change{unwanted("a", actionWait, nil)}, false},
		"bad manifest":             {[]problem{badManifest("x")}, nil, false},
		"a Secret that is missing": {[]problem{unreadableSecret(false)}, nil, false},
		"a Secret that timed out":  {[]problem{badManifest("x"), unreadableSecret(true)}, nil, true},
		"invalid":                  {nil, []change{wanted("a", actionApply, errInvalid)}, false},
		"invalid, wrapped":         {nil, []change{wanted("a", actionApply, fmt.Errorf("x: %w", errInvalid))}, false},
		"timed out":                {nil, []change{wanted("a", actionApply, errTimeout)}, true},
		"one of both":              {nil, []change{wanted("a", actionApply, errInvalid), wanted("b", actionApply, errTimeout)}, true},
		"a failed deletion":        {nil, []change{unwanted("a", actionDelete, errTimeout)}, true},
	} {
		if got := tallyOf(test.problems, test.changes).retryable(); got != test.want {
			t.Errorf("%s: retryable is %v, want %v", name, got, test.want)
		}
	}
}

func TestTruncateKeepsWholeCharacters(t *testing.T) {
	exact := strings.Repeat("x", conditiontext.MaxCondition)
	if got := conditiontext.ForCondition(exact); got != exact {
		t.Errorf("a message of the maximum length was truncated to %d bytes", len(got))
	}
	for _, character := range []string{"x", "é", "…", "😀"} {
		for shift := range len(character) {
			got := conditiontext.ForCondition(strings.Repeat("x", shift) + strings.Repeat(character, conditiontext.MaxCondition+1))
			if len(got) > conditiontext.MaxCondition || len(got) < conditiontext.MaxCondition-len("…")-len("😀") {
				t.Errorf("%q shifted by %d: got %d bytes, want about %d", character, shift, len(got), conditiontext.MaxCondition)
			}
			if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) || !strings.HasSuffix(got, " …") {
				t.Errorf("%q shifted by %d: the text ends with %q", character, shift, got[len(got)-8:])
			}
		}
	}
}

func TestStatusPatchTouchesOnlyWhatIsOwned(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "shop", UID: "uid-1", ResourceVersion: "7",
			Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, Finalizers: []string{"f"},
		},
		Spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: "s"}}},
	}
	status := resourcesv1alpha1.ManagedResourceStatus{
		Conditions: []resourcesv1alpha1.Condition{
			{Type: "Foreign", Status: "True", Reason: "Other", LastTransitionTime: now, LastUpdateTime: now},
			{Type: resourcesv1alpha1.ResourcesApplied, Status: "False", Reason: "Mine", LastTransitionTime: now, LastUpdateTime: now},
		},
		ObservedGeneration:  3,
		Resources:           []resourcesv1alpha1.ObjectReference{entry(configMapKind, "a", "x", "d")},
		SecretsDataChecksum: ptr.To("sum"),
	}
	body, err := statusPatch(mr, status)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	const at = "2026-01-01T00:00:00Z"
	want := map[string]any{
		"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
		"metadata": map[string]any{"namespace": "garden", "name": "shop", "uid": "uid-1", "resourceVersion": "7"},
		"status": map[string]any{
			"conditions": []any{map[string]any{
				"type": "ResourcesApplied", "status": "False", "reason": "Mine", "message": "", "lastTransitionTime": at, "lastUpdateTime": at,
			}},
			"observedGeneration":  3.0,
			"resources":           []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x", "digest": "d"}},
			"secretsDataChecksum": "sum",
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
	if len(status.Conditions) != 2 {
		t.Error("the caller's status was changed")
	}
}

func TestSectionLeavesOutWhatIsFleeting(t *testing.T) {
	for text, want := range map[string]string{
		"read tcp 127.0.0.1:41234->127.0.0.1:6443: read: connection reset by peer":                                           "read tcp 127.0.0.1:6443: read: connection reset by peer",
		"read udp [::1]:41234->[::1]:53: i/o timeout":                                                                        "read udp [::1]:53: i/o timeout",
		"http2: server sent GOAWAY and closed the connection; LastStreamID=1999, ErrCode=NO_ERROR, debug=\"\"":               "http2: server sent GOAWAY and closed the connection; ErrCode=NO_ERROR, debug=\"\"",
		"x509: certificate has expired or is not yet valid: current time 2026-01-02T03:04:05Z is after 2026-01-01T00:00:00Z": "x509: certificate has expired or is not yet valid: current time is after 2026-01-01T00:00:00Z",
		"dial tcp 127.0.0.1:6443: connect: connection refused":                                                               "dial tcp 127.0.0.1:6443: connect: connection refused",
	} {
		if got := section("x", []string{text}); got != "x (1): "+want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestVerdictOfCoercedMetadata(t *testing.T) {
	tally := tallyOf(nil, nil)
	tally.coerced = []string{"v1/ConfigMap/default/a: metadata.labels[\"key\"]"}
	got := tally.verdict()
	if got.Status != resourcesv1alpha1.ConditionTrue || got.Reason != resourcesv1alpha1.ReasonApplySucceeded {
		t.Errorf("%+v", got)
	}
	expectContains(t, got.Message, `Converted to strings; quote them in the manifests (1): v1/ConfigMap/default/a: metadata.labels["key"]`)
}
