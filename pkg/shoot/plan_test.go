package shoot

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// known returns complete inputs of a new Shoot.
func known(t *testing.T, change ...func(*Inputs)) Inputs {
	t.Helper()
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one", UID: "2f4c5f6a", Generation: 1},
		Spec: corev1beta1.ShootSpec{
			Region: "local", Provider: corev1beta1.Provider{Type: "local"}, Kubernetes: corev1beta1.Kubernetes{Version: "1.37.1"}, SeedName: ptr.To("local"),
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
		},
	}
	corev1beta1.SetDefaultsShootSpec(&shoot.Spec, shoot.Namespace, shoot.Name)
	vector := images.Vector{}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "resource-manager", "kubelet", "gardener-node-agent", "pause", "kube-proxy",
		"coredns", "cluster-proportional-autoscaler", "metrics-server", "tunnel", "node-local-dns", "node-problem-detector", "gateway",
		"vpa-admission-controller", "vpa-recommender", "vpa-updater",
		"kubernetes-dashboard", "kubernetes-dashboard-metrics-scraper", "nginx-ingress-controller", "ingress-default-backend",
		"machine-controller-manager", "cluster-autoscaler"} {
		vector = append(vector, images.Source{Name: name, Repository: ptr.To("registry.example.org/" + name), Tag: ptr.To("v1")})
	}
	config := &gardenletv1alpha1.GardenletConfiguration{}
	gardenletv1alpha1.SetDefaults(config)
	in := Inputs{
		Owner: flow.Owner{Flow: FlowName, UID: shoot.UID, Namespace: shoot.Namespace, Name: shoot.Name}, GardenNamespace: "garden", Namespace: "shoot--dev--one",
		Shoot: shoot, Project: "dev", CloudProfile: &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}}, Config: config, Version: "v1", Images: vector,
		Seed: &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local", UID: "seed-1"}, Spec: corev1beta1.SeedSpec{
			Provider: corev1beta1.SeedProvider{Type: "local", Region: "local", Zones: []string{"a", "b", "c"}},
			DNS:      corev1beta1.SeedDNS{Internal: &corev1beta1.SeedDNSProviderConfig{Domain: "example.org"}},
		}},
		ClusterIdentity: "shoot--dev--one-2f4c5f6a-garden", Nodes: 3, NamespaceExists: true, Now: now, UserFiles: userfiles.Files{},
		Registrations: []corev1beta1.ControllerRegistration{}, Asked: now, ClusterOf: "1", Addresses: []string{"10.0.0.7"}, References: map[string]Referenced{},
		Tokens: map[string]time.Time{accessSecret(resourcemanager.Account): now.Add(time.Hour), accessSecret(kubecontrollermanager.Name): now.Add(time.Hour)},
	}
	for _, each := range change {
		each(&in)
	}
	in.Secrets = material(in)
	return in
}

// material returns all requested Secrets.
func material(in Inputs) map[string]secrets.Item {
	items := map[string]secrets.Item{}
	for _, config := range in.secretConfigs() {
		secret := secrets.Secret{Name: config.Name + "-12345678", Data: secrets.Material{}}
		switch config.Kind {
		case secrets.KindEncryptionKey:
			secret.Data = secrets.Material{"key": []byte("key1"), "secret": []byte("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="), "encoding": []byte("base64"), "provider": []byte(config.Provider)}
		case secrets.KindStaticToken:
			secret.Data = secrets.Material{"static_tokens.csv": []byte("token,health-check,health-check\n")}
		}
		item := secrets.Item{Config: config, Current: secret, Active: secret}
		if config.Kind == secrets.KindCA || config.Kind == secrets.KindRSAKey {
			item.Bundle = &secrets.Secret{Name: config.Name + "-bundle-12345678", Data: secrets.Material{"bundle.crt": []byte("authority")}}
		}
		items[config.Name] = item
	}
	return items
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
	for _, bundle := range plan.Bundles {
		checkBoundary(t, bundle)
	}
	return plan
}

// up returns the inputs of a Shoot if all its bundles exist.
func up(t *testing.T, change ...func(*Inputs)) Inputs {
	t.Helper()
	in := known(t)
	for _, bundle := range planOf(t, in).Bundles {
		in.Emitted = append(in.Emitted, bundle.Key)
	}
	slices.SortFunc(in.Emitted, flow.Key.Compare)
	placed(&in)
	for _, each := range change {
		each(&in)
	}
	if in.Secrets != nil {
		in.Secrets = material(in)
	}
	return in
}

