package shoot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// initiated is the start time of the rotations in the tests.
var initiated = now.Add(-time.Hour)

// rotating returns a Shoot whose rotations are in the given phases. An empty phase means that it was never rotated.
func rotating(authorities, accountKey, encryptionKey corev1beta1.CredentialsRotationPhase) *corev1beta1.Shoot {
	rotation, at := &corev1beta1.ShootCredentialsRotation{}, metav1.NewTime(initiated)
	if authorities != "" {
		rotation.CertificateAuthorities = &corev1beta1.CARotation{Phase: authorities, LastInitiationTime: &at}
	}
	if accountKey != "" {
		rotation.ServiceAccountKey = &corev1beta1.ServiceAccountKeyRotation{Phase: accountKey, LastInitiationTime: &at}
	}
	if encryptionKey != "" {
		rotation.ETCDEncryptionKey = &corev1beta1.ETCDEncryptionKeyRotation{Phase: encryptionKey, LastInitiationTime: &at}
	}
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Kubernetes: corev1beta1.Kubernetes{Version: "1.37.1"}}}
	shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: rotation}
	return shoot
}

// phases returns the phases of all rotations, and which of their times are set.
func phases(credentials *corev1beta1.ShootCredentials) string {
	var all []string
	if credentials == nil || credentials.Rotation == nil {
		return ""
	}
	for _, c := range cycles(credentials.Rotation) {
		text := string(c.Credential) + " " + string(*c.Phase)
		for _, at := range []struct {
			name string
			time *metav1.Time
		}{{"initiated", *c.Initiated}, {"prepared", *c.Prepared}, {"completing", *c.Completing}, {"completed", *c.CompletedAt}} {
			if at.time == nil {
				continue
			}
			text += " " + at.name
			if at.time.Time.Equal(now) {
				text += " now"
			}
		}
		all = append(all, text)
	}
	if of := credentials.Rotation.Observability; of != nil {
		all = append(all, fmt.Sprintf("observability initiated %t completed %t", of.LastInitiationTime != nil, of.LastCompletionTime != nil))
	}
	return strings.Join(all, "; ")
}

// TestOperations checks the effect of an operation on the status in each phase, and the remaining annotation.
func TestOperations(t *testing.T) {
	updating := func(shoot *corev1beta1.Shoot) *corev1beta1.Shoot {
		shoot.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{}
		return shoot
	}
	const preparing, prepared, completing, over = corev1beta1.RotationPreparing, corev1beta1.RotationPrepared, corev1beta1.RotationCompleting, corev1beta1.RotationCompleted
	old := func(shoot *corev1beta1.Shoot) *corev1beta1.Shoot {
		shoot.Spec.Kubernetes.Version = "1.33.4"
		return shoot
	}
	const everything = "certificate-authorities Preparing initiated now; service-account-key Preparing initiated now; etcd-encryption-key Preparing initiated now; observability initiated true completed false"
	for name, test := range map[string]struct {
		shoot      *corev1beta1.Shoot
		operations string
		want       string
		left       []string
	}{
		"none":                            {rotating("", "", ""), "", "", nil},
		"others are left":                 {rotating("", "", ""), "maintain", "", []string{"maintain"}},
		"updates in place are pending":    {updating(rotating("", "", "")), "force-in-place-update", "", []string{"force-in-place-update"}},
		"updates in place are over":       {rotating("", "", ""), "force-in-place-update", "", nil},
		"all":                             {rotating("", "", ""), "rotate-credentials-start", everything, nil},
		"all, without workers":            {rotating("", "", ""), "rotate-credentials-start-without-workers-rollout", everything, nil},
		"all again":                       {rotating(over, over, over), "rotate-credentials-start", everything, nil},
		"authorities":                     {rotating("", "", ""), "rotate-ca-start", "certificate-authorities Preparing initiated now", nil},
		"account key":                     {rotating("", "", ""), "rotate-serviceaccount-key-start", "service-account-key Preparing initiated now", nil},
		"encryption key":                  {rotating("", "", ""), "rotate-etcd-encryption-key", "etcd-encryption-key Preparing initiated now", nil},
		"observability":                   {rotating("", "", ""), "rotate-observability-credentials", "observability initiated true completed false", nil},
		"two and another":                 {rotating("", "", ""), "rotate-ca-start; rollout-workers=a;rotate-serviceaccount-key-start", "certificate-authorities Preparing initiated now; service-account-key Preparing initiated now", []string{"rollout-workers=a"}},
		"one that was begun":              {rotating(preparing, "", ""), "rotate-ca-start", "certificate-authorities Preparing initiated", nil},
		"one that is prepared":            {rotating(prepared, "", ""), "rotate-ca-start", "certificate-authorities Prepared initiated", nil},
		"complete":                        {rotating(prepared, prepared, ""), "rotate-ca-complete", "certificate-authorities Completing initiated completing now; service-account-key Prepared initiated", nil},
		"complete all":                    {rotating(prepared, prepared, over), "rotate-credentials-complete", "certificate-authorities Completing initiated completing now; service-account-key Completing initiated completing now; etcd-encryption-key Completed initiated", nil},
		"complete what is not prepared":   {rotating(preparing, "", ""), "rotate-ca-complete", "certificate-authorities Preparing initiated", nil},
		"complete what was completed":     {rotating(over, "", ""), "rotate-ca-complete", "certificate-authorities Completed initiated", nil},
		"complete again":                  {rotating(completing, "", ""), "rotate-ca-complete", "certificate-authorities Completing initiated", nil},
		"the encryption key goes on":      {rotating("", "", prepared), "", "etcd-encryption-key Completing initiated completing now", nil},
		"the encryption key waits":        {old(rotating("", "", prepared)), "", "etcd-encryption-key Prepared initiated", nil},
		"the encryption key is completed": {old(rotating("", "", prepared)), "rotate-etcd-encryption-key-complete", "etcd-encryption-key Completing initiated completing now", nil},
	} {
		if test.operations != "" {
			test.shoot.Annotations = map[string]string{constants.AnnotationGardenerOperation: test.operations}
		}
		got, left := operated(test.shoot, now)
		if text := phases(got); text != test.want || !slices.Equal(left, test.left) {
			t.Errorf("%s: %q, remaining %q; want %q, remaining %q", name, text, left, test.want, test.left)
		}
		test.shoot.Status.Credentials, test.shoot.Annotations = got, nil
		if again, _ := operated(test.shoot, now); phases(again) != test.want {
			t.Errorf("%s: executed again without the annotation: %q", name, phases(again))
		}
	}
}

