package apiserver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	coldRounds = 3
	restarts   = 3
	senders    = 4
	// releaseInterval is the time between the kinds that a restarted API server learns, and retryInterval that between requests of a sender
	// while nothing answers. They only spread the load.
	releaseInterval, retryInterval = 100 * time.Millisecond, 20 * time.Millisecond
)

// admittedHere are the cases that an API server with all plugins and all objects admits: differences on purpose (docs/compatibility.md).
var admittedHere = []string{
	"DeletionConfirmation/namespace without a project", "ExtensionValidator/shoot: spec while an extension is unregistered",
	"ResourceReferenceManager/credentialsbinding: label while a shoot of another type uses it", "ShootDNSRewriting/workerless with suffixes",
	// The subresource takes only the Seed from the request.
	"ShootValidator/binding to another seed with another field",
}

// coldServers are the resources that each API server does not know. With all of them, the first plugin that needs one answers. The others
// let requests reach later plugins.
var coldServers = [][]string{
	resourceNames(),
	{"projects"},
	{"cloudprofiles"},
	{"openidconnectpresets", "shoots", "managedseeds", "quotas", "seeds"},
	{"clusteropenidconnectpresets", "credentialsbindings", "secretbindings"},
	{"credentialsbindings", "secretbindings", "workloadidentities"},
	{"shoots", "managedseeds", "quotas", "seeds", "exposureclasses", "backupbuckets"},
}

// TestColdServer is the property that an API server which does not know all objects yet admits no request that it refuses when it knows
// them: it refuses the request or answers 503. The requests are the refused cases of all plugins.
func TestColdServer(t *testing.T) {
	world, refusals := admissiontest.Refusals(t)
	refusals = slices.DeleteFunc(refusals, func(one admissiontest.Refusal) bool { return slices.Contains(admittedHere, one.Plugin+"/"+one.Name) })
	held := make(chan []string, 1)
	g, proxies := startGardenOfCases(t, held)
	storeWorld(t, newClientFor(t, g), g.EtcdURL().String(), world)
	t.Run("warm", func(t *testing.T) { checkWarm(t, g, refusals) })
	t.Run("cold", func(t *testing.T) { checkCold(t, g, held, proxies, refusals) })
	t.Run("restarts", func(t *testing.T) {
		for range restarts {
			checkRestart(t, g, held, proxies, refusals)
		}
	})
}

// startGardenOfCases starts a garden with all plugins. Each API server has a proxy in front of etcd, which holds the lists of the next
// resources in the channel, and is sent to the other channel.
func startGardenOfCases(t *testing.T, held <-chan []string) (*garden.Garden, <-chan *etcdProxy) {
	t.Helper()
	proxies := make(chan *etcdProxy, len(coldServers)+restarts+1)
	file := filepath.Join(t.TempDir(), "admission.json")
	kit.Must(t, os.WriteFile(file, []byte(pluginsConfiguration), 0o600))
	return startGardenWith(t, garden.Options{
		ShootRules: true, References: true, APIServerArgs: []string{"--admission-control-config-file=" + file},
		EtcdServer: func(etcd *url.URL) string {
			proxy := startEtcdProxy(t, etcd)
			select {
			case resources := <-held:
				proxy.hold(resources...)
				proxies <- proxy
			default: // the first API server
			}
			return proxy.address
		},
	}), proxies
}

// checkWarm checks that an API server that knows all objects refuses all requests, and that a dry run has the same outcome.
func checkWarm(t *testing.T, g *garden.Garden, refusals []admissiontest.Refusal) {
	t.Helper()
	for _, refusal := range refusals {
		var dry answer
		kit.EventuallyTrue(t, refusal.Plugin+" refuses: "+refusal.Name, func() bool {
			dry = send(t, g.Config(), refusal, true)
			return dry.isRefusal()
		})
		if stored := send(t, g.Config(), refusal, false); stored.code != dry.code {
			t.Errorf("%s: %s: the answer is %+v, that to a dry run %+v", refusal.Plugin, refusal.Name, stored, dry)
		}
	}
}

// answersCold are the plugins that answer 503 in this test. The others need no objects for these cases, or only those that a plugin before
// them needs: ExtensionValidator (ExtensionLabels), NamespacedCloudProfileValidator (ExtensionLabels), ShootResourceReservation
// (ShootMutator). Bastion, CustomVerbAuthorizer and DeletionConfirmation decide about theirs without a memory.
var answersCold = []string{
	"BackupBucketValidator", "ClusterOpenIDConnectPreset", "ControllerRegistrationResources", "ExtensionLabels", "FinalizerRemoval", "ManagedSeed",
	"ManagedSeedShoot", "OpenIDConnectPreset", "ResourceReferenceManager", "SeedMutator", "SeedValidator", "ShootDNS", "ShootExposureClass",
	"ShootManagedSeed", "ShootMutator", "ShootQuotaValidator", "ShootTolerationRestriction", "ShootValidator",
}

