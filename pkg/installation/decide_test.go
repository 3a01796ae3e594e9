package installation

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	always       = corev1beta1.ControllerDeploymentPolicyAlways
	exceptNone   = corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots
	onDemand     = corev1beta1.ControllerDeploymentPolicyOnDemand
	noPrimary    = "no ControllerRegistration is primarily responsible"
	manyPrimary  = "several ControllerRegistrations are primarily responsible"
	noDeployment = "which does not exist"
)

// row is a case of the decision table: the differences to a Seed that needs only its own provider, the expected steps, and the
// expected problem, if any.
type row struct {
	name    string
	changes []change
	want    string
	problem string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			in := emptySeed()
			for _, change := range row.changes {
				change(&in)
			}
			d := Decide(in)
			if got := summary(in, d); got != row.want {
				t.Errorf("got %q, want %q; kept %v, problems %q", got, row.want, d.Kept, d.Problems)
			}
			problems := strings.Join(d.Problems, "\n")
			if (row.problem == "") != (problems == "") || !strings.Contains(problems, row.problem) {
				t.Errorf("problems %q, want %q", problems, row.problem)
			}
			for _, step := range d.Steps {
				if step.Reason == "" || step.Installation.Spec.SeedRef == nil || step.Installation.Spec.SeedRef.Name != in.Seed.Name {
					t.Errorf("step %+v", step)
				}
			}
		})
	}
}

// TestDecideForSeeds tests the needs of a Seed itself.
func TestDecideForSeeds(t *testing.T) {
	check(t, []row{
		{"its provider", nil, "+base", ""},
		{"its provider, installed", []change{installed("base", "True")}, "", ""},
		{"its provider, installed, no object yet", []change{installed("base", "False")}, "", ""},
		{"its provider, without a registration", []change{func(in *Inputs) { in.Registrations = nil }}, "", noPrimary},
		{"its DNS", []change{seed(func(s *corev1beta1.Seed) { s.Spec.DNS.Provider = &corev1beta1.SeedDNSProvider{Type: "zones"} }), has(registration("dns", "DNSRecord/zones"))}, "+base +dns", ""},
		{"not its internal domain, without Shoots", []change{
			seed(func(s *corev1beta1.Seed) { s.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{Type: "zones"} }), has(registration("dns", "DNSRecord/zones")),
		}, "+base", ""},
		{"an extension", []change{seed(func(s *corev1beta1.Seed) { s.Spec.Extensions = []corev1beta1.Extension{{Type: "filter"}} }), has(registration("filter", "Extension/filter"))}, "+base +filter", ""},
		{"an extension that it disables", []change{
			seed(func(s *corev1beta1.Seed) {
				s.Spec.Extensions = []corev1beta1.Extension{{Type: "filter", Disabled: ptr.To(true)}}
			}),
			has(registration("filter", "Extension/filter seed")),
		}, "+base", ""},
		{"an extension for all seeds", []change{has(registration("filter", "Extension/filter seed"))}, "+base +filter", ""},
		{"an extension for all shoots, without Shoots", []change{has(registration("filter", "Extension/filter shoot"))}, "+base", ""},
		{"nothing while it is being deleted", []change{seedDeleted}, "", ""},
		{"nothing while it is being deleted, installed", []change{seedDeleted, installed("base", "False")}, "-base", ""},
		{"nothing while it is being deleted, but objects exist", []change{seedDeleted, installed("base", "True")}, "", ""},
		{"its Shoots while it is being deleted", []change{seedDeleted, served, shoot()}, "+base +cluster", ""},
		{"its bucket while it is being deleted", []change{seedDeleted, has(registration("store", "BackupBucket/s3")), bucket("b", "one", "s3")}, "+store", ""},
		{"what is registered for nothing", []change{has(registration("other", "Infrastructure/other"))}, "+base", ""},
		{"what is registered for no kind at all", []change{has(registration("other"))}, "+base", ""},
	})
}

