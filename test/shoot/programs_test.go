package shoot

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/podprocess"
)

// pod waits until a Deployment of the control plane has replicas and all objects that its Pods mount exist.
func (w *world) pod(name string) *podprocess.Pod {
	w.Helper()
	deployment := &appsv1.Deployment{}
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "Deployment "+name+" has replicas", func() string {
		if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: name}, deployment); err != nil {
			return err.Error() + "\n" + w.bundles()
		}
		if *deployment.Spec.Replicas == 0 {
			return "it has 0 replicas"
		}
		return ""
	})
	p := podprocess.New(technical, deployment.Spec.Template.Spec, w.TempDir(), "https://kube-apiserver\n", w.address()+"\n")
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "the files of "+name+" exist", func() string { return kit.TextOf(p.Write(w.Context(), w.seed)) })
	return p
}

// secret waits for a Secret of the control plane with a key.
func (w *world) secret(name, key string) *corev1.Secret {
	w.Helper()
	secret := &corev1.Secret{}
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "Secret "+name+" has the key "+key, func() string {
		if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: name}, secret); err != nil {
			return err.Error()
		}
		if key != "" && len(secret.Data[key]) == 0 {
			return "the key is missing"
		}
		return ""
	})
	return secret
}

// startServer runs the shoot's API server with the flags of the Deployment, except those for its address and etcd.
func (w *world) startServer() *controlplane.Process {
	w.Helper()
	return w.startReplica(w.pod("kube-apiserver"), w.port)
}

// etcdPrefix is the prefix of the shoot's objects in the etcd that tests share.
func (w *world) etcdPrefix() string { return "/" + string(w.get().UID) }

// startReplica runs a replica of the API server.
func (w *world) startReplica(p *podprocess.Pod, port int) *controlplane.Process {
	w.Helper()
	args := p.APIServer(port, w.seeds.EtcdURL(), w.etcdPrefix())
	process := w.start("kube-apiserver", podprocess.With(args, w.serverArgs))
	// Readiness is checked with the same request as the probe of its Pods.
	file, _ := p.Flag("token-auth-file")
	tokens, err := os.ReadFile(file)
	kit.Must(w, err)
	token, _, _ := strings.Cut(string(tokens), ",")
	config := &rest.Config{Host: "https://127.0.0.1:" + strconv.Itoa(port), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	probe, err := discovery.NewDiscoveryClientForConfig(config)
	kit.Must(w, err)
	kit.EventuallyWithin(w, 6*kit.WaitTimeout, "the shoot's API server is ready", func() string {
		if err := process.Err(); err != nil {
			w.Fatal(err)
		}
		answer, err := probe.RESTClient().Get().AbsPath("/readyz").Param("verbose", "").Do(w.Context()).Raw()
		return kit.TextOf(err) + map[bool]string{true: string(answer)}[err != nil]
	})
	return process
}

// startControllers runs the shoot's kube-controller-manager with the flags of the Deployment.
func (w *world) startControllers() *controlplane.Process {
	w.Helper()
	return w.start("kube-controller-manager", w.pod("kube-controller-manager").Controllers(kit.FreePort(w)))
}

func (w *world) start(program string, args []string) *controlplane.Process {
	w.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	process, err := w.seeds.StartProcess("shoot-"+program+"-"+strconv.FormatInt(time.Now().UnixNano(), 36), filepath.Join(root, "bin", program), args...)
	kit.Must(w, err)
	w.Cleanup(func() { kit.Must(w, process.Stop(0)) })
	return process
}

// startManager runs the shoot's resource-manager with the configuration of the Deployment.
func (w *world) startManager() *kit.Process {
	w.Helper()
	return w.runManager(w.pod("gardener-resource-manager"))
}

func (w *world) runManager(p *podprocess.Pod) *kit.Process {
	w.Helper()
	text, err := os.ReadFile(p.File())
	kit.Must(w, err)
	text, err = p.ResourceManager(text, podprocess.Connection{
		Kubeconfig: "$KUBECONFIG", Health: "$HEALTH_PORT", Metrics: "$METRICS_PORT", Webhooks: "$WEBHOOK_PORT",
	})
	kit.Must(w, err)
	// It has only the permissions that its bundle grants.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: resourcemanager.Name}}
	process := kit.StartManagerWith(w, w.kubeconfigOf(account), string(text))
	w.webhookPort.Store(int32(process.WebhookPort))
	return process
}

// account returns a kubeconfig of the seed with all permissions, for a ServiceAccount in namespace default whose name
// managerOfSeed returns a kubeconfig of the seed's resource-manager, which may do everything. Its account has the name of
// the real one, because the policies of the Seed know it by this name.
func (w *world) managerOfSeed() []byte {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: seedManagerAccount}}
	w.create(w.seed, account)
	w.create(w.seed, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: seedManagerAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	})
	return w.kubeconfigOf(account)
}

// kubeconfigOf returns a kubeconfig of the seed with a token of a ServiceAccount.
func (w *world) kubeconfigOf(account *corev1.ServiceAccount) []byte {
	w.Helper()
	text, err := podprocess.KubeconfigOf(w.Context(), w.seed, w.seeds.Kubeconfig(), account, 6*time.Hour)
	kit.Must(w, err)
	return text
}

// admin returns a client of the shoot with the permissions of administrators.
func (w *world) admin() client.Client {
	w.Helper()
	return w.clientOf(w.adminConfig())
}

func (w *world) clientOf(config *rest.Config) client.Client {
	w.Helper()
	c, err := client.New(config, client.Options{Scheme: w.scheme})
	kit.Must(w, err)
	return c
}

// adminConfig returns the connection of administrators, based on the objects that gardenlet has written to the garden.
func (w *world) adminConfig() *rest.Config { return w.configOf("gardener.cloud:project:admins") }

// as returns a client of the shoot with the permissions of a group.
func (w *world) as(group string) client.Client {
	w.Helper()
	return w.clientOf(w.configOf(group))
}

// configOf returns the connection of a member of a group.
func (w *world) configOf(group string) *rest.Config {
	w.Helper()
	authority, trusted := &corev1beta1.InternalSecret{}, &corev1.ConfigMap{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: shootName + ".ca-client"}, authority))
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: shootName + ".ca-cluster"}, trusted))
	credentials, err := kubeconfig.Sign(kubeconfig.Authority{Certificate: authority.Data["ca.crt"], Key: authority.Data["ca.key"]},
		kubeconfig.Subject{User: "gardener.cloud:admin:alice", Group: group}, time.Hour, time.Now())
	kit.Must(w, err)
	return &rest.Config{Host: w.address(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: []byte(trusted.Data["ca.crt"]), CertData: credentials.Certificate, KeyData: credentials.Key,
	}}
}
