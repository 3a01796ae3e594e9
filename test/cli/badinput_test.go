package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

func managedResource(namespace, name string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: named(namespace, name)}
}

func TestNoCluster(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "none")
	execute(call{args: []string{"--kubeconfig", empty, "get"}}).says(t, 2, "!stat "+empty)
	kit.Must(t, os.WriteFile(empty, nil, 0o600))
	execute(call{args: []string{"--kubeconfig", empty, "get"}}).says(t, 2, "!no cluster is configured")
	port := kit.FreePort(t)
	execute(call{args: []string{"--kubeconfig", empty, "--server", fmt.Sprintf("http://127.0.0.1:%d", port), "get"}}).says(t, 2, "!connection refused", "!cannot be reached")
	execute(call{args: []string{"--kubeconfig", empty, "--server", "https://no-such-host.invalid", "get"}}).says(t, 2, "!error:")
}

func TestNoSuchKind(t *testing.T) {
	t.Parallel()
	newWorld(t).withoutKind.says(t, 2, "!does not serve ManagedResources", "!kubectl apply --server-side -f config/crd")
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run("get", "webshop-ap", "-n", "garden").says(t, 2, "!ManagedResource garden/webshop-ap not found: did you mean webshop-app")
	w.run("why", "sale", "-n", "garden").says(t, 2, "!did you mean webshop-sale?")
	w.run("tree", "webshop-app", "-n", "default").says(t, 2, "!ManagedResource default/webshop-app not found, but there is one in namespace garden: use -n")
	w.run("tree", "x", "-n", "kube-public").says(t, 2, "!namespace kube-public has no ManagedResources")
	w.run("gte").says(t, 2, `!unknown command "gte"`, "!Did you mean this?", "!get")
	w.run("get", "-o", "nonsense").says(t, 2, `!invalid --output "nonsense"`, "!json")
	w.run("get", "--target-context", "nowhere").says(t, 0)
	w.run("tree", "webshop-app", "-n", "garden", "--target-context", "nowhere").says(t, 2, `!context "nowhere" does not exist`)
	w.run("get", "webshop-app", "-A").says(t, 2, "!names cannot be combined")
}

// TestReadOnly runs all read commands with only the rights to get and list, and with fewer rights.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.await(t, "garden", "webshop-sale", state.Unhealthy)
	look := []string{"get", "list"}
	w.permit(t, "reader", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: look})
	for _, args := range [][]string{
		{"get", "-A"}, {"why", "-A"}, {"tree", "-A"}, {"events", "webshop-app", "-n", "garden"}, {"owner", "deployment/storefront", "-n", "webshop"},
		{"decode", "webshop-app", "-n", "garden"},
	} {
		out := w.run(append(args, "--as", "reader")...)
		if out.code != 0 || strings.Contains(out.err, "may not") {
			t.Errorf("%v: exit code %d\n%s", args, out.code, out.err)
		}
	}
	namespace := w.namespace(t)
	w.deliverSuspended(t, namespace, "shop", configMap)
	w.edit(t, namespace, "settings", "red")
	w.run("diff", "shop", "-n", namespace, "--as", "reader").says(t, 1, "- colour: red", "+ colour: blue", "!without the API server's defaults and webhooks")

	w.permit(t, "hardly", rbacv1.PolicyRule{APIGroups: []string{resourcesv1alpha1.GroupName}, Resources: []string{"managedresources"}, Verbs: look},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: look})
	w.run("tree", "webshop-app", "-n", "garden", "--as", "hardly").says(t, 0, "Deployment webshop/storefront Healthy", "Coupon webshop/welcome Unseen you may not read it",
		"!Not shown, because you may not read them:", "!Pods in namespace webshop")
	w.run("why", "-n", "garden", "--as", "hardly").says(t, 0, "Deployment webshop/sale is Unhealthy", "!Not shown, because you may not read them: Events")
	w.run("get", "-A", "--as", "nobody").says(t, 2, "!forbidden", "!choose one with -n")
	w.run("get", "-n", "garden", "--as", "nobody").says(t, 2, "!forbidden", "!Request the permission")
	w.run("suspend", "webshop-app", "-n", "garden", "--as", "reader").says(t, 2, "!cannot patch resource")
	w.run("decode", "webshop-app", "-n", "garden", "--as", "hardly").says(t, 2, "!read Secret garden/webshop-app-")
}

