package shoot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// registered returns a registration for types of the kind Extension. A type may be followed by the words workerless, auto
// (enabled for all Shoots), seed (only for Seeds), secondary, before (reconciled before the API server) and after (deleted
// after it).
func registered(name string, types ...string) corev1beta1.ControllerRegistration {
	registration := corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now)}}
	for _, text := range types {
		words := strings.Fields(text)
		resource := corev1beta1.ControllerResource{Kind: corev1beta1.KindExtension, Type: words[0]}
		for _, word := range words[1:] {
			switch word {
			case "workerless":
				resource.WorkerlessSupported = ptr.To(true)
			case "auto":
				resource.AutoEnable = []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}
			case "seed":
				resource.ClusterCompatibility = []corev1beta1.ClusterType{corev1beta1.ClusterTypeSeed}
			case "secondary":
				resource.Primary = ptr.To(false)
			case "before":
				resource.Lifecycle = &corev1beta1.ControllerResourceLifecycle{Reconcile: ptr.To(corev1beta1.BeforeKubeAPIServer)}
			case "after":
				resource.Lifecycle = &corev1beta1.ControllerResourceLifecycle{Delete: ptr.To(corev1beta1.AfterKubeAPIServer)}
			}
		}
		corev1beta1.SetDefaultsControllerResource(&resource)
		registration.Spec.Resources = append(registration.Spec.Resources, resource)
	}
	return registration
}

// TestExtensionsOf checks which extensions a Shoot has, and which it cannot have.
func TestExtensionsOf(t *testing.T) {
	on := func(types ...string) (list []corev1beta1.Extension) {
		for _, kind := range types {
			name, off := strings.CutPrefix(kind, "-")
			list = append(list, corev1beta1.Extension{Type: name, Disabled: ptr.To(off)})
		}
		return list
	}
	for name, test := range map[string]struct {
		named         []corev1beta1.Extension
		registrations []corev1beta1.ControllerRegistration
		workers       bool
		want, refused string
	}{
		"nothing":                            {},
		"named":                              {named: on("a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a workerless")}, want: "a"},
		"several":                            {named: on("b", "a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a workerless", "b workerless")}, want: "a b"},
		"not registered":                     {named: on("a"), want: "a?"},
		"secondary only":                     {named: on("a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a secondary workerless")}, want: "a?"},
		"not named":                          {registrations: []corev1beta1.ControllerRegistration{registered("x", "a workerless")}},
		"disabled":                           {named: on("-a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a workerless")}},
		"for all":                            {registrations: []corev1beta1.ControllerRegistration{registered("x", "a auto workerless")}, want: "a"},
		"for all, named":                     {named: on("a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a auto workerless")}, want: "a"},
		"for all, but not":                   {named: on("-a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a auto workerless")}},
		"for all, needs workers":             {registrations: []corev1beta1.ControllerRegistration{registered("x", "a auto")}},
		"for all, needs workers, has them":   {registrations: []corev1beta1.ControllerRegistration{registered("x", "a auto")}, workers: true, want: "a"},
		"for all, secondary":                 {registrations: []corev1beta1.ControllerRegistration{registered("x", "a auto secondary workerless")}},
		"named, needs workers":               {named: on("b", "a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a", "b workerless")}, want: "b", refused: "spec.extensions[1]"},
		"named, needs workers, has them":     {named: on("a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a")}, workers: true, want: "a"},
		"disabled, needs workers":            {named: on("-a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a")}},
		"named, for Seeds":                   {named: on("a"), registrations: []corev1beta1.ControllerRegistration{registered("x", "a seed workerless")}, refused: "spec.extensions[0]"},
		"the primary one of two decides":     {named: on("a"), registrations: []corev1beta1.ControllerRegistration{registered("w", "a secondary"), registered("x", "a workerless")}, want: "a"},
		"of two primary ones the first does": {named: on("a"), registrations: []corev1beta1.ControllerRegistration{registered("y", "a"), registered("x", "a workerless")}, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Extensions: test.named}}
			if test.workers {
				shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "pool"}}
			}
			wanted, refused := extensionsOf(shoot, test.registrations)
			var got []string
			for _, each := range wanted {
				got = append(got, each.Type+map[bool]string{false: "?"}[each.Registered])
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if (test.refused == "") != (len(refused) == 0) || len(refused) > 0 && !strings.HasPrefix(refused[0], test.refused+": ") {
				t.Errorf("refused %q, want %q", refused, test.refused)
			}
		})
	}
}

