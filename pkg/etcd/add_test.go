package etcd

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

func TestLeaseChanged(t *testing.T) {
	said := func(holder, state string, renewed time.Duration) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{lease.AnnotationState: state}}}
		if holder != "" {
			l.Spec.HolderIdentity = ptr.To(holder)
		}
		l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(noon.Add(renewed)))
		return l
	}
	for name, test := range map[string]struct {
		before, after *coordinationv1.Lease
		want          bool
	}{
		"renewed":                            {said("a:c:Leader", "", 0), said("a:c:Leader", "", 10*time.Second), false},
		"renewed after it has expired":       {said("a:c:Leader", "", 0), said("a:c:Leader", "", 2*time.Minute), true},
		"another role":                       {said("a:c:Leader", "", 0), said("a:c:Member", "", 0), true},
		"first holder":                       {said("", "", 0), said("a:c:Member", "", 0), true},
		"a reason, of one with a holder":     {said("a:c:Leader", "", 0), said("a:c:Leader", "DataLost: x", 0), true},
		"a reason, of one that never served": {said("", "", 0), said("", "DataLost: x", 0), true},
	} {
		if got := leaseChanged(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
