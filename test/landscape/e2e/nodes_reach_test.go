package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/landscape"
)

// tunnelCut is how long the tunnel is cut: longer than all timeouts of its parts.
const tunnelCut = 10 * time.Minute

// clientsInside checks that programs in the cluster reach its API server by the name outside of the seed, by the address of the Service kubernetes, and
// by its name. The last two lead through the proxy on the node to the gateway.
func (n *shootNodes) clientsInside() {
	n.t.Helper()
	host, _, err := n.fleet.Address(n.ctx, client.ObjectKeyFromObject(n.shoot))
	must(n.t, err)
	kubernetes := &corev1.Service{}
	must(n.t, n.inside.Get(n.ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, kubernetes))
	u := n.users
	u.createNew(u.deployment("client", 2, u.server()))
	for _, pod := range u.available("client") {
		for _, server := range []string{"", host, kubernetes.Spec.ClusterIP, "kubernetes.default.svc.cluster.local"} {
			u.eventually(pod+" reaches "+server, func() error {
				output, err := u.tryKubectl("exec", pod, "--", "/probe", "api", server)
				if err == nil && !strings.Contains(output, "200 OK") {
					err = errors.New(output)
				}
				if err == nil {
					n.t.Logf("%s: %s", pod, strings.TrimSpace(output))
				}
				return err
			})
		}
	}
	endpoints := &corev1.Endpoints{} //nolint:staticcheck // what clients of the Service reach
	must(n.t, n.inside.Get(n.ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, endpoints))
	if address := endpoints.Subsets[0].Addresses[0].IP; !strings.HasPrefix(address, "240.") {
		n.t.Errorf("the Service kubernetes leads to %s, not to the proxies on the nodes", address)
	}
}

// extensionsOfUsers checks that the API server calls a webhook of a user, and forwards requests for an API group of a user, through the tunnel.
func (n *shootNodes) extensionsOfUsers() {
	n.t.Helper()
	const name = "extends"
	u := n.users
	authority, err := landscape.NewAuthority(name)
	must(n.t, err)
	pair, err := authority.Issue(name, nil, nil, name+".default.svc")
	must(n.t, err)
	container := u.container("extend", "/tls", ":8443")
	container.VolumeMounts = []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}}
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8443)}}}
	spec := pod(container)
	spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
	s := service(name, corev1.ServiceTypeClusterIP)
	s.Spec.Ports = []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "shop.example.org", SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), TimeoutSeconds: ptr.To[int32](5),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: authority.PEM(), Service: &admissionregistrationv1.ServiceReference{Namespace: u.namespace, Name: name},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"shop": "closed"}},
		}},
	}
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.shop.example.org"},
		"spec": map[string]any{
			"group": "shop.example.org", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"service": map[string]any{"namespace": u.namespace, "name": name}, "caBundle": authority.PEM(),
		},
	}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key}}
	created := []client.Object{secret, u.deployment(name, 1, spec), s}
	u.create(created...)
	u.available(name)
	for _, object := range []client.Object{webhook, group} {
		must(n.t, u.Create(u.ctx, object))
	}
	u.eventually("the webhook refuses an object", func() error {
		refused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, GenerateName: "closed-", Labels: map[string]string{"shop": "closed"}}}
		if err := u.Create(u.ctx, refused); err == nil || !strings.Contains(err.Error(), "the shop is closed") {
			return fmt.Errorf("the API server responds: %w", err)
		}
		return nil
	})
	u.eventually("the API group responds", func() error {
		output, err := u.tryKubectl("get", "--raw", "/apis/shop.example.org/v1/anything")
		if err == nil && !strings.Contains(output, "shop.example.org/v1") {
			err = errors.New(output)
		}
		return err
	})
	for _, object := range slices.Concat([]client.Object{webhook, group}, created) {
		must(n.t, u.Delete(u.ctx, object))
	}
}

// tunnelIsCut drops all packets of the tunnel's agents, in both directions and without an answer, as a broken network does. The Shoot says so. When the
// network works again, so does the tunnel, without a restart of anything.
func (n *shootNodes) tunnelIsCut() {
	n.t.Helper()
	rules := "nft add table inet cut && nft 'add chain inet cut forward { type filter hook forward priority -300; }'"
	var agents corev1.PodList
	must(n.t, n.inside.List(n.ctx, &agents, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"app": "vpn-shoot"}))
	if len(agents.Items) == 0 {
		n.t.Fatal("the tunnel has no agents")
	}
	for _, agent := range agents.Items {
		rules += fmt.Sprintf(" && nft add rule inet cut forward ip saddr %[1]s drop && nft add rule inet cut forward ip daddr %[1]s drop", agent.Status.PodIP)
	}
	onAll := func(command string) {
		for _, node := range n.nodeList("") {
			output, err := n.onMachine(node.Name, command)
			if err != nil {
				n.t.Fatalf("%s on %s: %v\n%s", command, node.Name, err, output)
			}
		}
	}
	before := n.containers()
	node := n.nodeList("")[0].Name
	through := func() error {
		_, err := n.users.tryKubectl("get", "--raw", "/api/v1/nodes/"+node+"/proxy/healthz", "--request-timeout=2s")
		return err
	}
	n.eventually("kubelet responds through the tunnel", through)
	onAll(rules)
	mended := false
	n.t.Cleanup(func() {
		if !mended {
			onAll("nft delete table inet cut")
		}
	})
	began := time.Now()
	n.within(nodesTimeout, "the Shoot reports the broken tunnel", func() error {
		must(n.t, n.fleet.Get(n.ctx, client.ObjectKeyFromObject(n.shoot), n.shoot))
		condition := corev1beta1.FindCondition(n.shoot.Status.Conditions, corev1beta1.ShootSystemComponentsHealthy)
		if condition == nil || condition.Reason != "TunnelConnectionBroken" {
			return fmt.Errorf("the condition is %+v", condition)
		}
		n.t.Logf("%s after the cut: %s: %s", time.Since(began).Round(time.Second), condition.Reason, condition.Message)
		return nil
	})
	time.Sleep(time.Until(began.Add(tunnelCut)))
	if err := through(); err == nil {
		n.t.Error("kubelet responds although the tunnel is cut")
	} else {
		n.t.Logf("a request meanwhile: %v", err)
	}
	onAll("nft delete table inet cut")
	mended, began = true, time.Now()
	n.eventually("kubelet responds through the tunnel again", through)
	n.t.Logf("kubelet responded %s after the end of the cut", time.Since(began).Round(10*time.Millisecond))
	n.settled("the Shoot is healthy again", 2)
	n.sameContainers(before, "the cut of the tunnel")
}
