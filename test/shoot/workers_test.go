package shoot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/nodeagent"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/pkg/provider/local/controllers"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
)

// providerLocal registers provider-local in the garden, and runs its controllers in the seed. Machines are simulated Nodes.
func (w *world) providerLocal() {
	w.Helper()
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{
		Name: local.Name, Annotations: map[string]string{constants.AnnotationMachinesWithoutManager: "true"},
	}}
	for _, kind := range []string{"ControlPlane", "Infrastructure", "Network", "OperatingSystemConfig", "Worker"} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: local.Type})
	}
	kit.Must(w, w.garden.Create(w.Context(), registration))
	w.Cleanup(func() { kit.Must(w, w.garden.Delete(context.WithoutCancel(w.Context()), registration)) })
	fleet.SetImages(w.T, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "resource-manager", "kubelet", "gardener-node-agent", "pause")

	options := kit.ManagerOptions(w.scheme)
	options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Service{}, &corev1.ConfigMap{}}}
	mgr, err := manager.New(w.seeds.Config(), options)
	kit.Must(w, err)
	vector, err := images.Load("")
	kit.Must(w, err)
	kit.Must(w, controllers.AddToManager(w.Context(), mgr, controllers.Options{
		Settings: local.Settings{
			Machines: local.Machines{Simulated: true, Namespace: constants.GardenNamespace}, DNSZones: []string{"local.gardener.cloud"},
			DNSConfigMap: client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "zones"},
		},
		Version: "v1", Clock: clock.RealClock{}, Images: vector, Disabled: []string{"backupbucket", "backupentry", "bastion", "dnsrecord", "extension"},
		Common: extension.Options{Classes: []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot}},
	}))
	kit.Run(w, mgr)
}

// TestShootWithWorkers creates, changes and deletes a Shoot with a worker pool on an infrastructure with simulated machines.
func TestShootWithWorkers(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	w.providerLocal()
	profile := &corev1beta1.CloudProfile{}
	kit.Must(t, w.garden.Get(t.Context(), client.ObjectKey{Name: "local"}, profile))
	before := profile.DeepCopy()
	kit.Change(t, w.garden, profile, func() {
		profile.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig",` +
			`"machineImages":[{"name":"local","versions":[{"version":"1.0.0","image":"machine:1.0.0"}]}]}`)}
	})
	t.Cleanup(func() { // other tests use the same garden
		ctx := context.WithoutCancel(t.Context())
		kit.Must(t, w.garden.Get(ctx, client.ObjectKeyFromObject(profile), profile))
		profile.Spec.ProviderConfig = before.Spec.ProviderConfig
		kit.Must(t, w.garden.Update(ctx, profile))
	})
	// The garden is that of other tests, and of a repetition of this one.
	kit.Must(t, client.IgnoreAlreadyExists(w.garden.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud"}, Data: map[string][]byte{"token": []byte("a")},
	})))
	kit.Must(t, client.IgnoreAlreadyExists(w.garden.Create(t.Context(), &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud"}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "cloud"},
	})))
	toGarden, toSeed, stop := w.gardenlet()
	w.declare(func(shoot *corev1beta1.Shoot) {
		shoot.Spec.CredentialsBindingName = ptr.To("cloud")
		shoot.Spec.Networking = &corev1beta1.Networking{Type: ptr.To("local"), Pods: ptr.To("100.96.0.0/16"), Nodes: ptr.To("10.1.0.0/16")}
		shoot.Spec.Provider.Workers = []corev1beta1.Worker{{
			Name: "small", Minimum: 2, Maximum: 2, MaxSurge: ptr.To(intstr.FromInt32(1)),
			Machine: corev1beta1.Machine{Type: "local", Image: &corev1beta1.ShootMachineImage{Name: "local", Version: ptr.To("1.0.0")}},
		}}
	})
	w.serverArgs = map[string]string{"egress-selector-config-file": w.egress()}
	w.startServer()
	w.startManager()
	w.startControllers()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	for _, object := range []client.Object{
		&extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.ControlPlane{}, &extensionsv1alpha1.Network{}, &extensionsv1alpha1.Worker{},
	} {
		kit.Must(t, w.seed.Get(t.Context(), client.ObjectKey{Namespace: technical, Name: shootName}, object))
	}
	w.machines(2)
	if secret := w.secret("cloudprovider", "token"); string(secret.Data["token"]) != "a" {
		t.Error("the control plane does not have the credentials")
	}
	old := w.configurationOfNodes()
	w.nodesJoin()
	quiet(t, toGarden, toSeed)
	status := w.get().Status
	toGarden.Forget()
	toSeed.Forget()
	quiet(t, toGarden, toSeed)
	if rest := slices.Concat(toGarden.All(), toSeed.All()); len(rest) > 0 {
		t.Errorf("requests at rest: %v", rest)
	}
	stop()
	toGarden, toSeed, stop = w.gardenlet()
	kit.EventuallyTrue(t, "the Shoot is watched", func() bool { return toSeed.Watched("/managedresources") && toGarden.Watched("/shoots") })
	quiet(t, toGarden, toSeed)
	if sent := slices.Concat(writes(toGarden), writes(toSeed)); len(sent) > 0 && !w.onlyToldAboutTunnel(sent, status) {
		t.Errorf("a restart wrote %v", sent)
	}

	// A setting of kubelet changes the configuration of nodes, and another one replaces them.
	w.change(func(shoot *corev1beta1.Shoot) {
		shoot.Spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{MaxPods: ptr.To[int32](50)}
	})
	w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
	kit.EventuallyTrue(t, "nodes get the setting of kubelet", func() bool {
		return strings.Contains(w.configurationOfNodes()[slices.Sorted(maps.Keys(old))[0]], "maxPods: 50")
	})
	w.change(func(shoot *corev1beta1.Shoot) { shoot.Spec.Kubernetes.Kubelet.CPUManagerPolicy = ptr.To("static") })
	w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")
	kit.EventuallyTrue(t, "the configuration of replaced nodes is removed", func() bool {
		now := slices.Collect(maps.Keys(w.configurationOfNodes()))
		return len(now) == 1 && old[now[0]] == ""
	})
	w.machines(2)

	w.deletion()
	w.machines(0)
	stop()
}