// TestEncryptionKeyInOneStep checks that users complete the rotation of the encryption key only if they started it that way, on
// an old version.
func TestEncryptionKeyInOneStep(t *testing.T) {
	for operation, itself := range map[string]map[string]bool{
		"rotate-etcd-encryption-key": {"1.33.4": true, "1.34.0": true}, "rotate-etcd-encryption-key-start": {"1.33.4": false, "1.34.0": true},
		"rotate-credentials-start": {"1.33.4": false, "1.34.0": true},
	} {
		for version, want := range itself {
			shoot := rotating("", "", "")
			shoot.Spec.Kubernetes.Version, shoot.Annotations = version, map[string]string{constants.AnnotationGardenerOperation: operation}
			got, _ := operated(shoot, now)
			if ptr.Deref(got.Rotation.ETCDEncryptionKey.AutoCompleteAfterPrepared, false) != want {
				t.Errorf("%s with %s: %+v", operation, version, got.Rotation.ETCDEncryptionKey)
			}
		}
	}
}

// TestAnotherProvider checks that another encryption provider requires a new key.
func TestAnotherProvider(t *testing.T) {
	declared := func(change ...func(*Inputs)) *corev1beta1.Shoot {
		return known(t, append([]func(*Inputs){func(in *Inputs) {
			in.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{Provider: corev1beta1.EncryptionProviderStatus{Type: "aescbc"}}}
		}}, change...)...).Shoot
	}
	other := func(in *Inputs) {
		in.Shoot.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Provider.Type = ptr.To(corev1beta1.EncryptionProviderTypeSecretbox)
	}
	for name, test := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  string
	}{
		"the same":            {declared(), ""},
		"another":             {declared(other), "etcd-encryption-key Preparing initiated now"},
		"another, hibernated": {declared(other, hibernate), ""},
	} {
		if got, _ := operated(test.shoot, now); phases(got) != test.want {
			t.Errorf("%s: %q, want %q", name, phases(got), test.want)
		}
	}
}

