package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestFailedStatus checks that an error that ends a pass is in the status, and that what is known of members stays.
func TestFailedStatus(t *testing.T) {
	in := inputs(sample(1))
	in.Etcd.Status.Members = []druidv1alpha1.EtcdMemberStatus{{Name: "etcd-main-0"}}
	failure := fmt.Errorf("create Lease garden/etcd-main-0: %w",
		apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "etcd-main-0", errors.New("a policy")))
	status := failedStatus(in, failure)
	if last := status.LastOperation; last == nil || last.State != stateError || last.Type != operationCreate {
		t.Errorf("the last operation is %+v", last)
	}
	if errs := status.LastErrors; len(errs) != 1 || errs[0].Description != failure.Error() || errs[0].Code != codeReconcile {
		t.Errorf("the last errors are %+v", errs)
	}
	if len(status.Members) != 1 {
		t.Errorf("the members are %+v", status.Members)
	}
	in.Etcd.Status, in.Now = status, noon.Add(1)
	if again := failedStatus(in, failure); !again.LastErrors[0].ObservedAt.Equal(&status.LastErrors[0].ObservedAt) {
		t.Error("the same error at another time changes the status")
	}
}

// TestErrorsThatPass checks that an error that passes by itself does not make an operation an Error.
func TestErrorsThatPass(t *testing.T) {
	for name, err := range map[string]error{
		"none":           nil,
		"time-out":       context.DeadlineExceeded,
		"another reader": apierrors.NewTooManyRequestsError("later"),
	} {
		if report := withError(flow.Report{}, err); len(report.LastErrors) > 0 || report.LastOperation.State != "" {
			t.Errorf("%s: %+v", name, report)
		}
	}
}
