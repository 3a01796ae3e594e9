package routing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var start = metav1.NewTime(time.Unix(1_800_000_000, 0))

// decision is a result. The objects are copies with the wanted status, and are equal to the given ones if nothing changes.
type decision struct {
	Table *Table
	// Gateway and Class are nil if they do not belong to this gateway.
	Gateway *gatewayv1.Gateway
	Class   *gatewayv1.GatewayClass
	// Routes are those whose status has, or had, an entry of this gateway.
	Routes []*gatewayv1.TLSRoute
}

// Decide decides about all routes again.
func Decide(in Inputs) decision {
	kept := Keep(in)
	decided := decision{Table: kept.Table()}
	decided.Gateway, decided.Class = kept.Status(in)
	for _, route := range slices.SortedFunc(slices.Values(in.Routes), older) {
		if _, wanted := kept.Route(keyOf(route), in.Now); wanted != nil {
			decided.Routes = append(decided.Routes, wanted)
		}
	}
	return decided
}

// listenerOf returns a listener for a hostname that allows routes of namespaces with the label role=shoot.
func listenerOf(name, hostname string, change func(*gatewayv1.Listener)) gatewayv1.Listener {
	one := gatewayv1.Listener{
		Name: gatewayv1.SectionName(name), Port: 443, Protocol: gatewayv1.TLSProtocolType,
		TLS: &gatewayv1.ListenerTLSConfig{Mode: ptr.To(gatewayv1.TLSModePassthrough)},
		AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
			From: ptr.To(gatewayv1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "shoot"}},
		}},
	}
	if hostname != "" {
		one.Hostname = ptr.To(gatewayv1.Hostname(hostname))
	}
	if change != nil {
		change(&one)
	}
	return one
}

// routeOf returns a TLSRoute that is as many minutes old as age says.
func routeOf(namespace, name string, age int, hosts ...string) *gatewayv1.TLSRoute {
	route := &gatewayv1.TLSRoute{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(start.Add(-time.Duration(age) * time.Minute)),
	}}
	for _, host := range hosts {
		route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(host))
	}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: ptr.To(gatewayv1.Namespace("ingress")), Name: "one"}}
	route.Spec.Rules = []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{
		Name: "kube-apiserver", Port: ptr.To(gatewayv1.PortNumber(443)),
	}}}}}
	return route
}

// inputs returns a Gateway with listeners, and routes in the namespaces a and b of shoots, and c of something else.
func inputs(listeners []gatewayv1.Listener, routes ...*gatewayv1.TLSRoute) Inputs {
	return Inputs{
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ingress", Name: "one", Generation: 3}, Spec: gatewayv1.GatewaySpec{GatewayClassName: "class", Listeners: listeners},
		},
		Class:  &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: Controller}},
		Routes: routes,
		Namespace: func(name string) (map[string]string, bool) {
			labels, exists := map[string]map[string]string{"a": {"role": "shoot"}, "b": {"role": "shoot"}, "c": {}, "ingress": {}}[name]
			return labels, exists
		},
		Service: func(key types.NamespacedName) *corev1.Service {
			if key.Name != "kube-apiserver" {
				return nil
			}
			return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}}
		},
		Port: 443, Addresses: []string{"192.0.2.7", "lb.example.org"}, Now: start,
	}
}

