package seed

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	kubectlmr "github.com/trellis-k8s/trellis/cmd/kubectl-mr/app"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestRenderedSeedIsApplied deletes everything that gardenlet has emitted into a seed. Then it applies the output of
// kubectl mr render for the Seed to a cluster with a resource-manager. The cluster must have the same objects.
// Generated and observed inputs are passed to render: the certificates, the Seed with its status, the addresses of
// the API server, and the objects that spec.resources names. The certificates are applied, too.
func TestRenderedSeedIsApplied(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.seeds.Kubeconfig(), nil, "controllers: {resourceClass: seed}")
	const name = "rendered"
	w.declare(name)
	installation := w.install(name)
	w.extensions()
	toGarden, toSeed, stop := w.gardenlet(name)
	w.eventually(name, corev1beta1.LastOperationStateSucceeded, "", corev1beta1.ConditionTrue)
	quiet(t, toGarden, toSeed)
	emitted := w.contents()
	w.write("seed.yaml", "garden", "get seed "+name+" --output yaml")
	w.write("filter.yaml", "garden", "get configmap filter --namespace garden --output yaml")
	w.write("secrets.yaml", "seed", "get secrets --namespace garden --selector manager-identity=gardenlet --output yaml")
	w.write("endpoints.yaml", "seed", "get endpointslices --namespace default --output yaml")
	const files = " -f $DIR/seed.yaml -f $DIR/filter.yaml -f $DIR/secrets.yaml -f $DIR/endpoints.yaml --flow-class seed --flow-version v1"
	t.Logf("kubectl mr get:\n%s", w.shell("seed", "kubectl-mr get --namespace garden"))
	if says := w.shell("seed", "kubectl-mr diff --render --namespace garden"+files); strings.Contains(says, "would") || strings.Contains(says, "deleted") {
		t.Errorf("diff --render of the unchanged state prints\n%s", says)
	}
	without := strings.NewReplacer("/seed.yaml", "/without.yaml").Replace("kubectl-mr diff --render --namespace garden" + files + " || true")
	w.shell("seed", `sed '/verticalPodAutoscaler:/,/enabled/ s/enabled: true/enabled: false/' $DIR/seed.yaml > $DIR/without.yaml`)
	if says := w.shell("seed", without); !strings.Contains(says, "ManagedResource garden/vpa: is deleted") {
		t.Errorf("diff --render without the Vertical Pod Autoscaler prints\n%s", says)
	}
	w.shell("seed", "kubectl-mr render"+files+" > $DIR/rendered.yaml")
	w.deleteSeed(name)
	kit.Must(t, w.garden.Delete(t.Context(), installation))
	w.eventuallySeedGone(name)
	stop()

	w.shell("seed", `kubectl apply -f $DIR/secrets.yaml && kubectl apply --server-side -f $DIR/rendered.yaml`)
	kit.EventuallyWithin(t, 2*kit.WaitTimeout, "everything is applied, healthy and rolled out", func() string {
		says := w.shell("seed", "kubectl get managedresources --namespace garden --output json")
		list := &unstructured.UnstructuredList{}
		kit.Must(t, json.Unmarshal([]byte(says), list))
		for _, item := range list.Items {
			if why := notRolledOut(&item); why != "" {
				return item.GetName() + " " + why + "\n" + w.bundles()
			}
		}
		return ""
	})
	again := w.contents()
	for _, key := range sorted(names(emitted, again)) {
		switch got, want := again[key], emitted[key]; {
		case got == nil:
			t.Errorf("%s is not applied", key)
		case want == nil:
			t.Errorf("%s did not exist when gardenlet had emitted everything", key)
		case !reflect.DeepEqual(got, want):
			for _, field := range slices.Sorted(maps.Keys(want)) {
				if field != "data" && !reflect.DeepEqual(got[field], want[field]) {
					t.Errorf("%s has %s\n%v\nwant\n%v", key, field, got[field], want[field])
				}
			}
			t.Errorf("%s is not the same", key)
		}
	}
	t.Logf("%d objects are the same", len(again))
}