// extended adds extensions with all lifecycles, a domain, and references to a Shoot.
func extended(in *Inputs) {
	in.Registrations = []corev1beta1.ControllerRegistration{registered("x", "first workerless before", "lasting workerless after", "usual workerless", "global workerless auto")}
	in.Shoot.Spec.Extensions = []corev1beta1.Extension{
		{Type: "usual", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}}, {Type: "first"}, {Type: "lasting"},
	}
	in.Shoot.Spec.Resources = []corev1beta1.NamedResourceReference{
		{Name: "settings", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}},
		{Name: "login", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "login"}},
	}
	in.Seed.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "example.org", CredentialsRef: corev1.ObjectReference{Kind: "Secret", Namespace: "garden", Name: "dns"}}
	in.Shoot.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To("one.example.com"), Providers: []corev1beta1.DNSProvider{{
		Primary: ptr.To(true), Type: ptr.To("cloud"), CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "login"},
	}}}
	secret := func(namespace, name string) Referenced {
		return Referenced{Secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"user": []byte("me")}}}
	}
	in.References = map[string]Referenced{
		"Secret garden/dns": secret("garden", "dns"), "Secret garden-dev/login": secret("garden-dev", "login"),
		"ConfigMap garden-dev/settings": {ConfigMap: &corev1.ConfigMap{Data: map[string]string{"a": "b"}}},
	}
}

// extendedUp returns the inputs of such a Shoot if all its bundles exist.
func extendedUp(t *testing.T, change ...func(*Inputs)) Inputs {
	t.Helper()
	in := known(t, extended)
	plan := planOf(t, in)
	in.RecordsMade = map[string]string{}
	for _, bundle := range plan.Bundles {
		in.Emitted = append(in.Emitted, bundle.Key)
		if record := bundle.Choices[choiceRecord]; record != "" {
			in.RecordsMade[bundle.Name] = record
		}
	}
	slices.SortFunc(in.Emitted, flow.Key.Compare)
	placed(&in)
	for _, each := range change {
		each(&in)
	}
	in.Secrets = material(in)
	return in
}

// TestPlansWithExtensions compares plans with files, which contain only the parts of the control plane that extensions change.
func TestPlansWithExtensions(t *testing.T) {
	for name, in := range map[string]Inputs{
		"30-extensions-new":         known(t, extended),
		"31-extensions-hibernating": extendedUp(t, hibernate),
		"32-extensions-hibernated":  extendedUp(t, hibernate, func(in *Inputs) { in.Shoot.Status.IsHibernated = true }),
		"33-extensions-disabled": extendedUp(t, func(in *Inputs) {
			in.Shoot.Spec.Extensions = []corev1beta1.Extension{{Type: "first"}, {Type: "global", Disabled: ptr.To(true)}}
			in.Shoot.Spec.Resources = nil
		}),
		"34-extensions-deleting":      extendedUp(t, cleaned, func(in *Inputs) { in.Deleting = true }),
		"35-extensions-deleting-seed": extendedUp(t, cleaned, func(in *Inputs) { in.Deleting = true; in.Emitted = slices.DeleteFunc(in.Emitted, ofShoot) }),
		"39-extensions-server-gone": extendedUp(t, cleaned, func(in *Inputs) {
			in.Deleting = true
			in.Emitted = slices.DeleteFunc(in.Emitted, func(key flow.Key) bool { return ofShoot(key) || key.Name == bundleAPIServer })
		}),
		"40-extensions-cluster-old":     extendedUp(t, hibernate, func(in *Inputs) { in.Shoot.Generation = 2 }),
		"36-extensions-address-changed": extendedUp(t, func(in *Inputs) { in.Addresses = []string{"lb.example.net"} }),
		"37-extensions-nothing-known": known(t, extended, func(in *Inputs) {
			in.Addresses, in.References = nil, map[string]Referenced{"Secret garden/dns": {Unreadable: "Secret garden/dns cannot be read: forbidden"}}
			in.Registrations = in.Registrations[:0]
		}),
		"38-extensions-refused": extendedUp(t, func(in *Inputs) { in.Registrations = []corev1beta1.ControllerRegistration{registered("x", "usual")} }),
	} {
		t.Run(name, func(t *testing.T) { compare(t, name, extensionSummary(t, planOf(t, in))) })
	}
}

func ofShoot(key flow.Key) bool { return isOfShoot(key.Name) }

