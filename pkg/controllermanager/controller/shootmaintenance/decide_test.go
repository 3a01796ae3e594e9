package shootmaintenance

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// clusterWith returns a Shoot with two pools. The second one has a version of its own.
func clusterWith(version, image string) *corev1beta1.Shoot {
	shoot := shootWith("220000+0100", "230000+0100")
	shoot.Spec.Kubernetes.Version = version
	own := poolWith(image)
	own.Name, own.Kubernetes = "own", &corev1beta1.WorkerKubernetes{Version: &version}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{*poolWith(image), *own}
	shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded}
	return shoot
}

func versionsOf(shoot *corev1beta1.Shoot) string {
	workers := shoot.Spec.Provider.Workers
	return strings.Join([]string{shoot.Spec.Kubernetes.Version, *workers[1].Kubernetes.Version, *workers[0].Machine.Image.Version, *workers[1].Machine.Image.Version}, " ")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kubernetes, images string
		change             func(*corev1beta1.Shoot, *Input)
		// want are the versions of the control plane, the second pool, and both images; failures is how many things fail.
		want     string
		failures int
	}{
		"nothing":             {"1.34.2", "1.0.0", nil, "1.34.2 1.34.2 1.0.0 1.0.0", 0},
		"all":                 {"1.34.2,1.34.4", "1.0.0,2.0.0", nil, "1.34.4 1.34.4 2.0.0 2.0.0", 0},
		"forced":              {"1.34.2 expired,1.35.1", "1.0.0", nil, "1.35.1 1.35.1 1.0.0 1.0.0", 0},
		"forced, but held":    {"1.34.2 expired,1.35.1", "1.0.0,2.0.0", func(_ *corev1beta1.Shoot, in *Input) { in.Hold = "a mistake" }, "1.34.2 1.34.2 2.0.0 2.0.0", 1},
		"held, but automatic": {"1.34.2,1.34.4", "1.0.0 expired,2.0.0", func(_ *corev1beta1.Shoot, in *Input) { in.Hold = "a mistake" }, "1.34.4 1.34.4 2.0.0 2.0.0", 0},
		"no successor":        {"1.34.2 expired", "1.0.0,2.0.0", nil, "1.34.2 1.34.2 2.0.0 2.0.0", 2},
		"no profile":          {"1.34.2,1.34.4", "1.0.0,2.0.0", func(_ *corev1beta1.Shoot, in *Input) { in.Profile = nil }, "1.34.2 1.34.2 1.0.0 1.0.0", 1},
		"only images":         {"1.34.2,1.34.4", "1.0.0,2.0.0", func(s *corev1beta1.Shoot, _ *Input) { s.Spec.Maintenance.AutoUpdate.KubernetesVersion = false }, "1.34.2 1.34.2 2.0.0 2.0.0", 0},
		"an image for the new kubelet": {"1.34.2 expired,1.35.1", "1.0.0,2.0.0", func(_ *corev1beta1.Shoot, in *Input) {
			in.Profile.MachineImages[0].Versions[1].KubeletVersionConstraint = ptr.To(">= 1.35")
		}, "1.35.1 1.35.1 2.0.0 2.0.0", 0},
	} {
		shoot := clusterWith("1.34.2", "1.0.0")
		in := &Input{Shoot: shoot, Profile: profileWith(strings.Split(test.kubernetes, ","), strings.Split(test.images, ","), corev1beta1.UpdateStrategyMajor), Now: now}
		if test.change != nil {
			test.change(shoot, in)
		}
		before := shoot.DeepCopy()
		plan := Decide(in)
		if got := versionsOf(plan.Shoot); got != test.want || len(plan.Failures) != test.failures {
			t.Errorf("%s: got %q, %q, failures %q", name, got, plan.Description(), plan.Failures)
		}
		if versionsOf(shoot) != versionsOf(before) {
			t.Errorf("%s: the cached Shoot was changed", name)
		}
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	const operation, later, retry = constants.AnnotationGardenerOperation, constants.AnnotationMaintenanceOperation, constants.AnnotationMaintenanceNeedsRetryOperation
	week := &corev1beta1.MaintenanceRotationConfig{RotationPeriod: &metav1.Duration{Duration: 7 * 24 * time.Hour}}
	rotate := func(all corev1beta1.MaintenanceCredentialsAutoRotation) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			s.Spec.Maintenance.AutoRotation = &corev1beta1.MaintenanceAutoRotation{Credentials: &all}
		}
	}
	failed := func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = corev1beta1.LastOperationStateFailed }
	status := func(rotation corev1beta1.ShootCredentialsRotation, change func(*corev1beta1.Shoot)) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			change(s)
			s.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &rotation}
		}
	}
	for name, test := range map[string]struct {
		annotations string
		change      func(*corev1beta1.Shoot)
		want        string
		failures    int
	}{
		"nothing":                   {"{}", nil, operation + "=reconcile", 0},
		"on request":                {"{" + operation + ": maintain}", nil, operation + "=reconcile", 0},
		"for the window":            {"{" + later + ": rotate-ca-start;rotate-observability-credentials}", nil, operation + "=rotate-ca-start;rotate-observability-credentials;reconcile", 0},
		"not possible now":          {"{" + later + ": rotate-ca-complete;rotate-ssh-keypair}", nil, operation + "=rotate-ssh-keypair;reconcile", 1},
		"alone":                     {"{" + later + ": force-in-place-update}", nil, operation + "=force-in-place-update", 0},
		"pending":                   {"{" + operation + ": rotate-ca-start, " + later + ": rotate-serviceaccount-key-start}", nil, operation + "=rotate-ca-start;rotate-serviceaccount-key-start;reconcile", 0},
		"failed":                    {"{" + later + ": rotate-ca-start}", failed, later + "=rotate-ca-start", 0},
		"failed, on request":        {"{" + operation + ": maintain}", failed, "", 0},
		"failed, needs a retry":     {"{" + retry + `: "true"}`, failed, operation + "=retry", 0},
		"retry, but not failed":     {"{" + retry + `: "true"}`, nil, operation + "=reconcile," + retry + "=true", 0},
		"rotations":                 {"{}", rotate(corev1beta1.MaintenanceCredentialsAutoRotation{SSHKeypair: week, Observability: week, ETCDEncryptionKey: week}), operation + "=rotate-ssh-keypair;rotate-observability-credentials;rotate-etcd-encryption-key;reconcile", 0},
		"rotation off":              {"{}", rotate(corev1beta1.MaintenanceCredentialsAutoRotation{Observability: &corev1beta1.MaintenanceRotationConfig{RotationPeriod: &metav1.Duration{}}}), operation + "=reconcile", 0},
		"rotated before":            {"{}", status(corev1beta1.ShootCredentialsRotation{Observability: &corev1beta1.ObservabilityRotation{LastCompletionTime: ptr.To(metav1.NewTime(now.Add(-7 * 24 * time.Hour)))}}, rotate(corev1beta1.MaintenanceCredentialsAutoRotation{Observability: week})), operation + "=rotate-observability-credentials;reconcile", 0},
		"rotated a second too late": {"{}", status(corev1beta1.ShootCredentialsRotation{Observability: &corev1beta1.ObservabilityRotation{LastCompletionTime: ptr.To(metav1.NewTime(now.Add(time.Second - 7*24*time.Hour)))}}, rotate(corev1beta1.MaintenanceCredentialsAutoRotation{Observability: week})), operation + "=reconcile", 0},
		"new Shoot": {"{}", func(s *corev1beta1.Shoot) {
			rotate(corev1beta1.MaintenanceCredentialsAutoRotation{Observability: week})(s)
			s.CreationTimestamp = metav1.NewTime(now)
		}, operation + "=reconcile", 0},
		"no SSH": {"{}", func(s *corev1beta1.Shoot) {
			rotate(corev1beta1.MaintenanceCredentialsAutoRotation{SSHKeypair: week})(s)
			s.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{}}
		}, operation + "=reconcile", 0},
		"key, hibernated": {"{}", func(s *corev1beta1.Shoot) {
			rotate(corev1beta1.MaintenanceCredentialsAutoRotation{ETCDEncryptionKey: week})(s)
			s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)}
		}, operation + "=reconcile", 0},
		"key, rotation not over yet": {"{}", status(corev1beta1.ShootCredentialsRotation{ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationPrepared}}, rotate(corev1beta1.MaintenanceCredentialsAutoRotation{ETCDEncryptionKey: week})), operation + "=reconcile", 1},
	} {
		shoot := clusterWith("1.34.2", "1.0.0")
		if err := yaml.Unmarshal([]byte(test.annotations), &shoot.Annotations); err != nil {
			t.Fatal(err)
		}
		if test.change != nil {
			test.change(shoot)
		}
		plan := Decide(&Input{Shoot: shoot, Profile: profileWith([]string{"1.34.2"}, []string{"1.0.0"}, "major"), RestartsControlPlane: true, Now: now})
		var got []string
		for _, key := range []string{operation, later, retry} {
			if value, found := plan.Shoot.Annotations[key]; found {
				got = append(got, key+"="+value)
			}
		}
		if text := strings.Join(got, ","); text != test.want || len(plan.Failures) != test.failures {
			t.Errorf("%s: got %q, want %q, failures %q", name, text, test.want, plan.Failures)
		}
		const tasks = "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress,restartControlPlanePods"
		if got := plan.Shoot.Annotations[constants.AnnotationShootTasks]; got != tasks {
			t.Errorf("%s: the tasks are %q", name, got)
		}
	}
}