// summary returns a human-readable plan.
func summary(t *testing.T, plan flow.Plan) string {
	t.Helper()
	var text strings.Builder
	scheme := newScheme(t)
	for _, bundle := range plan.Bundles {
		fmt.Fprintf(&text, "bundle %s class %q", bundle.Key, ptr.Deref(bundle.Spec.Class, ""))
		for _, need := range bundle.Spec.DependsOn {
			fmt.Fprintf(&text, " [after %s %s]", need.Name, need.Until)
		}
		text.WriteString("\n")
		for _, object := range bundle.Objects {
			kind, err := apiutil.GVKForObject(object, scheme)
			if err != nil {
				t.Fatal(err)
			}
			name := object.GetName()
			if object.GetNamespace() != "" {
				name = object.GetNamespace() + "/" + name
			}
			if deployment, is := object.(*appsv1.Deployment); is {
				name += fmt.Sprintf(" (%d replicas)", ptr.Deref(deployment.Spec.Replicas, -1))
			}
			fmt.Fprintf(&text, "  %s %s\n", kind.Kind, name)
		}
	}
	for _, task := range plan.Tasks {
		fmt.Fprintf(&text, "task %s\n", task.Name)
	}
	for _, tombstone := range plan.Tombstones {
		fmt.Fprintf(&text, "tombstone %s (confirmed: %t)%s\n", tombstone.Key, tombstone.Confirm, afterText(tombstone))
	}
	for _, wait := range plan.Waits {
		fmt.Fprintf(&text, "wait %s: %s (all: %t, holds %v)\n", wait.Name, wait.Reason, wait.HoldsAll, wait.Holds)
	}
	return text.String()
}

// afterText names the bundles that are deleted before the one of a tombstone.
func afterText(tombstone flow.Tombstone) string {
	var names []string
	for _, key := range tombstone.After {
		names = append(names, key.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return " after " + strings.Join(names, ", ")
}

func hibernate(in *Inputs) {
	in.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)}
}

func available(kind corev1beta1.FailureToleranceType) func(*Inputs) {
	return func(in *Inputs) {
		in.Shoot.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{FailureTolerance: corev1beta1.FailureTolerance{Type: kind}}}
	}
}

func noTokens(in *Inputs) { in.Tokens = nil }

func TestPlans(t *testing.T) {
	inside := func(key flow.Key) bool { return strings.HasPrefix(key.Name, prefixShoot) }
	for name, in := range map[string]Inputs{
		"01-namespace-missing": known(t, func(in *Inputs) { in.NamespaceExists = false }, noTokens),
		"02-no-token":          known(t, noTokens),
		"03-running":           up(t),
		"04-one-node":          known(t, func(in *Inputs) { in.Nodes = 1 }),
		"05-node-failures":     known(t, available(corev1beta1.FailureToleranceTypeNode)),
		"06-zone-failures":     known(t, available(corev1beta1.FailureToleranceTypeZone)),
		"07-hibernating":       up(t, hibernate),
		"08-waking":            up(t, noTokens, func(in *Inputs) { in.Shoot.Status.IsHibernated = true }),
		"09-no-issuer":         up(t, withIssuer, func(in *Inputs) { in.IssuerHost, in.IssuerProblem = "", "the garden has no managed issuer" }),
		"10-audit-policy-missing": up(t, func(in *Inputs) {
			in.Shoot.Spec.Kubernetes.KubeAPIServer.AuditConfig = &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}}
		}),
		"11-deleting":            up(t, func(in *Inputs) { in.Deleting = true }),
		"12-deleting-hibernated": up(t, hibernate, expiredTokens, func(in *Inputs) { in.Deleting = true }),
		"13-deleting-control-plane": up(t, cleaned, func(in *Inputs) {
			in.Deleting, in.Emitted = true, slices.DeleteFunc(in.Emitted, inside)
		}),
		"21-deleting-cleaned":    up(t, cleaned, func(in *Inputs) { in.Deleting = true }),
		"22-deleting-unused":     up(t, noTokens, func(in *Inputs) { in.Deleting = true }),
		"23-deletion-forced":     up(t, forced),
		"24-deletion-forced-end": up(t, forced, func(in *Inputs) { in.Emitted = []flow.Key{in.key(bundleNamespace)} }),
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

