package shoot

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// TestReferenced checks that copies have the names that extensions expect, and that an object that is missing or has another
// kind blocks only its own bundle.
func TestReferenced(t *testing.T) {
	named := func(kind, name string) corev1beta1.NamedResourceReference {
		return corev1beta1.NamedResourceReference{Name: kind + name, ResourceRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, Name: name}}
	}
	in := up(t, func(in *Inputs) {
		in.Shoot.Spec.Resources = []corev1beta1.NamedResourceReference{named("Secret", "a"), named("ConfigMap", "b"), named("WorkloadIdentity", "c"), named("Secret", "a")}
	})
	if why := planOf(t, in).Waits; len(why) != 1 || !strings.Contains(why[0].Reason, "Secret garden-dev/a does not exist, ConfigMap garden-dev/b does not exist") || len(why[0].Holds) != 1 {
		t.Errorf("missing objects: %v", why)
	}
	in.References = map[string]Referenced{
		"Secret garden-dev/a":    {Secret: &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"k": []byte("v")}}},
		"ConfigMap garden-dev/b": {ConfigMap: &corev1.ConfigMap{Data: map[string]string{"k": "v"}}},
		"WorkloadIdentity garden-dev/c": {WorkloadIdentity: &securityv1alpha1.WorkloadIdentity{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "c"}, Spec: securityv1alpha1.WorkloadIdentitySpec{TargetSystem: securityv1alpha1.TargetSystem{Type: "cloud"}},
		}},
	}
	objects, err := in.referenced()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetNamespace()+"/"+object.GetName())
	}
	if got := strings.Join(names, " "); got != "shoot--dev--one/ref-b shoot--dev--one/ref-a shoot--dev--one/workload-identity-ref-c" {
		t.Errorf("the copies are %s", got)
	}
	if identity := objects[2].GetAnnotations()["workloadidentity.security.gardener.cloud/context-object"]; !strings.Contains(identity, `"kind":"Shoot"`) {
		t.Errorf("tokens of the WorkloadIdentity are for %q", identity)
	}
	in.Shoot.Spec.Resources = []corev1beta1.NamedResourceReference{named("Pod", "a")}
	in.References["Pod garden-dev/a"] = Referenced{}
	if _, err := in.referenced(); err == nil || !strings.Contains(err.Error(), "Pod garden-dev/a cannot be copied") {
		t.Errorf("for a Pod: %v", err)
	}
}
