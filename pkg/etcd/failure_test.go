package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	componentetcd "github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/health/expression"
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

// TestCommandForLostDataIsNotCut checks that the health of an Etcd with the longest names contains the whole command that accepts the
// loss of data, although the length of such texts is limited.
func TestCommandForLostDataIsNotCut(t *testing.T) {
	checks, err := expression.Compile([]resourcesv1alpha1.HealthCheck{componentetcd.Health()})
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []*druidv1alpha1.StoreSpec{nil, {}} {
		etcd := sample(1)
		etcd.Namespace, etcd.Name, etcd.Spec.Backup.Store = "shoot--ten-letter--eleven-letters"[:30], "etcd-events", store
		in := inputs(etcd, healthy(0, withState(lease.ReasonDataLost)))
		in.Members[0].Name, in.Members[0].Holder.ClusterID = MemberName(etcd.Name, 0), "0123456789abcdef"
		etcd.Status.LastErrors = []druidv1alpha1.LastError{{Description: in.dataLost()}}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(etcd)
		if err != nil {
			t.Fatal(err)
		}
		verdict := checks.For(schema.GroupKind{Group: druidv1alpha1.GroupName, Kind: "Etcd"}).Evaluate(t.Context(), object)
		command := "kubectl -n " + etcd.Namespace + " annotate etcd etcd-events --overwrite " + AnnotationAcceptDataLoss + "=0123456789abcdef"
		if !strings.Contains(verdict.Unhealthy, command) {
			t.Errorf("the command is not in %q", verdict.Unhealthy)
		}
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
