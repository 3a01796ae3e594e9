package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	networkingv1client "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	netpolcontroller "github.com/trellis-k8s/trellis/pkg/netpol/controller"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/kit"
)

// policies is a namespace with Services, and a second one whose Pods may talk to some of them.
type policies struct {
	*ground
	other string
	// wanted are the required policies, "<namespace>/<name>".
	wanted []string
}

// newPolicies creates and deletes Services and changes their ports and permitted peers.
func newPolicies(g *ground) errand {
	g.Helper()
	p := &policies{ground: g, other: kit.NewNamespace(g, g.client, "faults", nil)}
	return errand{
		pairs: []string{p.other, "OTHER"},
		run:   p.run, given: p.given, change: p.change, before: p.objections, after: p.objections, attest: p.attest, picture: p.picture,
	}
}

func (p *policies) run(ctx context.Context, l *life) error {
	config := p.controlPlane.Config()
	config.Wrap(l.wrap)
	mgr, err := manager.New(config, managerOptions(p.client.Scheme()))
	if err != nil {
		return err
	}
	if err := p.add(ctx, mgr, config); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (p *policies) add(ctx context.Context, mgr manager.Manager, config *rest.Config) error {
	r := netpolcontroller.Reconciler{
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{},
		Options: netpolcontroller.Options{Namespaces: []string{p.namespace, p.other}, ConcurrentSyncs: 5},
	}
	httpClient := mgr.GetHTTPClient()
	options := netpolcontroller.CacheOptions()
	options.HTTPClient, options.Mapper, options.Scheme = httpClient, mgr.GetRESTMapper(), mgr.GetScheme()
	options.DefaultNamespaces = map[string]cache.Config{p.namespace: {}, p.other: {}}
	var err error
	if r.Cache, err = cache.New(config, options); err != nil {
		return err
	}
	if r.Policies, err = networkingv1client.NewForConfigAndClient(config, httpClient); err != nil {
		return err
	}
	objects, err := target.NewObjects(config, httpClient)
	if err != nil {
		return err
	}
	r.Pods, r.Dynamic, r.Metadata, r.Kinds = objects.CoreClient(), objects.DynamicClient(), objects.MetadataClient(), objects
	return netpolcontroller.NewReconciler(r).AddToManager(ctx, mgr)
}

func (p *policies) given() {
	p.Helper()
	p.service("web", 8080, nil)
	p.service("gone", 8081, p.peer())
	p.service("database", 5432, p.peer())
	p.wanted = slices.Concat(p.pair("web", 8080), p.pair("gone", 8081), p.pairFromOther("gone", 8081), p.pair("database", 5432), p.pairFromOther("database", 5432))
}

func (p *policies) change() {
	p.Helper()
	p.mu.Lock()
	p.wanted = slices.Concat(p.pair("web", 9090), p.pair("database", 5432), p.pair("new", 7070), p.pairFromOther("new", 7070))
	p.mu.Unlock()
	web, database := p.read("web"), p.read("database")
	web.Spec.Ports[0].TargetPort = intstr.FromInt32(9090)
	kit.Must(p, p.client.Update(p.Context(), web))
	database.Annotations = nil
	kit.Must(p, p.client.Update(p.Context(), database))
	kit.Must(p, p.client.Delete(p.Context(), p.read("gone")))
	p.service("new", 7070, p.peer())
}

// peer returns the annotations of a Service that Pods of the other namespace may talk to.
func (p *policies) peer() map[string]string {
	return map[string]string{"networking.resources.gardener.cloud/namespace-selectors": fmt.Sprintf(`[{"matchLabels":{%q:%q}}]`,
		corev1.LabelMetadataName, p.other)}
}

func (p *policies) pair(service string, port int) []string {
	id := fmt.Sprintf("%s-tcp-%d", service, port)
	return []string{p.namespace + "/ingress-to-" + id, p.namespace + "/egress-to-" + id}
}

func (p *policies) pairFromOther(service string, port int) []string {
	id := fmt.Sprintf("%s-tcp-%d", service, port)
	return []string{p.namespace + "/ingress-to-" + id + "-from-" + p.other, p.other + "/egress-to-" + p.namespace + "-" + id}
}

func (p *policies) service(name string, port int32, annotations map[string]string) {
	p.Helper()
	kit.Must(p, p.client.Create(p.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Annotations: annotations},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}},
		},
	}))
}

