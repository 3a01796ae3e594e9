package credentials

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

var key = client.ObjectKey{Namespace: "garden", Name: "copy"}

func TestCopyIsIndependent(t *testing.T) {
	of := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "a", Labels: map[string]string{"a": "b"}}, Data: map[string][]byte{"user": []byte("me")}}
	made := Copy(key, of)
	of.Data["user"] = []byte("other")
	if string(made.Data["user"]) != "me" || made.Namespace != "garden" || made.Name != "copy" || made.Labels != nil {
		t.Errorf("the metadata are %+v", made.ObjectMeta)
	}
}

func TestForWorkloadIdentity(t *testing.T) {
	of := &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "identity"}}
	of.Spec.TargetSystem = securityv1alpha1.TargetSystem{Type: "local", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"account":"a"}`)}}
	made, err := ForWorkloadIdentity(key, of, json.RawMessage(`{"kind":"Seed"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		constants.AnnotationWorkloadIdentityNamespace: "garden-a", constants.AnnotationWorkloadIdentityName: "identity",
		constants.AnnotationWorkloadIdentityContextObject: `{"kind":"Seed"}`,
	} {
		if made.Annotations[name] != want {
			t.Errorf("annotation %s is %q, want %q", name, made.Annotations[name], want)
		}
	}
	if made.Labels[constants.LabelSecurityPurpose] != "workload-identity-token-requestor" || made.Labels[constants.LabelWorkloadIdentityProvider] != "local" ||
		string(made.Data["config"]) != `{"account":"a"}` {
		t.Errorf("labels %v, config %s", made.Labels, made.Data["config"])
	}
}
