package e2e

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/landscape"
)

//go:embed testdata
var testdata embed.FS

// nodesValues are the values of testdata/nodes.yaml.
type nodesValues struct {
	// TokenID and TokenSecret are the parts of the token with which kubelets join the cluster.
	TokenID, TokenSecret string
	// Pods is the network of all Pods.
	Pods string
	// Except is a node that has its own agents. Provisioner creates volumes on the others.
	Except      string
	Provisioner bool
}

func (v nodesValues) token() string { return v.TokenID + "." + v.TokenSecret }

// innerNodes are the nodes of a cluster whose control plane runs as Pods.
var innerNodes = nodesValues{TokenID: "abcdef", TokenSecret: "0123456789abcdef", Pods: "100.96.0.0/16"}

const kubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /etc/kubernetes/node/ca.crt}}
authorization: {mode: Webhook}
rotateCertificates: true
failSwapOn: false
evictionHard: {memory.available: 100Mi, nodefs.available: "0%", imagefs.available: "0%"}
`

const kubeProxyConfiguration = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: /files/kubeconfig}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

var machineImages = sync.OnceValue(func() error { return base.MachineImages(context.Background()) })

// makeMachineImages builds the images of machines, once for all tests.
func makeMachineImages(t *testing.T) {
	t.Helper()
	must(t, machineImages())
}

// TestMachines runs two machines that join a control plane in Pods of the base cluster. Pods on them reach each other,
// and are deleted. containerd and the kubelet of the second machine fail at first.
func TestMachines(t *testing.T) {
	c := onBase(t)
	makeMachineImages(t)
	inner, kubeconfig := c.controlPlane()
	c.nodes(inner, kubeconfig, innerNodes)
	t.Cleanup(func() {
		if t.Failed() {
			c.explainMachines(inner, "machine-1", "machine-2")
		}
	})
	began := time.Now()
	c.machine("machine-1")
	c.machine("machine-2", failFirst...)
	for _, name := range []string{"machine-1", "machine-2"} {
		c.eventually(name+" joins", func() error { return ready(c, inner, name) })
		t.Logf("%s is ready after %s", name, time.Since(began).Round(100*time.Millisecond))
	}
	servers := map[string]string{}
	for _, name := range []string{"machine-1", "machine-2"} {
		c.ownCgroups(name)
		spec := c.server()
		spec.NodeName = name
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-" + name, Namespace: "default", Labels: map[string]string{"app": name}}, Spec: spec}
		c.eventually("a Pod on "+name+" is created", func() error { return inner.Create(c.ctx, p) })
		c.eventually("a Pod on "+name+" is ready", func() error {
			if err := inner.Get(c.ctx, client.ObjectKeyFromObject(p), p); err != nil {
				return err
			}
			if len(p.Status.ContainerStatuses) != 1 || !p.Status.ContainerStatuses[0].Ready {
				return fmt.Errorf("its status is %+v", p.Status)
			}
			return nil
		})
		servers[name] = p.Status.PodIP
	}
	t.Logf("Pods run after %s", time.Since(began).Round(100*time.Millisecond))
	c.throughInner(kubeconfig, "on-machine-1", "get", "http://"+servers["machine-2"]+":8080")
	c.throughInner(kubeconfig, "on-machine-2", "get", "http://"+servers["machine-1"]+":8080")
	c.servicesSurviveZone(inner, kubeconfig)

	must(t, inner.Delete(c.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-machine-1", Namespace: "default"}}))
	c.eventually("the Pod is deleted", func() error {
		err := inner.Get(c.ctx, client.ObjectKey{Namespace: "default", Name: "on-machine-1"}, &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
	began = time.Now()
	c.kubectl("delete", "pod", "machine-1", "--timeout=60s")
	t.Logf("the machine is deleted after %s", time.Since(began).Round(100*time.Millisecond))
}

// ownCgroups checks that all cgroups that a machine sees contain only its own processes. If machines share the cgroup of a unit, one
// removes it while the other starts the unit, which then fails. cgroup.procs has 0 for each process of another PID namespace.
func (c *cluster) ownCgroups(machine string) {
	c.t.Helper()
	shared := c.kubectl("exec", machine, "--", "/bin/sh", "-c", "grep --recursive --files-with-matches --line-regexp --include=cgroup.procs 0 /sys/fs/cgroup || [ $? = 1 ]")
	if len(shared) > 0 {
		c.t.Errorf("%s has cgroups with processes of other machines:\n%s", machine, shared)
	}
}

// nodes prepares a cluster for nodes: they can join it, and each runs kube-proxy and the agents. The test removes these
// objects at its end.
func (c *cluster) nodes(in client.Client, kubeconfig []byte, values nodesValues) {
	c.t.Helper()
	objects := []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "files", Namespace: "kube-system"}, Data: map[string][]byte{
		"kubeconfig": kubeconfig, "kube-proxy.yaml": []byte(kubeProxyConfiguration),
	}}}
	for _, object := range c.render("nodes.yaml", values) {
		objects = append(objects, object)
	}
	for _, object := range objects {
		must(c.t, in.Create(c.ctx, object))
		c.t.Cleanup(func() { _ = in.Delete(context.Background(), object) })
	}
}

// servicesSurviveZone checks that a Service is reached from a machine after its Node has got a zone, which
// makes kube-proxy compare all its rules with those of the machine. A second Service shows that it has done so.
func (c *cluster) servicesSurviveZone(inner client.Client, kubeconfig []byte) {
	c.t.Helper()
	serve := func(name string) (url string) {
		s := service(name, corev1.ServiceTypeClusterIP)
		s.Namespace, s.Spec.Selector = "default", map[string]string{"app": "machine-2"}
		must(c.t, inner.Create(c.ctx, s))
		url = "http://" + s.Spec.ClusterIP + ":" + strconv.Itoa(int(s.Spec.Ports[0].Port))
		c.throughInner(kubeconfig, "on-machine-1", "get", url)
		return url
	}
	first := serve("before-zone")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "machine-1"}}
	must(c.t, inner.Patch(c.ctx, node, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"a"}}}`))))
	serve("after-zone")
	c.throughInner(kubeconfig, "on-machine-1", "get", first)
}