// machines waits for a number of machines.
func (w *world) machines(want int) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("there are %d machines", want), func() string {
		var nodes corev1.NodeList
		kit.Must(w, w.seed.List(w.Context(), &nodes, client.MatchingLabels{local.LabelProvider: local.Type}))
		if len(nodes.Items) != want {
			return fmt.Sprintf("there are %d", len(nodes.Items))
		}
		return ""
	})
}

// configurationOfNodes returns what node agents find in the shoot, by the names of Secrets.
func (w *world) configurationOfNodes() map[string]string {
	w.Helper()
	var secrets corev1.SecretList
	selector := client.MatchingLabels{constants.LabelGardenRole: nodeagent.RoleConfig}
	kit.Must(w, w.admin().List(w.Context(), &secrets, client.InNamespace(metav1.NamespaceSystem), selector))
	configs := map[string]string{}
	for _, secret := range secrets.Items {
		configs[secret.Name] = string(secret.Data[nodeagent.DataKey])
	}
	if len(configs) == 0 {
		w.Error("node agents find no configuration")
	}
	return configs
}

// onlyToldAboutTunnel reports whether all writes are of the Shoot's status, and have changed only the condition of system components. No tunnel
// runs here, and the error of the API that is asked for through it can differ from one attempt to the next.
func (w *world) onlyToldAboutTunnel(sent []string, before corev1beta1.ShootStatus) bool {
	w.Helper()
	for _, request := range sent {
		if !strings.HasPrefix(request, "PATCH ") || !strings.HasSuffix(request, "/shoots/"+shootName+"/status") {
			return false
		}
	}
	rest := func(status corev1beta1.ShootStatus) corev1beta1.ShootStatus {
		status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(condition corev1beta1.Condition) bool {
			return condition.Type == corev1beta1.ShootSystemComponentsHealthy
		})
		return status
	}
	return equality.Semantic.DeepEqual(rest(before), rest(w.get().Status))
}