// TestTasks checks that tasks are added to those that wait, once, and which ones the configuration adds.
func TestTasks(t *testing.T) {
	t.Parallel()
	shoot := clusterWith("1.34.2", "1.0.0")
	shoot.Annotations = map[string]string{constants.AnnotationShootTasks: "restartCoreAddons,deployInfrastructure"}
	plan := Decide(&Input{Shoot: shoot, RestartsAddons: true, Now: now})
	if got := plan.Shoot.Annotations[constants.AnnotationShootTasks]; got != "restartCoreAddons,deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress" {
		t.Errorf("the tasks are %q", got)
	}
}

// TestYear maintains a Shoot for a year. Each day has one maintenance, at the same time of the day in UTC, although clocks change; versions
// follow those of the profile, and the Shoot never has an expired version after a window.
func TestYear(t *testing.T) {
	t.Parallel()
	profile := &corev1beta1.CloudProfileSpec{}
	if err := yaml.UnmarshalStrict([]byte(`
type: local
machineTypes: [{name: medium, cpu: "1", gpu: "0", memory: 1Gi}]
kubernetes:
  versions:
  - {version: 1.33.1, expirationDate: "2026-02-01T00:00:00Z"}
  - {version: 1.33.2, lifecycle: [{classification: supported, startTime: "2026-01-15T00:00:00Z"}, {classification: expired, startTime: "2026-03-29T01:00:00Z"}]}
  - {version: 1.34.0, expirationDate: "2026-06-01T21:00:00Z"}
  - {version: 1.34.1, lifecycle: [{classification: preview, startTime: "2026-04-01T00:00:00Z"}, {classification: supported, startTime: "2026-05-01T00:00:00Z"}, {classification: expired, startTime: "2026-10-25T01:30:00Z"}]}
  - {version: 1.35.0}
machineImages:
- name: linux
  updateStrategy: minor
  versions: [{version: 1.0.0, expirationDate: "2026-08-01T00:00:00Z"}, {version: 2.3.0}, {version: 3.0.0}]
`), profile); err != nil {
		t.Fatal(err)
	}
	shoot := clusterWith("1.33.1", "1.0.0")
	var history []string
	count, when, end := 0, IsDue(shoot, at(t, "2026-01-01T00:00:00Z")).Next, at(t, "2027-01-01T00:00:00Z")
	for ; when.Before(end); when = IsDue(shoot, when).Next {
		if !IsDue(shoot, when).Run || when.UTC().Format(time.TimeOnly) != "21:00:00" {
			t.Fatalf("no maintenance at %s", when)
		}
		plan := Decide(&Input{Shoot: shoot, Profile: profile, Now: when})
		if len(plan.Failures) > 0 {
			t.Fatalf("at %s: %q", when, plan.Failures)
		}
		if versions := versionsOf(plan.Shoot); versions != versionsOf(shoot) {
			history = append(history, when.Format("01-02 ")+versions)
		}
		shoot = plan.Shoot
		if isForced(shoot, profile, when) {
			t.Errorf("after the window at %s, the versions %s must be updated", when, versionsOf(shoot))
		}
		maintained(t, corev1beta1.LastOperationStateSucceeded, when.Format(time.RFC3339))(shoot)
		count++
	}
	want := []string{
		"01-15 1.33.2 1.33.2 1.0.0 1.0.0", "03-29 1.34.0 1.34.0 1.0.0 1.0.0", "05-01 1.34.1 1.34.1 1.0.0 1.0.0", "08-01 1.34.1 1.34.1 2.3.0 2.3.0",
		"10-25 1.35.0 1.35.0 2.3.0 2.3.0",
	}
	if count != 365 || strings.Join(history, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d times:\n%s", count, strings.Join(history, "\n"))
	}
}