// TestDecideForShoots tests the needs of Shoots in their Seed.
func TestDecideForShoots(t *testing.T) {
	runtimes := func(s *corev1beta1.Shoot) {
		s.Spec.Provider.Workers[0].CRI = &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}, {Type: "kata"}}}
	}
	exposed := func(typ *string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Workers[0].ControlPlane = &corev1beta1.WorkerControlPlane{Exposure: &corev1beta1.Exposure{Extension: &corev1beta1.ExtensionExposure{Type: typ}}}
		}
	}
	dns := has(registration("dns", "DNSRecord/zones"), registration("internal", "DNSRecord/internal"), registration("seconds", "DNSRecord/second"))
	internal := seed(func(s *corev1beta1.Seed) { s.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{Type: "internal"} })
	defaults := func(in *Inputs) { in.DefaultDomains = []Domain{{"example.org", "zones"}, {"example.com", "other"}} }
	filter := func(words string) change { return has(registration("filter", "Extension/filter"+words)) }
	check(t, []row{
		{"network and operating system", []change{served, shoot()}, "+base +cluster", ""},
		{"another provider than the Seed's", []change{served, shoot(func(s *corev1beta1.Shoot) { s.Spec.Provider.Type = "cloud" }),
			has(registration("cloud", "ControlPlane/cloud", "Infrastructure/cloud", "Worker/cloud"))}, "+base +cloud +cluster", ""},
		{"a network that no registration serves", []change{shoot()}, "+base", noPrimary},
		{"without a network", []change{served, shoot(func(s *corev1beta1.Shoot) { s.Spec.Networking = nil })}, "+base +cluster", ""},
		{"without nodes", []change{served, shoot(workerless)}, "+base", ""},
		{"two pools with different operating systems", []change{served, has(registration("bsd", "OperatingSystemConfig/bsd")), shoot(func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, corev1beta1.Worker{Machine: corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{Name: "bsd"}}})
		})}, "+base +bsd +cluster", ""},
		{"a pool whose image is not chosen yet", []change{has(registration("cluster", "Network/bridge")), shoot(func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Image = nil })}, "+base +cluster", ""},
		{"container runtimes", []change{served, has(registration("gvisor", "ContainerRuntime/gvisor"), registration("kata", "ContainerRuntime/kata")), shoot(runtimes)}, "+base +cluster +gvisor +kata", ""},
		{"one of two container runtimes is registered", []change{served, has(registration("gvisor", "ContainerRuntime/gvisor")), shoot(runtimes)}, "+base +cluster +gvisor", "ContainerRuntime/kata"},
		{"an exposure", []change{served, has(registration("lb", "SelfHostedShootExposure/lb")), shoot(exposed(ptr.To("lb")))}, "+base +cluster +lb", ""},
		{"an exposure of the provider's type", []change{served, has(registration("lb", "SelfHostedShootExposure/local")), shoot(exposed(nil))}, "+base +cluster +lb", ""},
		{"backups in the Seed", []change{served, backupOf("s3"), has(registration("store", "BackupBucket/s3"), registration("entries", "BackupEntry/s3")), shoot(workerless)}, "+base +entries +store", ""},
		{"no backups without Shoots", []change{backupOf("s3"), has(registration("store", "BackupBucket/s3"))}, "+base", ""},
		{"an extension", []change{served, filter(""), shoot(withExtension("filter", false))}, "+base +cluster +filter", ""},
		{"an extension that is disabled", []change{served, filter(" shoot"), shoot(withExtension("filter", true))}, "+base +cluster", ""},
		{"an extension for all shoots", []change{served, filter(" shoot"), shoot()}, "+base +cluster +filter", ""},
		{"an extension for all shoots, disabled in one of two", []change{served, filter(" shoot"), shoot(withExtension("filter", true)), shoot()}, "+base +cluster +filter", ""},
		{"an extension for all seeds", []change{served, filter(" seed"), shoot(), seed(func(s *corev1beta1.Seed) {
			s.Spec.Extensions = []corev1beta1.Extension{{Type: "filter", Disabled: ptr.To(true)}}
		})}, "+base +cluster", ""},
		{"an extension for all shoots, without nodes", []change{filter(" shoot"), shoot(workerless)}, "+base", ""},
		{"an extension for all shoots, also without nodes", []change{filter(" shoot workerless"), shoot(workerless)}, "+base +filter", ""},
		{"a named extension that needs nodes, without nodes", []change{filter(""), shoot(workerless, withExtension("filter", false))}, "+base", ""},
		{"an extension that no registration serves", []change{served, shoot(withExtension("filter", false))}, "+base +cluster", "Extension/filter"},
		{"internal domain", []change{dns, internal, shoot(workerless)}, "+base +internal", ""},
		{"internal domain that is not managed", []change{seed(func(s *corev1beta1.Seed) { s.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{Type: "unmanaged"} }), shoot(workerless)}, "+base", ""},
		{"primary DNS provider", []change{dns, shoot(workerless, withDomain("web.other.org", "zones"))}, "+base +dns", ""},
		{"unmanaged domain", []change{dns, shoot(workerless, withDomain("web.other.org", "unmanaged"))}, "+base", ""},
		{"secondary DNS provider", []change{dns, shoot(workerless, withDomain("web.other.org", ""))}, "+base", ""},
		{"default domain of the garden", []change{dns, defaults, shoot(workerless, withDomain("web.dev.example.org", ""))}, "+base +dns", ""},
		{"another domain that ends in the same letters", []change{dns, defaults, shoot(workerless, withDomain("web.myexample.org", ""))}, "+base", ""},
		{"default domain of the Seed", []change{dns, defaults, seed(func(s *corev1beta1.Seed) {
			s.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{{Domain: "example.org", Type: "internal"}}
		}), shoot(workerless, withDomain("web.dev.example.org", ""))}, "+base +internal", ""},
		{"on another Seed", []change{served, shoot(onSeed("two", "two"))}, "+base", ""},
		{"not scheduled", []change{served, shoot(onSeed("", ""))}, "+base", ""},
		{"moving away", []change{served, shoot(onSeed("two", "one"))}, "+base +cluster", ""},
		{"moving here", []change{served, shoot(onSeed("one", "two"))}, "+base +cluster", ""},
		{"being deleted", []change{served, shoot(func(s *corev1beta1.Shoot) { s.DeletionTimestamp = &now })}, "+base +cluster", ""},
	})
}

