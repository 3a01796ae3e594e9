package lease

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestHolder(t *testing.T) {
	for text, want := range map[string]*Holder{
		"a1:c1:Leader": {ID: "a1", ClusterID: "c1", Leader: true},
		"a1:c1:Member": {ID: "a1", ClusterID: "c1"},
		"a1:Leader":    {ID: "a1", Leader: true},
		"":             nil, "a1": nil, ":c1:Leader": nil, "a:b:c:d": nil,
	} {
		got, valid := ParseHolder(text)
		if valid != (want != nil) || want != nil && got != *want {
			t.Errorf("%q: %+v, %v", text, got, valid)
		}
		if want != nil && want.ClusterID != "" && got.String() != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}

func TestFormed(t *testing.T) {
	for name, test := range map[string]struct {
		holder      string
		annotations map[string]string
		want        string
	}{
		"never":                       {},
		"by the member":               {holder: "a:c1:Leader", want: "c1"},
		"by the operator":             {annotations: map[string]string{AnnotationClusterID: "c1"}, want: "c1"},
		"loss accepted":               {holder: "a:c1:Leader", annotations: map[string]string{AnnotationClusterID: "c1", AnnotationAcceptedLoss: "c1"}},
		"loss accepted, formed again": {holder: "a:c2:Leader", annotations: map[string]string{AnnotationClusterID: "c1", AnnotationAcceptedLoss: "c1"}, want: "c2"},
		"another loss accepted":       {holder: "a:c2:Leader", annotations: map[string]string{AnnotationAcceptedLoss: "c1"}, want: "c2"},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
		if test.holder != "" {
			lease.Spec.HolderIdentity = ptr.To(test.holder)
		}
		if got := Read(lease).Formed(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestState(t *testing.T) {
	if got := ParseState(State{Reason: ReasonJoining, Message: "a: b"}.String()); got.Reason != ReasonJoining || got.Message != "a: b" {
		t.Errorf("got %+v", got)
	}
	if ParseState("") != (State{}) || (State{}).String() != "" {
		t.Error("the empty state is not empty")
	}
}
