package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tunnel uses everything for which the API server connects to nodes, Pods and Services. It has no other way to them than the tunnel.
func (n *shootNodes) tunnel() {
	n.t.Helper()
	server := &appsv1.Deployment{}
	must(n.t, n.Get(n.ctx, client.ObjectKey{Namespace: n.shoot.Status.TechnicalID, Name: "kube-apiserver"}, server))
	if flags := strings.Join(append(server.Spec.Template.Spec.Containers[0].Command, server.Spec.Template.Spec.Containers[0].Args...), " "); !strings.Contains(flags, "--egress-selector-config-file") {
		n.t.Errorf("the API server uses no tunnel: %s", flags)
	}
	u := n.users
	u.createNew(u.deployment("tunnelled", 2, u.server()), service("tunnelled", corev1.ServiceTypeClusterIP))
	pod := u.available("tunnelled")[0]
	for what, command := range map[string][]string{
		"serving on :8080":     {"logs", pod},
		"hello from tunnelled": {"get", "--raw", "/api/v1/namespaces/default/services/tunnelled:80/proxy/"},
		`"nodeName"`:           {"get", "--raw", "/api/v1/nodes/" + n.nodeList("")[0].Name + "/proxy/stats/summary"},
		"HOSTNAME=" + pod:      {"exec", pod, "--", "/probe", "env"},
	} {
		began := time.Now()
		u.eventually(strings.Join(command, " "), func() error {
			output, err := u.tryKubectl(command...)
			if err == nil && !strings.Contains(output, what) {
				err = fmt.Errorf("the output has no %s: %s", what, output)
			}
			return err
		})
		n.t.Logf("kubectl %s: %s", command[0], time.Since(began).Round(10*time.Millisecond))
	}
	forward(n.t, u, pod)
}

// policies checks that NetworkPolicies are enforced on the nodes of the Shoot.
func (n *shootNodes) policies() {
	n.t.Helper()
	u := n.users
	for _, name := range []string{"server", "friend", "stranger"} {
		u.createNew(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: u.server()})
	}
	web := "http://" + u.podIP("server") + ":8080"
	u.podIP("friend")
	u.podIP("stranger")
	u.reaches("stranger", web)
	policy := u.policy("server", `
podSelector: {matchLabels: {app: server}}
ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}]}]`)
	u.blocked("stranger", web)
	u.reaches("friend", web)
	must(n.t, u.Delete(u.ctx, policy))
	u.reaches("stranger", web)
}

// createNew creates objects, unless a previous run has created them.
func (c *cluster) createNew(objects ...client.Object) {
	c.t.Helper()
	for _, object := range objects {
		object.SetNamespace(c.namespace)
		must(c.t, client.IgnoreAlreadyExists(c.Create(c.ctx, object)))
	}
}

// shop is a user's program with three replicas behind a Service. It ends as programs should: it serves for some time after it is asked to end.
const shop = "shop"

// openShop deploys the program, and returns the port of the Service on all nodes.
func (n *shootNodes) openShop() int32 {
	n.t.Helper()
	u, labels := n.users, map[string]string{"app": shop}
	spec := u.server()
	spec.TerminationGracePeriodSeconds = ptr.To[int64](20)
	// At a load of 50, probes with a timeout of a second took all Pods out of the Service at once.
	spec.Containers[0].ReadinessProbe.TimeoutSeconds = 10
	spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}}
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
	}}
	u.createNew(u.deployment(shop, 3, spec), service(shop, corev1.ServiceTypeNodePort), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: shop},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	})
	u.available(shop)
	n.infra().createNew(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "from-host"}, Spec: networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{}}, // customers come from outside of the seed
	}})
	s := &corev1.Service{}
	must(n.t, u.Get(u.ctx, u.key(shop), s))
	return s.Spec.Ports[0].NodePort
}

// startCustomers requests the program until the test ends, as a load balancer does: each request has its own connection to one of the nodes
// that are ready and not about to be removed.
func (n *shootNodes) startCustomers(port int32) *user {
	n.t.Helper()
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: requestTimeout}
	var addresses []string
	var listed time.Time
	return n.startRequests("customers", func(ctx context.Context, number int) (sent bool, err error) {
		if time.Since(listed) > time.Second {
			addresses, listed = n.targets(ctx, web, addresses, port), time.Now()
		}
		if len(addresses) == 0 {
			return false, nil
		}
		return true, visit(ctx, web, fmt.Sprintf("http://%s:%d", addresses[number%len(addresses)], port))
	})
}

// targets returns the addresses to which a load balancer sends requests: those of nodes that serve, and have answered once. It keeps them if
// the API server does not answer.
func (n *shootNodes) targets(ctx context.Context, web *http.Client, before []string, port int32) []string {
	found, err := n.serving(ctx)
	if err != nil {
		return before
	}
	return slices.DeleteFunc(found, func(address string) bool {
		return !slices.Contains(before, address) && visit(ctx, web, fmt.Sprintf("http://%s:%d", address, port)) != nil
	})
}

// serving returns the addresses of nodes that are ready and not about to be removed.
func (n *shootNodes) serving(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var list corev1.NodeList
	if err := n.inside.List(ctx, &list); err != nil {
		return nil, err
	}
	var addresses []string
	for i := range list.Items {
		node := &list.Items[i]
		ready := slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
			return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		})
		// A node with this taint has no kube-proxy and no network yet.
		starting := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return strings.HasSuffix(taint.Key, "critical-components-not-ready") })
		if !ready || starting || node.Spec.Unschedulable || node.DeletionTimestamp != nil {
			continue
		}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				addresses = append(addresses, address.Address)
			}
		}
	}
	return addresses, nil
}

func visit(ctx context.Context, web *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := web.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %s", url, response.Status)
	}
	return nil
}
