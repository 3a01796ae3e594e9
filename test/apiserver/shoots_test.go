package apiserver

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

func TestBinding(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, unique("garden-binding"), "bound")
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStatePending, LastUpdateTime: metav1.Now(),
	}
	kit.Must(t, c.Status().Update(t.Context(), shoot))

	region := shoot.Spec.Region
	shoot.Spec.Region, shoot.Spec.SeedName = "elsewhere", ptr("first")
	kit.Must(t, c.SubResource("binding").Update(t.Context(), shoot))
	if shoot.Spec.Region != region || *shoot.Spec.SeedName != "first" || shoot.Generation != 2 || shoot.Status.LastOperation != nil {
		t.Errorf("bound: region %q, Seed %q, generation %d, last operation %v", shoot.Spec.Region, *shoot.Spec.SeedName, shoot.Generation, shoot.Status.LastOperation)
	}
	shoot.Status.SeedName = ptr("first")
	kit.Must(t, c.Status().Update(t.Context(), shoot))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"seedName":"second"}}`))
	kit.Must(t, c.SubResource("binding").Patch(t.Context(), shoot, patch))
	if shoot.Labels[constants.LabelPrefixSeedName+"first"] != "true" || shoot.Labels[constants.LabelPrefixSeedName+"second"] != "true" {
		t.Errorf("labels while the Shoot moves: %v", shoot.Labels)
	}
	shoot.Status.SeedName = ptr("second")
	kit.Must(t, c.Status().Update(t.Context(), shoot))
	if _, left := shoot.Labels[constants.LabelPrefixSeedName+"first"]; left {
		t.Errorf("labels after the Shoot moved: %v", shoot.Labels)
	}
}

// TestSeedChangesOnlyByBinding checks that no write of the main resource assigns a Shoot to a Seed, moves it, or removes it
// from its Seed. The binding moves it, but does not remove it, and does not move a Shoot that is being deleted.
func TestSeedChangesOnlyByBinding(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, unique("garden-moves"), "moved")
	merge := func(seed string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"spec":{"seedName":`+seed+`}}`))
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.seedName") {
			t.Errorf("%s: got %v, want a refusal of spec.seedName", what, err)
		}
	}
	for _, before := range []string{"", "first"} {
		if before != "" {
			kit.Must(t, c.SubResource("binding").Patch(t.Context(), shoot, merge(`"`+before+`"`)))
		}
		for _, seed := range []string{`"second"`, `null`} {
			if before == "" && seed == "null" {
				continue
			}
			refused(seed+" by a merge patch", c.Patch(t.Context(), shoot.DeepCopy(), merge(seed)))
		}
		refused("by a JSON patch", c.Patch(t.Context(), shoot.DeepCopy(), client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"add","path":"/spec/seedName","value":"second"}]`))))
		changed := shoot.DeepCopy()
		changed.Spec.SeedName = ptr("second")
		refused("by an update", c.Update(t.Context(), changed))
		applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"seedName": "second"}}}
		applied.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
		applied.SetNamespace(shoot.Namespace)
		applied.SetName(shoot.Name)
		refused("by an apply", c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("test"), client.ForceOwnership))
		kit.Must(t, c.Status().Patch(t.Context(), shoot.DeepCopy(), merge(`"second"`)))
		kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot))
		if got := shoot.Spec.SeedName; before == "" && got != nil || before != "" && (got == nil || *got != before) {
			t.Errorf("the Shoot is on Seed %v, want %q", got, before)
		}
	}
	binding := c.SubResource("binding")
	refused("removed by the binding", binding.Patch(t.Context(), shoot.DeepCopy(), merge("null")))
	kit.Must(t, binding.Patch(t.Context(), shoot, merge(`"second"`)))
	shoot.Finalizers, shoot.Annotations = []string{"test.gardener.cloud/wait"}, map[string]string{constants.AnnotationConfirmationDeletion: "true"}
	kit.Must(t, c.Update(t.Context(), shoot))
	kit.Must(t, c.Delete(t.Context(), shoot))
	refused("moved by the binding while it is deleted", binding.Patch(t.Context(), shoot.DeepCopy(), merge(`"first"`)))
	kit.Must(t, c.Patch(t.Context(), shoot, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

func TestShootOperations(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	shoot := newShoot(t, c, unique("garden-operations"), "operated")
	annotate := func(operation string) {
		t.Helper()
		shoot.Annotations = map[string]string{constants.AnnotationGardenerOperation: operation}
		kit.Must(t, c.Update(t.Context(), shoot))
	}
	expect := func(what string, generation int64, operation string) {
		t.Helper()
		if left := shoot.Annotations[constants.AnnotationGardenerOperation]; shoot.Generation != generation || left != operation {
			t.Errorf("%s: generation %d and operation %q, want %d and %q", what, shoot.Generation, left, generation, operation)
		}
	}
	annotate(" reconcile ;reconcile; rotate-observability-credentials")
	expect("before the first operation", 1, "reconcile;rotate-observability-credentials")

	operate := func(state gardencorev1beta1.LastOperationState) {
		t.Helper()
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
			Type: gardencorev1beta1.LastOperationTypeReconcile, State: state, LastUpdateTime: metav1.Now(),
		}
		kit.Must(t, c.Status().Update(t.Context(), shoot))
	}
	operate(gardencorev1beta1.LastOperationStateSucceeded)
	refused := shoot.DeepCopy()
	refused.Annotations = map[string]string{constants.AnnotationGardenerOperation: "rotate-credentials-start"}
	if err := c.Update(t.Context(), refused); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "previous change of the encryption") {
		t.Errorf("a rotation before the encrypted resources are rolled out: %v", err)
	}
	refused.Annotations = map[string]string{constants.AnnotationGardenerOperation: "retry;reconcile"}
	if err := c.Update(t.Context(), refused); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "in parallel") {
		t.Errorf("two operations that exclude each other: %v", err)
	}
	shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{EncryptionAtRest: &gardencorev1beta1.EncryptionAtRest{
		Resources: shoot.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources,
		Provider:  gardencorev1beta1.EncryptionProviderStatus{Type: gardencorev1beta1.EncryptionProviderTypeAESCBC},
	}}
	kit.Must(t, c.Status().Update(t.Context(), shoot))
	annotate("reconcile;rotate-observability-credentials")
	expect("reconcile", 2, "rotate-observability-credentials")
	annotate("rotate-credentials-start;rotate-ca-start")
	expect("all credentials", 3, "rotate-credentials-start")
	operate(gardencorev1beta1.LastOperationStateFailed)
	annotate("reconcile")
	expect("reconcile a failed one", 3, "reconcile")
	annotate("retry")
	expect("retry a failed one", 4, "")

	operate(gardencorev1beta1.LastOperationStateSucceeded)
	shoot.Status.LastOperation.Type = gardencorev1beta1.LastOperationTypeMigrate
	kit.Must(t, c.Status().Update(t.Context(), shoot))
	expect("migrated", 5, "")

	shoot.Finalizers = []string{"test.gardener.cloud/wait"}
	confirmDeletion(shoot)
	kit.Must(t, c.Update(t.Context(), shoot))
	kit.Must(t, c.Delete(t.Context(), shoot))
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot))
	expect("deleted", 6, "")
	shoot.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "no rights", Codes: []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthorized}}}
	kit.Must(t, c.Status().Update(t.Context(), shoot))
	shoot.Annotations = map[string]string{constants.AnnotationConfirmationForceDeletion: "true"}
	kit.Must(t, c.Update(t.Context(), shoot))
	expect("forced deletion", 7, "")
	shoot.Finalizers = nil
	kit.Must(t, c.Update(t.Context(), shoot))
}

// TestDeprecatedFieldsOfShoots checks that a Shoot that is created with deprecated fields also gets their successors, and
// can still be updated to a version of Kubernetes that does not allow the deprecated fields.
// TestDefaultsOfShoots checks defaults that depend on the namespace and the name, which the body of a request may lack.
func TestDefaultsOfShoots(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ensureNamespace(t, c, "garden-defaults")
	windows := map[string]bool{}
	for range 12 {
		shoot := exampleOf(t, "Shoot", "garden-defaults", "", &gardencorev1beta1.Shoot{})
		shoot.GenerateName, shoot.Spec.Maintenance.TimeWindow, shoot.Annotations, shoot.Spec.SeedName = "g-", nil, nil, nil
		kit.Must(t, c.Create(t.Context(), shoot))
		windows[shoot.Spec.Maintenance.TimeWindow.Begin] = true
	}
	if len(windows) < 3 {
		t.Errorf("12 Shoots with generated names have the maintenance windows %v", windows)
	}
	ensureNamespace(t, c, constants.GardenNamespace)
	body := mustKubectl(t, `{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "without"}, "spec": {"region": "local",
		"cloudProfile": {"name": "local"}, "provider": {"type": "local"}, "kubernetes": {"version": "1.34.2"}}}`,
		"create", "--raw", "/apis/core.gardener.cloud/v1beta1/namespaces/garden/shoots", "--filename", "-")
	if !strings.Contains(body, `"tolerations":[{"key":"seed.gardener.cloud/protected"}]`) || !strings.Contains(body, `"timeWindow"`) {
		t.Errorf("a Shoot whose body lacks the namespace is stored as %s", body)
	}
}

func TestDeprecatedFieldsOfShoots(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ensureNamespace(t, c, "garden-deprecated")
	shoot := exampleOf(t, "Shoot", "garden-deprecated", "old", &gardencorev1beta1.Shoot{})
	shoot.Spec.SeedName = nil
	shoot.Spec.Kubernetes.Version = "1.32.0"
	shoot.Spec.Kubernetes.KubeAPIServer.FeatureGates = nil
	shoot.Spec.Provider.Workers[0].Kubernetes = nil
	shoot.Spec.CloudProfile, shoot.Spec.CloudProfileName = nil, ptr("local")
	shoot.Spec.DNS.Providers[0].CredentialsRef, shoot.Spec.DNS.Providers[0].SecretName = nil, ptr("dns-credentials")
	kit.Must(t, c.Create(t.Context(), shoot))
	provider := &shoot.Spec.DNS.Providers[0]
	if shoot.Spec.CloudProfile == nil || shoot.Spec.CloudProfileName == nil || provider.CredentialsRef == nil || provider.SecretName == nil {
		t.Errorf("cloudProfile %v, cloudProfileName %v, provider %+v", shoot.Spec.CloudProfile, shoot.Spec.CloudProfileName, provider)
	}
	for _, version := range []string{"1.33.0", "1.34.0", "1.35.0"} {
		shoot.Spec.Kubernetes.Version = version
		kit.Must(t, c.Update(t.Context(), shoot))
	}
	provider = &shoot.Spec.DNS.Providers[0]
	if shoot.Spec.CloudProfile == nil || shoot.Spec.CloudProfileName != nil || provider.CredentialsRef == nil || provider.SecretName != nil {
		t.Errorf("after updates: cloudProfile %v, cloudProfileName %v, provider %+v", shoot.Spec.CloudProfile, shoot.Spec.CloudProfileName, provider)
	}
}

func TestBackupEntryOperations(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ensureNamespace(t, c, "garden-entries")
	entry := exampleOf(t, "BackupEntry", "garden-entries", "entry", &gardencorev1beta1.BackupEntry{})
	entry.Annotations = nil
	kit.Must(t, c.Create(t.Context(), entry))
	for _, step := range []struct {
		key, value string
		generation int64
		left       string
	}{
		{constants.AnnotationGardenerOperation, "migrate", 2, ""},
		{constants.AnnotationGardenerOperation, "restore", 3, "restore"},
		{constants.AnnotationGardenerOperation, "restore", 3, "restore"},
		{constants.AnnotationBackupEntryForceDeletion, "true", 4, "true"},
	} {
		entry.Annotations = map[string]string{step.key: step.value}
		kit.Must(t, c.Update(t.Context(), entry))
		if entry.Generation != step.generation || entry.Annotations[step.key] != step.left {
			t.Errorf("%s=%s: generation %d, annotations %v", step.key, step.value, entry.Generation, entry.Annotations)
		}
	}
}

func TestBastionHeartbeat(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ensureNamespace(t, c, "garden-bastions")
	bastion := exampleOf(t, "Bastion", "garden-bastions", "bastion", &operationsv1alpha1.Bastion{})
	bastion.Annotations = nil
	kit.Must(t, c.Create(t.Context(), bastion))
	first := bastion.Status.LastHeartbeatTimestamp
	if first == nil || bastion.Status.ExpirationTimestamp.Sub(first.Time).Hours() != 1 {
		t.Fatalf("status of a new bastion: %+v", bastion.Status)
	}
	past := metav1.NewTime(first.Add(-1e12).Truncate(1e9))
	bastion.Status.LastHeartbeatTimestamp = &past
	kit.Must(t, c.Status().Update(t.Context(), bastion))
	if bastion.Status.ExpirationTimestamp.Sub(past.Time).Hours() != 1 {
		t.Errorf("expiration after an update of the status: %+v", bastion.Status)
	}
	bastion.Annotations = map[string]string{constants.AnnotationGardenerOperation: constants.OperationKeepalive}
	kit.Must(t, c.Update(t.Context(), bastion))
	if !bastion.Status.LastHeartbeatTimestamp.After(past.Time) || len(bastion.Annotations) > 0 || bastion.Generation != 1 {
		t.Errorf("after keepalive: %+v, annotations %v, generation %d", bastion.Status, bastion.Annotations, bastion.Generation)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ensureNamespace(t, c, "garden")
	set := exampleOf(t, "ManagedSeedSet", "garden", "scaled", &seedmanagementv1alpha1.ManagedSeedSet{})
	kit.Must(t, c.Create(t.Context(), set))
	scale := &autoscalingv1.Scale{}
	kit.Must(t, c.SubResource("scale").Get(t.Context(), set, scale))
	if scale.Spec.Replicas != *set.Spec.Replicas || scale.Status.Selector == "" {
		t.Errorf("scale %+v", scale)
	}
	mustKubectl(t, "", "scale", "managedseedset", "-n", "garden", "scaled", "--replicas=5")
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	if *set.Spec.Replicas != 5 || set.Generation != 2 {
		t.Errorf("after kubectl scale: %d replicas, generation %d", *set.Spec.Replicas, set.Generation)
	}
	scale.ResourceVersion, scale.Spec.Replicas = "", 6
	if err := c.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)); err == nil {
		t.Error("a scale without a resourceVersion was accepted")
	}
	scale.Spec.Replicas = -1
	if err := c.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)); err == nil {
		t.Error("a negative number of replicas was accepted")
	}
}

// TestGardenIsPrepared checks the objects that the API server creates in the garden.
func TestGardenIsPrepared(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	identity := &corev1.ConfigMap{}
	kit.EventuallyTrue(t, "the garden is prepared", func() bool {
		for _, name := range []string{constants.SystemSeedLeaseNamespace, constants.SystemShootIssuerNamespace} {
			if c.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}) != nil {
				return false
			}
		}
		return c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "cluster-identity"}, identity) == nil
	})
	if identity.Data["cluster-identity"] != "test-garden" || identity.Data["origin"] != "gardener-apiserver" || !*identity.Immutable {
		t.Errorf("cluster-identity: %v, immutable %v", identity.Data, *identity.Immutable)
	}
}
