package seedsystem

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
)

// policyName is the name of the policy and of its binding.
const policyName = "gardener-namespace-protection"

// protection returns a policy that denies the deletion of the namespace of a control plane, unless it is confirmed with an
// annotation, or the resource-manager in the given namespace deletes it. The content of the namespace includes the volumes
// of etcd and the certificate authorities. A policy works even if no Pod of the seed does.
func protection(namespace string) []client.Object {
	unless := fmt.Sprintf(`request.userInfo.username == "system:serviceaccount:%s:%s" || has(oldObject.metadata.deletionTimestamp) || `+
		`oldObject.metadata.?annotations[?"%s"].orValue("") in ["1", "t", "T", "true", "TRUE", "True"]`,
		namespace, resourcemanager.Name, constants.AnnotationConfirmationDeletion)
	message := `"the namespace contains the control plane of a shoot with all its data. To delete it nevertheless, confirm that first: ` +
		`kubectl annotate namespace " + oldObject.metadata.name + " ` + constants.AnnotationConfirmationDeletion + `=true"`
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: policyName},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelGardenRole: constants.RoleShoot}},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"namespaces"}},
					}}},
				},
				Validations: []admissionregistrationv1.Validation{{
					Expression: unless, MessageExpression: message, Reason: ptr.To(metav1.StatusReasonForbidden),
				}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: policyName},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        policyName,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}
