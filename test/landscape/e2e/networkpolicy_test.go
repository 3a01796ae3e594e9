package e2e

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestNetworkPolicies tests each part of a NetworkPolicy with real connections.
func TestNetworkPolicies(t *testing.T) {
	c := onBase(t)
	for _, name := range []string{"server", "friend", "stranger"} {
		c.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: c.server()})
	}
	udp := pod(c.container("udp", ":5353"))
	c.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "udp", Labels: map[string]string{"app": "udp"}}, Spec: udp}, service("server", corev1.ServiceTypeClusterIP))
	server, friend, datagrams := c.podIP("server"), c.podIP("friend"), c.podIP("udp")
	c.podIP("stranger")
	web, other := "http://"+server+":8080", "http://"+server+":8081"
	c.reaches("stranger", web)
	c.reaches("stranger", "http://server/")

	policy := c.policy("server", `
podSelector: {matchLabels: {app: server}}
ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}], ports: [{port: web}]}]`)
	c.blocked("stranger", web)
	c.blocked("stranger", "http://server/")
	c.blocked("friend", other)
	c.reaches("friend", web)
	c.reaches("friend", "http://server/") // the policy sees the Pod behind the Service
	c.reaches("server", "http://"+friend+":8080")
	c.reaches("server", web) // a Pod reaches itself
	if _, err := fetch(c.ctx, web); err == nil {
		t.Error("the host reaches the Pod, which only some Pods may reach")
	}

	c.change(policy, `
podSelector: {matchLabels: {app: server}}
ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+c.namespace+`}}, podSelector: {matchLabels: {app: stranger}}}], ports: [{port: 8081, endPort: 8090}]}]`)
	c.reaches("stranger", other)
	c.blocked("stranger", web)
	c.blocked("friend", other)

	c.change(policy, `
podSelector: {matchLabels: {app: server}}
ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [`+friend+`/32]}}]}]`)
	c.reaches("stranger", web)
	c.blocked("friend", web)
	must(t, c.Delete(c.ctx, policy))
	c.reaches("friend", web)

	c.policy("out", `
podSelector: {matchLabels: {app: stranger}}
policyTypes: [Egress]
egress:
- {to: [{podSelector: {matchLabels: {app: server}}}], ports: [{port: web}]}
- {to: [{podSelector: {matchLabels: {app: udp}}}], ports: [{port: 5353, protocol: UDP}]}`)
	c.blocked("stranger", other)
	c.blocked("stranger", "http://"+friend+":8080")
	c.blocked("stranger", "http://server/") // it can no longer resolve names
	c.reaches("stranger", web)
	c.eventually("datagrams are allowed", func() error {
		_, err := c.probe("stranger", "ask", datagrams+":5353")
		return err
	})
	c.blockedAPIServer("stranger")
}

func (c *cluster) policy(name, spec string) *networkingv1.NetworkPolicy {
	c.t.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(c.t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	c.create(p)
	return p
}

func (c *cluster) change(p *networkingv1.NetworkPolicy, spec string) {
	c.t.Helper()
	p.Spec = networkingv1.NetworkPolicySpec{}
	must(c.t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	must(c.t, c.Update(c.ctx, p))
}

// blockedAPIServer checks that servers on the node itself are filtered, too.
func (c *cluster) blockedAPIServer(pod string) {
	c.t.Helper()
	c.eventually(pod+" does not reach the registry on the node", func() error {
		if _, err := c.probe(pod, "get", "http://"+base.Registry()+"/v2/"); err == nil {
			return errors.New("it gets a response")
		}
		return nil
	})
	c.reaches("friend", "http://"+base.Registry()+"/v2/")
}
