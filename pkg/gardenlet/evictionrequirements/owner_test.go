package evictionrequirements

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
)

// TestOperatorRestricts checks that gardenlet leaves VerticalPodAutoscalers to the operator if the seed has a Garden, and that the operator never does.
func TestOperatorRestricts(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, hasGarden := range []bool{false, true} {
		cluster := fake.NewClientBuilder().WithScheme(scheme)
		if hasGarden {
			cluster = cluster.WithObjects(&operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "garden"}})
		}
		gardenlet := &Reconciler{Facts: &seedfacts.Reader{
			Uncached: cluster.Build(), Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)),
			Server: func(context.Context) (string, error) { return "1.37.0", nil },
		}}
		if others, err := gardenlet.othersDo(t.Context()); err != nil || others != hasGarden {
			t.Errorf("gardenlet, in a seed with a Garden %t: others do %t, %v", hasGarden, others, err)
		}
	}
	if others, err := (&Reconciler{}).othersDo(t.Context()); err != nil || others {
		t.Errorf("the operator: others do %t, %v", others, err)
	}
}
