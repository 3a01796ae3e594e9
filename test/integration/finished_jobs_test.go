package integration

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// job returns the manifest of a Job. It is suspended, so that only the test changes its status.
func (f *fixture) job(spec, image string) string {
	return f.here("apiVersion: batch/v1\nkind: Job\nmetadata: {name: init, namespace: NS}\nspec: {" + spec +
		"suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: \"" + image + "\"}]}}}\n")
}

func (f *fixture) liveJob() *batchv1.Job {
	f.Helper()
	job := &batchv1.Job{}
	if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "init"}, job); !apierrors.IsNotFound(err) {
		must(f, err)
		return job
	}
	return nil
}

// fail sets the status of the Job to failed, as the Job controller does.
func (f *fixture) fail() {
	f.Helper()
	job := f.liveJob()
	patch := client.MergeFrom(job.DeepCopy())
	now := metav1.Now()
	job.Status.StartTime = &now
	for _, condition := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: condition, Status: corev1.ConditionTrue, Reason: "Test", LastProbeTime: now, LastTransitionTime: now,
		})
	}
	must(f, f.client.Status().Patch(f.ctx, job, patch))
}

func (f *fixture) deleteJob() {
	f.Helper()
	must(f, client.IgnoreNotFound(f.client.Delete(f.ctx, f.liveJob(), client.PropagationPolicy(metav1.DeletePropagationBackground))))
	f.eventually("the Job is deleted", func() bool { return f.liveJob() == nil })
}

// TestFinishedJobRunsOnce deletes a finished Job with a TTL at different times. It is created again only for another
// manifest.
func TestFinishedJobRunsOnce(t *testing.T) {
	const ttl = "ttlSecondsAfterFinished: 3600, "
	for name, disturb := range map[string]func(f *fixture){
		"after the pass that sees it": func(f *fixture) {
			f.reconcileOK("set")
			f.deleteJob()
		},
		"before any pass sees it": (*fixture).deleteJob,
		"while the resource-manager is down": func(f *fixture) {
			f.reconcileOK("set")
			f.restart()
			f.deleteJob()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.manage("set", f.job(ttl, "a:1"), f.configMap("one", "1"))
			f.reconcileOK("set")
			f.catchUp()
			f.fail()
			f.catchUp()
			disturb(f)
			for range 2 {
				f.reconcileOK("set")
				if f.liveJob() != nil {
					t.Fatal("the Job is created again")
				}
			}
			f.restart()
			f.wantNoWrites("set")
			f.secret("set", "objects.yaml", f.job(ttl, "a:1")+"---\n"+f.configMap("one", "2"))
			f.reconcileOK("set")
			if f.liveJob() != nil {
				t.Error("the Job is created again for a change of another object")
			}
			f.secret("set", "objects.yaml", f.job(ttl, "a:2")+"---\n"+f.configMap("one", "2"))
			f.reconcileOK("set")
			if f.liveJob() == nil {
				t.Error("the Job of another revision is not created")
			}
			if f.completed() {
				t.Error("the Job of another revision is recorded as completed")
			}
		})
	}
}

// completed reports whether the inventory records a completed Job.
func (f *fixture) completed() bool {
	f.Helper()
	for _, entry := range f.read("set").Status.Resources {
		if entry.Completed {
			return true
		}
	}
	return false
}

// TestJobThatIsCreatedAgain deletes Jobs that have not finished, or that no TTL deletes.
func TestJobThatIsCreatedAgain(t *testing.T) {
	for _, test := range []struct {
		spec     string
		finishes bool
	}{
		{"ttlSecondsAfterFinished: 3600, ", false},
		{"", true},
		{"", false},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			f := newFixture(t)
			f.manage("set", f.job(test.spec, "a:1"))
			f.reconcileOK("set")
			if test.finishes {
				f.fail()
			}
			f.reconcileOK("set")
			f.deleteJob()
			f.reconcileUntil("set", "the Job is created again", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Status == resourcesv1alpha1.ConditionTrue && f.liveJob() != nil
			})
		})
	}
}