// TestAdvanced checks that each phase that waits for the control plane ends when that is rolled out, and that other phases do
// not.
func TestAdvanced(t *testing.T) {
	for phase, want := range map[corev1beta1.CredentialsRotationPhase]string{
		corev1beta1.RotationPreparing:                      "Prepared initiated prepared now",
		corev1beta1.RotationPreparingWithoutWorkersRollout: "WaitingForWorkersRollout initiated",
		corev1beta1.RotationWaitingForWorkersRollout:       "Prepared initiated prepared now",
		corev1beta1.RotationPrepared:                       "Prepared initiated",
		corev1beta1.RotationCompleting:                     "Completed initiated completed now",
		corev1beta1.RotationCompleted:                      "Completed initiated",
	} {
		before := rotating(phase, phase, phase).Status.Credentials
		var all []string
		for _, kind := range []rotation.Credential{rotation.Authorities, rotation.AccountKey, rotation.EncryptionKey} {
			all = append(all, string(kind)+" "+want)
		}
		if got, moved := advanced(before, []string{"ManagedResource kube-apiserver is being rolled out"}, now); phases(got) != phases(before) || moved {
			t.Errorf("%s ends although the API server is being rolled out: %q", phase, phases(got))
		}
		got, moved := advanced(before, nil, now)
		if phases(got) != strings.Join(all, "; ") || moved != (phases(got) != phases(before)) {
			t.Errorf("%s: %q, moved %t", phase, phases(got), moved)
		}
	}
	shoot := rotating("", "", "")
	shoot.Status.Credentials.Rotation.Observability = &corev1beta1.ObservabilityRotation{LastInitiationTime: ptr.To(metav1.NewTime(initiated))}
	got, moved := advanced(shoot.Status.Credentials, nil, now)
	if again, more := advanced(got, nil, now); !moved || more || !again.Rotation.Observability.LastCompletionTime.Time.Equal(now) {
		t.Errorf("%+v, moved %t, again %t", got.Rotation.Observability, moved, more)
	}
}

// turned adds the Secrets of rotations to an existing Shoot. Their names contain whether they are old or new.
func turned(in Inputs) Inputs {
	in.Secrets = material(in)
	for name, rotation := range in.rotations() {
		item := in.Secrets[name]
		item.Current.Name = name + "-new"
		item.Active = item.Current
		trusts := "-new"
		if !slices.Contains([]corev1beta1.CredentialsRotationPhase{corev1beta1.RotationCompleting, corev1beta1.RotationCompleted}, rotation.Phase) && item.Config.KeepOld {
			old := item.Current
			old.Name, trusts = name+"-old", "-both"
			if name == constants.SecretNameETCDEncryptionKey {
				old.Data = secrets.Material{"key": []byte("key0"), "secret": old.Data["secret"], "encoding": []byte("base64"), "provider": []byte("aescbc")}
			}
			item.Old = &old
			if !rotation.Distributed {
				item.Active = old
			}
		}
		if item.Bundle != nil {
			item.Bundle = &secrets.Secret{Name: name + "-bundle" + trusts, Data: item.Bundle.Data}
		}
		in.Secrets[name] = item
	}
	return in
}

// use describes how a plan uses rotated credentials: which Secrets Pods mount, the order of encryption keys, the waits, and the
// remaining tasks.
func use(t *testing.T, plan flow.Plan) string {
	t.Helper()
	var text strings.Builder
	for _, bundle := range plan.Bundles {
		fmt.Fprintf(&text, "%s", bundle.Name)
		for _, need := range bundle.Spec.DependsOn {
			fmt.Fprintf(&text, " [after %s %s]", need.Name, need.Until)
		}
		text.WriteString("\n")
		for _, object := range bundle.Objects {
			switch object := object.(type) {
			case *appsv1.Deployment:
				for _, volume := range object.Spec.Template.Spec.Volumes {
					for _, name := range mountedBy(volume) {
						if strings.HasSuffix(name, "-old") || strings.HasSuffix(name, "-new") || strings.HasSuffix(name, "-both") {
							fmt.Fprintf(&text, "  %s mounts %s\n", volume.Name, name)
						}
					}
				}
			case *corev1.Secret:
				for line := range strings.Lines(string(object.Data["encryption-configuration.yaml"])) {
					if strings.Contains(line, "name: ") || strings.Contains(line, "identity") || strings.HasPrefix(line, "  - ") && !strings.Contains(line, ":") {
						fmt.Fprintf(&text, "  encryption %s\n", strings.TrimSpace(line))
					}
				}
			}
		}
	}
	for _, task := range plan.Tasks {
		fmt.Fprintf(&text, "task %s: %s\n", task.Name, task.Value)
	}
	for _, wait := range plan.Waits {
		fmt.Fprintf(&text, "wait %s: %s\n", wait.Name, wait.Reason)
	}
	return text.String()
}

