package managedresource

import (
	"errors"
	"testing"

	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestProgressOf(t *testing.T) {
	for reason, stays := range map[string]bool{
		"":                                             false,
		resourcesv1alpha1.ReasonApplyFailed:            true,
		resourcesv1alpha1.ReasonDeletionFailed:         true,
		resourcesv1alpha1.ReasonDeletionPending:        true,
		resourcesv1alpha1.ReasonDecodingFailed:         false,
		resourcesv1alpha1.ReasonApplySucceeded:         false,
		resourcesv1alpha1.ReasonDependencyNotReady:     false,
		resourcesv1alpha1.ReasonManagedResourceIgnored: false,
	} {
		got := progressOf(resourcesv1alpha1.Condition{Reason: reason, Message: "before"})
		if got.Status != resourcesv1alpha1.ConditionProgressing {
			t.Errorf("after %q the status is %s", reason, got.Status)
		}
		if stays != (got.Reason == reason && got.Message == "before") || !stays && got.Reason != resourcesv1alpha1.ReasonApplyProgressing {
			t.Errorf("after %q the condition is %s: %s", reason, got.Reason, got.Message)
		}
	}
}

func TestHasNews(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*pass, *input)
		want   bool
	}{
		"nothing":                {func(*pass, *input) {}, false},
		"the first time":         {func(p *pass, _ *input) { p.mr.Status.SecretsDataChecksum = nil }, true},
		"other data":             {func(_ *pass, in *input) { in.checksum = "other" }, true},
		"another spec":           {func(p *pass, _ *input) { p.mr.Generation++ }, true},
		"data that is not whole": {func(_ *pass, in *input) { in.checksum, in.problems = "other", []problem{{err: errors.New("bad")}} }, false},
	} {
		p, in := &pass{mr: &resourcesv1alpha1.ManagedResource{}}, input{checksum: "same"}
		p.mr.Status.SecretsDataChecksum = ptr.To("same")
		test.change(p, &in)
		if got := p.hasNews(in); got != test.want {
			t.Errorf("%s: hasNews is %v", name, got)
		}
	}
}
