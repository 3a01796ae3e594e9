package userfiles_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

func settings() corev1beta1.KubeAPIServerConfig {
	return corev1beta1.KubeAPIServerConfig{
		AuditConfig:              &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}},
		StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
		StructuredAuthorization: &corev1beta1.StructuredAuthorization{
			ConfigMapName: "authorization", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "a", SecretName: "authorizer"}},
		},
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "None"}, {Name: "Hook", KubeconfigSecretName: ptr.To("hook")}},
	}
}

// TestGiven checks that each file is read from the object that its field names, and that errors name the object and the field.
func TestGiven(t *testing.T) {
	references := userfiles.Of(settings(), "spec.")
	data := map[string]string{userfiles.KeyPolicy: "policy", userfiles.KeyConfig: "config", userfiles.KeyKubeconfig: "apiVersion: v1\nkind: Config\n"}
	read := func(absent string) (userfiles.Files, error) {
		return userfiles.Read(references, func(name string, into client.Object) error {
			switch object := into.(type) {
			case *corev1.ConfigMap:
				object.Data = map[string]string{userfiles.KeyPolicy: data[userfiles.KeyPolicy], userfiles.KeyConfig: data[userfiles.KeyConfig] + " of " + name}
			case *corev1.Secret:
				object.Data = map[string][]byte{userfiles.KeyKubeconfig: []byte(data[userfiles.KeyKubeconfig] + "# " + name)}
			}
			if name == absent {
				return apierrors.NewNotFound(schema.GroupResource{}, name)
			}
			return nil
		})
	}
	files, err := read("")
	if err != nil {
		t.Fatal(err)
	}
	given, err := files.Given(settings(), "spec.")
	if err != nil || given.AuditPolicy != "policy" || given.Authentication != "config of authentication" || given.Authorization != "config of authorization" ||
		!strings.HasSuffix(string(given.AuthorizerKubeconfigs["a"]), "# authorizer") || !strings.HasSuffix(string(given.AdmissionKubeconfigs["Hook"]), "# hook") ||
		len(given.AdmissionKubeconfigs) != 1 {
		t.Errorf("got %v, %v", given, err)
	}
	if missing := files.Missing(references); missing != "" {
		t.Errorf("all exist, but these are missing: %s", missing)
	}
	files, err = read("hook")
	if missing := files.Missing(references); err != nil || missing != "Secret hook of spec.admissionPlugins[1].kubeconfigSecretName" {
		t.Errorf("a Secret does not exist: got %q, %v", missing, err)
	}
	data[userfiles.KeyPolicy] = strings.Repeat("x", 1<<20+1)
	files, _ = read("")
	if _, err := files.Given(settings(), "spec."); err == nil ||
		!strings.Contains(err.Error(), "spec.auditConfig.auditPolicy.configMapRef: key policy of ConfigMap audit has 1048577 bytes") {
		t.Errorf("a large file: got %v", err)
	}
	data[userfiles.KeyPolicy] = ""
	files, _ = read("")
	if _, err := files.Given(settings(), "spec."); err == nil || err.Error() != "spec.auditConfig.auditPolicy.configMapRef: ConfigMap audit has no key policy" {
		t.Errorf("an empty file: got %v", err)
	}
	if _, err := userfiles.Read(references, func(string, client.Object) error { return errors.New("refused") }); err == nil ||
		err.Error() != "read ConfigMap audit of spec.auditConfig.auditPolicy.configMapRef: refused" {
		t.Errorf("an API server that refuses: got %v", err)
	}
}
