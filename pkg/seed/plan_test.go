package seed

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme, corev1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// known returns complete inputs, in which everything is known.
func known(t *testing.T, change ...func(*Inputs)) Inputs {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "fleet", "core", "seed.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	seed := &corev1beta1.Seed{}
	if err := yaml.UnmarshalStrict(text, seed); err != nil {
		t.Fatal(err)
	}
	seed.UID, seed.Generation = "2f4c5f6a", 1
	vector := images.Vector{}
	for _, name := range []string{"pause", "resource-manager", "etcd-operator", "etcd-member", "vpa-admission-controller", "vpa-recommender", "vpa-updater", "istio-istiod", "istio-proxy", "gateway", "nginx-ingress-controller", "ingress-default-backend"} {
		vector = append(vector, images.Source{Name: name, Repository: ptr.To("registry.example.org/" + name), Tag: ptr.To("v1")})
	}
	config := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(config)
	in := Inputs{
		Owner: flow.Owner{Flow: FlowName, UID: seed.UID, Name: seed.Name}, Namespace: "garden", Class: "seed", Seed: seed, Config: config,
		Version: "v1", Images: vector, KubernetesVersion: "1.37.1", Identity: "cluster-1", Nodes: 3,
		APIServers: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:6443")}, HasVerticalPodAutoscaler: ptr.To(false), Now: now,
		Extensions: installed("DNSRecord/local", "ControlPlane/local", "Infrastructure/local", "Worker/local", "Extension/networking-filter"),
		References: map[string]Reference{"filter": {ConfigMap: &corev1.ConfigMap{Data: map[string]string{"rules": "none"}}}},
		Bucket: &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "2f4c5f6a", Generation: 1}, Status: corev1beta1.BackupBucketStatus{
			ObservedGeneration: 1, LastOperation: &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded},
		}},
	}
	for _, each := range change {
		each(&in)
	}
	in.Secrets = map[string]secrets.Item{}
	for _, config := range in.secretConfigs() {
		in.Secrets[config.Name] = secrets.Item{
			Config: config, Current: secrets.Secret{Name: config.Name + "-12345678"},
			Bundle: &secrets.Secret{Name: config.Name + "-bundle-12345678", Data: secrets.Material{"bundle.crt": []byte("authority")}},
		}
	}
	return in
}

// installed returns a registration and a ready installation for each kind and type.
func installed(kinds ...string) *Extensions {
	registration := corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "provider"}}
	for _, each := range kinds {
		kind, typ, _ := strings.Cut(each, "/")
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: typ})
	}
	installation := corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "provider-abcde"}}
	installation.Spec.RegistrationRef.Name = "provider"
	for kind, status := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
		corev1beta1.ControllerInstallationValid: "True", corev1beta1.ControllerInstallationInstalled: "True",
		corev1beta1.ControllerInstallationHealthy: "True", corev1beta1.ControllerInstallationProgressing: "False",
	} {
		installation.Status.Conditions = append(installation.Status.Conditions, corev1beta1.Condition{Type: kind, Status: status})
	}
	return &Extensions{
		Registrations: []corev1beta1.ControllerRegistration{registration}, Installations: []corev1beta1.ControllerInstallation{installation},
	}
}

