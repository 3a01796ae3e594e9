package netpol

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

const servicesPerNamespace = 5

var (
	manyNamespaces = flag.Int("netpol.namespaces", 10, "namespaces of TestManyNamespaces, an even number, with 5 Services each")
	manyRest       = flag.Duration("netpol.rest", 0, "how long TestManyNamespaces observes the controller while nothing changes")
	manyInFlight   = flag.Int("netpol.inflight", 16, "requests at a time of the bare client of TestManyNamespaces")
)

// TestManyNamespaces creates namespaces in pairs. Each namespace has five Services that are also reachable from the other namespace of
// the pair. That makes four policies for each Service. Each policy costs one request. A further namespace of a pair costs only the
// requests of its own policies. With -v, the test logs figures, also of a bare client that applies the same policies.
func TestManyNamespaces(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	controlPlane, err := controlplane.Start(t.Context(), controlplane.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, controlPlane.Stop()) })
	kit.DefineManagedResources(t, controlPlane.Config())
	f := newFixture(t, controlPlane.Config())
	f.createMany()
	want := *manyNamespaces * servicesPerNamespace * 4

	idle := kit.StartManager(t, controlPlane.Kubeconfig(), nil, "")
	t.Logf("resident memory without the controller: %s", memoryOf(t, idle))
	idle.Stop()
	started := time.Now()
	p := process{kit.StartManager(t, controlPlane.Kubeconfig(), nil, "controllers: {networkPolicy: {enabled: true}}")}
	p.await(want)
	took := time.Since(started)
	sent := p.patches()
	t.Logf("%d policies of %d Services in %s, with %d requests (%.3f for each), resident memory %s", want,
		*manyNamespaces*servicesPerNamespace, took.Round(time.Millisecond), sent, float64(sent)/float64(want), memoryOf(t, p.Process))
	if sent != want {
		t.Errorf("%d policies took %d requests", want, sent)
	}
	before := p.requests()
	if *manyRest > 0 {
		<-time.After(*manyRest)
		t.Logf("at rest for %s: %d requests, resident memory %s", *manyRest, p.requests()-before, memoryOf(t, p.Process))
	}

	started = time.Now()
	kit.Must(t, f.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "one-more", Labels: map[string]string{"pair": "0"}}}))
	more := 2 * servicesPerNamespace * 2 // for the Services of the two namespaces of the pair
	p.await(want + more)
	took = time.Since(started)
	t.Logf("a further namespace: %d policies in %s, with %d requests", more, took.Round(time.Millisecond), p.patches()-sent)
	if p.patches() != want+more {
		t.Errorf("a further namespace took %d requests", p.patches()-sent)
	}
	p.Stop()
	f.applyBare(want + more)
}

// process is a resource-manager whose metrics are read.
type process struct{ *kit.Process }

// sum returns the sum of the metrics that an expression matches. Its parentheses enclose the value.
func (p process) sum(expression string) int {
	p.Helper()
	_, body := p.Get(p.Metrics, "/metrics")
	sum := 0.0
	for _, match := range regexp.MustCompile("(?m)^"+expression+"$").FindAllStringSubmatch(body, -1) {
		value, err := strconv.ParseFloat(match[1], 64)
		kit.Must(p, err)
		sum += value
	}
	return int(sum)
}

// await waits until the given number of policies is created, as long as there is progress.
func (p process) await(want int) {
	p.Helper()
	made := func() int { return p.sum(`resource_manager_network_policy_changes_total\{change="created"\} (\S+)`) }
	for before := made(); before < want; before = made() {
		<-time.After(time.Duration(want-before) * 20 * time.Microsecond) // reading the metrics costs time in the measured process
		kit.EventuallyTrue(p, "further policies", func() bool { return made() > before })
	}
}

// wants returns an objection if the number of changes differs from the given one.
func (p process) wants(change string, want int) string {
	if got := p.sum(`resource_manager_network_policy_changes_total\{change="` + change + `"\} (\S+)`); got != want {
		return fmt.Sprintf("%d policies are %s, want %d", got, change, want)
	}
	return ""
}

func (p process) patches() int {
	return p.sum(`rest_client_requests_total\{.*method="PATCH".*\} (\S+)`)
}

func (p process) requests() int { return p.sum(`rest_client_requests_total\{.*\} (\S+)`) }

func memoryOf(t *testing.T, p *kit.Process) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Command.Process.Pid))
	kit.Must(t, err)
	match := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		return "unknown"
	}
	kibibytes, err := strconv.Atoi(string(match[1]))
	kit.Must(t, err)
	return fmt.Sprintf("%d MiB", kibibytes/1024)
}

