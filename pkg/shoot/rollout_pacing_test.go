package shoot

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

// rested returns the inputs of a Shoot whose last operation has succeeded.
func rested() Inputs {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one", Generation: 2}}
	shoot.Status.ObservedGeneration = 2
	shoot.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, Description: "Shoot cluster reconciliation finished",
	}
	return Inputs{Shoot: shoot, Seed: &corev1beta1.Seed{}, Now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}
}

// TestPaced checks that only Shoots at rest wait for the rollout of a new version of gardenlet.
func TestPaced(t *testing.T) {
	rotation := func(phase corev1beta1.CredentialsRotationPhase) func(*Inputs) {
		return func(in *Inputs) {
			in.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				ServiceAccountKey: &corev1beta1.ServiceAccountKeyRotation{Phase: phase},
			}}
		}
	}
	for name, test := range map[string]struct {
		change func(*Inputs)
		atOnce bool
	}{
		"at rest": {func(*Inputs) {}, false},
		"created": {func(in *Inputs) { in.Shoot.Status.LastOperation = nil }, true},
		"being created": {func(in *Inputs) {
			in.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: "Error"}
		}, true},
		"under way":          {func(in *Inputs) { in.Shoot.Status.RetryCycleStartTime = &metav1.Time{Time: in.Now} }, true},
		"with a later error": {func(in *Inputs) { in.Shoot.Status.LastOperation.State = corev1beta1.LastOperationStateError }, false},
		"recovering from it": {func(in *Inputs) { in.Shoot.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing }, false},
		"changed":            {func(in *Inputs) { in.Shoot.Generation++ }, true},
		"deleted":            {func(in *Inputs) { in.Deleting = true }, true},
		"hibernated":         {func(in *Inputs) { in.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} }, true},
		"rotation prepares":  {rotation(corev1beta1.RotationPreparing), true},
		"rotation prepared":  {rotation(corev1beta1.RotationPrepared), false},
		"rotation completes": {rotation(corev1beta1.RotationCompleting), true},
		"rotation is over":   {rotation(corev1beta1.RotationCompleted), false},
	} {
		t.Run(name, func(t *testing.T) {
			in := rested()
			test.change(&in)
			plan, err := Plan(in)
			if err != nil || plan.AtOnce != test.atOnce {
				t.Errorf("AtOnce is %t, error %v", plan.AtOnce, err)
			}
		})
	}
}

// TestWindowOfPlan checks that a plan has the maintenance window of its Shoot, if the Shoot has one.
func TestWindowOfPlan(t *testing.T) {
	in := rested()
	if plan, err := Plan(in); err != nil || plan.Window != nil {
		t.Errorf("without a maintenance window: %+v, %v", plan.Window, err)
	}
	in.Shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"}}
	opens := time.Date(2026, 1, 2, 22, 0, 0, 0, time.UTC)
	if plan, err := Plan(in); err != nil || plan.Window == nil || plan.Window.Open || !plan.Window.Opens.Equal(opens) {
		t.Errorf("at noon: %+v, %v", plan.Window, err)
	}
	in.Now = opens.Add(time.Minute)
	if plan, err := Plan(in); err != nil || plan.Window == nil || !plan.Window.Open {
		t.Errorf("a minute after its start: %+v, %v", plan.Window, err)
	}
}

