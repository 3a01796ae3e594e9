package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	example "github.com/trellis-k8s/trellis/examples/flow"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/test/kit"
)

// sites is a namespace with a site of the example flow. A fake resource-manager reports everything as healthy.
type sites struct {
	*ground
	// beginning is set if the scenario creates the site, and ending if it deletes it. Otherwise the scenario changes
	// it.
	beginning, ending bool
	scheme            *runtime.Scheme
}

// sitesVersion is the version of the flow's program.
const sitesVersion = "v1"

// sitesWriter is the field manager of the flow.
const sitesWriter = "sites-flow"

var networksDefined sync.Once

func newSites(beginning, ending bool) func(*ground) errand {
	return func(g *ground) errand {
		networksDefined.Do(func() {
			_, err := envtest.InstallCRDs(g.controlPlane.Config(), envtest.CRDInstallOptions{
				Paths: []string{"../../config/crd/extensions/extensions.gardener.cloud_infrastructures.yaml"}, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout,
			})
			kit.Must(g, err)
		})
		s := &sites{ground: g, beginning: beginning, ending: ending, scheme: runtime.NewScheme()}
		kit.Must(g, resourcesv1alpha1.AddToScheme(s.scheme))
		kit.Must(g, corev1.AddToScheme(s.scheme))
		kit.Must(g, apiextensionsv1.AddToScheme(s.scheme))
		e := errand{
			run: s.run, given: s.given, before: func() []string { return s.objections("1", false) }, change: s.change,
			after: func() []string { return s.objections("2", ending) }, attest: s.attest, picture: s.picture,
		}
		if beginning {
			e.given, e.before, e.after = func() {}, nothing, func() []string { return s.objections("1", false) }
		}
		e.pairs = s.names()
		return e
	}
}

// run runs the example flow.
func (s *sites) run(ctx context.Context, l *life) error {
	config := s.controlPlane.Config()
	config.Wrap(l.wrap)
	options := managerOptions(s.scheme)
	options.Cache = cache.Options{
		NewInformer: rewatch.NewInformer, DefaultNamespaces: map[string]cache.Config{s.namespace: {}}, ByObject: example.CacheOptions(),
	}
	mgr, err := manager.New(config, options)
	if err != nil {
		return err
	}
	sites, err := example.New(ctx, mgr, example.Options{Version: sitesVersion, Pacing: example.DefaultPacing(), Clock: clock.RealClock{}})
	if err != nil {
		return err
	}
	if err := sites.AddToManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (s *sites) site() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "site", Labels: map[string]string{example.LabelSite: "true"}},
		Data:       map[string]string{"type": "local", "region": "here", "zones": "1", "message": "1"},
	}
}

// names returns the names of the Secrets of each bundle, which differ between runs, and their replacements.
func (s *sites) names() []string {
	var pairs []string
	for _, version := range []string{"1", "2"} {
		in := example.Inputs{Version: sitesVersion, Owner: flow.Owner{Flow: example.FlowName, UID: "1", Namespace: s.namespace, Name: "site"}, Declared: s.site().Data, Network: s.answered(version, 1)}
		in.Declared["zones"], in.Declared["message"] = version, version
		in.Network.Object["spec"] = map[string]any{
			"type": "local", "region": "here", "providerConfig": map[string]any{"zones": version},
			"secretRef": map[string]any{"namespace": s.namespace, "name": "cloudprovider"},
		}
		plan, err := example.Plan(in)
		kit.Must(s, err)
		for _, bundle := range plan.Bundles {
			secrets, _, err := flow.Render(in.Owner, bundle, s.scheme)
			kit.Must(s, err)
			for _, secret := range secrets {
				pairs = append(pairs, secret.Name, bundle.Name+"-of-"+version)
			}
		}
		if len(plan.Bundles) != 3 {
			s.Fatalf("the plan has %d bundles: %+v", len(plan.Bundles), plan.Waits)
		}
	}
	return pairs
}

// answered returns the network as its extension reports it.
func (s *sites) answered(version string, generation int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"observedGeneration": generation, "egressCIDRs": []any{"10." + version + ".0.0/16"},
		"lastOperation": map[string]any{
			"state": "Succeeded", "type": "Reconcile", "progress": int64(100), "description": "done", "lastUpdateTime": "2027-01-02T03:04:05Z",
		},
	}}}
	u.SetGroupVersionKind(example.NetworkKind)
	u.SetNamespace(s.namespace)
	u.SetName("site")
	u.SetUID(types.UID("1"))
	u.SetGeneration(generation)
	return u
}

func (s *sites) given() {
	s.Helper()
	kit.Must(s, s.client.Create(s.Context(), s.site()))
}

// change creates, changes or deletes a site.
func (s *sites) change() {
	s.Helper()
	site := s.site()
	if s.beginning {
		kit.Must(s, s.client.Create(s.Context(), site))
		return
	}
	if s.ending {
		content := s.site()
		content.Name, content.Labels = "content", map[string]string{example.LabelContent: "site"}
		kit.Must(s, s.client.Create(s.Context(), content))
		kit.Must(s, s.client.Delete(s.Context(), site))
		return
	}
	kit.Change(s, s.client, site, func() { site.Data["zones"], site.Data["message"] = "2", "2" })
}