// extensionSummary returns a plan without the parts that extensions do not change.
func extensionSummary(t *testing.T, plan flow.Plan) string {
	t.Helper()
	var text strings.Builder
	for _, bundle := range plan.Bundles {
		ours := slices.Contains([]string{bundleAPIServer, bundleResourceManager, bundleControllerManager, bundleReferenced}, bundle.Name) ||
			strings.HasPrefix(bundle.Name, prefixExtension) || strings.HasPrefix(bundle.Name, prefixRecord)
		if !ours {
			continue
		}
		fmt.Fprintf(&text, "bundle %s", bundle.Name)
		for _, need := range bundle.Spec.DependsOn {
			fmt.Fprintf(&text, " [after %s %s]", need.Name, need.Until)
		}
		if bundle.DeleteAfter != nil {
			fmt.Fprintf(&text, " deleted after %v", bundle.DeleteAfter)
		}
		text.WriteString("\n")
		for _, object := range bundle.Objects {
			switch object := object.(type) {
			case *extensionsv1alpha1.Extension:
				config := ""
				if object.Spec.ProviderConfig != nil {
					config = string(object.Spec.ProviderConfig.Raw)
				}
				fmt.Fprintf(&text, "  Extension %s/%s %s %v\n", object.Namespace, object.Name, config, object.Annotations)
			case *extensionsv1alpha1.DNSRecord:
				spec := object.Spec
				fmt.Fprintf(&text, "  DNSRecord %s/%s type %s: %s %d %s %v, credentials %s, %s\n", object.Namespace, object.Name, spec.Type, spec.Name, *spec.TTL, spec.RecordType,
					spec.Values, spec.SecretRef.Name, object.Annotations["dns.gardener.cloud/ip-stack"])
			case *corev1.Secret, *corev1.ConfigMap:
				if bundle.Name != bundleAPIServer && bundle.Name != bundleResourceManager {
					fmt.Fprintf(&text, "  %T %s/%s\n", object, object.GetNamespace(), object.GetName())
				}
			}
		}
	}
	for _, tombstone := range plan.Tombstones {
		fmt.Fprintf(&text, "tombstone %s (confirmed: %t)%s\n", tombstone.Key, tombstone.Confirm, afterText(tombstone))
	}
	for _, wait := range plan.Waits {
		fmt.Fprintf(&text, "wait %s: %s\n", wait.Name, wait.Reason)
	}
	return text.String()
}

// TestExtensionsOrder checks that bundles can be deleted, with and without hibernation, and that an extension that is deleted
// before the API server does not change the rest of that order.
func TestExtensionsOrder(t *testing.T) {
	for _, change := range []func(*Inputs){func(*Inputs) {}, hibernate} {
		in := extendedUp(t, change)
		for _, bundle := range planOf(t, in).Bundles {
			after := func(name string) bool { return slices.Contains(bundle.DeleteAfter, in.key(name)) }
			switch bundle.Name {
			case bundleAPIServer:
				if !after(bundleResourceManager) || !after(bundleAPIServerAutoscaler) || !after(prefixExtension+"usual") || after(prefixExtension+"lasting") || after(bundleEtcdMain) {
					t.Errorf("kube-apiserver is deleted after %v", bundle.DeleteAfter)
				}
			case bundleResourceManager:
				if !after(bundleControllerManager) || !after(bundleSystem) || !after(prefixExtension+"first") || after(bundleAPIServer) {
					t.Errorf("the resource-manager is deleted after %v", bundle.DeleteAfter)
				}
			}
		}
	}
}

// TestLimits checks that an extension that exceeds its time limit causes an error with its name, and holds no bundle.
func TestLimits(t *testing.T) {
	under := func(state corev1beta1.LastOperationState) func(*Inputs) {
		return func(in *Inputs) {
			in.Shoot.Status.LastOperation = &corev1beta1.LastOperation{State: state}
			in.Registrations[0].Spec.Resources[2].ReconcileTimeout = &metav1.Duration{Duration: time.Minute}
			in.Unfinished = map[string]Unfinished{
				prefixExtension + "usual": {Since: now.Add(-time.Second)}, prefixExtension + "gone": {Since: now, Deletion: true}, bundleInternalRecord: {Since: now},
			}
		}
	}
	var got []string
	for _, wait := range planOf(t, extendedUp(t, under(corev1beta1.LastOperationStateProcessing))).Waits {
		if len(wait.Holds) > 0 {
			t.Errorf("the wait %s holds %v", wait.Name, wait.Holds)
		}
		got = append(got, fmt.Sprintf("%s after %s: %s", wait.Name, wait.Deadline.Sub(now), wait.Reason))
	}
	want := []string{
		"dnsrecord-internal after 2m0s: the internal DNSRecord has not finished its operation, which may take 2m0s",
		"shoot-extension-gone after 3m0s: the extension gone has not finished its deletion, which may take 3m0s",
		"shoot-extension-usual after 59s: the extension usual has not finished its operation, which may take 1m0s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the waits are %q", got)
	}
	if waits := planOf(t, extendedUp(t, under(corev1beta1.LastOperationStateSucceeded))).Waits; len(waits) > 0 {
		t.Errorf("the plan waits for operations that extensions start themselves: %v", waits)
	}
}

// TestAskedOnce checks that each generation of the Shoot requests one operation.
func TestAskedOnce(t *testing.T) {
	in := extendedUp(t)
	first := texts(t, planOf(t, in))[prefixExtension+"usual"]
	in.Now = now.Add(time.Hour)
	if again := texts(t, planOf(t, in))[prefixExtension+"usual"]; again != first {
		t.Errorf("the same generation requests another operation: %s", again)
	}
	in.Shoot.Generation, in.Asked, in.ClusterOf = 2, in.Now, "2"
	if next := texts(t, planOf(t, in))[prefixExtension+"usual"]; next == first || !strings.Contains(next, `"asked-for":"2"`) {
		t.Errorf("another generation requests the same operation: %s", next)
	}
}
