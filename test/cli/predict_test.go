package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var (
	manifests = flag.String("manifests", "", "check the predictions of diff on the manifests in this folder")
	edits     = flag.Int("edits", 20, "the number of random edits for this check")
	seed      = flag.Uint64("seed", 1, "the seed of the random edits")
)

// TestDiffPredictsWhatIsWritten edits objects of real manifests at random. It checks against the API server's audit log that the
// resource-manager then writes exactly the objects that diff predicted, with exactly the predicted result:
// `go test ./test/cli -run TestDiffPredictsWhatIsWritten -manifests PATH -v`.
func TestDiffPredictsWhatIsWritten(t *testing.T) {
	if *manifests == "" {
		t.Skip("needs real manifests: -manifests PATH")
	}
	audit := filepath.Join(t.TempDir(), "audit.log")
	cp, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true, AuditLog: audit})
	kit.Must(t, err)
	t.Cleanup(func() { _ = cp.Stop() })
	_, err = envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{Paths: []string{"../../config/crd"}, ErrorIfPathMissing: true})
	kit.Must(t, err)
	c, err := client.New(cp.Config(), client.Options{Scheme: console.Scheme()})
	kit.Must(t, err)
	w := &world{controlPlane: cp, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), client: c}
	kit.Must(t, os.WriteFile(w.kubeconfig, cp.Kubeconfig(), 0o600))
	kit.StartManager(t, cp.Kubeconfig(), nil, "")
	folder, err := filepath.Abs(*manifests)
	kit.Must(t, err)
	w.run("create", "real", "-n", "default", "-f", folder).says(t, 0, "created")
	w.run("wait", "real", "-n", "default", "--for", "applied").says(t, 0, "applied")
	w.run("suspend", "real", "-n", "default").says(t, 0, "suspended")
	kit.Eventually(t, "it is suspended", func() string {
		return w.run("wait", "real", "-n", "default", "--timeout", "1s").lacks(1, "!is suspended")
	})

	mr := &resourcesv1alpha1.ManagedResource{}
	kit.Must(t, c.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "real"}, mr))
	edited := w.editAtRandom(t, mr)
	predicted := predict(t, w, mr)
	before := lines(t, audit)
	w.run("resume", "real", "-n", "default").says(t, 0, "resumed")
	kit.Eventually(t, "diff finds no differences", func() string { return w.run("diff", "real", "-n", "default", "--brief").lacks(0) })
	written := writtenSince(t, audit, before)
	if names := slices.Sorted(keys(predicted)); !slices.Equal(names, written) {
		t.Errorf("predicted\n  %s\nwritten\n  %s\nedited\n  %s", strings.Join(names, "\n  "), strings.Join(written, "\n  "), strings.Join(edited, "\n  "))
	}
	for name, want := range predicted {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(want.GroupVersionKind())
		kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(want), live))
		if got, want := essence(live), essence(want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, but the prediction was %v", name, got, want)
		}
	}
	t.Logf("%d edits of %d objects; %d objects predicted and written", len(edited), len(mr.Status.Resources), len(written))
}

func keys(objects map[string]*unstructured.Unstructured) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range objects {
			if !yield(name) {
				return
			}
		}
	}
}

