package etcd

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Result is the plan with the details that the status reports.
type Result struct {
	flow.Plan
	// NotDue is why the spec is not applied; empty if it is.
	NotDue string
	// Invalid describes the errors in the spec.
	Invalid string
	// Digest is the digest of the Pod template that members should have.
	Digest string
}

// secretRetry is the time after which the Secret of a store is read again that did not exist. It is not watched.
const secretRetry = 10 * time.Second

// Plan is the flow of an Etcd. It is a pure function of its inputs.
func Plan(in Inputs) (Result, error) {
	key := BundleKey(keyOf(in.Etcd))
	if in.deleting() {
		plan := flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: key}}}
		if in.Compacting {
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: CompactionKey(keyOf(in.Etcd))})
		}
		return Result{Plan: plan}, nil
	}
	result := Result{NotDue: in.notDue(), Invalid: in.invalid()}
	if err := in.plan(&result, key); err != nil {
		return Result{}, err
	}
	in.addCompaction(&result.Plan, result.Invalid != "")
	return result, nil
}

// plan adds the members of an Etcd that is not being deleted.
func (in Inputs) plan(result *Result, key flow.Key) error {
	plan := &result.Plan
	plan.Next = requeue.Earlier(in.nextExpiry(), in.nextBackupDeadline())
	if in.StoreSecret.Missing != "" {
		plan.Next = requeue.Earlier(plan.Next, in.Now.Add(secretRetry))
	}
	if result.NotDue != "" && in.EmittedVersion == "" {
		// Nothing was emitted yet, so there is nothing to hold.
		plan.Waits = []flow.Wait{{Name: "requested", Reason: result.NotDue, Holds: []flow.Key{key}}}
		return nil
	}
	if result.Invalid != "" {
		plan.Waits = []flow.Wait{{
			Name: "valid", Reason: result.Invalid, Holds: []flow.Key{key}, Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		}}
	}
	if bundle, wait, found := in.goOn(); found && (result.NotDue != "" || result.Invalid != "") {
		plan.Bundles, result.Digest = []flow.Bundle{bundle}, in.StatefulSet.Annotations[annotationTemplate]
		for i := range plan.Waits {
			plan.Waits[i].Holds = nil
		}
		if wait != "" {
			plan.Waits = append(plan.Waits, flow.Wait{Name: "rollout", Reason: wait})
		}
		in.addDefragmentation(plan)
		return nil
	}
	if result.Invalid != "" {
		return nil
	}
	template, digest, settings, err := in.template()
	if err != nil {
		return err
	}
	result.Digest = digest
	step := in.decideRollout(digest)
	objects := append(in.access(), settings, in.clientService(), in.peerService(), in.budget(), in.statefulSet(template, digest, step))
	plan.Bundles = []flow.Bundle{in.bundle(key, objects)}
	switch {
	case result.NotDue != "":
		plan.Waits = append(plan.Waits, flow.Wait{Name: "requested", Reason: result.NotDue, Holds: []flow.Key{key}})
		if in.StatefulSet != nil {
			result.Digest = in.StatefulSet.Annotations[annotationTemplate]
		}
	case step.hold != "":
		plan.Waits = append(plan.Waits, flow.Wait{Name: "healthy", Reason: step.hold, Holds: []flow.Key{key}})
	case step.wait != "":
		plan.Waits = append(plan.Waits, flow.Wait{Name: "rollout", Reason: step.wait})
	}
	in.addDefragmentation(plan)
	return nil
}

func (in Inputs) bundle(key flow.Key, objects []client.Object) flow.Bundle {
	b := flow.Bundle{Key: key, Objects: objects}
	if in.Class != "" {
		class := in.Class
		b.Spec.Class = &class
	}
	return b
}