func names(all ...map[string]map[string]any) map[string]bool {
	names := map[string]bool{}
	for _, one := range all {
		for name := range one {
			names[name] = true
		}
	}
	return names
}

// notRolledOut names a condition of a ManagedResource that is not met.
func notRolledOut(mr *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(mr.Object, "status", "conditions")
	found := map[string]string{}
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		kind, _ := condition["type"].(string)
		found[kind], _ = condition["status"].(string)
	}
	for kind, want := range map[string]string{"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"} {
		if found[kind] != want {
			return kind + " is " + found[kind]
		}
	}
	return ""
}

// ignored are kinds whose objects controllers create and delete.
var ignored = []string{"Event", "Lease", "EndpointSlice", "Endpoints", "Pod", "ReplicaSet", "ComponentStatus", "ControllerRevision", "IPAddress"}

// contents returns all objects of the seed, without the fields that API servers and controllers add.
func (w *world) contents() map[string]map[string]any {
	w.Helper()
	asked, err := discovery.NewDiscoveryClientForConfig(w.seeds.Config())
	kit.Must(w, err)
	resources, err := asked.ServerPreferredResources()
	kit.Must(w, err)
	found := map[string]map[string]any{}
	for _, of := range resources {
		group, err := schema.ParseGroupVersion(of.GroupVersion)
		kit.Must(w, err)
		for _, resource := range of.APIResources {
			if !slices.Contains(resource.Verbs, "list") || strings.Contains(resource.Name, "/") || slices.Contains(ignored, resource.Kind) {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(group.WithKind(resource.Kind + "List"))
			err := w.seed.List(w.Context(), list)
			if apierrors.IsNotFound(err) {
				continue
			}
			kit.Must(w, err)
			for i := range list.Items {
				if strings.HasPrefix(list.Items[i].GetName(), "made-") {
					continue // written by the fake extensions
				}
				found[resource.Kind+" "+list.Items[i].GetNamespace()+"/"+list.Items[i].GetName()] = content(&list.Items[i])
			}
		}
	}
	return found
}

// content returns the declared fields of an object.
func content(object *unstructured.Unstructured) map[string]any {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	for _, key := range []string{"deployment.kubernetes.io/revision", "gardener.cloud/timestamp", "kubectl.kubernetes.io/last-applied-configuration"} {
		delete(annotations, key)
	}
	rest := map[string]any{}
	for key, value := range object.Object {
		if key != "metadata" && key != "status" {
			rest[key] = value
		}
	}
	copied := (&unstructured.Unstructured{Object: rest}).DeepCopy().Object
	for _, path := range [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "conversion", "webhook", "clientConfig", "caBundle"}} {
		unstructured.RemoveNestedField(copied, path...)
	}
	for key, values := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(values) > 0 {
			copied[key] = values
		}
	}
	return copied
}

// write runs kubectl and writes its output to a file.
func (w *world) write(file, cluster, command string) {
	w.Helper()
	w.shell(cluster, "kubectl "+command+" > $DIR/"+file)
}

// shell runs a command with kubectl and kubectl-mr, in the garden or in the seed. DIR is a directory that all
// commands of a test share.
func (w *world) shell(cluster, command string) string {
	w.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(w, err)
	if w.dir == "" {
		w.dir = w.TempDir()
		w.commands = filepath.Dir(build[kubectlmr.Program](w.T))
		kit.Must(w, os.WriteFile(filepath.Join(w.dir, "seed.kubeconfig"), w.seeds.Kubeconfig(), 0o600))
		kit.Must(w, os.WriteFile(filepath.Join(w.dir, "garden.kubeconfig"), w.gardens.Kubeconfig(), 0o600))
	}
	shell := exec.CommandContext(w.Context(), "sh", "-c", command)
	shell.Env = append(os.Environ(), "DIR="+w.dir, "KUBECONFIG="+filepath.Join(w.dir, cluster+".kubeconfig"),
		"PATH="+w.commands+":"+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	var out, problems bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &problems
	if err := shell.Run(); err != nil {
		w.Fatalf("%s: %v\n%s", command, err, problems.String())
	}
	return out.String()
}
