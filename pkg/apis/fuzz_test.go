package apis_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	authenticationvalidation "github.com/trellis-k8s/trellis/pkg/apis/authentication/validation"
	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	corevalidation "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	operationsvalidation "github.com/trellis-k8s/trellis/pkg/apis/operations/validation"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	securityvalidation "github.com/trellis-k8s/trellis/pkg/apis/security/validation"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	seedmanagementvalidation "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/validation"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
	settingsvalidation "github.com/trellis-k8s/trellis/pkg/apis/settings/validation"
)

// check calls the validation functions of a kind: for the object, and for an update that changes nothing.
func check[T any](object *T, validate func(*T) field.ErrorList, update ...func(now, before *T) field.ErrorList) {
	validate(object)
	for _, one := range update {
		one(object, object)
	}
}

// validate validates an object of any kind that has rules.
func validate(t *testing.T, object runtime.Object) {
	t.Helper()
	switch o := object.(type) {
	case *gardencorev1.ControllerDeployment:
		check(o, corevalidation.ValidateControllerDeployment, corevalidation.ValidateControllerDeploymentUpdate)
		older := &gardencorev1beta1.ControllerDeployment{}
		err := gardencorev1.ConvertToV1beta1(o, older)
		if err == nil {
			_, err = json.Marshal(older)
		}
		if err != nil && len(corevalidation.ValidateControllerDeployment(o)) == 0 {
			t.Errorf("a valid ControllerDeployment cannot be converted to the old version: %v", err)
		}
	case *gardencorev1beta1.ControllerDeployment:
		newer := &gardencorev1.ControllerDeployment{}
		if gardencorev1.ConvertFromV1beta1(o, newer) == nil {
			check(newer, corevalidation.ValidateControllerDeployment, corevalidation.ValidateControllerDeploymentUpdate)
		}
	case *gardencorev1beta1.BackupBucket:
		check(o, corevalidation.ValidateBackupBucket, corevalidation.ValidateBackupBucketUpdate)
	case *gardencorev1beta1.BackupEntry:
		check(o, corevalidation.ValidateBackupEntry, corevalidation.ValidateBackupEntryUpdate)
	case *gardencorev1beta1.CloudProfile:
		check(o, corevalidation.ValidateCloudProfile, corevalidation.ValidateCloudProfileUpdate)
		corevalidation.ValidateCloudProfileUpdate(o, &gardencorev1beta1.CloudProfile{})
		corevalidation.ValidateCloudProfileStages(&gardencorev1beta1.CloudProfile{}, o, time.Time{})
		if errs := corevalidation.ValidateCloudProfileStages(o, o, time.Unix(1<<31, 0)); len(errs) > 0 {
			t.Errorf("an unchanged CloudProfile is refused because it removes versions: %v", errs)
		}
	case *gardencorev1beta1.ControllerInstallation:
		check(o, corevalidation.ValidateControllerInstallation, corevalidation.ValidateControllerInstallationUpdate)
	case *gardencorev1beta1.ControllerRegistration:
		check(o, corevalidation.ValidateControllerRegistration, corevalidation.ValidateControllerRegistrationUpdate)
	case *gardencorev1beta1.ExposureClass:
		check(o, corevalidation.ValidateExposureClass, corevalidation.ValidateExposureClassUpdate)
	case *gardencorev1beta1.InternalSecret:
		check(o, corevalidation.ValidateInternalSecret, corevalidation.ValidateInternalSecretUpdate)
	case *gardencorev1beta1.NamespacedCloudProfile:
		check(o, corevalidation.ValidateNamespacedCloudProfile, corevalidation.ValidateNamespacedCloudProfileUpdate)
	case *gardencorev1beta1.Project:
		check(o, corevalidation.ValidateProject, corevalidation.ValidateProjectUpdate, corevalidation.ValidateProjectStatusUpdate)
	case *gardencorev1beta1.Quota:
		check(o, corevalidation.ValidateQuota, corevalidation.ValidateQuotaUpdate)
	case *gardencorev1beta1.SecretBinding:
		check(o, corevalidation.ValidateSecretBinding, corevalidation.ValidateSecretBindingUpdate)
	case *gardencorev1beta1.Seed:
		check(o, corevalidation.ValidateSeed, corevalidation.ValidateSeedUpdate, corevalidation.ValidateSeedStatusUpdate)
	case *gardencorev1beta1.Shoot:
		check(o, corevalidation.ValidateShoot, corevalidation.ValidateShootUpdate, corevalidation.ValidateShootStatusUpdate)
		corevalidation.ValidateShootUpdate(o, &gardencorev1beta1.Shoot{})
		corevalidation.ValidateShootUpdate(&gardencorev1beta1.Shoot{}, o)
		for _, err := range corevalidation.ValidateShootUpdate(o, o) {
			if err.Detail == "field is immutable" {
				t.Errorf("an unchanged Shoot is refused: %v", err)
			}
		}
	case *gardencorev1beta1.ShootState:
		check(o, corevalidation.ValidateShootState, corevalidation.ValidateShootStateUpdate)
	default:
		validateOther(object)
	}
}

