package integration

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// kubeconfig writes a kubeconfig for the control plane, with the caller's changes.
func (f *fixture) kubeconfig(change func(user *clientcmdapi.AuthInfo, cluster *clientcmdapi.Cluster)) string {
	f.Helper()
	config, err := clientcmd.Load(shared.Get(f).Kubeconfig())
	must(f, err)
	for _, user := range config.AuthInfos {
		for _, cluster := range config.Clusters {
			change(user, cluster)
		}
	}
	path := filepath.Join(f.TempDir(), "kubeconfig")
	must(f, clientcmd.WriteToFile(*config, path))
	return path
}

func environment(variables ...string) func(*exec.Cmd) {
	return func(command *exec.Cmd) { command.Env = append(os.Environ(), variables...) }
}

// account creates a ServiceAccount in the fixture's namespace and returns a token for it.
func (f *fixture) account(name string) string {
	f.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	must(f, f.client.Create(f.ctx, account))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	must(f, f.client.SubResource("token").Create(f.ctx, account, request))
	return request.Status.Token
}

// TestContractKubeconfigUsers: kubeconfigs are external input. They must not run programs, read files or impersonate
// another user.
func TestContractKubeconfigUsers(t *testing.T) {
	f := newFixture(t)
	for field, change := range map[string]func(user *clientcmdapi.AuthInfo){
		"exec": func(user *clientcmdapi.AuthInfo) {
			user.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "true", InteractiveMode: "Never"}
		},
		"auth-provider":      func(user *clientcmdapi.AuthInfo) { user.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "x"} },
		"client-certificate": func(user *clientcmdapi.AuthInfo) { user.ClientCertificate = "/x" },
		"client-key":         func(user *clientcmdapi.AuthInfo) { user.ClientKey = "/x" },
		"as":                 func(user *clientcmdapi.AuthInfo) { user.Impersonate = "x" },
		"as-groups":          func(user *clientcmdapi.AuthInfo) { user.Impersonate, user.ImpersonateGroups = "x", []string{"x"} },
		"as-user-extra": func(user *clientcmdapi.AuthInfo) {
			user.Impersonate, user.ImpersonateUserExtra = "x", map[string][]string{"x": {"y"}}
		},
	} {
		path := f.kubeconfig(func(user *clientcmdapi.AuthInfo, _ *clientcmdapi.Cluster) { change(user) })
		good := f.kubeconfig(func(*clientcmdapi.AuthInfo, *clientcmdapi.Cluster) {})
		for cluster, variables := range map[string][]string{"source": {"KUBECONFIG=" + path}, "target": {"KUBECONFIG=" + good, "TARGET_KUBECONFIG=" + path}} {
			said := f.refused(configHeader+anyPorts(t)+noElection, environment(variables...))
			wantContains(t, said, cluster+" cluster", path, `must not use "`+field+`"`)
		}
	}
	said := f.refused(configHeader+anyPorts(t)+noElection, environment("KUBECONFIG=", "TARGET_KUBECONFIG=", "KUBERNETES_SERVICE_HOST="))
	wantContains(t, said, "source cluster: no kubeconfig is set, and the process does not run in a Pod")
}

// TestContractClusterIdentity checks the sources of the identity in origins.
func TestContractClusterIdentity(t *testing.T) {
	f := newFixture(t)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"}}
	admin := f.kubeconfig(func(*clientcmdapi.AuthInfo, *clientcmdapi.Cluster) {})
	t.Cleanup(func() { _ = f.client.Delete(context.Background(), configMap) })
	for _, test := range []struct {
		data       map[string]string // nil: the ConfigMap does not exist
		configured string
		prefix     string
		says       string
	}{
		{nil, "literal", "literal:", ""},
		{nil, "<default>", "", ""},
		{nil, "<cluster>", "", "not found"},
		{map[string]string{}, "<cluster>", "", "no key"},
		{map[string]string{}, "<default>", "", ""},
		{map[string]string{"cluster-identity": "seed"}, "<cluster>", "seed:", ""},
		{map[string]string{"cluster-identity": "seed"}, "<default>", "seed:", ""},
		{map[string]string{"cluster-identity": "seed"}, "", "", ""},
	} {
		if test.data != nil {
			configMap.Data, configMap.ResourceVersion = test.data, ""
			if err := f.client.Create(f.ctx, configMap); err != nil {
				must(t, f.client.Update(f.ctx, configMap))
			}
		}
		config := "controllers: {clusterID: \"" + test.configured + "\"}\n" + noElection
		if test.says != "" {
			wantContains(t, f.refused(configHeader+anyPorts(t)+config, environment("KUBECONFIG="+admin)), "kube-system/cluster-identity", test.says)
			continue
		}
		g := newFixture(t)
		p := g.startIn([]string{g.namespace}, config)
		g.manage("set", g.configMap("one", "1"))
		g.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
		if got := g.liveConfigMap("one").Annotations[resourcesv1alpha1.AnnotationOrigin]; got != test.prefix+g.namespace+"/set" {
			t.Errorf("%+v: the origin is %q", test, got)
		}
		p.Stop()
	}
}

