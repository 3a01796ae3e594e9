package validation

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// quotaMetrics are the metrics that a Quota can limit.
var quotaMetrics = []string{"cpu", "gpu", "memory", "storage.standard", "storage.premium", "loadbalancer"}

// ValidateQuota checks a Quota.
func ValidateQuota(quota *v1beta1.Quota) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&quota.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	path := field.NewPath("spec")
	scope := quota.Spec.Scope
	errs = append(errs, referencedType(scope.APIVersion, scope.Kind, path.Child("scope"), rules.Project, rules.Secret,
		rules.WorkloadIdentity)...)
	errs = append(errs, atLeast(quota.Spec.ClusterLifetimeDays, 1, path.Child("clusterLifetimeDays"))...)
	for name, quantity := range quota.Spec.Metrics {
		at := path.Child("metrics").Key(string(name))
		if !slices.Contains(quotaMetrics, string(name)) {
			errs = append(errs, field.Invalid(at, quantity.String(), fmt.Sprintf("%s is not a metric that can be limited: %v", name, quotaMetrics)))
		}
		errs = append(errs, quantityNotNegative(quantity, at)...)
	}
	return errs
}

// ValidateQuotaUpdate checks a Quota that replaces another.
func ValidateQuotaUpdate(quota, old *v1beta1.Quota) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&quota.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, immutable(quota.Spec.Scope, old.Spec.Scope, field.NewPath("spec", "scope"))...)
	return append(errs, ValidateQuota(quota)...)
}
