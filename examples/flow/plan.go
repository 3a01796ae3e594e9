// Package flow is an example of a flow, and the way to write one: docs/flows.md goes through it. It brings up sites. A site is declared in a
// ConfigMap, and consists of a network that an extension makes, of settings that need to know the network's addresses, and of an app that
// needs the settings.
package flow

import (
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
)

// Inputs are all that the flow reads.
type Inputs struct {
	// Owner is the ConfigMap that declares the site, in Class of a resource-manager.
	Owner flow.Owner
	Class string
	// Declared is its data: type and region of the network, and a message for the app.
	Declared map[string]string
	// Deleting is set once the ConfigMap is being deleted.
	Deleting bool
	// Network is the extension object as it lives, nil if it does not, and NetworkSince when its bundle was created.
	Network      *unstructured.Unstructured
	NetworkSince time.Time
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
	network, settings, app := in.bundle("network"), in.bundle("settings"), in.bundle("app")
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

	// The app does not need the network's data, only that the settings are applied.
	app.Objects = []client.Object{in.configMap("app", "message", in.Declared["message"])}
	app.Spec.DependsOn = []resourcesv1alpha1.Dependency{flow.On(settings.Key)}
	plan.Bundles = append(plan.Bundles, app)

	var err error
	plan.Inputs, err = flow.InputsDigest(in.Declared, in.nodes())
	return plan, err
}

// deletion is the plan for a site that is being deleted: its users' content goes first, then the app and the settings, and then the network,
// whose object has to confirm that.
func deletion(in Inputs) flow.Plan {
	network, settings, app := in.bundle("network"), in.bundle("settings"), in.bundle("app")
	if due := flow.Due(in.Ledger, flow.Task{Name: TaskDrain, Value: string(in.Owner.UID)}); len(due) > 0 {
		return flow.Plan{Tasks: due, Deleting: true, Waits: []flow.Wait{{
			Name: "drained", Reason: "the content of the site has to go first", Holds: []flow.Key{network.Key, settings.Key, app.Key},
		}}}
	}
	return flow.Plan{Deleting: true, Tombstones: []flow.Tombstone{{Key: app.Key}, {Key: settings.Key}, {Key: network.Key, Confirm: true}}}
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
