package garden

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/issuer"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

// initiated is the start time of the rotations in the tests.
var initiated = now.Add(-time.Hour)

// rotated returns a Garden whose rotations are all in one phase, and that has been reconciled before.
func rotated(phase corev1beta1.CredentialsRotationPhase) *operatorv1alpha1.Garden {
	garden, at := small(), metav1.NewTime(initiated)
	garden.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded}
	garden.Status.Credentials = &operatorv1alpha1.Credentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{
		Provider: corev1beta1.EncryptionProviderStatus{Type: corev1beta1.EncryptionProviderTypeAESCBC},
	}}
	if phase != "" {
		garden.Status.Credentials.Rotation = &operatorv1alpha1.CredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{Phase: phase, LastInitiationTime: &at},
			ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{Phase: phase, LastInitiationTime: &at},
			ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{Phase: phase, LastInitiationTime: &at},
			WorkloadIdentityKey:    &operatorv1alpha1.WorkloadIdentityKeyRotation{Phase: phase, LastInitiationTime: &at},
		}
	}
	return garden
}

// phasesOf returns the phases of all rotations.
func phasesOf(credentials *operatorv1alpha1.Credentials) string {
	var all []string
	if credentials == nil || credentials.Rotation == nil {
		return ""
	}
	for _, c := range cycles(credentials.Rotation) {
		all = append(all, string(c.Credential)+" "+string(*c.Phase))
	}
	if of := credentials.Rotation.Observability; of != nil {
		all = append(all, fmt.Sprintf("observability completed %t", of.LastCompletionTime != nil))
	}
	return strings.Join(all, ", ")
}

func allIn(phase string) string {
	return fmt.Sprintf("certificate-authorities %[1]s, service-account-key %[1]s, etcd-encryption-key %[1]s, workload-identity-key %[1]s", phase)
}

// TestOperations checks the effect of an operation on the status, and that it has none when it is repeated without the annotation.
func TestOperations(t *testing.T) {
	const preparing, prepared, over = corev1beta1.RotationPreparing, corev1beta1.RotationPrepared, corev1beta1.RotationCompleted
	old := func(garden *operatorv1alpha1.Garden) *operatorv1alpha1.Garden {
		garden.Spec.VirtualCluster.Kubernetes.Version = "1.33.1"
		return garden
	}
	for name, test := range map[string]struct {
		garden           *operatorv1alpha1.Garden
		operations, want string
		left             []string
	}{
		"none":               {rotated(""), "", "", nil},
		"reconcile":          {rotated(""), "reconcile", "", nil},
		"unknown":            {rotated(""), "reconcile;other", "", []string{"other"}},
		"all":                {rotated(""), "rotate-credentials-start", allIn("Preparing") + ", observability completed false", nil},
		"all again":          {rotated(over), "rotate-credentials-start", allIn("Preparing") + ", observability completed false", nil},
		"begun before":       {rotated(preparing), "rotate-ca-start", allIn("Preparing"), nil},
		"authorities":        {rotated(""), "rotate-ca-start", "certificate-authorities Preparing", nil},
		"account key":        {rotated(""), "rotate-serviceaccount-key-start", "service-account-key Preparing", nil},
		"encryption key":     {rotated(""), "rotate-etcd-encryption-key", "etcd-encryption-key Preparing", nil},
		"workload identity":  {rotated(""), "rotate-workload-identity-key-start", "workload-identity-key Preparing", nil},
		"observability":      {rotated(""), "rotate-observability-credentials", "observability completed false", nil},
		"complete all":       {rotated(prepared), "rotate-credentials-complete", allIn("Completing"), nil},
		"complete one":       {old(rotated(prepared)), "rotate-ca-complete", strings.Replace(allIn("Prepared"), "Prepared", "Completing", 1), nil},
		"complete too early": {rotated(preparing), "rotate-credentials-complete", allIn("Preparing"), nil},
		"the encryption key completes itself": {
			rotated(prepared), "", strings.Replace(allIn("Prepared"), "etcd-encryption-key Prepared", "etcd-encryption-key Completing", 1), nil,
		},
		"on old versions, users complete it": {old(rotated(prepared)), "", allIn("Prepared"), nil},
	} {
		test.garden.Annotations = map[string]string{constants.AnnotationGardenerOperation: test.operations}
		got, left := operated(test.garden, now)
		if phasesOf(got) != test.want || !slices.Equal(left, test.left) {
			t.Errorf("%s: %q, remaining %q; want %q, remaining %q", name, phasesOf(got), left, test.want, test.left)
		}
		test.garden.Status.Credentials, test.garden.Annotations = got, nil
		if again, _ := operated(test.garden, now); phasesOf(again) != test.want {
			t.Errorf("%s: executed again without the annotation: %q", name, phasesOf(again))
		}
	}
}