func planOf(t *testing.T, in Inputs) flow.Plan {
	t.Helper()
	plan, err := Plan(in)
	if err == nil {
		err = plan.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// allOf returns the keys of all bundles of a plan, to mark them as existing.
func allOf(plan flow.Plan) (keys []flow.Key) {
	for _, bundle := range plan.Bundles {
		keys = append(keys, bundle.Key)
	}
	slices.SortFunc(keys, flow.Key.Compare)
	return keys
}

// summary returns a human-readable plan.
func summary(t *testing.T, plan flow.Plan) string {
	t.Helper()
	var text strings.Builder
	for _, bundle := range plan.Bundles {
		fmt.Fprintf(&text, "bundle %s", bundle.Name)
		for _, need := range bundle.Spec.DependsOn {
			fmt.Fprintf(&text, " [after %s %s]", need.Name, need.Until)
		}
		if bundle.DeleteAfter != nil {
			fmt.Fprintf(&text, " [deleted after %v]", bundle.DeleteAfter)
		}
		if ptr.Deref(bundle.Spec.KeepObjects, false) || bundle.AppliesItself {
			text.WriteString(" [keeps objects]")
		}
		text.WriteString("\n")
		for _, object := range bundle.Objects {
			kind, err := apiutil.GVKForObject(object, newScheme(t))
			if err != nil {
				t.Fatal(err)
			}
			name := object.GetName()
			if object.GetNamespace() != "" {
				name = object.GetNamespace() + "/" + name
			}
			fmt.Fprintf(&text, "  %s %s\n", kind.Kind, name)
		}
	}
	for _, tombstone := range plan.Tombstones {
		fmt.Fprintf(&text, "tombstone %s (confirmed: %t)\n", tombstone.Name, tombstone.Confirm)
	}
	for _, wait := range plan.Waits {
		fmt.Fprintf(&text, "wait %s: %s (all: %t, holds %v)\n", wait.Name, wait.Reason, wait.HoldsAll, wait.Holds)
	}
	return text.String()
}

func TestPlans(t *testing.T) {
	up := func(t *testing.T, change ...func(*Inputs)) Inputs {
		t.Helper()
		in := known(t, change...)
		in.Emitted = allOf(planOf(t, in))
		in.Kept = map[flow.Key]bool{}
		for _, bundle := range planOf(t, in).Bundles {
			in.Kept[bundle.Key] = ptr.Deref(bundle.Spec.KeepObjects, false)
		}
		return in
	}
	deleting := func(t *testing.T) Inputs {
		t.Helper()
		in := up(t)
		in.Deleting, in.Users, in.Bucket, in.Secrets = true, &[]string{}, nil, nil
		return in
	}
	only := func(in Inputs, names ...string) Inputs {
		in.Emitted = slices.DeleteFunc(slices.Clone(in.Emitted), func(key flow.Key) bool { return !slices.Contains(names, key.Name) })
		return in
	}
	for name, in := range map[string]Inputs{
		"example": known(t),
		"minimal": known(t, func(in *Inputs) {
			in.Seed.Spec.Settings, in.Seed.Spec.Extensions, in.Seed.Spec.Resources, in.Seed.Spec.Backup, in.Seed.Spec.Provider.Zones = nil, nil, nil, nil, nil
			in.Nodes = 1
		}),
		"autoscaler-off": known(t, func(in *Inputs) {
			in.Seed.Spec.Settings.VerticalPodAutoscaler.Enabled, in.HasVerticalPodAutoscaler = false, ptr.To(true)
		}),
		"autoscaler-switched-off": func() Inputs {
			in := up(t)
			in.Seed.Spec.Settings.VerticalPodAutoscaler.Enabled = false
			return in
		}(),
		"autoscaler-missing": known(t, func(in *Inputs) { in.Seed.Spec.Settings.VerticalPodAutoscaler.Enabled = false }),
		"garden":             known(t, func(in *Inputs) { in.IsGarden = true }),
		"old-version":        known(t, func(in *Inputs) { in.KubernetesVersion = "1.31.9" }),
		"extension-missing": known(t, func(in *Inputs) {
			in.Extensions = installed("DNSRecord/local", "ControlPlane/local", "Infrastructure/local", "Worker/local")
		}),
		"extension-removed": func() Inputs { in := up(t); in.Seed.Spec.Extensions = nil; return in }(),
		"deletion-refused": func() Inputs {
			in := deleting(t)
			in.Users = &[]string{"BackupBucket other", "Shoot garden-a/b"}
			return in
		}(),
		"deletion-1-components": deleting(t),
		"deletion-2-installed":  only(deleting(t), bundleSystem, "referenced-resources-local", definitionsExtensions, bundleNamespaces, bundleResourceManager, definitionsManagedResources),
		"deletion-3-base": func() Inputs {
			in := only(deleting(t), bundleSystem, "referenced-resources-local", definitionsExtensions, bundleNamespaces, bundleResourceManager, definitionsManagedResources)
			in.Extensions.Installations = nil
			return in
		}(),
		"deletion-4-objects-left": func() Inputs {
			in := only(deleting(t), definitionsExtensions, bundleNamespaces, bundleResourceManager, definitionsManagedResources)
			in.Extensions.Installations, in.Instances = nil, &[]string{"Cluster shoot--a--b"}
			return in
		}(),
		"deletion-5-declared": func() Inputs {
			in := only(deleting(t), definitionsEtcd, bundleNamespaces, bundleResourceManager, definitionsManagedResources)
			in.Extensions.Installations, in.Instances = nil, &[]string{}
			return in
		}(),
		"deletion-6-definitions": func() Inputs {
			in := only(deleting(t), definitionsEtcd, bundleNamespaces, bundleResourceManager, definitionsManagedResources)
			in.Extensions.Installations, in.Instances, in.Kept = nil, &[]string{}, nil
			return in
		}(),
		"deletion-7-resource-manager": func() Inputs {
			in := only(deleting(t), definitionsAutoscaling, bundleNamespaces, bundleResourceManager, definitionsManagedResources)
			in.Extensions.Installations = nil
			return in
		}(),
		"deletion-8-last": func() Inputs {
			in := only(deleting(t), definitionsAutoscaling, bundleNamespaces, definitionsManagedResources)
			in.Extensions.Installations = nil
			return in
		}(),
	} {
		t.Run(name, func(t *testing.T) { compare(t, name, summary(t, planOf(t, in))) })
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("got the plan\n%s\nwant\n%s", got, want)
	}
}

// settings returns the settings of a Seed that the tests combine.
func settings() (all []func(*Inputs)) {
	for bits := range 1 << 6 {
		all = append(all, func(in *Inputs) {
			if bits&1 != 0 {
				in.Seed.Spec.Settings.VerticalPodAutoscaler.Enabled, in.HasVerticalPodAutoscaler = false, ptr.To(true)
			}
			if bits&2 != 0 {
				in.Seed.Spec.Extensions, in.Seed.Spec.Resources = nil, nil
			}
			if bits&4 != 0 {
				in.Seed.Spec.Settings.ExcessCapacityReservation.Enabled = ptr.To(false)
			}
			in.IsGarden, in.IsShoot = bits&8 != 0, bits&16 != 0
			if bits&32 != 0 {
				in.Seed.Spec.Backup, in.Bucket = nil, nil
			}
		})
	}
	return all
}

func TestPlansAreAcyclicAndDeterministic(t *testing.T) {
	for number, setting := range settings() {
		in := known(t, setting)
		plan := planOf(t, in) // also validates the dependencies, including those for the deletion
		if again := planOf(t, known(t, setting)); !reflect.DeepEqual(texts(t, plan), texts(t, again)) {
			t.Errorf("setting %b: two plans from the same inputs differ", number)
		}
		namespaces := map[string]bool{"": true, "garden": true, "kube-system": true}
		for _, bundle := range plan.Bundles {
			for _, object := range bundle.Objects {
				if object.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
					namespaces[object.GetName()] = true
				}
			}
		}
		for _, bundle := range plan.Bundles {
			for _, object := range bundle.Objects {
				if !namespaces[object.GetNamespace()] {
					t.Errorf("setting %b: no bundle creates the namespace of %s in %s", number, object.GetName(), bundle)
				}
			}
		}
	}
}

// texts returns the bundles of a plan as JSON.
func texts(t *testing.T, plan flow.Plan) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, bundle := range plan.Bundles {
		text, err := json.Marshal(bundle)
		if err != nil {
			t.Fatal(err)
		}
		found[bundle.Name] = string(text)
	}
	return found
}

