// Package flow is an example of a flow, and the way to write one: docs/flows.md goes through it. It brings up sites. A site is declared in a
// ConfigMap, and consists of a network that an extension makes, of settings that need to know the network's addresses, and of an app that
// needs the settings. A site may have several apps.
package flow

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

const (
	// FlowName is the value of flow.LabelFlow on all that the flow emits.
	FlowName = "sites"
	// LabelSite marks the ConfigMaps that declare sites.
	LabelSite = "sites.example.org/site"
	// LabelContent marks ConfigMaps that users of a site have made in its namespace. They go before the site does.
	LabelContent = "sites.example.org/content"
	// TaskDrain deletes them.
	TaskDrain = "drain"
	// networkPatience is how long the extension may take.
	networkPatience = 10 * time.Minute
	// mostApps is how many apps a site can have.
	mostApps = 20
)

// Inputs are all that the flow reads.
type Inputs struct {
	// Owner is the ConfigMap that declares the site, in Class of a resource-manager.
	Owner flow.Owner
	Class string
	// Declared is its data: type and region of the network, a message for the apps, and how many of them there are (default: 1). The name of
	// an app is the key of a message for that one alone.
	Declared map[string]string
	// Version of the program, which brings the image of the apps.
	Version string
	// Deleting is set once the ConfigMap is being deleted.
	Deleting bool
	// Network is the extension object as it lives, nil if it does not, and NetworkSince when its bundle was created.
	Network      *unstructured.Unstructured
	NetworkSince time.Time
	// Emitted are the bundles of the site that exist.
	Emitted []flow.Key
	// Ledger is what was done for good.
	Ledger *flow.Ledger
	// Now is the time.
	Now time.Time
}

// Plan is the flow: a function of its inputs, and of nothing else.
func Plan(in Inputs) (flow.Plan, error) {
	if in.Deleting {
		return deletion(in), nil
	}
	network, settings := in.bundle("network"), in.bundle("settings")
	plan := flow.Plan{}

	if in.Declared["type"] == "" || in.Declared["region"] == "" {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "network-declared", Reason: "the ConfigMap has to declare type and region of the network",
			Holds: []flow.Key{network.Key, settings.Key}, Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		})
	} else {
		network.Objects = []client.Object{in.network()}
		network.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{extensionIsHealthy("Infrastructure")}
		plan.Bundles = append(plan.Bundles, network)

		// The settings are computed from the network's status: that is a wait with a hold, and no dependency.
		if why := flow.NotFresh(in.network(), in.Network); why != "" {
			wait := flow.Wait{Name: "network-ready", Reason: why, Holds: []flow.Key{settings.Key}, Code: corev1beta1.ErrorRetryableInfraDependencies}
			if !in.NetworkSince.IsZero() {
				wait.Deadline = in.NetworkSince.Add(networkPatience)
			}
			plan.Waits = append(plan.Waits, wait)
		} else {
			settings.Objects = []client.Object{in.configMap("settings", "nodes", in.nodes())}
			plan.Bundles = append(plan.Bundles, settings)
		}
	}

	in.addApps(&plan, settings.Key)
	var err error
	plan.Inputs, err = flow.InputsDigest(in.Declared, in.nodes())
	return plan, err
}

// addApps adds the apps to a plan. They do not need the network's data, only that the settings are applied.
func (in Inputs) addApps(plan *flow.Plan, settings flow.Key) {
	count, err := strconv.Atoi(cmp.Or(in.Declared["apps"], "1"))
	if err != nil || count < 0 || count > mostApps {
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "apps-declared", Reason: fmt.Sprintf("the ConfigMap has to declare a number of apps from 0 to %d", mostApps),
			Holds: in.emittedApps(), Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		})
		return
	}
	wanted := map[flow.Key]bool{}
	for i := range count {
		app := in.bundle(appName(i))
		object := in.configMap(appName(i), "message", cmp.Or(in.Declared[appName(i)], in.Declared["message"]))
		object.Data["image"] = "registry.example.org/app:" + cmp.Or(in.Version, "dev")
		app.Objects = []client.Object{object}
		app.Spec.DependsOn = []resourcesv1alpha1.Dependency{flow.On(settings)}
		plan.Bundles = append(plan.Bundles, app)
		wanted[app.Key] = true
	}
	for _, key := range in.emittedApps() {
		if !wanted[key] {
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key})
		}
	}
}