// TestOtherProvider checks that another encryption provider requires new keys.
func TestOtherProvider(t *testing.T) {
	garden := rotated("")
	server(&garden.Spec).EncryptionConfig = &corev1beta1.EncryptionConfig{Provider: corev1beta1.EncryptionProvider{Type: ptr.To(corev1beta1.EncryptionProviderTypeAESGCM)}}
	if got, _ := operated(garden, now); phasesOf(got) != "etcd-encryption-key Preparing" {
		t.Errorf("%q", phasesOf(got))
	}
}

// TestAdvanced checks that phases which wait for the control plane end when it is rolled out, and no other phase does.
func TestAdvanced(t *testing.T) {
	for phase, want := range map[corev1beta1.CredentialsRotationPhase]string{
		corev1beta1.RotationPreparing: "Prepared", corev1beta1.RotationPrepared: "Prepared", corev1beta1.RotationCompleting: "Completed",
		corev1beta1.RotationCompleted: "Completed",
	} {
		before := rotated(phase).Status.Credentials
		if got, moved := advanced(before, []string{"the API server is being rolled out"}, now); moved || phasesOf(got) != phasesOf(before) {
			t.Errorf("%s ends too early", phase)
		}
		if got, moved := advanced(before, nil, now); phasesOf(got) != allIn(want) || moved != (string(phase) != want) {
			t.Errorf("%s: %q, moved %t", phase, phasesOf(got), moved)
		}
	}
}