// permit gives a user of the cluster permissions.
func (w *world) permit(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: named("", "cli-"+user), Rules: rules}
	kit.Must(t, w.client.Create(t.Context(), role))
	kit.Must(t, w.client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("", "cli-"+user), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
	w.eventually(t, 0, nil, "get", "-n", "garden", "--as", user)
}

// TestOldServer uses an API server that supports neither server-side apply nor OpenAPI v3.
func TestOldServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	config := w.controlPlane.Config()
	transport, err := rest.TransportFor(config)
	kit.Must(t, err)
	host, err := url.Parse(config.Host)
	kit.Must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(host)
	proxy.Transport = transport
	old := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		switch {
		case request.Header.Get("Content-Type") == "application/apply-patch+yaml":
			http.Error(writer, "the body of the request was in an unknown format", http.StatusUnsupportedMediaType)
		case strings.HasPrefix(request.URL.Path, "/openapi/v3"):
			http.NotFound(writer, request)
		default:
			proxy.ServeHTTP(writer, request)
		}
	}))
	t.Cleanup(old.Close)
	empty := filepath.Join(t.TempDir(), "none")
	kit.Must(t, os.WriteFile(empty, nil, 0o600))
	at := func(args ...string) []string {
		return append([]string{"--kubeconfig", empty, "--server", old.URL, "--cache-dir", t.TempDir()}, args...)
	}
	execute(call{args: at("get", "-n", "garden")}).says(t, 0, "webshop-app")
	execute(call{args: at("tree", "webshop-app", "-n", "garden")}).says(t, 0, "Deployment webshop/storefront")
	execute(call{args: at("diff", "shop", "-n", namespace, "-f", "-"), in: configMap}).says(t, 2, "!too old for server-side apply")
	execute(call{args: at("create", "shop", "-n", namespace, "-f", "-"), in: configMap}).says(t, 2, "!too old for server-side apply")
}

// TestNarrow checks that no output is wider than a terminal of 60 columns.
func TestNarrow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.await(t, "garden", "webshop-sale", state.Unhealthy)
	w.eventually(t, 0, []string{"FailedScheduling"}, "why", "-A")
	for _, args := range [][]string{{"get", "-A"}, {"tree", "-A"}, {"why", "-A"}, {"events", "webshop-sale", "-n", "garden"}} {
		out := w.runCall(call{args: args, width: 60})
		if out.code != 0 || !strings.Contains(out.out, "webshop-") && !strings.Contains(out.out, "sale") {
			t.Errorf("%v: exit code %d\n%s%s", args, out.code, out.out, out.err)
		}
		for line := range strings.Lines(out.out) {
			if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > 60 {
				t.Errorf("%v: a line has %d characters: %s", args, width, line)
			}
		}
		if strings.Contains(out.out, "\x1b") {
			t.Errorf("%v: the output has colours, although it is not a terminal", args)
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := []string{"--kubeconfig", w.kubeconfig}
	run := func(args ...string) outcome {
		return execute(call{args: append(append([]string{"__complete"}, args[:1]...), append(config, args[1:]...)...)})
	}
	run("tree", "-n", "garden", "webshop-").says(t, 0, "webshop-app\nwebshop-base\nwebshop-sale\n")
	run("tree", "-n", "garden", "webshop-app", "webshop-").says(t, 0, "webshop-base\n")
	run("get", "-n", "gard").says(t, 0, "garden\n")
	run("get", "-o", "").says(t, 0, "json\n", "wide\n")
	run("wait", "--for", "").says(t, 0, "ready\n")
}