// objections returns the differences from the expected state. It also does the work of the resource-manager and of
// the extension: both run while the flow does, and their calls do not count.
func (s *sites) objections(version string, ended bool) []string {
	s.standIn(version)
	var objections []string
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(s, s.client.List(s.always(), &list, client.InNamespace(s.namespace)))
	var site corev1.ConfigMap
	err := s.client.Get(s.always(), client.ObjectKeyFromObject(s.site()), &site)
	if ended {
		if !apierrors.IsNotFound(err) {
			objections = append(objections, "the site exists: "+site.Annotations[example.AnnotationReport])
		}
		for i := range list.Items {
			objections = append(objections, "still exists: "+list.Items[i].Name)
		}
		return objections
	}
	var report flow.Report
	declared, problem := example.Declaration(&site)
	kit.Must(s, problem)
	if text := site.Annotations[example.AnnotationReport]; err != nil || json.Unmarshal([]byte(text), &report) != nil ||
		report.LastOperation.State != "Succeeded" || site.Annotations[example.AnnotationObserved] != declared {
		objections = append(objections, fmt.Sprintf("the site reports %q (%v)", text, err))
	}
	if len(list.Items) != 3 {
		objections = append(objections, fmt.Sprintf("%d of 3 ManagedResources", len(list.Items)))
	}
	for i := range list.Items {
		mr := &list.Items[i]
		if mr.Annotations[flow.AnnotationDigest] == "" {
			objections = append(objections, mr.Name+" has no digest")
		}
		for _, reference := range mr.Spec.SecretRefs {
			if !slices.Contains(s.namesOf(version), reference.Name) {
				objections = append(objections, mr.Name+" has another revision")
			}
			if err := s.client.Get(s.always(), client.ObjectKey{Namespace: s.namespace, Name: reference.Name}, &corev1.Secret{}); err != nil {
				objections = append(objections, err.Error())
			}
		}
	}
	return objections
}

// namesOf returns the names of the Secrets of a version.
func (s *sites) namesOf(version string) []string {
	var names []string
	pairs := s.names()
	for i := 0; i < len(pairs); i += 2 {
		if strings.HasSuffix(pairs[i+1], "-of-"+version) {
			names = append(names, pairs[i])
		}
	}
	return names
}

// standIn does the work of the resource-manager and of the extension.
func (s *sites) standIn(version string) {
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(s, s.client.List(s.always(), &list, client.InNamespace(s.namespace)))
	for i := range list.Items {
		mr := &list.Items[i]
		if mr.Status.ObservedGeneration == mr.Generation {
			continue
		}
		if mr.Name == "site-network" {
			s.applyNetwork(version)
		}
		mr.Status.ObservedGeneration = mr.Generation
		for kind, status := range map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.ConditionStatus{
			resourcesv1alpha1.ResourcesApplied: "True", resourcesv1alpha1.ResourcesHealthy: "True", resourcesv1alpha1.ResourcesProgressing: "False",
		} {
			mr.Status.Conditions = resourcesv1alpha1.SetCondition(
				mr.Status.Conditions, kind, resourcesv1alpha1.NewStatement(status, "StandIn", ""), time.Now())
		}
		s.tolerate(s.client.Status().Update(s.always(), mr))
	}
}

// applyNetwork updates the extension object to what the flow requests, and reports success.
func (s *sites) applyNetwork(version string) {
	network := s.answered(version, 0)
	err := s.client.Get(s.always(), client.ObjectKeyFromObject(network), network)
	network.SetAnnotations(map[string]string{flow.AnnotationOwner: s.namespace + "/site"})
	network.Object["spec"] = map[string]any{
		"type": "local", "region": "here", "providerConfig": map[string]any{"zones": version},
		"secretRef": map[string]any{"namespace": s.namespace, "name": "cloudprovider"},
	}
	if apierrors.IsNotFound(err) {
		network.SetUID("")
		s.tolerate(s.client.Create(s.always(), network))
	} else {
		s.tolerate(s.client.Update(s.always(), network))
	}
	network.Object["status"] = s.answered(version, network.GetGeneration()).Object["status"]
	s.tolerate(s.client.Status().Update(s.always(), network))
}

// tolerate ignores objects that were changed or deleted concurrently. The next check handles them.
func (s *sites) tolerate(err error) {
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		s.violate("the fake failed: %v", err)
	}
}

// attest checks at each write that no object is lost: a ManagedResource refers to existing Secrets, and is deleted
// only with its site.
func (s *sites) attest(c call, body []byte) {
	switch {
	case c.resource == "managedresources" && c.verb == "delete" && !s.ending:
		s.violate("%s is deleted without a tombstone", c.name)
	case c.resource == "managedresources" && c.verb == "patch" && c.subresource == "":
		var mr resourcesv1alpha1.ManagedResource
		if err := json.Unmarshal(body, &mr); err != nil {
			s.violate("%s: %v", c, err)
		}
		for _, reference := range mr.Spec.SecretRefs {
			if err := s.client.Get(s.always(), client.ObjectKey{Namespace: s.namespace, Name: reference.Name}, &corev1.Secret{}); err != nil {
				s.violate("ManagedResource %s would refer to an unreadable Secret: %v", c.name, err)
			}
		}
	case c.resource == "configmaps" && c.name == "site" && c.verb == "patch" && strings.Contains(string(body), `"finalizers":null`):
		var left resourcesv1alpha1.ManagedResourceList
		if err := s.client.List(s.always(), &left, client.InNamespace(s.namespace)); err != nil || len(left.Items) > 0 {
			s.violate("the finalizer of the site is removed while %d ManagedResources exist (%v)", len(left.Items), err)
		}
	}
}

// picture describes the existing bundles and their Secrets.
func (s *sites) picture() string {
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(s, s.client.List(s.always(), &list, client.InNamespace(s.namespace)))
	var lines []string
	for i := range list.Items {
		mr := &list.Items[i]
		lines = append(lines, fmt.Sprint(mr.Name, " ", mr.Spec.SecretRefs, " generation ", mr.Generation > 0, " deleting ", mr.DeletionTimestamp != nil))
	}
	return strings.Join(lines, "\n")
}
