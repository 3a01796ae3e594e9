package seedsystem

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/shootnamespace"
)

// policyPrefix is the prefix of the names of policies for the namespaces of control planes.
const policyPrefix = "gardener-control-plane-"

// controlPlanePolicies restrict what the accounts of control planes may deploy in their namespaces, because a privileged
// Pod controls its node, and a Service with external IP addresses gets the traffic of all Pods to these addresses. The
// rules for Pods are those of the Pod Security Standard "Baseline" that protect nodes. They apply to the objects that
// create the Pods: the namespaces permit privileged Pods, which controllers of extensions may create.
func controlPlanePolicies() []client.Object {
	ofPods := []admissionregistrationv1.Validation{
		validation("!variables.pod.?hostNetwork.orValue(false) && !variables.pod.?hostPID.orValue(false) && !variables.pod.?hostIPC.orValue(false)",
			"hostNetwork, hostPID and hostIPC are not permitted"),
		validation("variables.pod.?volumes.orValue([]).all(v, !has(v.hostPath))", "volumes of type hostPath are not permitted"),
		validation("variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))", "privileged containers are not permitted"),
		validation("variables.containers.all(c, c.?securityContext.?capabilities.?add.orValue([]).all(a, a in ["+
			"'AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP', 'SETGID', "+
			"'SETPCAP', 'SETUID', 'SYS_CHROOT']))", "only the capabilities of the Pod Security Standard Baseline are permitted"),
		validation("variables.containers.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))", "host ports are not permitted"),
		validation("variables.containers.all(c, c.?securityContext.?procMount.orValue('Default') == 'Default')",
			"only procMount: Default is permitted"),
		validation("!variables.pod.?securityContext.?windowsOptions.?hostProcess.orValue(false) && "+
			"variables.containers.all(c, !c.?securityContext.?windowsOptions.?hostProcess.orValue(false))", "host processes are not permitted"),
	}
	template := []admissionregistrationv1.Variable{
		{Name: "pod", Expression: "object.spec.template.spec"},
		{Name: "containers", Expression: "variables.pod.containers + variables.pod.?initContainers.orValue([])"},
	}
	pods := policy("pods", "apps", []string{"deployments", "statefulsets"}, ofPods, template...)
	jobs := policy("jobs", "batch", []string{"jobs"}, ofPods, template...)
	services := policy("services", "", []string{"services"}, []admissionregistrationv1.Validation{
		validation("object.spec.?externalIPs.orValue([]).size() == 0", "external IP addresses are not permitted"),
	})
	return slices.Concat(pods, jobs, services)
}

func validation(expression, message string) admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{
		Expression: expression, Message: "in ManagedResources of a Shoot, " + message, Reason: ptr.To(metav1.StatusReasonForbidden),
	}
}

// policy returns a policy and its binding. It applies to the requests of the account of a control plane.
func policy(
	name, group string, resources []string, validations []admissionregistrationv1.Validation, variables ...admissionregistrationv1.Variable,
) []client.Object {
	meta := metav1.ObjectMeta{Name: policyPrefix + name}
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelGardenRole: constants.RoleShoot}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
					},
				}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name:       "account",
				Expression: "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':" + shootnamespace.Account + "'",
			}},
			Variables: variables, Validations: validations,
		}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}