// snapshot lists objects that only the deployer of a resource-manager may create.
func (f *fixture) snapshot() []string {
	f.Helper()
	var names []string
	for kind, group := range map[string]string{
		"ClusterRole": "rbac.authorization.k8s.io", "ClusterRoleBinding": "rbac.authorization.k8s.io", "Role": "rbac.authorization.k8s.io",
		"RoleBinding": "rbac.authorization.k8s.io", "CustomResourceDefinition": "apiextensions.k8s.io",
		"ValidatingWebhookConfiguration": "admissionregistration.k8s.io", "MutatingWebhookConfiguration": "admissionregistration.k8s.io",
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind + "List"})
		must(f, f.client.List(f.ctx, list))
		for _, item := range list.Items {
			if !strings.HasPrefix(item.GetName(), "rights-") { // created by -kit.rights for other tests
				names = append(names, kind+" "+item.GetNamespace()+"/"+item.GetName())
			}
		}
	}
	slices.Sort(names)
	return names
}

// TestContractRights runs with no more rights in the source cluster than gardener-resource-manager gets there, and
// with different users in source and target.
func TestContractRights(t *testing.T) {
	f := newFixture(t)
	all := []string{"get", "list", "watch", "update", "patch"}
	f.bind("source", []rbacv1.PolicyRule{
		{APIGroups: []string{"resources.gardener.cloud"}, Resources: []string{"managedresources", "managedresources/status"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"gardener-resource-manager"},
			Verbs: []string{"get", "watch", "update"}},
	})
	source := f.account("source")
	tokenFile := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(tokenFile, []byte(f.account("target")), 0o600))
	admins := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "target"}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
	}
	must(t, f.client.Create(f.ctx, admins))
	t.Cleanup(func() { _ = f.client.Delete(context.Background(), admins) })
	user := func(change func(user *clientcmdapi.AuthInfo)) string {
		return f.kubeconfig(func(user *clientcmdapi.AuthInfo, _ *clientcmdapi.Cluster) {
			*user = clientcmdapi.AuthInfo{}
			change(user)
		})
	}
	before := f.snapshot()
	p := f.startIn([]string{f.namespace}, "leaderElection: {resourceNamespace: "+f.namespace+"}\ntargetClientConnection: {kubeconfig: "+
		user(func(user *clientcmdapi.AuthInfo) { user.TokenFile = tokenFile })+"}\n",
		environment("KUBECONFIG="+user(func(user *clientcmdapi.AuthInfo) { user.Token = source })))
	mr := f.manage("set", f.configMap("one", "1"), f.here("apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: NS}\n"), f.web(""))
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
	must(t, f.client.Delete(f.ctx, mr))
	f.eventually("the ManagedResource is deleted", func() bool { return f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr) != nil })
	if after := f.snapshot(); !slices.Equal(before, after) {
		t.Errorf("created by the resource-manager: %v → %v", before, after)
	}
	lease := &coordinationv1.Lease{}
	must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "gardener-resource-manager"}, lease))
	if *lease.Spec.LeaseDurationSeconds != 15 {
		t.Errorf("the lease is %+v", lease.Spec)
	}
	wantContains(t, p.Written.String(), `"worker count":5`)
	p.Stop()
}

