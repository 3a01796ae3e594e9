package bastion

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func example(change func(*inputs)) inputs {
	in := inputs{
		owner: flow.Owner{Flow: FlowName, UID: "1", Namespace: "garden-dev", Name: "host"}, namespace: "garden", now: now,
		bastion: &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "host"}},
		shoot:   &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "blue"}},
	}
	in.shoot.Status.TechnicalID = "shoot--dev--blue"
	in.bastion.Spec.ShootRef.Name, in.bastion.Spec.ProviderType = "blue", ptr.To("local")
	in.bastion.Spec.SSHPublicKey = "ssh-ed25519 AAAA a user"
	in.bastion.Spec.Ingress = []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}
	if change != nil {
		change(&in)
	}
	return in
}

// planned returns the plan, and the extension object in it, or nil.
func planned(t *testing.T, in inputs) (plan flow.Plan, asked backup.Asked, object *extensionsv1alpha1.Bastion, problem string) {
	t.Helper()
	plan, asked, err := in.plan(func(key flow.Key, of *extensionsv1alpha1.Bastion, _ backup.Asked) flow.Bundle {
		object = of
		return flow.Bundle{Key: key, Objects: []client.Object{of}}
	})
	if err != nil {
		problem = err.Error()
	}
	return plan, asked, object, problem
}

// TestPlan checks the extension object, and when it is deleted.
func TestPlan(t *testing.T) {
	deleted := ptr.To(metav1.NewTime(now))
	bundle := flow.Key{Namespace: "garden", Name: "bastion-shoot--dev--blue--host"}
	for name, test := range map[string]struct {
		change              func(*inputs)
		want                string
		emits, deletes, bad bool
	}{
		"a host":                    {emits: true},
		"the Bastion is deleted":    {change: func(in *inputs) { in.bastion.DeletionTimestamp = deleted }, deletes: true},
		"the Shoot is deleted":      {change: func(in *inputs) { in.shoot.DeletionTimestamp = deleted }, deletes: true},
		"deleted without its Shoot": {change: func(in *inputs) { in.bastion.DeletionTimestamp, in.shoot = deleted, nil }, deletes: true},
		"the Shoot does not exist":  {change: func(in *inputs) { in.shoot = nil }, want: "shoot garden-dev/blue does not exist on this Seed"},
		"no control plane":          {change: func(in *inputs) { in.shoot.Status.TechnicalID = "" }, want: "shoot garden-dev/blue has no control plane yet"},
	} {
		in := example(test.change)
		in.emitted = []flow.Key{bundle}
		plan, _, object, problem := planned(t, in)
		if problem != test.want || plan.Deleting != test.deletes || (object != nil) != test.emits || len(plan.Tombstones) > 0 != test.deletes {
			t.Errorf("%s: %+v, %v, %s", name, plan, object, problem)
			continue
		}
		if object == nil {
			continue
		}
		if plan.Bundles[0].Key != bundle || client.ObjectKeyFromObject(object).String() != "shoot--dev--blue/host" || object.Spec.Type != "local" ||
			len(object.Spec.Ingress) != 1 || object.Spec.Ingress[0].IPBlock.CIDR != "192.0.2.0/24" {
			t.Errorf("%s: %s %+v", name, plan.Bundles[0].Key, object)
		}
	}
}

// TestRequests checks that the extension is asked again if the declaration changes or the extension failed, and otherwise never.
func TestRequests(t *testing.T) {
	in := example(nil)
	_, first, _, _ := planned(t, in)
	in.asked, in.now = first, now.Add(time.Hour)
	last := &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(now.Add(time.Minute))}
	in.live = &backup.Extension{}
	in.live.Status.LastOperation = last
	if _, again, _, _ := planned(t, in); again != first {
		t.Errorf("a host that is ready is asked again: %+v, %+v", first, again)
	}
	in.bastion.Generation++ // for example by the annotation for a forced deletion
	if _, again, _, _ := planned(t, in); again != first {
		t.Error("a generation without a change of the specification is asked again")
	}
	last.State = corev1beta1.LastOperationStateFailed
	if _, again, _, _ := planned(t, in); again == first {
		t.Error("a failed operation is not repeated")
	}
	last.State = corev1beta1.LastOperationStateSucceeded
	in.bastion.Spec.Ingress[0].IPBlock.CIDR = "198.51.100.0/24"
	if _, again, _, _ := planned(t, in); again == first {
		t.Error("changed addresses are not sent")
	}
}

func TestCondition(t *testing.T) {
	deleting := func(in *inputs) { in.bastion.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	failed := &corev1beta1.LastError{Description: "no quota", Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded}}
	for name, test := range map[string]struct {
		change func(*inputs)
		why    string
		failed *corev1beta1.LastError
		want   string
	}{
		"ready":             {want: "True SuccessfullyReconciled The host is ready. []"},
		"running":           {why: "the extension has not started", want: "unchanged"},
		"failed":            {failed: failed, want: "False FailedReconciling no quota [ERR_INFRA_QUOTA_EXCEEDED]"},
		"deleting":          {change: deleting, want: "False DeletionInProgress The host is being deleted. []"},
		"deleting, failed":  {change: deleting, failed: failed, want: "False DeletionInProgress The host is being deleted. It failed so far: no quota [ERR_INFRA_QUOTA_EXCEEDED]"},
		"deleting, running": {change: deleting, why: "anything", want: "False DeletionInProgress The host is being deleted. []"},
	} {
		got := "unchanged"
		if next, changed := example(test.change).condition(test.why, test.failed); changed {
			got = strings.TrimSpace(string(next.Status) + " " + next.Reason + " " + next.Message + " " + codes(next.Codes))
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func codes(all []corev1beta1.ErrorCode) string {
	var text []string
	for _, code := range all {
		text = append(text, string(code))
	}
	return "[" + strings.Join(text, " ") + "]"
}

// TestUserData checks that a key is text to the shell, whatever it contains.
func TestUserData(t *testing.T) {
	const key = `ssh-ed25519 AAAA it's "$(touch /tmp/injected)"`
	for line := range strings.Lines(string(userData(key + "\n"))) {
		if !strings.HasPrefix(line, "echo 'ssh-") {
			continue
		}
		line, _, _ = strings.Cut(line, " > ")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line).Output()
		if err != nil || strings.TrimSpace(string(out)) != key {
			t.Errorf("the shell prints %q, %v", out, err)
		}
		return
	}
	t.Error("the script does not store the key")
}

func TestForced(t *testing.T) {
	for value, want := range map[string]bool{"": false, "true": true, "false": false, "unknown": false} {
		in := example(func(in *inputs) {
			in.bastion.Annotations = map[string]string{constants.AnnotationConfirmationForceDeletion: value}
		})
		if got := in.forced(); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
}
