package etcd

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// TestStorageClassIsThatOfTheCreation checks that a webhook may set the storage class of an Etcd after its StatefulSet was created,
// or that of the StatefulSet, without a change of the immutable field.
func TestStorageClassIsThatOfTheCreation(t *testing.T) {
	etcd := sample(1)
	in := inputs(etcd)
	template, digest, _, err := in.template()
	if err != nil {
		t.Fatal(err)
	}
	classOf := func() string {
		return ptr.Deref(in.statefulSet(template, digest, rollout{replicas: 1}).Spec.VolumeClaimTemplates[0].Spec.StorageClassName, "none")
	}
	if class := classOf(); class != "none" {
		t.Errorf("by default, the class is %s", class)
	}
	stored := in.statefulSet(template, digest, rollout{replicas: 1})
	etcd.Spec.StorageClass = ptr.To("fast")
	if class := classOf(); class != "fast" {
		t.Errorf("the class of a new StatefulSet is %s", class)
	}
	in.StatefulSet = stored
	if class := classOf(); class != "none" {
		t.Errorf("the class of an existing StatefulSet became %s", class)
	}
	stored.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("slow")
	if class := classOf(); class != "slow" {
		t.Errorf("the class that a webhook set when the StatefulSet was created became %s", class)
	}
}

// TestLabelForWebhooks checks that the StatefulSet has the label by which webhooks of infrastructures select, if the Etcd has it,
// and that it does not select Pods.
func TestLabelForWebhooks(t *testing.T) {
	etcd := sample(1)
	in := inputs(etcd)
	template, digest, _, err := in.template()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "true"} {
		if want != "" {
			etcd.Labels[constants.LabelMutatedByControlPlaneWebhook] = want
		}
		set := in.statefulSet(template, digest, rollout{replicas: 1})
		if got := set.Labels[constants.LabelMutatedByControlPlaneWebhook]; got != want {
			t.Errorf("the label is %q, want %q", got, want)
		}
		if _, found := set.Spec.Selector.MatchLabels[constants.LabelMutatedByControlPlaneWebhook]; found {
			t.Error("the label is part of the immutable selector")
		}
	}
}