// turned adds the Secrets of rotations. Their names contain whether they are old or new.
func turned(in Inputs) Inputs {
	in.Secrets = secretsFor(in)
	for name, state := range in.rotations() {
		item := in.Secrets[name]
		item.Current.Name = name + "-new"
		item.Active = item.Current
		trusts := "-new"
		if item.Config.KeepOld && state.Phase != corev1beta1.RotationCompleting && state.Phase != corev1beta1.RotationCompleted {
			old := item.Current
			old.Name, trusts = name+"-old", "-both"
			if item.Config.Kind == secrets.KindEncryptionKey {
				old.Data = secrets.Material{
					secrets.KeyEncryptionName: []byte("old"), secrets.KeyEncryptionSecret: old.Data[secrets.KeyEncryptionSecret],
					secrets.KeyEncryptionEncoding: []byte("base64"), secrets.KeyEncryptionProvider: old.Data[secrets.KeyEncryptionProvider],
				}
			}
			if name == constants.SecretNameWorkloadIdentitySigningKey {
				old.Data = secrets.Material{secrets.KeyRSA: signingKeys()[1]}
			}
			item.Old = &old
			if !state.Distributed {
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

// use describes how a plan uses rotated credentials: which Secrets Pods mount, what is encrypted with which keys, what waits for rollouts, and the
// tasks.
func use(plan flow.Plan) string {
	var text strings.Builder
	for _, bundle := range plan.Bundles {
		for _, need := range bundle.Spec.DependsOn {
			if need.Until == "RolledOut" {
				fmt.Fprintf(&text, "%s follows the rollout of %s\n", bundle.Name, need.Name)
			}
		}
		for _, object := range bundle.Objects {
			switch object := object.(type) {
			case *appsv1.Deployment:
				for _, name := range mountedSecrets(object) {
					fmt.Fprintf(&text, "%s mounts %s\n", object.Name, name)
				}
			case *corev1.ConfigMap:
				if keys, found := object.Data[keyKeys]; found {
					fmt.Fprintf(&text, "%s has the keys %s\n", object.Name, strings.Join(publishedKeys(keys), ", "))
				}
			case *corev1.Secret:
				if config, found := object.Data[secrets.KeyEncryptionConfiguration]; found {
					fmt.Fprintf(&text, "%s:\n%s", object.Labels["role"], keysOf(string(config)))
				}
			}
		}
	}
	for _, task := range plan.Tasks {
		fmt.Fprintf(&text, "task %s: %s\n", task.Name, task.Value)
	}
	return text.String()
}

// signingKeys returns the new and the old key for tokens of WorkloadIdentities.
var signingKeys = sync.OnceValue(func() (keys [2][]byte) {
	for i := range keys {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err == nil {
			keys[i], err = keyutil.MarshalPrivateKeyToPEM(key)
		}
		if err != nil {
			panic(err)
		}
	}
	return keys
})

// publishedKeys returns which keys of signingKeys a key set has.
func publishedKeys(set string) (names []string) {
	for i, name := range []string{"new", "old"} {
		only, err := issuer.NewDocuments("", signingKeys()[i])
		if err != nil {
			return []string{err.Error()}
		}
		if strings.Contains(set, strings.TrimSuffix(strings.TrimPrefix(only.Keys, `{"keys":[`), "]}")) {
			names = append(names, name)
		}
	}
	return names
}

// mountedSecrets returns the rotated Secrets that a Deployment mounts.
func mountedSecrets(deployment *appsv1.Deployment) []string {
	var names []string
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Secret != nil {
			names = append(names, volume.Secret.SecretName)
		}
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				if source.Secret != nil {
					names = append(names, source.Secret.Name)
				}
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasSuffix(name, "-old") && !strings.HasSuffix(name, "-new") && !strings.HasSuffix(name, "-both")
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// keysOf returns the lines of an encryption configuration with resources, names of keys and the provider that does not encrypt.
func keysOf(config string) string {
	var text strings.Builder
	for line := range strings.Lines(config) {
		if strings.Contains(line, "name: ") || strings.Contains(line, "identity") || strings.HasPrefix(line, "  - ") && !strings.Contains(line, ":") {
			text.WriteString("  " + strings.TrimSpace(line) + "\n")
		}
	}
	return text.String()
}

// TestRotationPlans compares the plan of each step of a rotation of everything, and of a change of the encrypted resources, with testdata.
func TestRotationPlans(t *testing.T) {
	value := initiated.UTC().Format(time.RFC3339)
	distributed := map[string]string{}
	for _, kind := range withPhases {
		distributed["distribute-"+string(kind)] = value
	}
	const serverKey, gardenerKey = "kube-apiserver-etcd-encryption-key-12345678", "gardener-apiserver-etcd-encryption-key-12345678"
	readable := map[string]string{
		"distribute-encryption-of-configmaps": serverKey, "distribute-encryption-of-services": "plain", "distribute-encryption-of-shoots.core.gardener.cloud": gardenerKey,
	}
	changed := rotated("")
	changed.Status.Credentials.EncryptionAtRest.Resources = []string{"services"}
	server(&changed.Spec).EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"configmaps.core"}}
	gardener(&changed.Spec).EncryptionConfig = &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud"}}
	created := *changed.DeepCopy()
	created.Status.Credentials = nil
	for name, test := range map[string]struct {
		garden *operatorv1alpha1.Garden
		done   map[string]string
	}{
		"rotation-1-started":       {rotated(corev1beta1.RotationPreparing), nil},
		"rotation-2-distributed":   {rotated(corev1beta1.RotationPreparing), distributed},
		"rotation-3-prepared":      {rotated(corev1beta1.RotationPrepared), nil},
		"rotation-4-completing":    {rotated(corev1beta1.RotationCompleting), nil},
		"rotation-5-completed":     {rotated(corev1beta1.RotationCompleted), nil},
		"encryption-1-changed":     {changed.DeepCopy(), nil},
		"encryption-2-distributed": {changed.DeepCopy(), readable},
		"encryption-3-created":     {created.DeepCopy(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			entries := map[string]flow.Entry{}
			for task, value := range test.done {
				entries[task] = flow.Entry{Value: value}
			}
			in := known(test.garden, func(in *Inputs) { in.Ledger = flow.NewLedger(in.key(ledgerName), entries) })
			golden.CheckText(t, name+".txt", use(planOf(t, turned(in))))
		})
	}
}

// TestRotationOfUnknownSecrets checks that a plan without Secrets has no task that needs their names, and that only known tasks are executed.
func TestRotationOfUnknownSecrets(t *testing.T) {
	in := known(rotated(corev1beta1.RotationPreparing))
	in.Secrets = nil
	if plan := planOf(t, in); len(plan.Tasks) != 4 {
		t.Errorf("%+v", plan.Tasks)
	}
	if _, found := (&reconciler{}).actOf(in, flow.Task{Name: "distribute-other"}); found {
		t.Error("an unknown task is executed")
	}
}

// TestSeeds checks which Seeds are annotated with an operation, and for which a rotation waits.
func TestSeeds(t *testing.T) {
	seed := func(name, operation string, deleting bool) metav1.PartialObjectMetadata {
		one := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		if operation != "" {
			one.Annotations = map[string]string{constants.AnnotationGardenerOperation: operation}
		}
		if deleting {
			one.DeletionTimestamp = &metav1.Time{Time: now}
		}
		return one
	}
	const operation = constants.OperationRenewKubeconfig
	seeds := []metav1.PartialObjectMetadata{
		seed("new", "", false), seed("annotated", operation, false), seed("done", "", false), seed("busy", "reconcile", false), seed("deleted", "", true),
		seed("lost", operation, false), seed("lost-and-busy", "reconcile", false),
	}
	garden := small()
	garden.Annotations = map[string]string{AnnotationRotateWithoutSeeds: "lost, lost-and-busy"}
	without := Inputs{Garden: garden}.withoutSeeds()
	ask, busy := seedsToAsk(seeds, operation, map[types.UID]bool{"done": true}, without)
	if !slices.Equal(ask, []int{0}) || !slices.Equal(busy, []string{"busy"}) {
		t.Errorf("annotated %v, busy %v", ask, busy)
	}
	if left := seedsWaitedFor(seeds, operation, without); !slices.Equal(left, []string{"annotated"}) {
		t.Errorf("waits for %v", left)
	}
	if left := seedsWaitedFor(seeds, operation, Inputs{Garden: small()}.withoutSeeds()); !slices.Equal(left, []string{"annotated", "lost"}) {
		t.Errorf("waits for %v", left)
	}
}

// TestTokensOfPrograms checks that a rotation renews only tokens that the resource-manager requests.
func TestTokensOfPrograms(t *testing.T) {
	in := known(rotated(corev1beta1.RotationPreparing), func(in *Inputs) {
		entries := map[string]flow.Entry{}
		for _, kind := range withPhases {
			entries["distribute-"+string(kind)] = flow.Entry{Value: initiated.UTC().Format(time.RFC3339)}
		}
		in.Ledger = flow.NewLedger(in.key(ledgerName), entries)
	})
	var tokens []string
	for _, task := range in.due() {
		if strings.Contains(task.Name, "token") || strings.Contains(task.Name, "access") {
			tokens = append(tokens, task.Name)
		}
	}
	want := []string{rotation.TaskRenewTokens, taskOrder + constants.OperationRenewGardenAccessSecrets, taskAwait + constants.OperationRenewGardenAccessSecrets,
		taskOrder + constants.OperationRenewWorkloadIdentityTokens, taskAwait + constants.OperationRenewWorkloadIdentityTokens}
	if !slices.Equal(tokens, want) {
		t.Errorf("%v", tokens)
	}
}
