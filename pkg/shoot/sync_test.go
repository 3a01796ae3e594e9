package shoot

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	library "github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/maintenance"
)

// timeOfDay is the format of the times of a window.
const timeOfDay = "150405-0700"

// windows are maintenance windows: on the hour, over an hour, over midnight, of half an hour, of six hours, in other time zones.
var windows = [][2]string{
	{"220000+0000", "230000+0000"}, {"223000+0000", "233000+0000"}, {"224500+0000", "231500+0000"}, {"220000+0000", "223000+0000"},
	{"233000+0000", "003000+0000"}, {"210000-0700", "030000-0700"}, {"003000+0545", "013000+0545"},
}

// TestDefragmentationIsInTheWindow checks that etcd clusters are defragmented in the maintenance window, at times that are spread
// over all of it.
func TestDefragmentationIsInTheWindow(t *testing.T) {
	for _, window := range windows {
		begin, err := time.Parse(timeOfDay, window[0])
		if err != nil {
			t.Fatal(err)
		}
		end, err := time.Parse(timeOfDay, window[1])
		if err != nil {
			t.Fatal(err)
		}
		length := (end.Sub(begin) + 24*time.Hour) % (24 * time.Hour)
		in := Inputs{Shoot: &corev1beta1.Shoot{}}
		in.Shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: window[0], End: window[1]}}
		times := map[time.Duration]bool{}
		for i := range 5000 {
			in.Owner.UID = types.UID(fmt.Sprintf("uid-%d", i))
			schedule := in.defragmentation()
			var minute, hour int
			if _, err := fmt.Sscanf(schedule, "%d %d * * *", &minute, &hour); err != nil {
				t.Fatalf("%s: %v", schedule, err)
			}
			utc := begin.UTC()
			after := (time.Duration(hour-utc.Hour())*time.Hour + time.Duration(minute-utc.Minute())*time.Minute + 24*time.Hour) % (24 * time.Hour)
			if after >= length {
				t.Fatalf("window %v: the schedule %q is %s after its begin", window, schedule, after)
			}
			times[after] = true
			if again := in.defragmentation(); again != schedule {
				t.Fatalf("window %v: %q, then %q", window, schedule, again)
			}
		}
		if len(times) != int(length/time.Minute) {
			t.Errorf("window %v: %d different times, want all %d minutes", window, len(times), int(length/time.Minute))
		}
	}
}

// TestTurns checks that confined Shoots with the same window are reconciled at different times of it, each in the part of the
// window in which an operation still ends before it.
func TestTurns(t *testing.T) {
	for _, window := range windows {
		begin, err := time.Parse(timeOfDay, window[0])
		if err != nil {
			t.Fatal(err)
		}
		turns := map[time.Duration]bool{}
		for i := range 500 {
			l := ready()
			l.shoot.UID = types.UID(fmt.Sprintf("uid-%d", i))
			l.shoot.Spec.Maintenance = &corev1beta1.Maintenance{
				TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: window[0], End: window[1]}, ConfineSpecUpdateRollout: ptr.To(true),
			}
			utc := begin.UTC()
			opens := time.Date(2026, 11, 24, utc.Hour(), utc.Minute(), 0, 0, time.UTC)
			l.now = opens.Add(-time.Hour)
			before := l.decide()
			turn := before.again - time.Hour
			own, _ := maintenance.OfShoot(l.shoot)
			length := own.Length()
			if before.run || turn < 0 || turn >= length-windowEnd {
				t.Fatalf("window %v: %+v an hour before the window", window, before)
			}
			turns[turn] = true
			for after, run := range map[time.Duration]bool{turn - time.Minute: false, turn: true, turn + time.Second: true, length - windowEnd: false} {
				l.now = opens.Add(after)
				if got := l.decide(); got.run != run {
					t.Fatalf("window %v, turn after %s: %s after its begin: %+v", window, turn, after, got)
				}
			}
		}
		if len(turns) < 10 {
			t.Errorf("window %v: only %d different turns", window, len(turns))
		}
	}
}

