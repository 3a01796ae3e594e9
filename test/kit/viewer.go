package kit

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// NewViewer creates a ServiceAccount that may only read the ManagedResources of its namespace, and returns a token for
// it.
func NewViewer(tb testing.TB, c client.Client, namespace, name string) (token string) {
	tb.Helper()
	named := func() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	account, request := &corev1.ServiceAccount{ObjectMeta: named()}, &authenticationv1.TokenRequest{}
	for _, object := range []client.Object{
		account,
		&rbacv1.Role{ObjectMeta: named(), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{resourcesv1alpha1.GroupName}, Resources: []string{"managedresources"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: named(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
		},
	} {
		Must(tb, c.Create(tb.Context(), object))
	}
	Must(tb, c.SubResource("token").Create(tb.Context(), account, request))
	return request.Status.Token
}

// View sends a request to the page of ManagedResources, with a viewer's token or without one, and returns the first line
// with data of the response. If there is no response, the status is 0 and the line is the error.
func View(tb testing.TB, page *http.Client, url, token string) (line string, status int) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, http.NoBody)
	Must(tb, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := page.Do(request)
	if err != nil {
		return err.Error(), 0
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line = strings.TrimPrefix(lines.Text(), "data: "); !strings.HasPrefix(line, "id: ") {
			return line, response.StatusCode
		}
	}
	return "", response.StatusCode
}
