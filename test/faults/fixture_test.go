package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// ground is a namespace for one run of a scenario, as source and as target, and the violations seen in it.
type ground struct {
	*testing.T
	controlPlane *controlplane.ControlPlane
	client       client.Client
	namespace    string

	mu         sync.Mutex
	violations []string
}

// shared accepts the audience of the token requestor's tokens, as the API servers of Gardener's clusters do.
var shared = controlplane.Shared{Options: controlplane.Options{APIServerArgs: map[string][]string{
	"api-audiences": {"https://kubernetes.default.svc.cluster.local", "gardener"},
}}}

var prepared sync.Once

func newGround(t *testing.T) *ground {
	t.Helper()
	cp := shared.Get(t)
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, resourcesv1alpha1.AddToScheme(scheme))
	config := cp.Config()
	config.QPS = -1
	prepared.Do(func() {
		_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
			Paths: []string{"../../config/crd", "testdata/machines.yaml"}, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout,
		})
		kit.Must(t, err)
		admin, err := client.New(config, client.Options{Scheme: scheme})
		kit.Must(t, err)
		allowCertificateRequests(t, admin)
	})
	c, err := client.New(config, client.Options{Scheme: scheme})
	kit.Must(t, err)
	return &ground{T: t, controlPlane: cp, client: c, namespace: kit.NewNamespace(t, c, "faults", nil)}
}

// allowCertificateRequests allows all users to request certificates.
func allowCertificateRequests(t *testing.T, admin client.Client) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "requests-certificates"}
	kit.Must(t, admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"},
	}}}))
	kit.Must(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	}))
}

// placeholder replaces the namespace of a run in manifests and in the names of sites.
const placeholder = "NAMESPACE"

func (g *ground) fill(text string) string { return strings.ReplaceAll(text, placeholder, g.namespace) }

// newLine returns the clients of all controllers of the run. Further pairs are texts that differ between runs, and
// their replacements.
func (g *ground) newLine(plans []*plan, witness func(call, []byte), pairs ...string) *line {
	return &line{rename: strings.NewReplacer(append([]string{g.namespace, placeholder}, pairs...)...), plans: plans, witness: witness}
}

// violate records a violation of an invariant.
func (g *ground) violate(format string, arguments ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.violations = append(g.violations, fmt.Sprintf(format, arguments...))
}

func (g *ground) violated() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.violations)
}

// always is a context for checks that have to complete even if the test has ended.
func (g *ground) always() context.Context { return context.WithoutCancel(g.Context()) }

// spareStarts is how often a process may be started in a run, in addition to once for each fault. A fault stops
// the process once or prevents one start.
const spareStarts = 2

// keepRunning runs processes one after the other, as a Deployment would: when one ends, for any reason, the next
// one starts. By distinguishes their calls from those of other processes in the names of sites. It is empty if
// only one runs. The returned function stops the current process, lets it finish its work, and returns when it has
// stopped completely.
func (g *ground) keepRunning(l *line, by string, run func(context.Context, *life) error) (stop func()) {
	ctx, cancel := context.WithCancel(g.always())
	done := make(chan error, 1)
	go func() {
		var err error
		for starts := 0; ctx.Err() == nil; starts++ {
			if starts == spareStarts+len(l.plans) {
				done <- errors.Join(errors.New("the process ends repeatedly"), err)
				return
			}
			life := l.newLife(by)
			err = runLife(ctx, life, run)
			life.end()
		}
		done <- nil
	}()
	stop = sync.OnceFunc(func() {
		g.Helper()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				g.Error(err)
			}
		case <-time.After(kit.WaitTimeout):
			g.Error("the resource-manager does not stop")
		}
	})
	g.Cleanup(stop)
	return stop
}

// runLife runs a process until the context or its life ends.
func runLife(ctx context.Context, l *life, run func(context.Context, *life) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	return run(ctx, l)
}

// eventually waits until objections returns none.
func (g *ground) eventually(objections func() []string) {
	g.Helper()
	kit.Eventually(g, "the expected state is reached", func() string { return strings.Join(objections(), "; ") })
}
