package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/test/kit"
)

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: $NS}
data: {colour: blue}
`

func TestGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.await(t, "garden", "webshop-sale", state.Unhealthy)
	w.run("get", "-n", "garden").says(t, 0, "NAME STATE SINCE OBJECTS AGE MESSAGE", "webshop-app Ready", "webshop-base Ready", "webshop-sale Unhealthy")
	w.run("get", "-A", "--unhealthy").says(t, 0, "NAMESPACE NAME", "garden webshop-sale", `Deployment "webshop/sale" is unhealthy`)
	if out := w.run("get", "-n", "garden", "--unhealthy").out; strings.Contains(out, "webshop-app") {
		t.Errorf("--unhealthy shows healthy ManagedResources:\n%s", out)
	}
	w.run("get", "-n", "garden", "-o", "wide").says(t, 0, "CLASS", "APPLIED HEALTHY PROGRESSING DEPENDS ON SECRETS MESSAGE", "resources")
	w.run("get", "-n", "garden", "-o", "name").says(t, 0, "managedresource.resources.gardener.cloud/webshop-app\n")
	w.run("get", "-A", "-o", "name").says(t, 0, "garden/webshop-app\n")
	w.run("tree", "garden/webshop-app").says(t, 0, "ManagedResource garden/webshop-app")
	w.run("get", "-n", "garden", "--class", "seed").says(t, 0, "!No ManagedResources found in namespace garden")
	w.run("get", "-n", "kube-public").says(t, 0, "!Use -A to list all namespaces")
	w.run("get", "webshop-app", "webshop-base", "-n", "garden", "--no-headers").says(t, 0, "webshop-app", "webshop-base")
	w.run("get", "garden/webshop-app", "mr/webshop-app", "-n", "garden").says(t, 0, "webshop-app Ready")

	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(t, json.Unmarshal([]byte(w.run("get", "-n", "garden", "-o", "json").out), &list))
	list.Items = slices.DeleteFunc(list.Items, func(mr resourcesv1alpha1.ManagedResource) bool {
		return !strings.HasPrefix(mr.Name, "webshop-") // those of other tests
	})
	if len(list.Items) != 3 || list.Items[0].ManagedFields != nil {
		t.Errorf("-o json lists %d, want 3 without managed fields", len(list.Items))
	}
	var one resourcesv1alpha1.ManagedResource
	kit.Must(t, yaml.UnmarshalStrict([]byte(w.run("get", "webshop-app", "-n", "garden", "-o", "yaml").out), &one))
	if one.Name != "webshop-app" || one.Kind != "ManagedResource" {
		t.Errorf("-o yaml of one shows %s %s", one.Kind, one.Name)
	}
	if out := w.run("get", "webshop-app", "-n", "garden", "-o", "jsonpath={.metadata.name}").out; out != "webshop-app" {
		t.Errorf("-o jsonpath shows %q", out)
	}
}

func TestGetCostsOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var requests kit.Requests
	w.runCall(call{args: []string{"get", "-A"}, wrap: func(config *rest.Config) *rest.Config {
		config.Wrap(requests.Wrap)
		return config
	}}).says(t, 0, "webshop-app")
	if sent := requests.All(); len(sent) != 1 {
		t.Errorf("%d requests: %v", len(sent), sent)
	}
}

func TestGetFollowsChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "shop", state.Ready, configMap)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan outcome, 1)
	go func() {
		done <- w.runCall(call{ctx: ctx, args: []string{"wait", "shop", "-n", namespace, "--for", "deleted"}})
	}()
	followed := make(chan outcome, 1)
	following, stop := context.WithCancel(t.Context())
	go func() { followed <- w.runCall(call{ctx: following, args: []string{"get", "-n", namespace, "-w"}}) }()
	w.run("suspend", "shop", "-n", namespace).says(t, 0, "suspended")
	w.await(t, namespace, "shop", state.Suspended)
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = namespace, "shop"
	kit.Must(t, w.client.Delete(t.Context(), mr))
	(<-done).says(t, 0, "deleted")
	kit.Eventually(t, "the ManagedResource no longer exists", func() string {
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); err == nil {
			return "it still exists"
		}
		return ""
	})
	stop()
	(<-followed).says(t, 0)
}

func TestTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.await(t, "garden", "webshop-app", state.Ready)
	w.eventually(t, 0, []string{
		"ManagedResource garden/webshop-app Ready", "├─ Deployment webshop/storefront Healthy", "2/2 ready", "│ └─ ReplicaSet storefront-",
		"├─ Pod storefront-", "Running on node-", "Coupon webshop/welcome Healthy", "EndpointSlice storefront-", "2 endpoints",
	}, "tree", "webshop-app", "-n", "garden")
	w.eventually(t, 0, []string{"Pod sale-", "Unschedulable: 0/3 nodes are available"}, "tree", "-A", "--unhealthy")
	if text := w.run("tree", "-A", "--unhealthy").out; strings.Contains(text, "webshop-base") {
		t.Errorf("--unhealthy shows healthy objects:\n%s", text)
	}
	var reports []struct {
		Name    string
		Objects []struct{ Kind, Health string }
	}
	kit.Must(t, json.Unmarshal([]byte(w.run("tree", "webshop-base", "-n", "garden", "-o", "json").out), &reports))
	if len(reports) != 1 || len(reports[0].Objects) != 5 {
		t.Errorf("-o json shows %+v, want 5 objects", reports)
	}
	w.run("tree", "webshop-base", "-n", "garden", "-o", "name").says(t, 0, "configmap/storefront -n webshop", "namespace/webshop\n")
}

func TestTreeShowsWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliverSuspended(t, namespace, "shop", configMap)
	kit.Must(t, w.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: named(namespace, "settings")}))
	w.run("tree", "shop", "-n", namespace).says(t, 0, "ConfigMap "+namespace+"/settings Missing it does not exist",
		"!None of the 1 objects of the inventories exists in the cluster", "!--target-kubeconfig")
}

// TestWhy leads from "something is red" to the object, its reason and its Events in one command.
func TestWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.await(t, "garden", "webshop-sale", state.Unhealthy)
	w.eventually(t, 0, []string{
		"ManagedResource garden/webshop-sale is Unhealthy (for",
		"Deployment webshop/sale is Unhealthy (for",
		`condition "Available" has invalid status False`,
		"Available False",
		"Owned objects", "Pod sale-", "Unschedulable: 0/3 nodes are available",
		"FailedScheduling",
		"ResourcesHealthy is False (",
	}, "why", "-n", "garden")
	if text := w.run("why", "-n", "garden").out; strings.Contains(text, "webshop-app") {
		t.Errorf("the output contains a healthy ManagedResource:\n%s", text)
	}
	well := w.run("why", "webshop-base", "-n", "garden")
	well.says(t, 0, "ManagedResource garden/webshop-base is Ready (for", "ResourcesApplied is True")
	if strings.Contains(well.out, "another field manager") {
		t.Errorf("unchanged objects are reported as changed:\n%s", well.out)
	}
	w.run("why", "-n", "kube-public").says(t, 0, "!No ManagedResources found")
	var findings []struct {
		Name    string
		Objects []struct {
			Kind  string
			Below []struct{ Kind, Why string }
		}
	}
	kit.Must(t, yaml.Unmarshal([]byte(w.run("why", "webshop-sale", "-n", "garden", "-o", "yaml").out), &findings))
	if len(findings) != 1 || len(findings[0].Objects) != 1 || len(findings[0].Objects[0].Below) == 0 {
		t.Errorf("-o yaml shows %+v", findings)
	}
}

func TestWhyOfWhatCannotBeApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliver(t, namespace, "bad", state.Failed, strings.Replace(configMap, "name: settings", "name: Settings", 1))
	w.run("why", "-n", namespace).says(t, 0, "ManagedResource "+namespace+"/bad is Failed", "ConfigMap "+namespace+"/Settings is Missing", "ResourcesApplied is False", "Invalid value")
	w.runCall(call{args: []string{"create", "after", "-n", namespace, "--depends-on", "bad", "-f", "-"}, in: strings.ReplaceAll(configMap, "$NS", namespace)}).says(t, 0)
	w.await(t, namespace, "after", state.Waiting)
	w.run("why", "after", "-n", namespace).says(t, 0, "ManagedResource "+namespace+"/after is Waiting", "ManagedResource "+namespace+"/bad is Failed")
}

func TestWhy_NamesWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.deliverSuspended(t, namespace, "shop", configMap)
	w.edit(t, namespace, "settings", "red")
	w.run("why", "shop", "-n", namespace).says(t, 0, "is Suspended", "ConfigMap "+namespace+"/settings was changed by another field manager",
		`The field manager "kubectl-edit" changed it`, "data.colour", "kubectl mr resume")
}

func TestPendingWithoutResourceManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	w.runCall(call{args: []string{"create", "shop", "-n", namespace, "--class", "nobody", "-f", "-"}, in: configMap}).says(t, 0)
	w.run("get", "-n", namespace).says(t, 0, "shop nobody Pending", "No resource-manager has processed it yet.")
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.eventually(t, 0, []string{"LAST TYPE REASON OBJECT MESSAGE", "Warning FailedScheduling Pod sale-", "Normal ScalingReplicaSet Deployment sale"},
		"events", "webshop-sale", "-n", "garden")
	if text := w.run("events", "webshop-sale", "-n", "garden", "--warnings").out; strings.Contains(text, "Normal") {
		t.Errorf("--warnings shows other Events:\n%s", text)
	}
	w.run("events", "webshop-sale", "-n", "garden", "-o", "json").says(t, 0, `"reason": "FailedScheduling"`)
}

func TestOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run("owner", "deployment/storefront", "-n", "webshop").says(t, 0, "Deployment webshop/storefront belongs to ManagedResource garden/webshop-app (Ready)")
	w.run("owner", "deploy", "storefront", "-n", "webshop", "-o", "name").says(t, 0, "garden/webshop-app\n")
	w.run("owner", "ns/webshop").says(t, 0, "Namespace webshop belongs to ManagedResource garden/webshop-base")
	w.run("owner", "coupon/welcome", "-n", "webshop").says(t, 0, "garden/webshop-app")
	pods := &corev1.PodList{}
	kit.Must(t, w.client.List(t.Context(), pods, client.InNamespace("webshop"), client.MatchingLabels{"app": "storefront"}))
	w.run("owner", "pod/"+pods.Items[0].Name, "-n", "webshop").says(t, 0, "garden/webshop-app", "through ReplicaSet webshop/storefront-", "and Deployment webshop/storefront")
	w.run("owner", "ns/kube-system").says(t, 1, "!Namespace kube-system does not belong to a ManagedResource")
	w.run("owner", "ns/nothing").says(t, 2, "!Namespace nothing does not exist")
	w.run("owner", "thing/x").says(t, 2, `!has no kind "thing"`)
	w.run("owner", "thing").says(t, 2, "!KIND/NAME")
}
