package fleet

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// ShootWithNodes returns a Shoot with one pool of machines of provider-local, and creates its credentials. The fleet must be installed,
// and the landscape must have the images of machines.
func (f *Fleet) ShootWithNodes(ctx context.Context, key client.ObjectKey, machines int32) (*corev1beta1.Shoot, error) {
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: key.Namespace, Name: key.Name},
		},
	} {
		if err := client.IgnoreAlreadyExists(f.Create(ctx, object)); err != nil {
			return nil, fmt.Errorf("create the credentials of Shoot %s: %w", key, err)
		}
	}
	present := &corev1beta1.Shoot{}
	if err := f.Get(ctx, shootKey, present); err != nil {
		return nil, fmt.Errorf("read Shoot %s: %w", shootKey, err)
	}
	return &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: present.Spec.CloudProfile, Region: present.Spec.Region, CredentialsBindingName: ptr.To(key.Name),
			// The image of kube-proxy has no programs for iptables.
			Kubernetes: corev1beta1.Kubernetes{
				Version:   present.Spec.Kubernetes.Version,
				KubeProxy: &corev1beta1.KubeProxyConfig{Mode: ptr.To(corev1beta1.ProxyModeNFTables)},
			},
			Networking: &corev1beta1.Networking{Type: ptr.To("local")},
			Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{
				Name: "small", Minimum: machines, Maximum: machines, MaxSurge: ptr.To(intstr.FromInt32(1)),
				Machine: corev1beta1.Machine{Type: "local", Image: &corev1beta1.ShootMachineImage{Name: "local", Version: ptr.To(MachineVersions[0])}},
			}}},
		},
	}, nil
}

// SmallRequests are the requests of Pods that share a small node with many others.
func SmallRequests() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("200Mi")}
}

// RequestsPolicy returns objects that reduce the requests of control plane Pods, as a VerticalPodAutoscaler would do for idle ones. A small
// node has no room for their initial requests.
func RequestsPolicy() []client.Object {
	var patches []string
	for name, quantity := range SmallRequests() {
		patches = append(patches, fmt.Sprintf(`JSONPatch{op: "add", path: "/spec/containers/0/resources/requests/%s", value: %q}`, name, quantity.String()))
	}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "reduce-requests"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelGardenRole: constants.RoleShoot}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "requests", Expression: "has(object.spec.containers[0].resources) && has(object.spec.containers[0].resources.requests)",
			}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[" + strings.Join(patches, ", ") + "]"},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	return []client.Object{policy, binding}
}
