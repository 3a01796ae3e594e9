package validation_test

import (
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

// TestRandomObjects checks that defaulting and validation do not panic for any object, and that setting the defaults again does
// not change the number of errors.
func TestRandomObjects(t *testing.T) {
	for seed := range int64(100) {
		random(t, seed, v1beta1.SetDefaultsProject, ValidateProject, ValidateProjectUpdate)
		random(t, seed, v1beta1.SetDefaultsSeed, ValidateSeed, ValidateSeedUpdate)
		random(t, seed, v1beta1.SetDefaultsCloudProfile, ValidateCloudProfile, ValidateCloudProfileUpdate)
		random(t, seed, v1beta1.SetDefaultsShoot, ValidateShoot, ValidateShootUpdate)
		random(t, seed, noDefaults, ValidateBackupBucket, ValidateBackupBucketUpdate)
		random(t, seed, noDefaults, ValidateBackupEntry, ValidateBackupEntryUpdate)
		random(t, seed, noDefaults, ValidateControllerDeployment, ValidateControllerDeploymentUpdate)
		random(t, seed, noDefaults, ValidateControllerInstallation, ValidateControllerInstallationUpdate)
		random(t, seed, v1beta1.SetDefaultsControllerRegistration, ValidateControllerRegistration, ValidateControllerRegistrationUpdate)
		random(t, seed, noDefaults, ValidateExposureClass, ValidateExposureClassUpdate)
		random(t, seed, noDefaults, ValidateInternalSecret, ValidateInternalSecretUpdate)
		random(t, seed, v1beta1.SetDefaultsNamespacedCloudProfile, ValidateNamespacedCloudProfile, ValidateNamespacedCloudProfileUpdate)
		random(t, seed, noDefaults, ValidateQuota, ValidateQuotaUpdate)
		random(t, seed, v1beta1.SetDefaultsSecretBinding, ValidateSecretBinding, ValidateSecretBindingUpdate)
		random(t, seed, noDefaults, ValidateShootState, ValidateShootStateUpdate)
	}
}

func random[T any](t *testing.T, seed int64, setDefaults func(*T), validate func(*T) field.ErrorList, update func(now, before *T) field.ErrorList) {
	t.Helper()
	filler := randfill.NewWithSeed(seed).RandSource(rand.NewSource(seed)).NilChance(0.4).NumElements(0, 2).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(100)-10, resource.DecimalSI)
		},
		func(raw *runtime.RawExtension, c randfill.Continue) { raw.Raw = []byte(c.String(10)) },
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(c.Int63n(1<<32), 0) },
	)
	var now, before T
	filler.Fill(&now)
	filler.Fill(&before)
	setDefaults(&now)
	first := len(validate(&now))
	setDefaults(&now)
	if second := len(validate(&now)); first != second {
		t.Errorf("seed %d: %d errors, then %d", seed, first, second)
	}
	update(&now, &before)
}