// bind grants a ServiceAccount of the fixture's namespace rights in that namespace.
func (f *fixture) bind(name string, rules []rbacv1.PolicyRule) {
	f.Helper()
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: name}
	must(f, f.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	must(f, f.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: name},
	}))
}

// TestContractTargetNamespaces: autoscalers are seen in the namespaces of the target connection and in those of the
// flag. Without any, they are seen in all namespaces.
func TestContractTargetNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces string
		flags      []string
		seen       bool
	}{
		"elsewhere":              {"[elsewhere]", nil, false},
		"elsewhere and the flag": {"[elsewhere]", []string{"--extra-target-namespace=other", "--extra-target-namespace=NS"}, true},
		"everywhere":             {"[]", nil, true},
		"the flag alone":         {"[]", []string{"--extra-target-namespace=other"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			autoscaler := f.autoscaler()
			*autoscaler.Spec.Metrics[0].Resource.Target.AverageUtilization = 80
			must(t, f.client.Create(f.ctx, autoscaler))
			f.startIn([]string{f.namespace}, "targetClientConnection: {namespaces: "+test.namespaces+"}\n"+noElection, func(command *exec.Cmd) {
				for _, flag := range test.flags {
					command.Args = append(command.Args, f.here(flag))
				}
			})
			f.manage("set", f.webWithReplicas(3, ""))
			f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
			f.scale(7)
			f.secret("set", "objects.yaml", f.webWithReplicas(3, "new: change"))
			f.eventually("the change is applied", func() bool { return f.liveDeployment().Annotations["new"] == "change" })
			if seen := *f.liveDeployment().Spec.Replicas == 7; seen != test.seen {
				t.Errorf("the replicas are %d", *f.liveDeployment().Spec.Replicas)
			}
		})
	}
}

// TestContractHealthOfTheSource: /healthz reports whether the source cluster responds.
func TestContractHealthOfTheSource(t *testing.T) {
	f := newFixture(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	var server string
	path := f.kubeconfig(func(_ *clientcmdapi.AuthInfo, cluster *clientcmdapi.Cluster) {
		address, err := url.Parse(cluster.Server)
		must(t, err)
		server, cluster.Server = address.Host, "https://"+listener.Addr().String()
	})
	go forward(listener, server)
	p := f.startIn([]string{f.namespace}, noElection, environment("KUBECONFIG="+path))
	if got := p.status(p.Health, "/healthz"); got != http.StatusOK {
		t.Errorf("/healthz returns %d", got)
	}
	must(t, listener.Close())
	f.eventually("/healthz fails", func() bool { return p.status(p.Health, "/healthz") == http.StatusInternalServerError })
}

// forward forwards connections until the listener is closed, and then cuts them.
func forward(listener net.Listener, server string) {
	var connections []net.Conn
	defer func() {
		for _, connection := range connections {
			_ = connection.Close()
		}
	}()
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		connections = append(connections, in, out)
		go func() { _, _ = io.Copy(in, out) }()
		go func() { _, _ = io.Copy(out, in) }()
	}
}

// TestContractLogAndProfiles tests logLevel, logFormat and debugging.
func TestContractLogAndProfiles(t *testing.T) {
	for _, test := range []struct {
		config        string
		json, profile bool
		starts        bool
	}{
		{"", true, false, true},
		{"logFormat: text\ndebugging: {enableProfiling: true, enableContentionProfiling: true}\n", false, true, true},
		{"logLevel: error\n", true, false, false},
		{"logLevel: debug\n", true, false, true},
	} {
		f := newFixture(t)
		p := f.startIn([]string{f.namespace}, test.config+noElection)
		if got := p.status(p.Metrics, "/debug/pprof/") == http.StatusOK; got != test.profile {
			t.Errorf("%q: profiles are served: %t", test.config, got)
		}
		p.Stop()
		log := p.Written.String()
		if strings.Contains(log, "Starting resource-manager") != test.starts {
			t.Errorf("%q: the log is %s", test.config, log)
		}
		first, _, _ := strings.Cut(log, "\n")
		if test.starts && json.Valid([]byte(first)) != test.json {
			t.Errorf("%q: the first line is %s", test.config, first)
		}
	}
}