// conditions returns conditions as text: type, status and reason.
func conditions(all []metav1.Condition) string {
	var texts []string
	for _, each := range all {
		texts = append(texts, fmt.Sprintf("%s=%s:%s", each.Type, each.Status, each.Reason))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

const accepted = "Accepted=True:Accepted ResolvedRefs=True:ResolvedRefs"

// TestRoutes checks which hosts lead where, and the conditions of routes.
func TestRoutes(t *testing.T) {
	plain := []gatewayv1.Listener{listenerOf("tls", "", nil)}
	changed := func(route *gatewayv1.TLSRoute, change func(*gatewayv1.TLSRoute)) *gatewayv1.TLSRoute {
		change(route)
		return route
	}
	ref := func(change func(*gatewayv1.BackendRef)) *gatewayv1.TLSRoute {
		return changed(routeOf("a", "r", 1, "a.example.org"), func(r *gatewayv1.TLSRoute) { change(&r.Spec.Rules[0].BackendRefs[0]) })
	}
	parent := func(change func(*gatewayv1.ParentReference)) *gatewayv1.TLSRoute {
		return changed(routeOf("a", "r", 1, "a.example.org"), func(r *gatewayv1.TLSRoute) { change(&r.Spec.ParentRefs[0]) })
	}
	for name, test := range map[string]struct {
		listeners []gatewayv1.Listener
		routes    []*gatewayv1.TLSRoute
		// hosts are hosts and the route that each leads to; empty for none.
		hosts map[string]string
		// want are the conditions of the routes, by namespace and name.
		want map[string]string
	}{
		"two shoots": {
			plain, []*gatewayv1.TLSRoute{routeOf("a", "r", 1, "a.example.org", "a.internal"), routeOf("b", "r", 2, "b.example.org")},
			map[string]string{"a.example.org": "a/r", "a.internal": "a/r", "b.example.org": "b/r", "c.example.org": "", "x.a.example.org": "", "example.org": ""},
			map[string]string{"a/r": accepted, "b/r": accepted},
		},
		"wildcards": {
			plain, []*gatewayv1.TLSRoute{routeOf("a", "r", 1, "*.example.org"), routeOf("b", "r", 1, "*.b.example.org", "api.b.example.org"), routeOf("b", "s", 1, "x.example.org")},
			map[string]string{"q.example.org": "a/r", "q.r.example.org": "a/r", "example.org": "", "q.b.example.org": "b/r", "b.example.org": "a/r", "x.example.org": "b/s", "q.x.example.org": "a/r"},
			nil,
		},
		"the oldest route has a host": {
			plain, []*gatewayv1.TLSRoute{routeOf("a", "new", 1, "a.example.org"), routeOf("b", "old", 9, "a.example.org"), routeOf("a", "both", 1, "a.example.org", "z.example.org")},
			map[string]string{"a.example.org": "b/old", "z.example.org": "a/both"},
			map[string]string{
				"a/new": "Accepted=False:HostnameConflict ResolvedRefs=True:ResolvedRefs", "b/old": accepted,
				"a/both": "Accepted=True:Accepted PartiallyInvalid=True:HostnameConflict ResolvedRefs=True:ResolvedRefs",
			},
		},
		"of the same age, the first by name": {
			plain, []*gatewayv1.TLSRoute{routeOf("b", "a", 1, "a.example.org"), routeOf("a", "b", 1, "a.example.org")},
			map[string]string{"a.example.org": "a/b"}, nil,
		},
		"a namespace that is not allowed": {
			plain, []*gatewayv1.TLSRoute{routeOf("c", "r", 1, "c.example.org"), routeOf("gone", "r", 1, "gone.example.org"), routeOf("ingress", "r", 1, "i.example.org")},
			map[string]string{"c.example.org": "", "gone.example.org": "", "i.example.org": ""},
			map[string]string{"c/r": "Accepted=False:NotAllowedByListeners ResolvedRefs=True:ResolvedRefs"},
		},
		"all namespaces, or the same one": {
			[]gatewayv1.Listener{
				listenerOf("all", "*.all.example.org", func(l *gatewayv1.Listener) { l.AllowedRoutes.Namespaces.From = ptr.To(gatewayv1.NamespacesFromAll) }),
				listenerOf("same", "*.same.example.org", func(l *gatewayv1.Listener) { l.AllowedRoutes = nil }),
			},
			[]*gatewayv1.TLSRoute{routeOf("c", "r", 1, "c.all.example.org", "c.same.example.org"), routeOf("ingress", "r", 1, "i.same.example.org")},
			map[string]string{"c.all.example.org": "c/r", "c.same.example.org": "", "i.same.example.org": "ingress/r"},
			map[string]string{"c/r": accepted, "ingress/r": accepted},
		},
		"hosts of listeners": {
			[]gatewayv1.Listener{listenerOf("tls", "*.example.org", nil)},
			[]*gatewayv1.TLSRoute{routeOf("a", "r", 1, "a.example.org", "a.example.com"), routeOf("b", "wide", 1, "*.org"), routeOf("b", "other", 1, "*.example.com")},
			map[string]string{"a.example.org": "a/r", "a.example.com": "", "x.example.org": "b/wide", "x.org": "", "x.example.com": ""},
			map[string]string{"b/other": "Accepted=False:NoMatchingListenerHostname ResolvedRefs=True:ResolvedRefs"},
		},
		"a listener by name": {
			plain, []*gatewayv1.TLSRoute{parent(func(p *gatewayv1.ParentReference) { p.SectionName = ptr.To(gatewayv1.SectionName("other")) })},
			map[string]string{"a.example.org": ""}, map[string]string{"a/r": "Accepted=False:NoMatchingParent ResolvedRefs=True:ResolvedRefs"},
		},
		"a listener by port": {
			plain, []*gatewayv1.TLSRoute{parent(func(p *gatewayv1.ParentReference) { p.Port = ptr.To(gatewayv1.PortNumber(8443)) })},
			map[string]string{"a.example.org": ""}, map[string]string{"a/r": "Accepted=False:NoMatchingParent ResolvedRefs=True:ResolvedRefs"},
		},
		"another Gateway": {
			plain, []*gatewayv1.TLSRoute{parent(func(p *gatewayv1.ParentReference) { p.Name = "other" }), routeOf("b", "r", 1, "b.example.org")},
			map[string]string{"a.example.org": "", "b.example.org": "b/r"}, map[string]string{"b/r": accepted},
		},
		"a Service that does not exist": {
			plain, []*gatewayv1.TLSRoute{ref(func(r *gatewayv1.BackendRef) { r.Name = "gone" })}, map[string]string{"a.example.org": "a/r"},
			map[string]string{"a/r": "Accepted=True:Accepted ResolvedRefs=False:BackendNotFound"},
		},
		"a port that does not exist": {
			plain, []*gatewayv1.TLSRoute{ref(func(r *gatewayv1.BackendRef) { r.Port = ptr.To(gatewayv1.PortNumber(22)) })}, nil,
			map[string]string{"a/r": "Accepted=True:Accepted ResolvedRefs=False:BackendNotFound"},
		},
		"a Secret": {
			plain, []*gatewayv1.TLSRoute{ref(func(r *gatewayv1.BackendRef) { r.Kind = ptr.To(gatewayv1.Kind("Secret")) })}, nil,
			map[string]string{"a/r": "Accepted=True:Accepted ResolvedRefs=False:InvalidKind"},
		},
		"a Service of another shoot": {
			plain, []*gatewayv1.TLSRoute{ref(func(r *gatewayv1.BackendRef) { r.Namespace = ptr.To(gatewayv1.Namespace("b")) })}, nil,
			map[string]string{"a/r": "Accepted=True:Accepted ResolvedRefs=False:RefNotPermitted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			decided := Decide(inputs(test.listeners, test.routes...))
			for host, want := range test.hosts {
				target, found := decided.Table.Lookup(host)
				if got := strings.Trim(target.Route.String(), "/"); got != want || found != (want != "") {
					t.Errorf("%s leads to %q, want %q", host, got, want)
				}
			}
			got := map[string]string{}
			for _, route := range decided.Routes {
				got[route.Namespace+"/"+route.Name] = conditions(route.Status.Parents[0].Conditions)
			}
			for route, want := range test.want {
				if got[route] != want {
					t.Errorf("TLSRoute %s: got %s, want %s", route, got[route], want)
				}
			}
			if _, is := got["a/r"]; is && name == "another Gateway" {
				t.Error("a route of another Gateway is changed")
			}
		})
	}
}

// TestGateway checks the status of the Gateway and of its listeners.
func TestGateway(t *testing.T) {
	in := inputs([]gatewayv1.Listener{
		listenerOf("good", "", nil),
		listenerOf("terminates", "", func(l *gatewayv1.Listener) { l.TLS.Mode = nil }),
		listenerOf("http", "", func(l *gatewayv1.Listener) { l.Protocol, l.TLS = gatewayv1.HTTPProtocolType, nil }),
		listenerOf("port", "", func(l *gatewayv1.Listener) { l.Port = 8443 }),
		listenerOf("kinds", "", func(l *gatewayv1.Listener) { l.AllowedRoutes.Kinds = []gatewayv1.RouteGroupKind{{Kind: "TCPRoute"}} }),
		listenerOf("twice", "", nil),
	}, routeOf("a", "r", 1, "a.example.org"), routeOf("b", "r", 1, "b.example.org"))
	status := Decide(in).Gateway.Status
	if got, want := conditions(status.Conditions), "Accepted=True:ListenersNotValid Programmed=True:Programmed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, want := range []string{
		"Accepted=True:Accepted Conflicted=False:NoConflicts Programmed=True:Programmed ResolvedRefs=True:ResolvedRefs",
		"Accepted=False:UnsupportedProtocol Conflicted=False:NoConflicts Programmed=False:Invalid ResolvedRefs=True:ResolvedRefs",
		"Accepted=False:UnsupportedProtocol Conflicted=False:NoConflicts Programmed=False:Invalid ResolvedRefs=True:ResolvedRefs",
		"Accepted=False:PortUnavailable Conflicted=False:NoConflicts Programmed=False:Invalid ResolvedRefs=True:ResolvedRefs",
		"Accepted=True:Accepted Conflicted=False:NoConflicts Programmed=False:Invalid ResolvedRefs=False:InvalidRouteKinds",
		"Accepted=False:HostnameConflict Conflicted=True:HostnameConflict Programmed=False:Invalid ResolvedRefs=True:ResolvedRefs",
	} {
		if got := conditions(status.Listeners[i].Conditions); got != want {
			t.Errorf("listener %s: got %s, want %s", status.Listeners[i].Name, got, want)
		}
	}
	if attached := status.Listeners[0].AttachedRoutes; attached != 2 {
		t.Errorf("%d routes are attached", attached)
	}
	if len(status.Addresses) != 2 || *status.Addresses[0].Type != gatewayv1.IPAddressType || *status.Addresses[1].Type != gatewayv1.HostnameAddressType {
		t.Errorf("the addresses are %v", status.Addresses)
	}
	in.Addresses, in.Gateway.Spec.Listeners = nil, in.Gateway.Spec.Listeners[:1]
	if got, want := conditions(Decide(in).Gateway.Status.Conditions), "Accepted=True:Accepted Programmed=False:AddressNotAssigned"; got != want {
		t.Errorf("without an address: got %s, want %s", got, want)
	}
	in.Gateway.Spec.Listeners = nil
	if got, want := conditions(Decide(in).Gateway.Status.Conditions), "Accepted=False:ListenersNotValid Programmed=False:Invalid"; got != want {
		t.Errorf("without a listener: got %s, want %s", got, want)
	}
}

// TestForeign checks that nothing is served or written for a Gateway of another implementation.
func TestForeign(t *testing.T) {
	for name, change := range map[string]func(*Inputs){
		"no Gateway":        func(in *Inputs) { in.Gateway = nil },
		"no class":          func(in *Inputs) { in.Class = nil },
		"another class":     func(in *Inputs) { in.Class.Spec.ControllerName = "example.org/other" },
		"a deleted Gateway": func(in *Inputs) { in.Gateway.DeletionTimestamp = &start },
	} {
		in := inputs([]gatewayv1.Listener{listenerOf("tls", "", nil)}, routeOf("a", "r", 1, "a.example.org"))
		change(&in)
		if decided := Decide(in); decided.Gateway != nil || decided.Class != nil || len(decided.Routes) > 0 || decided.Table.Hosts() != 0 {
			t.Errorf("%s: got %+v", name, decided)
		}
	}
}

// TestSettled checks that a status is not changed once it is as wanted, that entries of other implementations are kept, and that the own one is removed
// from a route that leaves the Gateway.
func TestSettled(t *testing.T) {
	in := inputs([]gatewayv1.Listener{listenerOf("tls", "", nil)}, routeOf("a", "r", 1, "a.example.org"))
	other := gatewayv1.RouteParentStatus{ControllerName: "example.org/other", ParentRef: in.Routes[0].Spec.ParentRefs[0]}
	in.Routes[0].Status.Parents = []gatewayv1.RouteParentStatus{other}
	first := Decide(in)
	in.Gateway, in.Class, in.Routes, in.Now = first.Gateway, first.Class, first.Routes, metav1.NewTime(start.Add(time.Hour))
	second := Decide(in)
	if !equality.Semantic.DeepEqual(first.Gateway, second.Gateway) || !equality.Semantic.DeepEqual(first.Routes, second.Routes) || !equality.Semantic.DeepEqual(first.Class, second.Class) {
		t.Error("the status changes again")
	}
	if parents := second.Routes[0].Status.Parents; len(parents) != 2 || parents[0].ControllerName != other.ControllerName {
		t.Errorf("the entries are %v", parents)
	}
	if condition := meta.FindStatusCondition(second.Gateway.Status.Conditions, "Programmed"); condition.ObservedGeneration != 3 {
		t.Errorf("the condition is %v", condition)
	}
	in.Routes[0].Spec.ParentRefs[0].Name = "elsewhere"
	if parents := Decide(in).Routes[0].Status.Parents; len(parents) != 1 || parents[0].ControllerName != other.ControllerName {
		t.Errorf("the entries are %v", parents)
	}
}

// TestChoose checks that connections are shared by weight.
func TestChoose(t *testing.T) {
	target := Target{Backends: []Backend{{Port: 1, Weight: 1, Valid: true}, {Port: 2, Weight: 3, Valid: true}, {Port: 3, Weight: 1}}}
	var ports []string
	for number := range int32(5) {
		backend, valid := target.Choose(func(int32) int32 { return number })
		ports = append(ports, fmt.Sprint(backend.Port, valid))
	}
	if got := strings.Join(ports, " "); got != "1 true 2 true 2 true 2 true 3 false" {
		t.Errorf("got %s", got)
	}
	if _, valid := (Target{}).Choose(nil); valid {
		t.Error("a target without backends is valid")
	}
}

// BenchmarkDecide measures one decision for 1,000 routes, whose status is settled.
func BenchmarkDecide(b *testing.B) {
	in := inputs([]gatewayv1.Listener{listenerOf("tls", "", nil)})
	for i := range 1000 {
		in.Routes = append(in.Routes, routeOf("a", fmt.Sprint("r", i), i, fmt.Sprintf("api.%d.example.org", i), fmt.Sprintf("api.%d.internal", i)))
	}
	in.Routes = Decide(in).Routes
	for b.Loop() {
		Decide(in)
	}
}