// TestDecideForBackups tests the needs of buckets and entries of a Seed.
func TestDecideForBackups(t *testing.T) {
	stores := has(registration("store", "BackupBucket/s3"), registration("entries", "BackupEntry/s3"))
	check(t, []row{
		{"a bucket", []change{stores, bucket("b", "one", "s3")}, "+base +store", ""},
		{"a bucket of another Seed", []change{stores, bucket("b", "two", "s3")}, "+base", ""},
		{"a bucket that no registration serves", []change{bucket("b", "one", "s3")}, "+base", "BackupBucket b needs BackupBucket/s3"},
		{"an entry", []change{stores, bucket("b", "two", "s3"), entry("one", "one", "b")}, "+base +entries", ""},
		{"an entry that moves away", []change{stores, bucket("b", "two", "s3"), entry("two", "one", "b")}, "+base +entries", ""},
		{"an entry of another Seed", []change{stores, bucket("b", "two", "s3"), entry("two", "two", "b")}, "+base", ""},
		{"an entry without a bucket", []change{stores, entry("one", "one", "b")}, "+base", ""},
	})
}

// TestDecidePolicies tests registrations that are always installed, or only in some Seeds.
func TestDecidePolicies(t *testing.T) {
	agent := func(p corev1beta1.ControllerDeploymentPolicy) *corev1beta1.ControllerRegistration {
		return policy(registration("agent", "-Worker/other"), p)
	}
	check(t, []row{
		{"Always", []change{has(agent(always))}, "+agent +base", ""},
		{"Always, the Seed is being deleted", []change{seedDeleted, has(agent(always)), installed("agent", "False")}, "-agent", ""},
		{"AlwaysExceptNoShoots, without Shoots", []change{has(agent(exceptNone))}, "+base", ""},
		{"AlwaysExceptNoShoots, with a Shoot", []change{has(agent(exceptNone)), shoot(workerless)}, "+agent +base", ""},
		{"AlwaysExceptNoShoots, with a Shoot, the Seed is being deleted", []change{seedDeleted, has(agent(exceptNone)), shoot(workerless)}, "+agent +base", ""},
		{"AlwaysExceptNoShoots, the last Shoot has gone", []change{has(agent(exceptNone)), installed("agent", "False")}, "-agent +base", ""},
		{"OnDemand", []change{has(agent(onDemand))}, "+base", ""},
		{"secondary, of a type that is needed", []change{has(registration("watcher", "-Worker/local"))}, "+base +watcher", ""},
		{"secondary alone", []change{func(in *Inputs) { in.Registrations = nil }, has(registration("base", "-ControlPlane/local", "-Infrastructure/local", "-Worker/local"))}, "+base", noPrimary},
		{"selected", []change{has(selects(agent(always), "region", "eu"))}, "+agent +base", ""},
		{"not selected", []change{has(selects(agent(always), "region", "us"))}, "+base", ""},
		{"not selected, secondary of a needed type", []change{has(selects(registration("watcher", "-Worker/local"), "region", "us"))}, "+base", ""},
		{"not selected any more", []change{has(selects(agent(always), "region", "us")), installed("agent", "False")}, "-agent +base", ""},
		{"not selected any more, though objects exist", []change{has(selects(agent(always), "region", "us")), installed("agent", "True")}, "-agent +base", ""},
		{"a selector that is invalid", []change{has(func() *corev1beta1.ControllerRegistration {
			r := agent(always)
			r.Spec.Deployment.SeedSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
			return r
		}()), installed("agent", "False")}, "=agent +base", "seedSelector of ControllerRegistration agent"},
		{"an empty selector", []change{has(func() *corev1beta1.ControllerRegistration {
			r := agent(always)
			r.Spec.Deployment.SeedSelector = &metav1.LabelSelector{}
			return r
		}())}, "+agent +base", ""},
	})
}

