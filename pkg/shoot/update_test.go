package shoot

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
)

// runs returns a change that sets the version of Kubernetes of a Shoot, with the images of that version.
func runs(version string) func(*Inputs) {
	return func(in *Inputs) {
		in.Shoot.Spec.Kubernetes.Version = version
		vector := images.Vector{}
		for _, source := range in.Images {
			if source.Name != "resource-manager" {
				source.Tag = nil // the tag of the version is used
			}
			vector = append(vector, source)
		}
		in.Images = vector
	}
}

// updates are changes of an existing Shoot.
var updates = []struct {
	name          string
	before, after func(*Inputs)
	// changed are the bundles that change.
	changed []string
}{
	{"update-1-patch", runs("1.37.0"), runs("1.37.1"), []string{bundleNamespace, bundleAPIServer, bundleControllerManager, bundleSystem}},
	{"update-2-minor", runs("1.36.1"), runs("1.37.1"), []string{bundleNamespace, bundleAPIServer, bundleControllerManager, bundleSystem}},
	{"update-3-node", func(*Inputs) {}, available(corev1beta1.FailureToleranceTypeNode), []string{bundleNamespace, bundleEtcdMain, bundleEtcdEvents, bundleAPIServer, bundleAPIServerAutoscaler, bundleResourceManager, bundleControllerManager}},
	{"update-4-zone", func(*Inputs) {}, available(corev1beta1.FailureToleranceTypeZone), []string{bundleNamespace, bundleEtcdMain, bundleEtcdEvents, bundleAPIServer, bundleAPIServerAutoscaler, bundleResourceManager, bundleControllerManager}},
	{
		"update-5-node-to-zone", available(corev1beta1.FailureToleranceTypeNode), available(corev1beta1.FailureToleranceTypeZone),
		[]string{bundleNamespace, bundleAPIServer, bundleAPIServerAutoscaler, bundleResourceManager, bundleControllerManager},
	},
}

// TestUpdates compares the differences between the plans before and after an update with files, line by line. Only the bundles
// that the update concerns may change.
func TestUpdates(t *testing.T) {
	for _, update := range updates {
		t.Run(update.name, func(t *testing.T) {
			before, after := up(t, update.before, placed), up(t, update.before, placed, update.after)
			placed(&after)
			text, changed := changes(t, planOf(t, before), planOf(t, after))
			compare(t, update.name, text)
			var want []string
			for _, name := range update.changed {
				want = append(want, after.key(name).String())
			}
			if !slices.Equal(changed, want) {
				t.Errorf("the bundles %v change, want %v", changed, want)
			}
		})
	}
}

// changes returns the lines of manifests that differ in two plans, and the changed bundles. It omits lines of the Cluster,
// which contains the whole Shoot.
func changes(t *testing.T, before, after flow.Plan) (text string, changed []string) {
	t.Helper()
	var all strings.Builder
	was := map[flow.Key]map[string]string{}
	for _, bundle := range before.Bundles {
		was[bundle.Key] = manifests(t, bundle)
	}
	for _, bundle := range after.Bundles {
		is := manifests(t, bundle)
		var lines strings.Builder
		for _, name := range sortedNames(was[bundle.Key], is) {
			old, now := was[bundle.Key][name], is[name]
			switch {
			case old == now:
			case old == "":
				fmt.Fprintf(&lines, "  + %s\n", name)
			case now == "":
				fmt.Fprintf(&lines, "  - %s\n", name)
			default:
				fmt.Fprintf(&lines, "  ~ %s\n", name)
				if !strings.HasPrefix(name, "Cluster ") {
					writeLines(&lines, old, now)
				}
			}
		}
		if lines.Len() == 0 {
			continue
		}
		changed = append(changed, bundle.Key.String())
		fmt.Fprintf(&all, "bundle %s", bundle.Key)
		for _, need := range bundle.Spec.DependsOn {
			fmt.Fprintf(&all, " [after %s %s]", need.Name, need.Until)
		}
		all.WriteString("\n" + lines.String())
	}
	return all.String(), changed
}

// manifests returns the objects of a bundle by kind and name, as YAML.
func manifests(t *testing.T, bundle flow.Bundle) map[string]string {
	t.Helper()
	scheme, found := newScheme(t), map[string]string{}
	for _, object := range bundle.Objects {
		kind, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		found[kind.Kind+" "+client.ObjectKeyFromObject(object).String()] = string(text)
	}
	return found
}