// nodeFiles creates the Secret that a machine needs to join a cluster. It contains the kubeconfig for its first connection
// with the bootstrap token as the only credential, the authority of kubelets' clients, and the configuration of the
// kubelet.
func (c *cluster) nodeFiles(kubeconfig, authority []byte, token, configuration string) {
	c.t.Helper()
	bootstrap, err := clientcmd.Load(kubeconfig)
	must(c.t, err)
	for _, user := range bootstrap.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token
	}
	encoded, err := clientcmd.Write(*bootstrap)
	must(c.t, err)
	c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Data: map[string][]byte{
		"bootstrap.kubeconfig": encoded, "ca.crt": authority, "kubelet.yaml": []byte(configuration),
	}})
}

func ready(c *cluster, inner client.Client, name string) error {
	node := &corev1.Node{}
	if err := inner.Get(c.ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("the node is not ready: %+v", node.Status.Conditions)
}

// throughInner runs the program probe in a Pod of the inner cluster, whose API server reaches the kubelet of the machine.
func (c *cluster) throughInner(kubeconfig []byte, pod string, args ...string) {
	c.t.Helper()
	file := c.t.TempDir() + "/kubeconfig"
	must(c.t, os.WriteFile(file, kubeconfig, 0o600))
	c.eventually("probe "+strings.Join(args, " ")+" in "+pod, func() error {
		command := c.kubectlCommand(append([]string{"exec", pod, "--", "/probe"}, args...)...)
		for i, argument := range command.Args {
			switch argument {
			case base.Kubeconfig():
				command.Args[i] = file
			case c.namespace:
				command.Args[i] = "default"
			}
		}
		output, err := command.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
}

// controlPlane runs a control plane as Pods, and returns a client and a kubeconfig that works from everywhere.
func (c *cluster) controlPlane() (client.Client, []byte) {
	c.t.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "kube-apiserver"}, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(6443)}},
	}}
	c.create(s)
	ca, err := landscape.NewAuthority("inner")
	must(c.t, err)
	address := netip.MustParseAddr(s.Spec.ClusterIP)
	server, err := ca.Issue("kube-apiserver", nil, []netip.Addr{address, netip.MustParseAddr("100.64.0.1")})
	must(c.t, err)
	admin, err := ca.Issue("admin", []string{"system:masters"}, nil)
	must(c.t, err)
	kubeconfig, err := ca.Kubeconfig("https://"+s.Spec.ClusterIP, admin)
	must(c.t, err)
	key, err := ca.KeyPEM()
	must(c.t, err)
	private, public, err := landscape.TokenKeys()
	must(c.t, err)
	c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string][]byte{
		"ca.crt": ca.PEM(), "ca.key": key, "server.crt": server.Certificate, "server.key": server.Key, "admin.crt": admin.Certificate,
		"admin.key": admin.Key, "tokens.key": private, "tokens.pub": public, "kubeconfig": kubeconfig,
	}})
	c.nodeFiles(kubeconfig, ca.PEM(), innerNodes.token(), kubeletConfiguration)
	began := time.Now()
	for _, object := range c.render("controlplane.yaml", nil) {
		c.create(object)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(c.t, err)
	var inner client.Client
	c.eventually("the control plane responds", func() error {
		if inner, err = client.New(config, client.Options{}); err != nil {
			return err
		}
		return inner.Get(c.ctx, client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
	})
	c.t.Logf("the control plane responds after %s", time.Since(began).Round(100*time.Millisecond))
	return inner, kubeconfig
}

// failFirst boots a machine whose containerd fails at its first start, and whose kubelet fails more often than systemd
// restarts a unit by default.
var failFirst = []string{"/bin/sh", "-c", `set -e
echo 'echo >> /run/starts-$1; [ $(wc -l < /run/starts-$1) -gt $2 ]' > /fail-first
cd /etc/systemd/system
mkdir -p containerd.service.d kubelet.service.d
cat > containerd.service.d/fail.conf <<END
[Service]
ExecStartPre=/bin/sh /fail-first containerd 1
END
cat > kubelet.service.d/fail.conf <<END
[Service]
RestartSec=100ms
ExecStartPre=
ExecStartPre=/bin/sh /fail-first kubelet 6
ExecStartPre=/usr/local/bin/install-kubelet
END
exec /usr/local/bin/machine-entrypoint`}

// machine creates a machine as a Pod. A command replaces the command of the image.
func (c *cluster) machine(name string, command ...string) {
	c.t.Helper()
	c.create(c.machinePod(name, command...))
}

func (c *cluster) machinePod(name string, command ...string) *corev1.Pod {
	c.t.Helper()
	privileged, links, token := true, false, false
	grace := int64(10)
	container := corev1.Container{
		Name: "machine", Image: c.image("machine"), Command: command, SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
		Env: []corev1.EnvVar{
			{Name: "NODE_NAME", Value: name}, {Name: "REGISTRY", Value: base.Registry()}, {Name: "PAUSE_IMAGE", Value: c.image("pause")},
			{Name: "KUBELET_IMAGE", Value: c.image("kubelet")},
			{Name: "NODE_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "node", MountPath: "/etc/kubernetes/node"}, {Name: "containerd", MountPath: "/var/lib/containerd"},
			{Name: "kubelet", MountPath: "/var/lib/kubelet"},
		},
	}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "machine"}}, Spec: corev1.PodSpec{
		Hostname: name, EnableServiceLinks: &links, AutomountServiceAccountToken: &token, TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{container},
		Volumes: []corev1.Volume{
			{Name: "node", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "node"}}},
			{Name: "containerd", VolumeSource: empty}, {Name: "kubelet", VolumeSource: empty},
		},
	}}
}

// render returns the objects of a file in testdata, a template with values.
func (c *cluster) render(name string, values any) []*unstructured.Unstructured {
	c.t.Helper()
	parsed, err := template.New(name).Funcs(template.FuncMap{"image": base.Image}).ParseFS(testdata, "testdata/"+name)
	must(c.t, err)
	var text bytes.Buffer
	must(c.t, parsed.Execute(&text, values))
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(&text, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		must(c.t, err)
		objects = append(objects, object)
	}
}