// essence returns an object without the fields that the API server sets, and without those that controllers report.
func essence(obj *unstructured.Unstructured) map[string]any {
	content := obj.DeepCopy().Object
	delete(content, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	if content["kind"] == "Deployment" {
		unstructured.RemoveNestedField(content, "metadata", "annotations", "deployment.kubernetes.io/revision")
	}
	for _, created := range []string{"clusterIP", "clusterIPs"} { // a Service that is created again gets new ones
		unstructured.RemoveNestedField(content, "spec", created)
	}
	return content
}

// predict returns the result that diff predicts for the objects that it reports as changed.
func predict(t *testing.T, w *world, mr *resourcesv1alpha1.ManagedResource) map[string]*unstructured.Unstructured {
	t.Helper()
	c := kubectl.NewConsole(genericiooptions.NewTestIOStreamsDiscard(), "v0.0.0-test")
	kit.Must(t, cli.NewCommand(c, "kubectl mr").PersistentFlags().Set("kubeconfig", w.kubeconfig))
	previewer, err := preview.NewPreviewer(c, preview.Settings{}, nil, nil)
	kit.Must(t, err)
	prospect, cluster, err := previewer.Preview(t.Context(), mr)
	kit.Must(t, err)
	predicted := map[string]*unstructured.Unstructured{}
	for _, one := range prospect.Forecasts {
		kit.Must(t, one.Err)
		copied := cluster.Copy(one.Key())
		if copied == nil || copied.After == nil {
			continue
		}
		if changed, err := preview.Compare(copied.Before, copied.After); err != nil || len(changed) > 0 {
			kit.Must(t, err)
			predicted[strings.ToLower(one.Key().String())] = copied.After
		}
	}
	return predicted
}

// editAtRandom changes, adds and deletes content of random objects like users, and returns descriptions of the edits.
func (w *world) editAtRandom(t *testing.T, mr *resourcesv1alpha1.ManagedResource) []string {
	t.Helper()
	random := rand.New(rand.NewPCG(*seed, 0))
	var done []string
	for tries := 0; len(done) < *edits && tries < 50**edits; tries++ {
		entry := mr.Status.Resources[random.IntN(len(mr.Status.Resources))]
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion(entry.APIVersion)
		obj.SetKind(entry.Kind)
		if entry.Kind == "Namespace" || w.client.Get(t.Context(), types.NamespacedName{Namespace: entry.Namespace, Name: entry.Name}, obj) != nil {
			continue
		}
		what, err := w.editOne(t.Context(), random, obj)
		if err == nil {
			done = append(done, fmt.Sprintf("%s %s %s/%s", what, entry.Kind, entry.Namespace, entry.Name))
		}
	}
	return done
}

func (w *world) editOne(ctx context.Context, random *rand.Rand, obj *unstructured.Unstructured) (string, error) {
	if random.IntN(8) == 0 && obj.GetKind() != "CustomResourceDefinition" {
		return "delete", w.client.Delete(ctx, obj)
	}
	before := obj.DeepCopy()
	var leaves []func()
	var paths []string
	for _, root := range []string{"spec", "data", "rules", "subjects"} {
		collect(random, obj.Object, root, root, &leaves, &paths)
	}
	if meta, is := obj.Object["metadata"].(map[string]any); is && obj.GetLabels() != nil {
		collect(random, meta, "labels", "metadata.labels", &leaves, &paths)
	}
	if len(leaves) == 0 {
		return "", fmt.Errorf("nothing to edit")
	}
	i := random.IntN(len(leaves))
	leaves[i]()
	return "edit " + paths[i] + " of", w.client.Patch(ctx, obj, client.MergeFrom(before), client.FieldOwner("kubectl-edit"))
}

// collect collects a change for each value in a field.
func collect(random *rand.Rand, parent map[string]any, field, path string, changes *[]func(), paths *[]string) {
	add := func(change func()) { *changes, *paths = append(*changes, change), append(*paths, path) }
	switch value := parent[field].(type) {
	case string:
		add(func() { parent[field] = value + "x" })
		add(func() { delete(parent, field) })
	case int64:
		add(func() { parent[field] = value + 1 })
	case bool:
		add(func() { parent[field] = !value })
	case map[string]any:
		names := make([]string, 0, len(value))
		for name := range value {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			collect(random, value, name, path+"."+name, changes, paths)
		}
		add(func() { value["edited-by-hand"] = "x" })
	case []any:
		for i, item := range value {
			if item, is := item.(map[string]any); is {
				holder := map[string]any{"item": item}
				collect(random, holder, "item", fmt.Sprintf("%s[%d]", path, i), changes, paths)
			}
		}
		if len(value) > 1 {
			add(func() { parent[field] = value[1:] })
		}
	}
}

// auditEntry is a line of the audit log.
type auditEntry struct {
	Stage, Verb, UserAgent, RequestURI string
	ObjectRef                          struct{ APIGroup, Resource, Namespace, Name, Subresource string }
	ResponseStatus                     struct{ Code int }
}

func lines(t *testing.T, file string) int {
	t.Helper()
	return len(entriesSince(t, file, 0))
}

func entriesSince(t *testing.T, file string, skip int) []auditEntry {
	t.Helper()
	log, err := os.Open(file)
	kit.Must(t, err)
	defer log.Close()
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 64<<20)
	var entries []auditEntry
	for scanner.Scan() {
		var entry auditEntry
		if json.Unmarshal(scanner.Bytes(), &entry) == nil {
			entries = append(entries, entry)
		}
	}
	return entries[min(skip, len(entries)):]
}

// writtenSince returns the objects that the resource-manager wrote after the first skip entries of the audit log.
func writtenSince(t *testing.T, file string, skip int) []string {
	t.Helper()
	var names []string
	for _, entry := range entriesSince(t, file, skip) {
		write := slices.Contains([]string{"create", "update", "patch", "delete"}, entry.Verb)
		of := entry.ObjectRef
		if !write || !strings.HasPrefix(entry.UserAgent, "resource-manager/") || strings.Contains(entry.RequestURI, "dryRun") || entry.ResponseStatus.Code >= 300 ||
			of.Resource == "managedresources" || of.Resource == "events" || of.Resource == "leases" || of.Subresource != "" {
			continue
		}
		name := kindOfResource(of.Resource)
		if of.APIGroup != "" {
			name += "." + of.APIGroup
		}
		name += " "
		if of.Namespace != "" {
			name += of.Namespace + "/"
		}
		names = append(names, strings.ToLower(name+of.Name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// kindOfResource returns the kind of a resource in lower case, by the naming convention of Kubernetes.
func kindOfResource(resource string) string {
	switch {
	case strings.HasSuffix(resource, "ies"):
		return strings.TrimSuffix(resource, "ies") + "y"
	case strings.HasSuffix(resource, "sses"):
		return strings.TrimSuffix(resource, "es")
	case resource == "prometheuses":
		return "prometheus"
	}
	return strings.TrimSuffix(resource, "s")
}
