package care

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
)

// TestUpdatesInPlace checks which pools the status names, and that they stay while nothing is known.
func TestUpdatesInPlace(t *testing.T) {
	pending := func(pools ...string) *corev1beta1.InPlaceUpdatesStatus {
		return &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: pools}}
	}
	inPlace := func(o *Observation) {
		worker := &o.Shoot.Spec.Provider.Workers[0]
		worker.UpdateStrategy, worker.Machine.Image = ptr.To(corev1beta1.ManualInPlaceUpdate), &corev1beta1.ShootMachineImage{Version: ptr.To("1")}
		pools, err := workerpool.Of(o.Shoot, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.UpdatedInPlace = map[string]string{"a": pools[0].InPlaceHash()}
	}
	waiting := func(o *Observation) { o.Shoot.Status.InPlaceUpdates = pending("a") }
	outdated := func(o *Observation) { o.UpdatedInPlace["a"] = "old" }
	unknown := func(o *Observation) { o.UpdatedInPlace = nil }
	for name, test := range map[string]struct {
		change []func(*Observation)
		want   *corev1beta1.InPlaceUpdatesStatus
	}{
		"machines are replaced": {[]func(*Observation){waiting}, nil},
		"updated":               {[]func(*Observation){inPlace, waiting}, nil},
		"pending":               {[]func(*Observation){inPlace, outdated}, pending("a")},
		"nothing is reported":   {[]func(*Observation){inPlace, waiting, unknown}, pending("a")},
		"not valid": {[]func(*Observation){inPlace, waiting, func(o *Observation) {
			o.Shoot.Spec.Provider.Workers[0].Machine.Image = nil
		}}, pending("a")},
	} {
		o := healthy(withNodes(test.change...))
		if got := o.updatesInPlace(); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v", name, got)
		}
		constraints, _ := o.Constraints()
		found := corev1beta1.FindCondition(constraints, corev1beta1.ShootManualInPlaceWorkersUpdated)
		if (found != nil) != (test.want != nil) || found != nil && (found.Status != corev1beta1.ConditionFalse || !strings.HasSuffix(found.Message, ": a")) {
			t.Errorf("%s: the constraint is %+v", name, found)
		}
	}
}
