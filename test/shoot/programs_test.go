package shoot

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// pod contains the arguments and files of a Deployment's Pods, with paths on this machine.
type pod struct {
	args  []string
	paths *strings.Replacer
	// directory contains the files of the volumes.
	directory string
	volumes   []corev1.Volume
}

// pod waits until a Deployment of the control plane has replicas and all objects that its Pods mount exist.
func (w *world) pod(name string) pod {
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
	template := deployment.Spec.Template.Spec
	directory := w.TempDir()
	replaced := []string{"https://kube-apiserver\n", w.address() + "\n"}
	mounts := slices.Clone(template.Containers[0].VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return -cmp.Compare(len(a.MountPath), len(b.MountPath)) })
	for _, mount := range mounts {
		replaced = append(replaced, mount.MountPath+"/", filepath.Join(directory, mount.Name)+"/")
	}
	p := pod{paths: strings.NewReplacer(replaced...), directory: directory, volumes: template.Volumes}
	container := template.Containers[0]
	flags := container.Args
	if len(container.Command) > 0 {
		flags = slices.Concat(container.Command[1:], container.Args)
	}
	for _, argument := range flags {
		p.args = append(p.args, p.paths.Replace(argument))
	}
	for _, volume := range template.Volumes {
		w.write(p, volume)
	}
	return p
}

// write writes the files of a volume.
func (w *world) write(p pod, volume corev1.Volume) {
	w.Helper()
	kit.Must(w, os.MkdirAll(filepath.Join(p.directory, volume.Name), 0o700))
	for file, content := range w.files(volume) {
		kit.Must(w, os.WriteFile(filepath.Join(p.directory, volume.Name, file), []byte(p.paths.Replace(string(content))), 0o600))
	}
}

// files waits for the contents of a volume.
func (w *world) files(volume corev1.Volume) map[string][]byte {
	w.Helper()
	files := map[string][]byte{}
	switch {
	case volume.Secret != nil:
		return w.secret(volume.Secret.SecretName, "").Data
	case volume.ConfigMap != nil:
		configMap := &corev1.ConfigMap{}
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: volume.ConfigMap.Name}, configMap))
		for file, content := range configMap.Data {
			files[file] = []byte(content)
		}
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			for _, item := range source.Secret.Items {
				files[item.Path] = w.secret(source.Secret.Name, item.Key).Data[item.Key]
			}
		}
	}
	return files
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

// with returns arguments with the given flags replaced. Flags with an empty value are removed.
func with(args []string, values map[string]string) []string {
	result := slices.DeleteFunc(slices.Clone(args), func(argument string) bool {
		flag, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		_, replaced := values[flag]
		return replaced
	})
	for flag, value := range values {
		if value != "" {
			result = append(result, "--"+flag+"="+value)
		}
	}
	return result
}

// startServer runs the shoot's API server with the flags of the Deployment, except those for its address and etcd.
func (w *world) startServer() *controlplane.Process {
	w.Helper()
	return w.startReplica(w.pod("kube-apiserver"), w.port)
}

// etcdPrefix is the prefix of the shoot's objects in the etcd that tests share.
func (w *world) etcdPrefix() string { return "/" + string(w.get().UID) }

// startReplica runs a replica of the API server.
func (w *world) startReplica(p pod, port int) *controlplane.Process {
	w.Helper()
	args := with(p.args, map[string]string{
		"secure-port": strconv.Itoa(port), "bind-address": "127.0.0.1", "advertise-address": "192.0.2.1", "endpoint-reconciler-type": "none",
		"shutdown-delay-duration": "1s", // the balancer stops using a replica before it ends
		"etcd-servers":            w.seeds.EtcdURL().String(), "etcd-prefix": w.etcdPrefix(), "etcd-servers-overrides": "", "etcd-cafile": "", "etcd-certfile": "", "etcd-keyfile": "",
	})
	process := w.start("kube-apiserver", with(args, w.serverArgs))
	// Readiness is checked with the same request as the probe of its Pods.
	_, file, _ := strings.Cut(p.args[slices.IndexFunc(p.args, func(arg string) bool { return strings.HasPrefix(arg, "--token-auth-file=") })], "=")
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
	return w.start("kube-controller-manager", with(w.pod("kube-controller-manager").args, map[string]string{
		"secure-port": strconv.Itoa(kit.FreePort(w)), "bind-address": "127.0.0.1",
	}))
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

func (w *world) runManager(p pod) *kit.Process {
	w.Helper()
	_, file, _ := strings.Cut(p.args[0], "=")
	text, err := os.ReadFile(file)
	kit.Must(w, err)
	config := map[string]any{}
	kit.Must(w, yaml.Unmarshal(text, &config))
	kit.Must(w, unstructured.SetNestedField(config, "$KUBECONFIG", "sourceClientConnection", "kubeconfig"))
	config["leaderElection"] = map[string]any{"leaderElect": false}
	local := func(port string) map[string]any { return map[string]any{"bindAddress": "127.0.0.1", "port": port} }
	webhooks := local("$WEBHOOK_PORT")
	if slices.ContainsFunc(p.volumes, func(volume corev1.Volume) bool { return volume.Name == "certificate" }) {
		webhooks["tls"] = map[string]any{"serverCertDir": filepath.Join(p.directory, "certificate")}
	}
	config["server"] = map[string]any{"healthProbes": local("$HEALTH_PORT"), "metrics": local("$METRICS_PORT"), "webhooks": webhooks}
	text, err = yaml.Marshal(config)
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
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64((6 * time.Hour).Seconds()))}}
	kit.Must(w, w.seed.SubResource("token").Create(w.Context(), account, request))
	config, err := clientcmd.Load(w.seeds.Kubeconfig())
	kit.Must(w, err)
	for key := range config.AuthInfos {
		config.AuthInfos[key] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	text, err := clientcmd.Write(*config)
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
