package validation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	. "github.com/trellis-k8s/trellis/pkg/apis/authentication/validation"
	. "github.com/trellis-k8s/trellis/pkg/apis/internal/ruletest"
)

func TestValidateKubeconfigRequest(t *testing.T) {
	rows := []Row{
		{"", "", ""},
		{"spec/expirationSeconds", "", ""},
		{"spec/expirationSeconds", "599", "spec.expirationSeconds Invalid"},
		{"spec/expirationSeconds", "600", ""},
		{"spec/expirationSeconds", "4294967295", ""},
		{"spec/expirationSeconds", "4294967296", "spec.expirationSeconds Invalid"},
		{"spec/expirationSeconds", "-1", "spec.expirationSeconds Invalid"},
	}
	Check(t, "authentication", "adminkubeconfigrequest", v1alpha1.SetDefaultsAdminKubeconfigRequest, func(request *v1alpha1.AdminKubeconfigRequest) field.ErrorList {
		return ValidateKubeconfigRequest(&request.Spec)
	}, rows)
	Check(t, "authentication", "viewerkubeconfigrequest", v1alpha1.SetDefaultsViewerKubeconfigRequest, func(request *v1alpha1.ViewerKubeconfigRequest) field.ErrorList {
		return ValidateKubeconfigRequest(&request.Spec)
	}, rows)
	Compare(t, ValidateKubeconfigRequest(&v1alpha1.KubeconfigRequestSpec{}), "spec.expirationSeconds Required")
}
