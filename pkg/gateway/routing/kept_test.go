package routing

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestKept changes random routes, Services and namespaces one by one. After each change, the decision is the same as a new one about all
// routes, and the status of all other routes than the reported ones is unchanged.
func TestKept(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		in := inputs([]gatewayv1.Listener{listenerOf("org", "*.example.org", nil), listenerOf("com", "*.example.com", nil)})
		allowed, exists := map[string]bool{"a": true, "b": true}, map[string]bool{"a": true}
		in.Namespace = func(name string) (map[string]string, bool) {
			if allowed[name] {
				return map[string]string{"role": "shoot"}, true
			}
			return nil, true
		}
		in.Service = func(key types.NamespacedName) *corev1.Service {
			if !exists[key.Namespace] {
				return nil
			}
			return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}
		}
		routes := map[types.NamespacedName]*gatewayv1.TLSRoute{}
		kept := Keep(in)
		before := map[types.NamespacedName]*gatewayv1.TLSRoute{}
		for step := range 60 {
			namespace := []string{"a", "b"}[random.IntN(2)]
			var changed []types.NamespacedName
			switch random.IntN(8) {
			case 0:
				allowed[namespace] = !allowed[namespace]
				changed = slices.Collect(maps.Keys(routes))
			case 1:
				exists[namespace] = !exists[namespace]
				changed = slices.Collect(maps.Keys(routes))
			default:
				key := types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("r", random.IntN(4))}
				if delete(routes, key); random.IntN(3) > 0 {
					routes[key] = randomRoute(random, key)
				}
				changed = []types.NamespacedName{key}
			}
			affected := map[types.NamespacedName]bool{}
			for _, key := range changed {
				for _, other := range kept.Change(key, routes[key]) {
					affected[other] = true
				}
			}
			in.Routes = slices.Collect(maps.Values(routes))
			fresh := Decide(in)
			if !equality.Semantic.DeepEqual(fresh.Table.exact, kept.table.exact) || !equality.Semantic.DeepEqual(fresh.Table.wildcards, kept.table.wildcards) {
				t.Fatalf("seed %d, step %d: the table is %+v, want %+v", seed, step, kept.table.exact, fresh.Table.exact)
			}
			if gateway, class := kept.Status(in); !equality.Semantic.DeepEqual(gateway, fresh.Gateway) || !equality.Semantic.DeepEqual(class, fresh.Class) {
				t.Fatalf("seed %d, step %d: the status of the Gateway is %+v, want %+v", seed, step, gateway.Status, fresh.Gateway.Status)
			}
			after := map[types.NamespacedName]*gatewayv1.TLSRoute{}
			for _, want := range fresh.Routes {
				after[keyOf(want)] = want
				if _, got := kept.Route(keyOf(want), in.Now); !equality.Semantic.DeepEqual(got, want) {
					t.Fatalf("seed %d, step %d: TLSRoute %s is %+v, want %+v", seed, step, keyOf(want), got, want)
				}
				if old := before[keyOf(want)]; !affected[keyOf(want)] && !equality.Semantic.DeepEqual(old, want) {
					t.Fatalf("seed %d, step %d: TLSRoute %s changes, and is not reported", seed, step, keyOf(want))
				}
			}
			before = after
		}
	}
}

// randomRoute returns a route with some of few hosts, so that routes compete for them.
func randomRoute(random *rand.Rand, key types.NamespacedName) *gatewayv1.TLSRoute {
	var hosts []string
	for _, host := range []string{"x.example.org", "*.example.org", "x.example.com", "y.example.com", "example.net"} {
		if random.IntN(2) == 0 {
			hosts = append(hosts, host)
		}
	}
	route := routeOf(key.Namespace, key.Name, random.IntN(3), hosts...)
	switch random.IntN(6) {
	case 0:
		route.Spec.ParentRefs[0].Name = "other"
	case 1:
		route.Spec.ParentRefs[0].SectionName = ptr.To(gatewayv1.SectionName("com"))
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, route.Spec.ParentRefs[0])
		route.Spec.ParentRefs[1].SectionName = nil
	}
	return route
}

// BenchmarkChange measures the decision about one of 1,000 routes.
func BenchmarkChange(b *testing.B) {
	in := inputs([]gatewayv1.Listener{listenerOf("tls", "", nil)})
	for i := range 1000 {
		in.Routes = append(in.Routes, routeOf("a", fmt.Sprint("r", i), i, fmt.Sprintf("api.%d.example.org", i), fmt.Sprintf("api.%d.internal", i)))
	}
	in.Routes = Decide(in).Routes
	kept := Keep(in)
	for b.Loop() {
		for _, key := range kept.Change(keyOf(in.Routes[7]), in.Routes[7]) {
			kept.Route(key, in.Now)
		}
	}
}