// settings returns the settings of a Shoot that the tests combine.
func settings() (all []func(*Inputs)) {
	for bits := range 1 << 6 {
		all = append(all, func(in *Inputs) {
			if bits&1 != 0 {
				hibernate(in)
			}
			if bits&2 != 0 {
				available(corev1beta1.FailureToleranceTypeZone)(in)
			}
			if bits&4 != 0 {
				in.Seed.Spec.Settings = &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{}}
			}
			if bits&8 != 0 {
				in.Shoot.Spec.DNS, in.Seed.Spec.DNS.Internal = &corev1beta1.DNS{Domain: ptr.To("one.example.org")}, nil
			}
			in.Deleting = bits&16 != 0
			if bits&32 != 0 {
				in.Nodes = 1
			}
		})
	}
	return all
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

// TestPlansAreAcyclicAndDeterministic checks that plans are valid, including the dependencies for the deletion, that the same
// inputs result in the same bytes, and that all namespaces exist.
func TestPlansAreAcyclicAndDeterministic(t *testing.T) {
	for number, setting := range settings() {
		in := up(t, setting)
		plan := planOf(t, in)
		if again := planOf(t, up(t, setting)); !reflect.DeepEqual(texts(t, plan), texts(t, again)) || plan.Inputs != again.Inputs {
			t.Errorf("setting %b: two plans from the same inputs differ", number)
		}
		for _, bundle := range plan.Bundles {
			for _, object := range bundle.Objects {
				where := object.GetNamespace()
				if isOfShoot(bundle.Name) && where != "" && where != metav1.NamespaceSystem || !isOfShoot(bundle.Name) && where != "" && where != in.Namespace {
					t.Errorf("setting %b: no bundle creates the namespace of %s in %s", number, object.GetName(), bundle)
				}
			}
		}
	}
}

// TestUnknownInputsDeleteNothing makes every subset of the inputs unknown, for an existing and for a hibernated Shoot.
func TestUnknownInputsDeleteNothing(t *testing.T) {
	forget := []func(*Inputs){
		func(in *Inputs) { in.CloudProfile = nil },
		func(in *Inputs) { in.Secrets = nil },
		func(in *Inputs) { in.NamespaceExists = false },
		func(in *Inputs) { in.ClusterIdentity = "" },
		noTokens,
		func(in *Inputs) { in.Images = nil },
		func(in *Inputs) { in.Nodes, in.UserFiles = 0, nil },
		func(in *Inputs) { in.Registrations = nil },
		func(in *Inputs) { in.Addresses, in.References, in.RecordsMade, in.ClusterOf = nil, nil, nil, "" },
	}
	for bits := range 1 << len(forget) {
		for _, state := range []func(*Inputs){func(*Inputs) {}, hibernate} {
			in := up(t, state)
			for i, each := range forget {
				if bits&(1<<i) != 0 {
					each(&in)
				}
			}
			for _, tombstone := range planOf(t, in).Tombstones {
				if tombstone.Name != bundleAPIServerAutoscaler || !in.hibernated() {
					t.Fatalf("unknown %b: the plan deletes %s", bits, tombstone.Key)
				}
			}
		}
	}
}

// TestWhatPodsUse checks that images are in the list, and that everything that Pods mount is in the same bundle, requested, or
// created before.
func TestWhatPodsUse(t *testing.T) {
	in := up(t, available(corev1beta1.FailureToleranceTypeZone))
	plan := planOf(t, in)
	exists := map[string]bool{accessSecret(resourcemanager.Account): true} // written by gardenlet itself
	for _, item := range in.Secrets {
		exists[item.Current.Name], exists[item.Trusted()] = true, true
	}
	for _, bundle := range plan.Bundles {
		for _, object := range bundle.Objects {
			exists[object.GetName()] = true
		}
	}
	for _, bundle := range plan.Bundles {
		for _, object := range bundle.Objects {
			deployment, is := object.(*appsv1.Deployment)
			if !is {
				continue
			}
			for _, container := range deployment.Spec.Template.Spec.Containers {
				if !strings.HasPrefix(container.Image, "registry.example.org/") {
					t.Errorf("%s runs the image %s", deployment.Name, container.Image)
				}
			}
			for _, volume := range deployment.Spec.Template.Spec.Volumes {
				for _, name := range mountedBy(volume) {
					if !exists[name] {
						t.Errorf("%s mounts %q, which is never created", deployment.Name, name)
					}
				}
			}
		}
	}
}

func mountedBy(volume corev1.Volume) (names []string) {
	switch {
	case volume.Secret != nil:
		names = append(names, volume.Secret.SecretName)
	case volume.ConfigMap != nil:
		names = append(names, volume.ConfigMap.Name)
	case volume.Projected != nil:
		for _, each := range volume.Projected.Sources {
			names = append(names, each.Secret.Name)
		}
	}
	return names
}