// TestDecidePrimaries checks that one of several registrations for the same kind and type is installed.
func TestDecidePrimaries(t *testing.T) {
	second := func() *corev1beta1.ControllerRegistration { return younger(registration("second", "Worker/local")) }
	check(t, []row{
		{"the older one", []change{has(second())}, "+base", manyPrimary},
		{"the installed one", []change{has(second()), installed("second", "False")}, "+base", manyPrimary},
		{"the one that is not being deleted", []change{
			func(in *Inputs) { in.Registrations = nil },
			has(deleting(registration("first", "Worker/local", "ControlPlane/local", "Infrastructure/local")), younger(registration("second", "Worker/local", "ControlPlane/local", "Infrastructure/local"))),
		}, "+second", manyPrimary},
		{"equally old ones: by name", []change{has(registration("a", "Worker/local"))}, "+a +base", manyPrimary},
	})
}

// TestDecideDeletion tests installations that are no longer needed.
func TestDecideDeletion(t *testing.T) {
	other := has(registration("other", "Infrastructure/other"))
	check(t, []row{
		{"not needed", []change{other, installed("other", "False")}, "+base -other", ""},
		{"not needed, but objects exist", []change{other, installed("other", "True")}, "+base", ""},
		{"not needed, and it is not known whether objects exist", []change{other, installed("other", "")}, "+base =other", ""},
		{"not needed, and the gardenlet does not know", []change{other, installed("other", "Unknown")}, "+base =other", ""},
		{"not needed, and no gardenlet has seen it", []change{other, installed("other", "", untouched)}, "+base -other", ""},
		{"not needed, being deleted", []change{other, installed("other", "False", beingDeleted)}, "+base", ""},
		{"needed, being deleted", []change{installed("base", "True", beingDeleted)}, "=base", ""},
		{"not needed, while something is not served", []change{other, installed("other", "False"), shoot()}, "+base =other", noPrimary},
		{"its registration is gone", []change{installed("gone", "False")}, "+base -gone", ""},
		{"its registration is gone, and it is not known whether objects exist", []change{installed("gone", "")}, "+base -gone", ""},
		{"its registration is gone, and objects exist", []change{installed("gone", "True")}, "+base =gone", ""},
		{"its registration is being deleted", []change{has(deleting(registration("other", "Infrastructure/other"))), installed("other", "False")}, "+base -other", ""},
		{"its registration is being deleted, and needed", []change{func(in *Inputs) { deleting(in.registration("base")) }, installed("base", "False")}, "", ""},
		{"a registration that is being deleted is not installed", []change{func(in *Inputs) { deleting(in.registration("base")) }}, "", ""},
		{"installed twice", []change{installed("base", "True"), installed("base", "True", func(i *corev1beta1.ControllerInstallation) { i.Name += "x" })}, "", "delete the second one"},
	})
}