// emittedApps returns the apps that exist.
func (in Inputs) emittedApps() []flow.Key {
	var apps []flow.Key
	for _, key := range in.Emitted {
		if key != in.bundle("network").Key && key != in.bundle("settings").Key {
			apps = append(apps, key)
		}
	}
	return apps
}

// appName returns the name of an app, by its number from 0.
func appName(number int) string {
	if number == 0 {
		return "app"
	}
	return fmt.Sprintf("app-%d", number+1)
}

// deletion is the plan for a site that is being deleted: its users' content goes first, then the apps and the settings, and then the network,
// whose object has to confirm that.
func deletion(in Inputs) flow.Plan {
	network, settings := in.bundle("network"), in.bundle("settings")
	plan := flow.Plan{Deleting: true}
	for _, app := range in.emittedApps() {
		plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: app})
	}
	plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: settings.Key}, flow.Tombstone{Key: network.Key, Confirm: true})
	due := flow.Due(in.Ledger, flow.Task{Name: TaskDrain, Value: string(in.Owner.UID)})
	if len(due) == 0 {
		return plan
	}
	wait := flow.Wait{Name: "drained", Reason: "the content of the site has to go first"}
	for _, tombstone := range plan.Tombstones {
		wait.Holds = append(wait.Holds, tombstone.Key)
	}
	return flow.Plan{Deleting: true, Tasks: due, Waits: []flow.Wait{wait}}
}

// bundle returns an empty bundle of the site.
func (in Inputs) bundle(name string) flow.Bundle {
	b := flow.Bundle{Key: flow.Key{Namespace: in.Owner.Namespace, Name: in.Owner.Name + "-" + name}}
	if in.Class != "" {
		b.Spec.Class = &in.Class
	}
	if name == "network" {
		// By default a bundle goes after those that depend on it. The settings do so by their data only.
		b.DeleteAfter = []flow.Key{in.bundle("settings").Key}
	}
	return b
}

func (in Inputs) configMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Owner.Namespace, Name: in.Owner.Name + "-" + name}, Data: map[string]string{key: value},
	}
}

// network returns the extension object that the site needs.
func (in Inputs) network() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"type": in.Declared["type"], "region": in.Declared["region"],
		"providerConfig": map[string]any{"zones": in.Declared["zones"]},
		"secretRef":      map[string]any{"namespace": in.Owner.Namespace, "name": "cloudprovider"},
	}}}
	u.SetGroupVersionKind(NetworkKind)
	u.SetNamespace(in.Owner.Namespace)
	u.SetName(in.Owner.Name)
	// The watch of extension objects leads back to the site by this.
	u.SetAnnotations(map[string]string{flow.AnnotationOwner: in.Owner.String()})
	return u
}

// nodes returns the addresses of the network, as its extension has reported them.
func (in Inputs) nodes() string {
	if in.Network == nil {
		return ""
	}
	nodes, _, _ := unstructured.NestedStringSlice(in.Network.Object, "status", "egressCIDRs")
	return strings.Join(nodes, ",")
}

// extensionIsHealthy is the check of an extension object.
func extensionIsHealthy(kind string) resourcesv1alpha1.HealthCheck {
	return resourcesv1alpha1.HealthCheck{
		Group: NetworkKind.Group, Kind: kind,
		Healthy: "has(status.lastOperation) && status.lastOperation.state == 'Succeeded' && status.observedGeneration == metadata.generation",
		Progressing: "!has(status.lastOperation) || status.lastOperation.state in ['Pending', 'Processing'] || " +
			"status.observedGeneration != metadata.generation",
		Failed:  "has(status.lastError)",
		Message: "has(status.lastError) ? status.lastError.description : 'the extension has not finished'",
	}
}
