package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhooks/extensionvalidation"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestKinds checks that all kinds of gardener-resource-manager are covered, and the paths of their webhooks.
func TestKinds(t *testing.T) {
	var got []string
	for _, kind := range extensionvalidation.Kinds() {
		got = append(got, fmt.Sprintf("%s %s %s %t", kind.GroupVersion(), kind.Plural, kind.Path(), kind.Namespaced))
	}
	var want []string
	for _, plural := range []string{
		"backupbuckets", "backupentries", "bastions", "containerruntimes", "controlplanes", "dnsrecords", "extensions", "infrastructures", "networks",
		"operatingsystemconfigs", "selfhostedshootexposures", "workers",
	} {
		singular, isEntry := strings.CutSuffix(plural, "ies")
		if isEntry {
			singular += "y"
		}
		want = append(want, fmt.Sprintf("extensions.gardener.cloud/v1alpha1 %s /validate-extensions-gardener-cloud-v1alpha1-%s %t",
			plural, strings.TrimSuffix(singular, "s"), !strings.HasPrefix(plural, "backup")))
	}
	want = append(want, "druid.gardener.cloud/v1alpha1 etcds /validate-druid-gardener-cloud-v1alpha1-etcd true")
	if !slices.Equal(got, want) {
		t.Errorf("the kinds are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// eachKind runs a test for each kind, with a valid spec.
func (f *fixture) eachKind(run func(kind, spec string)) {
	f.Helper()
	for _, kind := range extensionvalidation.Kinds() {
		spec, found := validSpecs[kind.Kind]
		if !found || len(specCases[kind.Kind]) == 0 {
			f.Errorf("%s is not tested", kind.Kind)
		}
		run(kind.Kind, spec)
	}
}

// TestSpecs checks the required and the forbidden fields of a spec, when an object is created and when it is updated.
func TestSpecs(t *testing.T) {
	f := newFixture(t)
	f.eachKind(func(kind, spec string) {
		f.create(f.object(kind, "valid", spec))
		for i, test := range specCases[kind] {
			patch := strings.ReplaceAll(test.patch, "$NAMESPACE", f.namespace)
			changed := patched(f, spec, patch)
			got := f.causes(f.client.Create(f.Context(), f.object(kind, fmt.Sprintf("created-%d", i), changed)))
			if !match(got, test.want) {
				f.Errorf("creation of a %s with %s: got %q, want %q", kind, patch, got, test.want)
			}
			if len(test.want) == 0 {
				continue
			}
			object := f.read(kind, "valid")
			object.Object["spec"] = fromYAML(f, changed)
			got = slices.DeleteFunc(f.causes(f.client.Update(f.Context(), object)), func(cause string) bool {
				return strings.HasSuffix(cause, ": field is immutable")
			})
			if !match(got, test.want) {
				f.Errorf("update of a %s with %s: got %q, want %q", kind, patch, got, test.want)
			}
		}
	})
}

// match reports whether exactly one cause begins with each wanted text, and no other cause exists.
func match(causes, want []string) bool {
	return len(causes) == len(want) && !slices.ContainsFunc(want, func(beginning string) bool {
		return !slices.ContainsFunc(causes, func(cause string) bool { return strings.HasPrefix(cause, beginning) })
	})
}

// read returns an object of the fixture.
func (f *fixture) read(kind, name string) *unstructured.Unstructured {
	f.Helper()
	object := f.object(kind, name, "{}")
	kit.Must(f, f.client.Get(f.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

// immutableChanges are forbidden changes of valid specs, by field.
var immutableChanges = map[string]map[string]string{
	"BackupBucket":     {"spec.type": `{type: x}`, "spec.region": `{region: x}`},
	"BackupEntry":      {"spec.type": `{type: x}`},
	"Bastion":          {"spec.type": `{type: x}`, "spec.userData": `{userData: aGlkZGVu}`},
	"ContainerRuntime": {"spec.type": `{type: x}`, "spec.workerPool.name": `{workerPool: {name: x}}`},
	"ControlPlane":     {"spec.type": `{type: x}`, "spec.region": `{region: x}`},
	"DNSRecord": {
		"spec.type": `{type: x}`, "spec.name": `{name: x.example.com}`, "spec.recordType": `{recordType: AAAA, values: ["2001:db8::1"]}`,
	},
	"Extension":      {"spec.type": `{type: x}`},
	"Infrastructure": {"spec.type": `{type: x}`, "spec.region": `{region: x}`},
	"Network": {
		"spec.type": `{type: x}`, "spec.podCIDR": `{podCIDR: 10.0.0.0/16}`, "spec.serviceCIDR": `{serviceCIDR: 10.0.0.0/16}`,
		"spec.ipFamilies": `{ipFamilies: [IPv6, IPv4]}`,
	},
	"OperatingSystemConfig": {"spec.type": `{type: x}`, "spec.purpose": `{purpose: provision, criConfig: {containerd: null}}`},

	"SelfHostedShootExposure": {"spec.type": `{type: x}`},
	"Worker":                  {"spec.type": `{type: x}`, "spec.region": `{region: x}`},
	"Etcd":                    {},
}

// mutableChanges are allowed changes of valid specs.
var mutableChanges = map[string][]string{
	"BackupBucket":            {`{secretRef: {name: x}, providerConfig: {a: 1}, class: garden}`},
	"BackupEntry":             {`{region: x}`, `{bucketName: x}`, `{secretRef: {name: x}}`},
	"Bastion":                 {`{ingress: [{ipBlock: {cidr: 1.2.3.4/32}}]}`},
	"ContainerRuntime":        {`{binaryPath: /x}`, `{workerPool: {selector: null}}`},
	"ControlPlane":            {`{secretRef: {name: x}}`},
	"DNSRecord":               {`{values: [1.2.3.5, 1.2.3.6]}`, `{ttl: 60}`, `{zone: x, region: z}`, `{secretRef: {name: x}}`},
	"Extension":               {`{providerConfig: {a: 1}}`},
	"Infrastructure":          {`{secretRef: {name: x}}`},
	"Network":                 {`{providerConfig: {a: 1}}`, `{ipFamilies: [IPv4, IPv6]}`, `{ipFamilies: [IPv4]}`},
	"OperatingSystemConfig":   {`{units: [], files: [], criConfig: null}`},
	"SelfHostedShootExposure": {`{port: 6443, endpoints: [{nodeName: x}]}`},
	"Worker":                  {`{secretRef: {name: x}, pools: [{name: x, machineType: z, machineImage: {name: a, version: b}}]}`},
	"Etcd":                    {`{replicas: 1}`, `{replicas: 0}`, `{storageCapacity: 1Gi}`, `{backup: {store: null}}`, `{labels: {a: b}, selector: {matchLabels: {a: b}}}`},
}

// TestImmutableFields checks the mutable and the immutable fields.
func TestImmutableFields(t *testing.T) {
	f := newFixture(t)
	f.eachKind(func(kind, spec string) {
		f.create(f.object(kind, "object", spec))
		for field, patch := range immutableChanges[kind] {
			object := f.read(kind, "object")
			object.Object["spec"] = fromYAML(f, patched(f, spec, patch))
			got := f.causes(f.client.Update(f.Context(), object))
			refused := field + ": Invalid value"
			if field == "spec.ipFamilies" {
				refused = field + ": Forbidden"
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], refused) || !strings.HasSuffix(got[0], ": field is immutable") {
				f.Errorf("%s with %s: got %q", kind, patch, got)
			}
			if strings.Contains(fmt.Sprint(got), "aGlkZGVu") {
				f.Errorf("%s: the refusal reveals user data: %q", kind, got)
			}
		}
		for _, patch := range mutableChanges[kind] {
			object := f.read(kind, "object")
			object.Object["spec"] = fromYAML(f, patched(f, spec, patch))
			if err := f.client.Update(f.Context(), object); err != nil {
				f.Errorf("%s with %s: %v", kind, patch, err)
			}
		}
		if len(immutableChanges[kind]) == 0 && kind != "Etcd" || len(mutableChanges[kind]) == 0 {
			f.Errorf("changes of %s are not tested", kind)
		}
	})
}

// TestFamiliesOfNetworks checks that IPv4 may become dual-stack and IPv4 again. No other change of the families is allowed.
func TestFamiliesOfNetworks(t *testing.T) {
	f := newFixture(t)
	families := []string{`null`, `[IPv4]`, `[IPv6]`, `[IPv4, IPv6]`, `[IPv6, IPv4]`}
	const twoFamilies = `{type: a, podCIDR: 10.0.0.0/16, serviceCIDR: 10.1.0.0/16, ipFamilies: [IPv4, IPv6]}`
	for i, from := range families {
		for j, to := range families {
			if i == j || from == `[IPv6]` || to == `[IPv6]` {
				continue // CIDRs of a single family do not match both families
			}
			object := f.object("Network", fmt.Sprintf("network-%d-%d", i, j), patched(f, twoFamilies, `{ipFamilies: `+from+`}`))
			f.create(object)
			object.Object["spec"] = fromYAML(f, patched(f, twoFamilies, `{ipFamilies: `+to+`}`))
			causes := f.causes(f.client.Update(f.Context(), object))
			allowed := from == `[IPv4]` && to == `[IPv4, IPv6]` || to == `[IPv4]` && from == `[IPv4, IPv6]`
			if allowed != (len(causes) == 0) || !allowed && !match(causes, []string{"spec.ipFamilies: Forbidden"}) {
				f.Errorf("from %s to %s: got %q", from, to, causes)
			}
		}
	}
}