// TestDecideUpdates tests the fields of an installation that come from its registration, its deployment and its Seed.
func TestDecideUpdates(t *testing.T) {
	base := installed("base", "True")
	check(t, []row{
		{"the registration", []change{base, func(in *Inputs) { in.registration("base").Spec.Resources[0].Primary = nil }}, "~base", ""},
		{"the version of the registration alone", []change{base, func(in *Inputs) { in.registration("base").ResourceVersion = "99" }}, "", ""},
		{"the Seed", []change{base, seed(func(s *corev1beta1.Seed) { s.Spec.Provider.Region = "other" })}, "~base", ""},
		{"the status of the Seed", []change{base, seed(func(s *corev1beta1.Seed) { s.ResourceVersion, s.Status.ObservedGeneration = "99", 7 })}, "", ""},
		{"the chart", []change{base, func(in *Inputs) { in.deployment("base").Helm.RawChart = []byte("another") }}, "~base", ""},
		{"the access to the garden", []change{base, func(in *Inputs) { in.deployment("base").InjectGardenKubeconfig = ptr.To(true) }}, "~base", ""},
		{"another deployment", []change{base, has(registration("other")), func(in *Inputs) { in.registration("base").Spec.Deployment.DeploymentRefs[0].Name = "other" }}, "~base", ""},
		{"no deployment", []change{base, func(in *Inputs) { in.registration("base").Spec.Deployment = nil }}, "~base", ""},
		{"a deployment that does not exist", []change{base, func(in *Inputs) { in.Deployments = nil }}, "", noDeployment},
		{"not installed, and the deployment does not exist", []change{func(in *Inputs) { in.Deployments = nil }}, "", noDeployment},
		{"the pod security", []change{base, func(in *Inputs) {
			in.registration("base").Annotations = map[string]string{constants.AnnotationPodSecurityEnforce: "restricted"}
		}}, "~base", ""},
		{"a resource of the deployment", []change{func(in *Inputs) {
			in.deployment("base").Resources = []gardencorev1.NamedResourceReference{{Name: "settings", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}}}
		}, base, func(in *Inputs) { in.ResourceVersions[Resource{"ConfigMap", "settings"}] = "31" }}, "~base", ""},
		{"a label of another client", []change{installed("base", "True", func(i *corev1beta1.ControllerInstallation) { i.Labels["other"] = "label" })}, "", ""},
	})
}