// TestKindsOfInputs checks which inputs count as declared by the user, which are applied immediately, and which as a part of
// the program, which is paced. Others change neither.
func TestKindsOfInputs(t *testing.T) {
	digests := func(change func(*Inputs)) (user, program string) {
		in := rested()
		in.Shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{}
		in.CloudProfile = &corev1beta1.CloudProfile{}
		in.UserFiles = userfiles.Files{"ConfigMap/audit": {ConfigMap: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: "1"}}}, "Secret/missing": {}}
		in.References = map[string]Referenced{"Secret garden/dns": {Secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "2", ResourceVersion: "1"}}}}
		change(&in)
		plan, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Inputs, plan.Program
	}
	const neither, user, program = "neither", "user", "program"
	declared, operated := digests(func(*Inputs) {})
	for name, test := range map[string]struct {
		change func(*Inputs)
		kind   string
	}{
		"the version of gardenlet":     {func(in *Inputs) { in.Version = "v2" }, neither},
		"its configuration":            {func(in *Inputs) { in.Config = &gardenletv1alpha1.GardenletConfiguration{LogLevel: "debug"} }, program},
		"an image":                     {func(in *Inputs) { in.Images = images.Vector{{Name: "etcd"}} }, program},
		"one more node":                {func(in *Inputs) { in.Nodes = 7 }, neither},
		"the only node":                {func(in *Inputs) { in.Nodes = 1 }, program},
		"the time":                     {func(in *Inputs) { in.Now = in.Now.Add(time.Hour) }, neither},
		"a field":                      {func(in *Inputs) { in.Shoot.Spec.Region = "other" }, user},
		"an annotation of a dashboard": {func(in *Inputs) { in.Shoot.Annotations = map[string]string{"a": "b"} }, neither},
		"an annotation that is read":   {func(in *Inputs) { in.Shoot.Annotations = map[string]string{readAnnotations[0]: "true"} }, user},
		"a label":                      {func(in *Inputs) { in.Shoot.Labels = map[string]string{"a": "b"} }, neither},
		"the Seed":                     {func(in *Inputs) { in.Seed.Spec.Provider.Zones = []string{"a"} }, program},
		"a taint of the Seed":          {func(in *Inputs) { in.Seed.Spec.Taints = []corev1beta1.SeedTaint{{Key: "a"}} }, program},
		"a label of the Seed":          {func(in *Inputs) { in.Seed.Labels = map[string]string{"a": "b"} }, program},
		"the Kubernetes of the Seed":   {func(in *Inputs) { in.Seed.Status.KubernetesVersion = ptr.To("v1.37.0") }, program},
		"a condition of the Seed":      {func(in *Inputs) { in.Seed.Status.Conditions = []corev1beta1.Condition{{Type: "x"}} }, neither},
		"the CloudProfile":             {func(in *Inputs) { in.CloudProfile.Spec.CABundle = ptr.To("other") }, program},
		"a ConfigMap that is named":    {func(in *Inputs) { in.UserFiles["ConfigMap/audit"].ConfigMap.ResourceVersion = "2" }, user},
		"credentials of a service":     {func(in *Inputs) { in.References["Secret garden/dns"].Secret.ResourceVersion = "2" }, user},
		"the address of the Service":   {func(in *Inputs) { in.Addresses = []string{"192.0.2.1"} }, user},
		"a renewed certificate":        {func(in *Inputs) { in.LastRenewal = in.Now }, user},
		"a Secret of gardenlet":        {func(in *Inputs) { in.Secrets = map[string]secrets.Item{"new": {}} }, neither},
	} {
		gotDeclared, gotOperated := digests(test.change)
		if (gotDeclared != declared) != (test.kind == user) || (gotOperated != operated) != (test.kind == program) {
			t.Errorf("%s: changes what the user declares: %t, the program: %t, want %s", name, gotDeclared != declared, gotOperated != operated, test.kind)
		}
	}
}

// TestHeldIsReported checks that the status of a Shoot at rest reports why changes of gardenlet are held, in a constant text,
// until they are rolled out.
func TestHeldIsReported(t *testing.T) {
	r, in := &reconciler{options: Options{Config: &gardenletv1alpha1.GardenletConfiguration{}}}, rested()
	usual := in.Shoot.Status.LastOperation.Description
	held := flow.Result{Plan: flow.Plan{Waits: []flow.Wait{{Name: flow.WaitRollout, Reason: "the maintenance window is closed", HoldsAll: true}}}}
	for range 2 {
		status, again := r.progress(in, held)
		if last := status.LastOperation; again != 0 || last.Description != usual+heldBack+"the maintenance window is closed" || last.State != corev1beta1.LastOperationStateSucceeded {
			t.Errorf("held: %+v, next check after %s", last, again)
		}
		in.Shoot.Status = status
	}
	status, _ := r.progress(in, flow.Result{})
	if status.LastOperation.Description != usual || strings.Contains(status.LastOperation.Description, heldBack) {
		t.Errorf("rolled out: %+v", status.LastOperation)
	}
}

// TestPacing checks the values of the configuration, and their defaults.
func TestPacing(t *testing.T) {
	o := Options{Config: &gardenletv1alpha1.GardenletConfiguration{}}
	if got := o.pacing(); got.Budget != 40 || got.Nodes != 10 || got.MaxFailed != 3 || got.Retry <= 0 {
		t.Errorf("without a configuration: %+v", got)
	}
	o.Config.Controllers = &gardenletv1alpha1.ControllersConfiguration{Shoot: &gardenletv1alpha1.ShootController{
		Rollout: &gardenletv1alpha1.ShootRollout{Budget: ptr.To(7), Nodes: ptr.To(2)},
	}}
	if got := o.pacing(); got.Budget != 7 || got.Nodes != 2 || got.MaxFailed != 3 {
		t.Errorf("with a budget: %+v", got)
	}
}