// TestRotationPlans compares the plan of each step of a rotation of everything, and of a change of the encrypted resources.
func TestRotationPlans(t *testing.T) {
	distributed := []flow.Task{}
	for _, kind := range []rotation.Credential{rotation.Authorities, rotation.AccountKey, rotation.EncryptionKey} {
		distributed = append(distributed, flow.Task{Name: "distribute-" + string(kind), Value: initiated.UTC().Format(time.RFC3339)})
	}
	renewed := flow.Task{Name: rotation.TaskRenewTokens, Value: "service-account-key-new"}
	rewritten := flow.Task{Name: "rewrite-secrets", Value: "kube-apiserver-etcd-encryption-key-new"}
	phased := func(authorities, accountKey, encryptionKey corev1beta1.CredentialsRotationPhase) func(*Inputs) {
		return func(in *Inputs) {
			in.Shoot.Status.Credentials = rotating(authorities, accountKey, encryptionKey).Status.Credentials
		}
	}
	encrypts := func(before ...string) func(*Inputs) {
		return func(in *Inputs) {
			in.Shoot.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources = []string{"services", "configmaps.core"}
			in.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{Resources: before}}
		}
	}
	key := "kube-apiserver-etcd-encryption-key-12345678"
	changed := []flow.Task{{Name: "distribute-encryption-of-configmaps", Value: key}, {Name: "distribute-encryption-of-statefulsets.apps", Value: "plain"}}
	for name, test := range map[string]struct {
		change func(*Inputs)
		done   []flow.Task
	}{
		"rotation-1-begun":              {phased("Preparing", "Preparing", "Preparing"), nil},
		"rotation-2-partly-distributed": {phased("Preparing", "Preparing", "Preparing"), distributed[:1]},
		"rotation-3-distributed":        {phased("Preparing", "Preparing", "Preparing"), distributed},
		"rotation-4-rewritten":          {phased("Preparing", "Preparing", "Preparing"), append(distributed, renewed, rewritten)},
		"rotation-5-prepared":           {phased("Prepared", "Prepared", "Prepared"), nil},
		"rotation-6-key-completing":     {phased("Prepared", "Prepared", "Completing"), nil},
		"rotation-7-completing":         {phased("Completing", "Completing", "Completed"), nil},
		"rotation-8-completed":          {phased("Completed", "Completed", "Completed"), nil},
		"encryption-1-changed":          {encrypts("services", "statefulsets.apps"), nil},
		"encryption-2-distributed":      {encrypts("services", "statefulsets.apps"), changed},
		"encryption-3-rewritten": {encrypts("services", "statefulsets.apps"), append(changed,
			flow.Task{Name: "rewrite-configmaps", Value: key}, flow.Task{Name: "rewrite-statefulsets.apps", Value: "plain"},
		)},
		"encryption-4-reported": {encrypts("configmaps", "services"), nil},
		"encryption-5-created": {func(in *Inputs) {
			encrypts()(in)
			in.Shoot.Status.Credentials = nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := up(t, test.change)
			entries := map[string]flow.Entry{}
			for _, task := range test.done {
				entries[task.Name] = flow.Entry{Value: task.Value}
			}
			in.Ledger = flow.NewLedger(in.ledgerKey(), entries)
			compare(t, name, use(t, planOf(t, turned(in))))
		})
	}
}

// TestRotationOfUnknownSecrets checks that a plan without Secrets has no task that needs their names.
func TestRotationOfUnknownSecrets(t *testing.T) {
	in := up(t, func(in *Inputs) {
		in.Shoot.Status.Credentials = rotating("Preparing", "Preparing", "Preparing").Status.Credentials
	})
	in.Secrets = nil
	if plan := planOf(t, in); len(plan.Tasks) != 3 {
		t.Errorf("%+v", plan.Tasks)
	}
}

// TestTasksOfRotations checks that the clean-up of a deletion does not execute the tasks of rotations, which it does not know.
func TestTasksOfRotations(t *testing.T) {
	in := up(t, func(in *Inputs) { in.Shoot.Status.Credentials = rotating("Preparing", "", "").Status.Credentials })
	in.Ledger = flow.NewLedger(in.ledgerKey(), nil)
	result := flow.Result{Plan: planOf(t, in)}
	if _, err := reporter(t).cleanUp(t.Context(), in, &result); err != nil || len(result.Plan.Tasks) != 1 {
		t.Errorf("%+v, %v", result.Plan.Tasks, err)
	}
}
