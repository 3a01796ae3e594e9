package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

const (
	// untilSchedules is the time from the creation of the Shoots to the first time of their schedules, in which they start.
	untilSchedules = 6 * time.Minute
	// asleepFor is the time between the two times of the schedule of hibernation.
	asleepFor = 5 * time.Minute
	// scheduleSpread is how much later than a schedule or the beginning of a window a Shoot can have its turn, and scheduleTimeout how long a
	// test waits for it and for the operation after it.
	scheduleSpread  = 15 * time.Minute
	scheduleTimeout = scheduleSpread + fleetTimeout
)

// scheduleZone is the time zone of the schedules. It differs from UTC by a part of an hour.
const scheduleZone = "Asia/Kathmandu"

// TestSchedules has Shoots in real containers hibernated and maintained at their times: nothing happens before, and then each does what its
// schedule says without a user. The scheduler chooses their Seed.
func TestSchedules(t *testing.T) {
	if !*schedules {
		t.Skip("waits for half an hour: -landscape.schedules")
	}
	c, f := onFleet(t)
	c.reduceRequests()
	must(t, f.Up(c.ctx))
	location, err := time.LoadLocation(scheduleZone)
	must(t, err)
	at := time.Now().Add(untilSchedules).In(location).Truncate(time.Minute)
	sleeper := client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: "sleeper"}
	maintained := client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: "maintained"}
	took, err := f.CreateShoots(c.ctx, sleeper, maintained)
	must(t, err)
	t.Logf("the Shoots were ready after %v", took)
	c.schedule(f, sleeper, maintained, at)
	t.Run("schedules", func(t *testing.T) {
		t.Run("hibernation", func(t *testing.T) {
			t.Parallel()
			c.in(t).sleeps(f, sleeper, at)
		})
		t.Run("maintenance", func(t *testing.T) {
			t.Parallel()
			c.in(t).isMaintained(f, maintained, at)
		})
	})
	c.deleteShoot(f, sleeper, false)
	c.deleteShoot(f, maintained, false)
}

// patchShoot patches a Shoot.
func (c *cluster) patchShoot(f *fleet.Fleet, key client.ObjectKey, change func(*corev1beta1.Shoot)) {
	c.t.Helper()
	shoot := &corev1beta1.Shoot{}
	must(c.t, f.Get(c.ctx, key, shoot))
	before := client.MergeFrom(shoot.DeepCopy())
	change(shoot)
	must(c.t, f.Patch(c.ctx, shoot, before))
}

// schedule sets a schedule of hibernation for one Shoot. For another one it sets a window of maintenance, and requests a rotation and a change
// that both wait for the window.
func (c *cluster) schedule(f *fleet.Fleet, sleeper, maintained client.ObjectKey, at time.Time) {
	c.t.Helper()
	cron := func(at time.Time) *string { return ptr.To(fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())) }
	c.patchShoot(f, sleeper, func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Hibernation = &corev1beta1.Hibernation{Schedules: []corev1beta1.HibernationSchedule{{
			Start: cron(at), End: cron(at.Add(asleepFor)), Location: ptr.To(scheduleZone),
		}}}
	})
	const format = "150405-0700"
	c.patchShoot(f, maintained, func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Maintenance.TimeWindow = &corev1beta1.MaintenanceTimeWindow{
			Begin: at.Format(format), End: at.Add(2 * scheduleSpread).Format(format),
		}
		shoot.Spec.Maintenance.ConfineSpecUpdateRollout = ptr.To(true)
	})
	c.within(fleetTimeout, "the Shoots are ready", func() error {
		return errors.Join(f.ShootIsReady(c.ctx, sleeper), f.ShootIsReady(c.ctx, maintained))
	})
	c.patchShoot(f, maintained, func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{Requests: &corev1beta1.APIServerRequests{MaxNonMutatingInflight: ptr.To[int32](401)}}
		shoot.Annotations = map[string]string{constants.AnnotationMaintenanceOperation: constants.OperationRotateETCDEncryptionKey}
	})
}

