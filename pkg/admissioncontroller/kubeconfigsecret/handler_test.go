package kubeconfigsecret

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

const (
	inline = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://a.example.org'}}]\n" +
		"users: [{name: a, user: {token: secret-token}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
	runs = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://a.example.org'}}]\n" +
		"users: [{name: a, user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}, token: secret-token}}]\n" +
		"contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
)

func TestSecrets(t *testing.T) {
	secret := func(kubeconfig, label string) client.Object {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x", Labels: map[string]string{"l": label}}}
		if kubeconfig != "" {
			secret.Data = map[string][]byte{"kubeconfig": []byte(kubeconfig)}
		}
		return secret
	}
	for name, test := range map[string]struct {
		before, after client.Object
		refused       string
	}{
		"other data":                         {after: secret("", "")},
		"everything inline":                  {after: secret(inline, "")},
		"a program":                          {after: secret(runs, ""), refused: "exec"},
		"no kubeconfig":                      {after: secret("{", ""), refused: "data.kubeconfig of Secret garden-dev/x"},
		"a label of an older one":            {before: secret(runs, ""), after: secret(runs, "changed")},
		"an older one becomes one that runs": {before: secret(inline, ""), after: secret(runs, ""), refused: "exec"},
	} {
		operation := admissionv1.Create
		if test.before != nil {
			operation = admissionv1.Update
		}
		message, code := admittest.Ask(t, New(), admittest.Write{
			Operation: operation, Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Resource: "secrets", Before: test.before, After: test.after,
		})
		if !strings.Contains(message, test.refused) || (message != "") != (test.refused != "") ||
			message != "" && code != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d %q, want a message with %q", name, code, message, test.refused)
		}
		if strings.Contains(message, "secret-token") {
			t.Errorf("%s: the message contains the token: %s", name, message)
		}
	}
}