// checkCold sends all requests to API servers that do not know some resources, and logs which plugin said so. It sends them again if
// a plugin did not, because a slow API server may not know the other resources in time, either.
func checkCold(t *testing.T, g *garden.Garden, held chan<- []string, proxies <-chan *etcdProxy, refusals []admissiontest.Refusal) {
	t.Helper()
	servers := make([]*rest.Config, len(coldServers))
	for i, resources := range coldServers {
		held <- resources
		var err error
		servers[i], err = g.StartReplica(t.Context())
		kit.Must(t, err)
		<-proxies
	}
	missing := answersCold
	for range coldRounds {
		answering := sendCold(t, servers, refusals)
		missing = slices.DeleteFunc(slices.Clone(missing), func(plugin string) bool { return answering[plugin] > 0 })
		if len(missing) == 0 {
			return
		}
	}
	t.Errorf("no request reaches the plugins %v before they know their objects", missing)
}

// sendCold sends all requests to all API servers, and returns the answers 503 by the plugin that gives them.
func sendCold(t *testing.T, servers []*rest.Config, refusals []admissiontest.Refusal) map[string]int {
	t.Helper()
	var all sync.WaitGroup
	answers := make([][]answer, len(servers))
	for i, server := range servers {
		all.Go(func() { answers[i] = sendAll(t, server, refusals) })
	}
	all.Wait()
	answering, cases := map[string]int{}, map[string]int{}
	for server, some := range answers {
		for i, got := range some {
			refusal := refusals[i]
			if !got.isRefusal() && !got.isLater() {
				t.Errorf("an API server without %v answers %+v to the case of %s: %s", coldServers[server], got, refusal.Plugin, refusal.Name)
			}
			if got.code != http.StatusServiceUnavailable {
				continue
			}
			answering[pluginOf(got.message)]++
			if server == 0 {
				cases[refusal.Plugin]++
			}
			if !got.later {
				t.Errorf("%s: %s: the answer %+v does not ask clients to try again", refusal.Plugin, refusal.Name, got)
			}
		}
	}
	t.Logf("cases by plugin, of %d, that an API server without any object answers with 503:\n%s", len(refusals), table(cases))
	t.Logf("answers 503 by the plugin that gives them, of %d API servers:\n%s", len(servers), table(answering))
	return answering
}

// checkRestart kills the API server and starts it again while it gets requests. It learns one kind of objects after the other, in any order.
func checkRestart(t *testing.T, g *garden.Garden, held chan<- []string, proxies <-chan *etcdProxy, refusals []admissiontest.Refusal) {
	t.Helper()
	var all sync.WaitGroup
	stop, count := make(chan struct{}), &codes{}
	for range senders {
		all.Go(func() { sendUntil(t, stop, g.Config(), refusals, count) })
	}
	kit.Must(t, g.KillAPIServer())
	held <- resourceNames()
	all.Go(func() {
		proxy, resources := <-proxies, resourceNames()
		for _, i := range rand.Perm(len(resources)) {
			time.Sleep(releaseInterval)
			proxy.release(resources[i])
		}
	})
	kit.Must(t, g.StartAPIServer(t.Context()))
	kit.EventuallyTrue(t, "the API server knows all objects and refuses all requests", func() bool {
		return !slices.ContainsFunc(sendAll(t, g.Config(), refusals), func(got answer) bool { return !got.isRefusal() })
	})
	close(stop)
	all.Wait()
	t.Logf("answers by code: %s", count)
}

// sendUntil sends one request after the other, chosen at random.
func sendUntil(t *testing.T, stop <-chan struct{}, server *rest.Config, refusals []admissiontest.Refusal, count *codes) {
	t.Helper()
	for {
		select {
		case <-stop:
			return
		default:
		}
		refusal := refusals[rand.IntN(len(refusals))]
		got := send(t, server, refusal, true)
		count[got.code].Add(1)
		if !got.isRefusal() && !got.isLater() {
			t.Errorf("an API server that starts answers %+v to the case of %s: %s", got, refusal.Plugin, refusal.Name)
		}
		if got.isLater() {
			time.Sleep(retryInterval)
		}
	}
}

// codes counts answers by their code.
type codes [600]atomic.Int64

// String implements fmt.Stringer.
func (c *codes) String() string {
	var text strings.Builder
	for code := range c {
		if found := c[code].Load(); found > 0 {
			fmt.Fprintf(&text, "%d: %d ", code, found)
		}
	}
	return text.String()
}

// sendAll sends all requests at once.
func sendAll(t *testing.T, server *rest.Config, refusals []admissiontest.Refusal) []answer {
	t.Helper()
	answers := make([]answer, len(refusals))
	var all sync.WaitGroup
	for i, refusal := range refusals {
		all.Go(func() { answers[i] = send(t, server, refusal, true) })
	}
	all.Wait()
	return answers
}

func table(counts map[string]int) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "%-40s %d\n", key, counts[key])
	}
	return text.String()
}

func resourceNames() []string {
	var names []string
	for _, resource := range served.Resources() {
		if !slices.Contains(names, resource.Name) {
			names = append(names, resource.Name)
		}
	}
	return names
}
