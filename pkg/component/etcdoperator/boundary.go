package etcdoperator

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// policyName is the name of the policy and its binding.
const policyName = "gardener-etcd-operator"

// boundary returns a policy that lets the operator write only in the namespaces of control planes, the Lease of its leader election, and
// what belongs to the given Etcds in its own namespace. Elsewhere, a ManagedResource would have all permissions of the resource-manager. It is a policy, not
// Roles in these namespaces, because gardenlet changes existing namespaces later than the operator.
func boundary(account parts.Account, etcds []string) []client.Object {
	elsewhere := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: constants.LabelGardenRole, Operator: metav1.LabelSelectorOpNotIn, Values: []string{constants.RoleShoot}},
	}}
	rule := func(group, resource string) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
			},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}}
	}
	meta := metav1.ObjectMeta{Name: policyName}
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: elsewhere,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					rule("", "secrets"), rule("resources.gardener.cloud", "managedresources"), rule("coordination.k8s.io", "leases"),
				},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name:       "operator",
				Expression: fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:%s:%s'", account.Namespace, account.Name),
			}},
			Variables: []admissionregistrationv1.Variable{{
				Name: "name", Expression: "request.operation == 'CREATE' ? object.metadata.name : request.name",
			}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("request.namespace == '%s' && (%s)", account.Namespace, permitted(etcds)),
				Message:    "the etcd operator may write only in the namespaces of control planes, and its own clusters",
				Reason:     ptr.To(metav1.StatusReasonForbidden),
			}},
		}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: policyName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}

// permitted returns the expression for what the operator may write in its own namespace. The names of all objects of an Etcd begin with its
// name, except that of its ledger.
func permitted(etcds []string) string {
	election := fmt.Sprintf("request.resource.resource == 'leases' && variables.name == '%s'", electionName)
	if len(etcds) == 0 {
		return election
	}
	names := strings.Join(etcds, "|")
	return fmt.Sprintf("%s || variables.name.matches('^(etcd-ledger-(%s)|(%s)-.+)$')", election, names, names)
}