// createMany creates the namespaces and Services.
func (f *fixture) createMany() {
	f.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range *manyNamespaces {
		group.Go(func() error {
			pair := strconv.Itoa(i / 2)
			name := fmt.Sprintf("many-%04d", i)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pair": pair}}}
			if err := f.client.Create(f.ctx, namespace); err != nil {
				return err
			}
			for j := range servicesPerNamespace {
				service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
					Namespace: name, Name: fmt.Sprintf("service-%d", j),
					Annotations: map[string]string{domain + "namespace-selectors": selecting("pair", pair)},
				}}
				service.Spec.ClusterIP = corev1.ClusterIPNone
				service.Spec.Selector = map[string]string{"app": service.Name}
				service.Spec.Ports = []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}
				if err := f.client.Create(f.ctx, service); err != nil {
					return err
				}
			}
			return nil
		})
	}
	kit.Must(f, group.Wait())
}

// applyBare deletes all policies and applies them again, with only parallel requests.
func (f *fixture) applyBare(want int) {
	f.Helper()
	var list networkingv1.NetworkPolicyList
	kit.Must(f, f.client.List(f.ctx, &list))
	if len(list.Items) != want {
		f.Errorf("the cluster has %d policies, want %d", len(list.Items), want)
	}
	f.inParallel(list.Items, func(ctx context.Context, policy *networkingv1.NetworkPolicy) error {
		return f.client.Delete(ctx, policy)
	})
	started := time.Now()
	f.inParallel(list.Items, func(ctx context.Context, policy *networkingv1.NetworkPolicy) error {
		policy.ObjectMeta = metav1.ObjectMeta{Namespace: policy.Namespace, Name: policy.Name, Labels: policy.Labels, Annotations: policy.Annotations}
		policy.APIVersion, policy.Kind = "networking.k8s.io/v1", "NetworkPolicy"
		body, err := json.Marshal(policy)
		if err != nil {
			return err
		}
		return f.client.Patch(ctx, policy, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner("bare"), client.ForceOwnership)
	})
	took := time.Since(started)
	f.Logf("a bare client that applies the same policies, %d requests at a time: %s (%.0f/s)", *manyInFlight, took.Round(time.Millisecond),
		float64(len(list.Items))/took.Seconds())
}

func (f *fixture) inParallel(policies []networkingv1.NetworkPolicy, do func(context.Context, *networkingv1.NetworkPolicy) error) {
	f.Helper()
	group, ctx := errgroup.WithContext(f.ctx)
	group.SetLimit(*manyInFlight)
	for i := range policies {
		group.Go(func() error { return do(ctx, &policies[i]) })
	}
	kit.Must(f, group.Wait())
}

// TestBinary checks that the configuration enables the controller, which is disabled by default.
func TestBinary(t *testing.T) {
	t.Parallel()
	f := newFixture(t, shared.Get(t).Config())
	kit.DefineManagedResources(t, f.config)
	all := f.namespaces(3)
	f.label(all[0], map[string]any{"handled": "yes"})
	f.service(all[0], "shop", map[string]string{"namespace-selectors": selecting(corev1.LabelMetadataName, all[2]), "from-world-to-ports": "?"})
	f.service(all[1], "shop", nil)
	kubeconfig := shared.Get(t).Kubeconfig()
	disabled := kit.StartManager(t, kubeconfig, all, "controllers: {networkPolicy: {enabled: false}}")
	if log := disabled.Written.String(); strings.Contains(log, "network-policy") {
		t.Errorf("the controller runs although it is disabled")
	}
	disabled.Stop()
	p := process{kit.StartManager(t, kubeconfig, all, "controllers: {networkPolicy: {enabled: true, namespaceSelectors: [{matchLabels: {handled: \"yes\"}}]}}")}
	f.eventually("policies of the managed namespace", all, append(pairIn(all[0], "shop-tcp-8080"),
		all[0]+"/ingress-to-shop-tcp-8080-from-"+all[2], all[2]+"/egress-to-"+all[0]+"-shop-tcp-8080")...)
	kit.Eventually(t, "the metrics count the policies", func() string { return p.wants("created", 4) })
	kit.EventuallyTrue(t, "the metrics count the Service with problems", func() bool { return p.sum(`resource_manager_network_policy_services_with_problems (\S+)`) == 1 })
	f.label(all[0], map[string]any{"handled": nil})
	f.eventually("the namespace is no longer managed", all)
	p.Stop()
}
