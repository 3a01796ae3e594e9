package apiserver

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardenadmission "github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/measure"
)

const worldYAML = `
metadata: {name: local}
spec:
  type: local
  kubernetes: {versions: [{version: 1.35.4}]}
  machineImages: [{name: linux, versions: [{version: 2.0.0}]}]
  machineTypes: [{name: small, cpu: "2", gpu: "0", memory: 4Gi}]
  regions: [{name: local, zones: [{name: a}]}]
---
metadata: {name: local}
spec:
  provider: {type: local, region: local, zones: [a]}
  backup: {provider: local}
  dns: {internal: {type: local, domain: internal.example.org}, defaults: [{type: local, domain: example.org}]}
  networks: {nodes: 10.20.0.0/16, pods: 10.21.0.0/16, services: 10.22.0.0/16}
---
metadata: {name: dev}
spec: {namespace: garden-dev}
---
metadata: {namespace: garden-dev}
spec:
  cloudProfile: {kind: CloudProfile, name: local}
  region: local
  seedName: local
  kubernetes: {version: 1.35.4}
  networking: {type: local, pods: 10.1.0.0/16, services: 10.2.0.0/16, nodes: 10.3.0.0/16}
  provider:
    type: local
    workers:
    - {name: pool, minimum: 1, maximum: 2, machine: {type: small, architecture: amd64, image: {name: linux, version: 2.0.0}}, zones: [a]}
`

// read reads one of the objects of worldYAML.
func read[T any](tb testing.TB, document int) *T {
	tb.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(strings.Split(worldYAML, "\n---\n")[document]), object); err != nil {
		tb.Fatal(err)
	}
	return object
}

// newShoot returns a Shoot that all plugins admit.
func newShoot(tb testing.TB, name string) *gardencorev1beta1.Shoot {
	tb.Helper()
	shoot := read[gardencorev1beta1.Shoot](tb, 3)
	shoot.Name, shoot.Spec.DNS = name, &gardencorev1beta1.DNS{Domain: ptr.To(name + ".clusters.example.net")}
	return shoot
}

// indexedShoots reads Shoots from indexes, as informers do, and counts when all Shoots are read live.
type indexedShoots struct {
	toolscache.Indexer

	lists *int
}

// Get implements admission.Reader.
func (s indexedShoots) Get(_ context.Context, namespace, name string) (*gardencorev1beta1.Shoot, error) {
	found, _, err := s.GetByKey(gardenadmission.Key(namespace, name))
	if shoot, is := found.(*gardencorev1beta1.Shoot); is {
		return shoot, err
	}
	return nil, apierrors.NewNotFound(gardencorev1beta1.Resource("shoots"), name)
}

// By implements admission.Reader.
func (s indexedShoots) By(_ context.Context, index gardenadmission.Index[*gardencorev1beta1.Shoot], key string) ([]*gardencorev1beta1.Shoot, error) {
	found, err := s.ByIndex(index.Name, key)
	shoots := make([]*gardencorev1beta1.Shoot, 0, len(found))
	for _, one := range found {
		if shoot, is := one.(*gardencorev1beta1.Shoot); is {
			shoots = append(shoots, shoot)
		}
	}
	return shoots, err
}

// LiveBy implements admission.Reader.
func (s indexedShoots) LiveBy(
	ctx context.Context, index gardenadmission.Index[*gardencorev1beta1.Shoot], key string,
) ([]*gardencorev1beta1.Shoot, error) {
	*s.lists++
	return s.By(ctx, index, key)
}

// counting counts lists of Shoots.
type counting struct {
	client.Reader

	lists *int
}

// List implements client.Reader.
func (c counting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*gardencorev1beta1.ShootList); is {
		*c.lists++
	}
	return c.Reader.List(ctx, list, options...)
}