func (p *policies) read(name string) *corev1.Service {
	p.Helper()
	service := &corev1.Service{}
	kit.Must(p, p.client.Get(p.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, service))
	return service
}

// live returns all policies, by "<namespace>/<name>".
func (p *policies) live() map[string]networkingv1.NetworkPolicy {
	p.Helper()
	live := map[string]networkingv1.NetworkPolicy{}
	for _, namespace := range []string{p.namespace, p.other} {
		list := &networkingv1.NetworkPolicyList{}
		kit.Must(p, p.client.List(p.always(), list, client.InNamespace(namespace)))
		for _, policy := range list.Items {
			live[policy.Namespace+"/"+policy.Name] = policy
		}
	}
	return live
}

// objections returns the missing and the unwanted policies.
func (p *policies) objections() []string {
	p.Helper()
	live := p.live()
	var objections []string
	for _, name := range p.wanted {
		if policy, there := live[name]; !there {
			objections = append(objections, name+" is missing")
		} else if len(policy.Labels) == 0 {
			objections = append(objections, name+" has no labels")
		}
		delete(live, name)
	}
	for name := range live {
		objections = append(objections, name+" exists, but is not wanted")
	}
	slices.Sort(objections)
	return objections
}

func (p *policies) picture() string {
	p.Helper()
	var lines []string
	for name, policy := range p.live() {
		text, err := json.Marshal([]any{policy.Labels, policy.Annotations, policy.Spec})
		kit.Must(p, err)
		lines = append(lines, name+" "+string(text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// attest checks that each written policy allows exactly the traffic in its name, and that no wanted policy is
// deleted.
func (p *policies) attest(c call, body []byte) {
	if c.resource != "networkpolicies" {
		if c.resource != "events" {
			p.violate("%s is not a write of a policy", c)
		}
		return
	}
	p.mu.Lock()
	wanted := slices.Contains(p.wanted, c.namespace+"/"+c.name)
	p.mu.Unlock()
	var policy networkingv1.NetworkPolicy
	switch err := json.Unmarshal(body, &policy); {
	case c.verb == "delete" && wanted:
		p.violate("%s deletes a wanted policy", c)
	case c.verb == "delete" || c.verb == "patch" && strings.HasPrefix(string(body), "["): // or takes over fields
	case err != nil:
		p.violate("%s: %v", c, err)
	default:
		for _, wrong := range wider(&policy) {
			p.violate("%s %s: %s", c, body, wrong)
		}
	}
}

// wider returns what a policy allows beyond its name.
func wider(policy *networkingv1.NetworkPolicy) []string {
	var wrong []string
	name, _, _ := strings.Cut(policy.Name, "-from-")
	port, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return []string{"its name has no port"}
	}
	check := func(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
		if len(peers) == 0 {
			wrong = append(wrong, "it allows everyone")
		}
		for _, peer := range peers {
			if peer.IPBlock != nil || peer.PodSelector == nil || len(peer.PodSelector.MatchLabels)+len(peer.PodSelector.MatchExpressions) == 0 {
				wrong = append(wrong, "it allows all Pods")
			}
		}
		if len(ports) != 1 || ports[0].Port == nil || ports[0].Port.IntValue() != port || ports[0].EndPort != nil {
			wrong = append(wrong, "it allows other ports")
		}
	}
	for _, rule := range policy.Spec.Ingress {
		check(rule.From, rule.Ports)
	}
	for _, rule := range policy.Spec.Egress {
		check(rule.To, rule.Ports)
	}
	if len(policy.Spec.PodSelector.MatchLabels)+len(policy.Spec.PodSelector.MatchExpressions) == 0 {
		wrong = append(wrong, "it selects all Pods")
	}
	return wrong
}