// TestUnknownInputsDeleteNothing makes every subset of the inputs of an existing Seed unknown.
func TestUnknownInputsDeleteNothing(t *testing.T) {
	forget := []func(*Inputs){
		func(in *Inputs) { in.Extensions = nil },
		func(in *Inputs) { in.References = nil },
		func(in *Inputs) { in.Secrets = nil },
		func(in *Inputs) { in.Identity = "" },
		func(in *Inputs) { in.APIServers = nil },
		func(in *Inputs) { in.HasVerticalPodAutoscaler = nil },
		func(in *Inputs) { in.KubernetesVersion = "" },
		func(in *Inputs) { in.Bucket, in.Nodes = nil, 0 },
		func(in *Inputs) { in.Images = nil },
	}
	for _, deleting := range []bool{false, true} {
		for bits := range 1 << len(forget) {
			in := known(t)
			in.Emitted = allOf(planOf(t, in))
			in.Deleting = deleting // the references to the Seed are not known
			for i, each := range forget {
				if bits&(1<<i) != 0 {
					each(&in)
				}
			}
			plan := planOf(t, in)
			if len(plan.Tombstones) > 0 {
				t.Fatalf("unknown %b: the plan deletes %v", bits, plan.Tombstones)
			}
			mentioned := map[flow.Key]bool{}
			for _, bundle := range plan.Bundles {
				mentioned[bundle.Key] = true
			}
			for _, wait := range plan.Waits {
				for _, key := range wait.Holds {
					mentioned[key] = true
				}
			}
			for _, key := range in.Emitted {
				if !mentioned[key] {
					t.Errorf("unknown %b: %s is neither emitted nor held", bits, key)
				}
			}
		}
	}
}
