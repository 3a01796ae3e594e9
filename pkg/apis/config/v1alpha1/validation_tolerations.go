package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateTolerations follows ValidateTolerations of k8s.io/kubernetes/pkg/apis/core/validation, which cannot be
// imported. If an invalid toleration passed here, the API server would reject the pods that get it.
func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range tolerations {
		errs = append(errs, validateToleration(&tolerations[i], path.Index(i))...)
	}
	return errs
}

func validateToleration(toleration *corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if toleration.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, path.Child("key"))...)
	} else if toleration.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), toleration.Operator,
			"must be Exists when key is empty, which means all keys and values"))
	}
	errs = append(errs, validateTolerationValue(toleration, path)...)
	return append(errs, validateTolerationEffect(toleration, path)...)
}

func validateTolerationValue(toleration *corev1.Toleration, path *field.Path) field.ErrorList {
	switch toleration.Operator {
	case corev1.TolerationOpEqual, "": // empty means Equal
		if messages := validation.IsValidLabelValue(toleration.Value); len(messages) > 0 {
			return field.ErrorList{field.Invalid(path.Child("value"), toleration.Value, strings.Join(messages, "; "))}
		}
	case corev1.TolerationOpExists:
		if toleration.Value != "" {
			return field.ErrorList{field.Invalid(path.Child("value"), toleration.Value, "must be empty when operator is Exists")}
		}
	default:
		// Lt and Gt require an alpha feature gate, whose state in the target cluster is not known here.
		return field.ErrorList{field.NotSupported(path.Child("operator"), toleration.Operator,
			[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists})}
	}
	return nil
}

func validateTolerationEffect(toleration *corev1.Toleration, path *field.Path) field.ErrorList {
	switch toleration.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute: // empty means all
	default:
		return field.ErrorList{field.NotSupported(path.Child("effect"), toleration.Effect, []corev1.TaintEffect{
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute})}
	}
	if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
		return field.ErrorList{field.Invalid(path.Child("effect"), toleration.Effect,
			"must be NoExecute when tolerationSeconds is set")}
	}
	return nil
}