// filledGarden returns the facts about a garden with a number of Shoots, and a counter of the lists of all Shoots.
func filledGarden(tb testing.TB, shoots int) (*gardenadmission.Garden, *int) {
	tb.Helper()
	registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	for _, kind := range []string{"ControlPlane", "Infrastructure", "Worker", "Network", "OperatingSystemConfig"} {
		for _, of := range []string{"local", "linux"} {
			registration.Spec.Resources = append(registration.Spec.Resources, gardencorev1beta1.ControllerResource{Kind: kind, Type: of})
		}
	}
	world := []runtime.Object{
		read[gardencorev1beta1.CloudProfile](tb, 0), read[gardencorev1beta1.Seed](tb, 1), read[gardencorev1beta1.Project](tb, 2), registration,
	}
	garden, lists := admissiontest.NewGarden(world, time.Now()), new(int)
	indexers := toolscache.Indexers{}
	for _, index := range []gardenadmission.Index[*gardencorev1beta1.Shoot]{
		gardenadmission.ShootsByBinding, gardenadmission.ShootsByDomain, gardenadmission.ShootsBySeed,
	} {
		indexers[index.Name] = func(object any) ([]string, error) {
			shoot, _ := object.(*gardencorev1beta1.Shoot)
			return index.Keys(shoot), nil
		}
	}
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
	other := newShoot(tb, "other")
	for i := range shoots {
		shoot := other.DeepCopy()
		shoot.Name, shoot.Spec.DNS.Domain = fmt.Sprintf("shoot-%d", i), ptr.To(fmt.Sprintf("shoot-%d.clusters.example.net", i))
		if err := indexer.Add(shoot); err != nil {
			tb.Fatal(err)
		}
	}
	garden.Shoots, garden.Live = indexedShoots{indexer, lists}, counting{garden.Live, lists}
	garden.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	return garden, lists
}

// requests returns a request for a new Shoot, and one that adds a pool to it.
func requests(tb testing.TB) map[string]*gardenadmission.Request {
	tb.Helper()
	of := func(operation apiadmission.Operation) *gardenadmission.Request {
		return &gardenadmission.Request{
			Operation: operation, Kind: gardencorev1beta1.Kind("Shoot"), Resource: gardencorev1beta1.Resource("shoots"), Namespace: "garden-dev", Name: "new",
			User: &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}, Object: newShoot(tb, "new"),
		}
	}
	create, update := of(apiadmission.Create), of(apiadmission.Update)
	changed := newShoot(tb, "new")
	more := changed.Spec.Provider.Workers[0].DeepCopy()
	more.Name = "more"
	changed.Spec.Provider.Workers = append(changed.Spec.Provider.Workers, *more)
	update.Old, update.Object = newShoot(tb, "new"), changed
	return map[string]*gardenadmission.Request{"create": create, "update": update}
}

// decide runs a plugin for a request, which it must admit.
func decide(tb testing.TB, plugin *row, request *gardenadmission.Request, garden *gardenadmission.Garden) {
	tb.Helper()
	rules := plugin.Rules
	var err error
	if plugin.Configure != nil {
		rules, err = plugin.Configure(nil)
	}
	if err == nil {
		err = gardenadmission.Admit(tb.Context(), rules, request, garden)
	}
	if err == nil {
		err = gardenadmission.Validate(tb.Context(), rules, request, garden)
	}
	if err != nil {
		tb.Fatalf("%s: %v", plugin.Name, err)
	}
}

// TestPluginsDoNotReadAllShoots checks that the cost of a new or changed Shoot does not depend on the number of the others: no plugin lists
// them, except to enforce a Quota.
func TestPluginsDoNotReadAllShoots(t *testing.T) {
	t.Parallel()
	garden, lists := filledGarden(t, 3)
	for name, request := range requests(t) {
		for i := range plugins {
			decide(t, &plugins[i], request, garden)
			if *lists > 0 {
				t.Errorf("%s: the plugin %s lists all Shoots", name, plugins[i].Name)
			}
			*lists = 0
		}
	}
}

// BenchmarkPlugins measures the decisions of each plugin about a new and a changed Shoot among 10,000 Shoots.
func BenchmarkPlugins(b *testing.B) {
	garden, _ := filledGarden(b, 10_000)
	for i := range plugins {
		for name, request := range requests(b) {
			b.Run(plugins[i].Name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					again := *request
					again.Object = request.Object.DeepCopyObject()
					decide(b, &plugins[i], &again, garden)
				}
			})
		}
	}
}

// BenchmarkShoots measures all plugins together for a new and a changed Shoot, among few and among many others. It reports the
// mean of the processor time, and the 99th percentile of the time that passes.
func BenchmarkShoots(b *testing.B) {
	for _, shoots := range []int{10, 10_000} {
		garden, _ := filledGarden(b, shoots)
		for name, request := range requests(b) {
			b.Run(fmt.Sprintf("%s/%d", name, shoots), func(b *testing.B) {
				goruntime.LockOSThread()
				defer goruntime.UnlockOSThread()
				var took []time.Duration
				var sum time.Duration
				for b.Loop() {
					again := *request
					again.Object = request.Object.DeepCopyObject()
					began, processor := time.Now(), measure.ThreadTime()
					for i := range plugins {
						decide(b, &plugins[i], &again, garden)
					}
					took = append(took, time.Since(began))
					sum += measure.ThreadTime() - processor
				}
				slices.Sort(took)
				b.ReportMetric(float64(sum.Microseconds())/float64(len(took)), "µs/mean")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
			})
		}
	}
}