// TestSyncPeriod checks that an annotation makes the period longer where it applies, and never shorter.
func TestSyncPeriod(t *testing.T) {
	configured := gardenletv1alpha1.ShootController{}
	config := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(config)
	configured.SyncPeriod = config.Controllers.Shoot.SyncPeriod
	usual := configured.SyncPeriod.Duration
	everywhere := configured
	everywhere.RespectSyncPeriodOverwrite = ptr.To(true)
	for name, test := range map[string]struct {
		config     gardenletv1alpha1.ShootController
		namespace  string
		annotation string
		want       time.Duration
	}{
		"none":                    {everywhere, "garden", "", usual},
		"not allowed":             {configured, "garden-dev", "8h", usual},
		"allowed everywhere":      {everywhere, "garden-dev", "8h", 8 * time.Hour},
		"allowed in garden":       {configured, "garden", "8h", 8 * time.Hour},
		"shorter":                 {everywhere, "garden-dev", "1m", usual},
		"not a duration":          {everywhere, "garden-dev", "often", usual},
		"without a configuration": {gardenletv1alpha1.ShootController{}, "garden-dev", "", defaultSyncAfter},
	} {
		shoot := &corev1beta1.Shoot{}
		shoot.Namespace, shoot.Annotations = test.namespace, map[string]string{constants.AnnotationShootSyncPeriod: test.annotation}
		if got := syncPeriod(shoot, test.config); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestOncePerWindow checks that a Shoot without changes gets exactly one pass in each maintenance window if gardenlet reconciles only
// there, whatever the sync period, and that changes do not wait.
func TestOncePerWindow(t *testing.T) {
	for i := range 50 {
		l := ready()
		l.shoot.UID = types.UID(fmt.Sprintf("uid-%d", i))
		l.shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "040000+0000"}}
		l.config.ReconcileInMaintenanceOnly, l.config.SyncPeriod = ptr.To(true), &metav1.Duration{Duration: time.Minute}
		l.now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
		end := l.now.Add(10 * 24 * time.Hour)
		passes := 0
		for l.now.Before(end) {
			next := l.decide()
			again := next.again
			if next.run {
				passes++
				again = l.passAgain()
			}
			if again <= 0 {
				t.Fatalf("no time to decide again at %s: %+v", l.now, next)
			}
			l.now = l.now.Add(again)
		}
		if passes != 10 {
			t.Errorf("%s: %d passes in 10 windows", l.shoot.UID, passes)
		}
		l.shoot.Generation++
		if !l.decide().run {
			t.Error("a change waits for the window")
		}
	}
}

// TestExtensionsLearnOfFailures checks that the plan of a Shoot that has failed contains only its Cluster, in which extensions see
// the failure, and that they see it until the Shoot is changed or retried.
func TestExtensionsLearnOfFailures(t *testing.T) {
	clusterOf := func(state corev1beta1.LastOperationState, observed int64, change ...func(*Inputs)) *library.Cluster {
		in := known(t, append(change, func(in *Inputs) {
			in.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: state}
			in.Shoot.Status.ObservedGeneration = observed
		})...)
		reduced, err := withoutOperation(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(reduced.Bundles) != 1 || len(reduced.Tombstones)+len(reduced.Tasks) > 0 {
			t.Fatalf("the plan has %d bundles, %d tombstones, %d tasks", len(reduced.Bundles), len(reduced.Tombstones), len(reduced.Tasks))
		}
		for _, object := range reduced.Bundles[0].Objects {
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			stored := &extensionsv1alpha1.Cluster{}
			if _, is := object.(*extensionsv1alpha1.Cluster); !is {
				continue
			}
			if err := json.Unmarshal(text, stored); err != nil {
				t.Fatal(err)
			}
			cluster, err := library.DecodeCluster(stored)
			if err != nil {
				t.Fatal(err)
			}
			return cluster
		}
		t.Fatal("the plan has no Cluster")
		return nil
	}
	if !clusterOf(corev1beta1.LastOperationStateFailed, 1).Failed() {
		t.Error("extensions do not see that the Shoot has failed")
	}
	if !clusterOf(corev1beta1.LastOperationStateFailed, 1, withIssuer, func(in *Inputs) { in.IssuerHost = "" }).Failed() {
		t.Error("extensions do not see that a Shoot without its issuer has failed")
	}
	for _, state := range []corev1beta1.LastOperationState{corev1beta1.LastOperationStateFailed, corev1beta1.LastOperationStateError, corev1beta1.LastOperationStateProcessing} {
		if clusterOf(state, 0).Failed() || clusterOf(state, 0).Shoot.Status.LastOperation != nil {
			t.Errorf("for a new generation in the state %s, the Cluster contains the last operation", state)
		}
	}
}
