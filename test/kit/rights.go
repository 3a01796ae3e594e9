package kit

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/rbac"
	"github.com/trellis-k8s/trellis/test/controlplane"
)

// withRights makes every resource-manager that tests start run with the rights of the Helm chart.
var withRights = flag.Bool("kit.rights", false,
	"run the resource-manager with the rights that its configuration needs, instead of an administrator's")

// restricted are the users with these rights.
var restricted struct {
	sync.Mutex
	users []string
}

// RunAudited is like shared.Run, but fails if a request of a resource-manager with restricted rights was forbidden.
func RunAudited(shared *controlplane.Shared, m *testing.M) int {
	flag.Parse()
	if !*withRights {
		return shared.Run(m)
	}
	directory, err := os.MkdirTemp("", "trellis-audit-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(directory) }()
	shared.Options.AuditLog = filepath.Join(directory, "audit.log")
	code := shared.Run(m)
	for _, line := range forbidden(shared.Options.AuditLog) {
		fmt.Fprintln(os.Stderr, line)
		code = 1
	}
	return code
}

// forbidden returns the forbidden requests of restricted users, except for those about the rights of other users.
func forbidden(auditLog string) []string {
	file, err := os.Open(auditLog)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = file.Close() }()
	var lines []string
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var event struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ImpersonatedUser *struct{ Username string }
			ResponseStatus   struct {
				Code    int
				Message string
			}
		}
		if json.Unmarshal(scanner.Bytes(), &event) == nil && event.ImpersonatedUser == nil &&
			slices.Contains(restricted.users, event.User.Username) &&
			LacksRights(event.ResponseStatus.Code, event.ResponseStatus.Message) {
			lines = append(lines, fmt.Sprintf("forbidden: %s %s: %s", event.Verb, event.RequestURI, event.ResponseStatus.Message))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// LacksRights reports whether an API server rejected a request because of missing rights. API servers also use this
// status for requests that they do not admit, such as the creation of an object in a namespace that is being deleted.
func LacksRights(code int, message string) bool {
	return code == http.StatusForbidden && (strings.Contains(message, `: User "`) || strings.Contains(message, "attempting to grant"))
}

// restrict returns a configuration in which the kubeconfigs of an administrator are replaced by kubeconfigs of users with
// the required rights.
func restrict(tb testing.TB, config, file string) string {
	tb.Helper()
	parsed, err := configv1alpha1.Parse([]byte(config))
	if err != nil {
		return config // the test covers exactly that
	}
	needed, err := rbac.For(parsed)
	Must(tb, err)
	tree := map[string]any{}
	Must(tb, yaml.Unmarshal([]byte(config), &tree))
	ofSource := parsed.SourceClientConnection.Kubeconfig == file
	ofTarget := parsed.TargetClientConnection.Kubeconfig == file || ofSource && parsed.TargetClientConnection.Kubeconfig == ""
	if !ofSource && !ofTarget {
		return config
	}
	c := &granting{TB: tb, kubeconfig: file}
	c.connect()
	for _, one := range []struct {
		wanted     bool
		connection string
		rules      rbac.Rules
	}{
		{ofSource, "sourceClientConnection", needed.Source},
		{ofTarget, "targetClientConnection", rbac.Rules{
			Cluster: append(slices.Clone(needed.Target.Cluster), ofObjects()...), Namespaced: needed.Target.Namespaced,
		}},
	} {
		if !one.wanted {
			continue
		}
		fields, is := tree[one.connection].(map[string]any)
		if !is {
			fields = map[string]any{}
			tree[one.connection] = fields
		}
		fields["kubeconfig"] = c.user(strings.TrimSuffix(one.connection, "ClientConnection"), one.rules)
	}
	written, err := yaml.Marshal(tree)
	Must(tb, err)
	return string(written)
}

// ofObjects returns the rights to manage objects of all kinds through ManagedResources, with all supported features.
func ofObjects() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: rbac.ForObjects()},
		{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces/finalize"}, Verbs: []string{"update"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles"}, Verbs: []string{"escalate", "bind"}},
	}
}

// granting creates users with rights in a control plane.
type granting struct {
	testing.TB
	kubeconfig string
	client     client.Client
	namespace  string
}

func (g *granting) connect() {
	g.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", g.kubeconfig)
	Must(g, err)
	g.client, err = client.New(config, client.Options{})
	Must(g, err)
	g.namespace = NewNamespace(g, g.client, "rights", nil)
}

// user creates a ServiceAccount with rights, and returns the path of its kubeconfig.
func (g *granting) user(name string, rules rbac.Rules) string {
	g.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: name}}
	Must(g, g.client.Create(g.Context(), account))
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: g.namespace, Name: name}}
	everywhere := metav1.ObjectMeta{Name: g.namespace + ":" + name}
	Must(g, g.client.Create(g.Context(), &rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: rules.Cluster}))
	Must(g, g.client.Create(g.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: everywhere, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: everywhere.Name},
	}))
	for namespace, ones := range rules.Namespaced {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: everywhere.Name}
		// Configurations may name namespaces that do not exist.
		err := g.client.Create(g.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		Must(g, client.IgnoreAlreadyExists(err))
		Must(g, g.client.Create(g.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: ones}))
		Must(g, g.client.Create(g.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		}))
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](7200)}}
	Must(g, g.client.SubResource("token").Create(g.Context(), account, request))
	restricted.Lock()
	restricted.users = append(restricted.users, fmt.Sprintf("system:serviceaccount:%s:%s", g.namespace, name))
	restricted.Unlock()

	loaded, err := clientcmd.LoadFromFile(g.kubeconfig)
	Must(g, err)
	loaded.AuthInfos = map[string]*clientcmdapi.AuthInfo{loaded.Contexts[loaded.CurrentContext].AuthInfo: {Token: request.Status.Token}}
	path := filepath.Join(g.TempDir(), name+".kubeconfig")
	Must(g, clientcmd.WriteToFile(*loaded, path))
	return path
}