// validateOther validates an object of a group other than core.
func validateOther(object runtime.Object) {
	switch o := object.(type) {
	case *authenticationv1alpha1.AdminKubeconfigRequest:
		authenticationvalidation.ValidateKubeconfigRequest(&o.Spec)
	case *authenticationv1alpha1.ViewerKubeconfigRequest:
		authenticationvalidation.ValidateKubeconfigRequest(&o.Spec)
	case *operationsv1alpha1.Bastion:
		check(o, operationsvalidation.ValidateBastion, operationsvalidation.ValidateBastionUpdate)
		operationsvalidation.ValidateBastionStatusUpdate(o, o, time.Unix(0, 0))
	case *securityv1alpha1.CredentialsBinding:
		check(o, securityvalidation.ValidateCredentialsBinding, securityvalidation.ValidateCredentialsBindingUpdate)
	case *securityv1alpha1.TokenRequest:
		securityvalidation.ValidateTokenRequest(o, "a", "b")
	case *securityv1alpha1.WorkloadIdentity:
		check(o, securityvalidation.ValidateWorkloadIdentity, securityvalidation.ValidateWorkloadIdentityUpdate)
	case *seedmanagementv1alpha1.Gardenlet:
		check(o, seedmanagementvalidation.ValidateGardenlet, seedmanagementvalidation.ValidateGardenletUpdate)
	case *seedmanagementv1alpha1.ManagedSeed:
		check(o, seedmanagementvalidation.ValidateManagedSeed, seedmanagementvalidation.ValidateManagedSeedUpdate)
	case *seedmanagementv1alpha1.ManagedSeedSet:
		check(o, seedmanagementvalidation.ValidateManagedSeedSet, seedmanagementvalidation.ValidateManagedSeedSetUpdate,
			seedmanagementvalidation.ValidateManagedSeedSetStatusUpdate)
	case *settingsv1alpha1.ClusterOpenIDConnectPreset:
		check(o, settingsvalidation.ValidateClusterOpenIDConnectPreset, settingsvalidation.ValidateClusterOpenIDConnectPresetUpdate)
	case *settingsv1alpha1.OpenIDConnectPreset:
		check(o, settingsvalidation.ValidateOpenIDConnectPreset, settingsvalidation.ValidateOpenIDConnectPresetUpdate)
	}
}

// FuzzKinds checks, for any JSON that is a valid object of a kind in strict decoding, that setting the defaults twice is the
// same as once, that validation does not panic, and that the object is unchanged after it is encoded and decoded.
func FuzzKinds(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "fleet", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("found no examples: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			object, err := yaml.YAMLToJSON(document)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(object)
		}
	}
	f.Add([]byte(`{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "spec": {"provider": {"workers": [{}]}}}`))
	scheme := runtime.NewScheme()
	for _, group := range groups {
		if err := group.add(scheme); err != nil {
			f.Fatal(err)
		}
	}
	builder := runtime.SchemeBuilder{gardencorev1beta1.RegisterDefaults, securityv1alpha1.RegisterDefaults, authenticationv1alpha1.RegisterDefaults,
		settingsv1alpha1.RegisterDefaults, seedmanagementv1alpha1.RegisterDefaults}
	if err := builder.AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	encoder := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{})
	f.Fuzz(func(t *testing.T, content []byte) {
		object, _, err := decoder.Decode(content, nil, nil)
		if err != nil {
			return
		}
		scheme.Default(object)
		once := write(t, encoder, object)
		scheme.Default(object)
		if twice := write(t, encoder, object); once != twice {
			t.Errorf("setting the defaults again changes\n%s\nto\n%s", once, twice)
		}
		validate(t, object)
		if after := write(t, encoder, object); once != after {
			t.Errorf("validation changes\n%s\nto\n%s", once, after)
		}
		read, _, err := decoder.Decode([]byte(once), nil, nil)
		if err != nil {
			t.Fatalf("the encoded object cannot be decoded: %v\n%s", err, once)
		}
		scheme.Default(read)
		if again := write(t, encoder, read); once != again {
			t.Errorf("encoding and decoding changes the object:\n%s\n%s", once, again)
		}
	})
}

func write(t *testing.T, encoder runtime.Encoder, object runtime.Object) string {
	t.Helper()
	content, err := runtime.Encode(encoder, object)
	if err != nil {
		t.Fatalf("%T cannot be encoded: %v", object, err)
	}
	return string(content)
}