func sortedNames(maps ...map[string]string) []string {
	var names []string
	for _, each := range maps {
		for name := range each {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// writeLines writes the lines that only one of two texts has.
func writeLines(to *strings.Builder, old, now string) {
	count := map[string]int{}
	for line := range strings.Lines(now) {
		count[line]++
	}
	for line := range strings.Lines(old) {
		if count[line]--; count[line] < 0 {
			fmt.Fprintf(to, "    - %s\n", strings.TrimSpace(line))
		}
	}
	count = map[string]int{}
	for line := range strings.Lines(old) {
		count[line]++
	}
	for line := range strings.Lines(now) {
		if count[line]--; count[line] < 0 {
			fmt.Fprintf(to, "    + %s\n", strings.TrimSpace(line))
		}
	}
}

// TestControllersAreNotNewerThanTheServer checks that, for each change, kube-controller-manager waits until all API servers are
// rolled out (Kubernetes, "Version Skew Policy").
func TestControllersAreNotNewerThanTheServer(t *testing.T) {
	for number, setting := range settings() {
		in := up(t, setting)
		if in.hibernated() {
			continue // both stop, kube-controller-manager first
		}
		for _, bundle := range planOf(t, in).Bundles {
			waits := slices.ContainsFunc(bundle.Spec.DependsOn, func(on resourcesv1alpha1.Dependency) bool {
				return on.Name == bundleAPIServer && on.Until == resourcesv1alpha1.UntilRolledOut
			})
			if bundle.Name == bundleControllerManager && !waits {
				t.Errorf("setting %b: kube-controller-manager does not wait for the API servers: %v", number, bundle.Spec.DependsOn)
			}
		}
	}
}

// TestFieldsWithoutEffect checks that fields for other components change only the Cluster, which contains the whole Shoot.
func TestFieldsWithoutEffect(t *testing.T) {
	for name, change := range map[string]func(*corev1beta1.ShootSpec){
		"spec.hibernation.schedules": func(spec *corev1beta1.ShootSpec) {
			spec.Hibernation = &corev1beta1.Hibernation{Schedules: []corev1beta1.HibernationSchedule{{Start: ptr.To("0 20 * * *")}}}
		},
		"spec.maintenance.autoUpdate": func(spec *corev1beta1.ShootSpec) { spec.Maintenance.AutoUpdate = &corev1beta1.MaintenanceAutoUpdate{} },
		"spec.maintenance.autoRotation": func(spec *corev1beta1.ShootSpec) {
			spec.Maintenance.AutoRotation = &corev1beta1.MaintenanceAutoRotation{}
		},
		"spec.purpose":       func(spec *corev1beta1.ShootSpec) { spec.Purpose = ptr.To(corev1beta1.ShootPurpose("production")) },
		"spec.tolerations":   func(spec *corev1beta1.ShootSpec) { spec.Tolerations = []corev1beta1.Toleration{{Key: "a"}} },
		"spec.seedSelector":  func(spec *corev1beta1.ShootSpec) { spec.SeedSelector = &corev1beta1.SeedSelector{} },
		"spec.schedulerName": func(spec *corev1beta1.ShootSpec) { spec.SchedulerName = ptr.To("other") },
		"spec.accessRestrictions": func(spec *corev1beta1.ShootSpec) {
			spec.AccessRestrictions = []corev1beta1.AccessRestrictionWithOptions{{}}
		},
		"spec.monitoring":             func(spec *corev1beta1.ShootSpec) { spec.Monitoring = &corev1beta1.Monitoring{} },
		"spec.addons":                 func(spec *corev1beta1.ShootSpec) { spec.Addons = &corev1beta1.Addons{} },
		"spec.systemComponents":       func(spec *corev1beta1.ShootSpec) { spec.SystemComponents = &corev1beta1.SystemComponents{} },
		"spec.credentialsBindingName": func(spec *corev1beta1.ShootSpec) { spec.CredentialsBindingName = ptr.To("a") },
		"spec.secretBindingName":      func(spec *corev1beta1.ShootSpec) { spec.SecretBindingName = ptr.To("a") },
		"spec.kubernetes.clusterAutoscaler": func(spec *corev1beta1.ShootSpec) {
			spec.Kubernetes.ClusterAutoscaler = &corev1beta1.ClusterAutoscaler{MaxNodeProvisionTime: &metav1.Duration{Duration: time.Minute}}
		},
		"spec.kubernetes.verticalPodAutoscaler": func(spec *corev1beta1.ShootSpec) {
			spec.Kubernetes.VerticalPodAutoscaler = &corev1beta1.VerticalPodAutoscaler{Enabled: true}
		},
		"spec.kubernetes.kubeProxy": func(spec *corev1beta1.ShootSpec) { spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{} },
		"spec.kubernetes.kubelet":   func(spec *corev1beta1.ShootSpec) { spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{} },
		"spec.kubernetes.kubeControllerManager": func(spec *corev1beta1.ShootSpec) {
			spec.Kubernetes.KubeControllerManager = &corev1beta1.KubeControllerManagerConfig{
				HorizontalPodAutoscalerConfig: &corev1beta1.HorizontalPodAutoscalerConfig{Tolerance: ptr.To(0.2)}, NodeCIDRMaskSize: ptr.To[int32](25),
				NodeCIDRMaskSizeIPv6: ptr.To[int32](80), NodeMonitorGracePeriod: &metav1.Duration{Duration: time.Minute}, PodEvictionTimeout: &metav1.Duration{Duration: time.Minute},
			}
		},
		"spec.networking": func(spec *corev1beta1.ShootSpec) {
			spec.Networking = &corev1beta1.Networking{Type: ptr.To("other"), Pods: ptr.To("10.0.0.0/16"), Nodes: ptr.To("10.1.0.0/16"), ProviderConfig: &runtime.RawExtension{Raw: []byte("{}")}}
		},
		"spec.provider": func(spec *corev1beta1.ShootSpec) {
			spec.Provider.ControlPlaneConfig, spec.Provider.InfrastructureConfig = &runtime.RawExtension{Raw: []byte("{}")}, &runtime.RawExtension{Raw: []byte("{}")}
			spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{}
		},
	} {
		domain := func(in *Inputs) { in.Shoot.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To("one.example.org")} }
		before := up(t, domain)
		after := up(t, domain, func(in *Inputs) { change(&in.Shoot.Spec) })
		if text, changed := changes(t, planOf(t, before), planOf(t, after)); !slices.Equal(changed, []string{after.key(bundleNamespace).String()}) {
			t.Errorf("%s changes %v:\n%s", name, changed, text)
		}
	}
}

// TestFieldsForOthers checks that the fields by which extensions and users identify a Shoot are in the Cluster, and in the
// other places where they are expected.
func TestFieldsForOthers(t *testing.T) {
	domain := func(in *Inputs) { in.Shoot.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To("one.example.org")} }
	for name, test := range map[string]struct {
		change  func(*corev1beta1.ShootSpec)
		bundles []string
		text    string
	}{
		"spec.networking.type": {func(spec *corev1beta1.ShootSpec) { spec.Networking = &corev1beta1.Networking{Type: ptr.To("other")} },
			[]string{bundleNamespace}, constants.LabelNetworkingProvider + ": other"},
		"spec.provider.type": {func(spec *corev1beta1.ShootSpec) { spec.Provider.Type = "other" },
			[]string{bundleNamespace, bundleSystem}, constants.LabelShootProvider + ": other"},
		"spec.provider.type, in the shoot": {func(spec *corev1beta1.ShootSpec) { spec.Provider.Type = "other" },
			[]string{bundleNamespace, bundleSystem}, " provider: other"},
		"spec.region": {func(spec *corev1beta1.ShootSpec) { spec.Region = "other" }, []string{bundleNamespace, bundleSystem}, " region: other"},
	} {
		before := up(t, domain)
		after := up(t, domain, func(in *Inputs) { test.change(&in.Shoot.Spec) })
		var want []string
		for _, bundle := range test.bundles {
			want = append(want, after.key(bundle).String())
		}
		if text, changed := changes(t, planOf(t, before), planOf(t, after)); !slices.Equal(changed, want) || !strings.Contains(text, test.text) {
			t.Errorf("%s changes %v, want %v and %q:\n%s", name, changed, want, test.text, text)
		}
	}
}

// TestSpread checks that objects that a webhook changes according to the placement of the namespace are sent again when the
// placement changes, and not before.
func TestSpread(t *testing.T) {
	before := up(t, available(corev1beta1.FailureToleranceTypeNode), placed)
	zone := []func(*Inputs){available(corev1beta1.FailureToleranceTypeNode), placed, available(corev1beta1.FailureToleranceTypeZone)}
	if text, changed := changes(t, planOf(t, before), planOf(t, up(t, zone...))); len(changed) != 1 {
		t.Errorf("while the namespace has the old placement, %v change:\n%s", changed, text)
	}
	if _, changed := changes(t, planOf(t, before), planOf(t, up(t, append(zone, placed)...))); len(changed) != 5 {
		t.Errorf("when the namespace has the new placement, %v change", changed)
	}
	objects, err := before.namespace()
	if err != nil || !reflect.DeepEqual(placementOf(objects[0].GetAnnotations()), before.Placement) || placementOf(nil) != nil {
		t.Errorf("the namespace has %+v, want %+v: %v", placementOf(objects[0].GetAnnotations()), before.Placement, err)
	}
}