// sleeps checks that a Shoot is hibernated after the first time of its schedule, and awake after the second.
func (c *cluster) sleeps(f *fleet.Fleet, key client.ObjectKey, at time.Time) {
	c.t.Helper()
	for _, step := range []struct {
		what       string
		at         time.Time
		hibernated bool
	}{{"hibernated", at, true}, {"awake", at.Add(asleepFor), false}} {
		var ended time.Time
		c.within(time.Until(step.at)+scheduleTimeout, key.Name+" is "+step.what, func() error {
			shoot := &corev1beta1.Shoot{}
			if err := f.Get(c.ctx, key, shoot); err != nil {
				return err
			}
			if shoot.Status.IsHibernated != step.hibernated {
				return fmt.Errorf("it is hibernated: %t, %+v", shoot.Status.IsHibernated, shoot.Status.LastOperation)
			}
			ended = time.Now()
			return f.ShootIsReady(c.ctx, key)
		})
		if ended.Before(step.at) {
			c.t.Errorf("%s is %s %s before the time of its schedule", key.Name, step.what, step.at.Sub(ended))
		}
		c.t.Logf("%s is %s %s after the time of its schedule", key.Name, step.what, ended.Sub(step.at).Round(time.Second))
	}
}

// isMaintained checks that the requested rotation and the change of the API server are executed after the window opens, and not before.
func (c *cluster) isMaintained(f *fleet.Fleet, key client.ObjectKey, at time.Time) {
	c.t.Helper()
	shoot := &corev1beta1.Shoot{}
	var changed, rotated time.Time
	c.within(time.Until(at)+scheduleTimeout, key.Name+" is maintained", func() error {
		must(c.t, f.Get(c.ctx, key, shoot))
		if changed.IsZero() && c.hasFlag(shoot.Status.TechnicalID, "--max-requests-inflight=401") {
			changed = time.Now()
		}
		if rotated.IsZero() && isRotated(shoot) {
			rotated = time.Now()
		}
		if changed.IsZero() || rotated.IsZero() {
			return fmt.Errorf("changed at %q, rotated at %q, last maintenance %+v, last operation %+v", changed, rotated, shoot.Status.LastMaintenance, shoot.Status.LastOperation)
		}
		return f.ShootIsReady(c.ctx, key)
	})
	for what, when := range map[string]time.Time{"changed": changed, "rotated": rotated} {
		if when.Before(at) {
			c.t.Errorf("%s is %s %s before its window", key.Name, what, at.Sub(when))
		}
		c.t.Logf("%s is %s %s after its window opened", key.Name, what, when.Sub(at).Round(time.Second))
	}
	last := shoot.Status.LastMaintenance
	if last == nil || last.State != corev1beta1.LastOperationStateSucceeded || shoot.Annotations[constants.AnnotationMaintenanceOperation] != "" {
		c.t.Errorf("the last maintenance is %+v, and the annotations are %v", last, shoot.Annotations)
		return
	}
	c.t.Logf("maintained %s after the window opened: %s", last.TriggeredTime.Sub(at), last.Description)
}

// isRotated reports whether the encryption key of etcd has been rotated.
func isRotated(shoot *corev1beta1.Shoot) bool {
	credentials := shoot.Status.Credentials
	return credentials != nil && credentials.Rotation != nil && credentials.Rotation.ETCDEncryptionKey != nil &&
		credentials.Rotation.ETCDEncryptionKey.LastCompletionTime != nil
}

// hasFlag reports whether the API server of a Shoot is deployed with a flag.
func (c *cluster) hasFlag(namespace, flag string) bool {
	deployment := &appsv1.Deployment{}
	must(c.t, c.Get(c.ctx, client.ObjectKey{Namespace: namespace, Name: "kube-apiserver"}, deployment))
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if slices.Contains(slices.Concat(container.Command, container.Args), flag) {
			return true
		}
	}
	return false
}
