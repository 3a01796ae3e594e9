package installation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

var now = metav1.NewTime(time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC))

// change changes the inputs that emptySeed returns to those of a case.
type change func(*Inputs)

// emptySeed returns the inputs for a Seed without Shoots. The registration "base" provides everything that the Seed itself
// needs.
func emptySeed() Inputs {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "seed-uid", Labels: map[string]string{"region": "eu"}, ResourceVersion: "10"}}
	seed.Spec.Provider.Type = "local"
	in := Inputs{Seed: seed, ResourceVersions: map[Resource]string{{"ConfigMap", "settings"}: "30"}}
	has(registration("base", "ControlPlane/local", "Infrastructure/local", "Worker/local"))(&in)
	return in
}

// registration returns a registration that was installed with the deployment of the same name. A resource with the prefix "-"
// is not primary. One of kind Extension may be followed by " shoot" or " seed", for which it is enabled, and by " workerless".
func registration(name string, resources ...string) *corev1beta1.ControllerRegistration {
	r := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "20", CreationTimestamp: now}}
	r.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: name}}}
	for _, text := range resources {
		words := strings.Fields(strings.TrimPrefix(text, "-"))
		kind, typ, _ := strings.Cut(words[0], "/")
		resource := corev1beta1.ControllerResource{Kind: kind, Type: typ, Primary: ptr.To(!strings.HasPrefix(text, "-"))}
		for _, word := range words[1:] {
			if word == "workerless" {
				resource.WorkerlessSupported = ptr.To(true)
			} else {
				resource.AutoEnable = append(resource.AutoEnable, corev1beta1.ClusterType(word))
			}
		}
		r.Spec.Resources = append(r.Spec.Resources, resource)
	}
	return r
}

// has adds registrations with their deployments.
func has(registrations ...*corev1beta1.ControllerRegistration) change {
	return func(in *Inputs) {
		for _, registration := range registrations {
			in.Registrations = append(in.Registrations, registration)
			in.Deployments = append(in.Deployments, &gardencorev1.ControllerDeployment{
				ObjectMeta: metav1.ObjectMeta{Name: registration.Name, ResourceVersion: "25"}, Helm: &gardencorev1.HelmControllerDeployment{RawChart: []byte("chart")},
			})
		}
	}
}

func policy(r *corev1beta1.ControllerRegistration, policy corev1beta1.ControllerDeploymentPolicy) *corev1beta1.ControllerRegistration {
	r.Spec.Deployment.Policy = &policy
	return r
}

func selects(r *corev1beta1.ControllerRegistration, key, value string) *corev1beta1.ControllerRegistration {
	r.Spec.Deployment.SeedSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	return r
}

func deleting(r *corev1beta1.ControllerRegistration) *corev1beta1.ControllerRegistration {
	r.DeletionTimestamp = &now
	return r
}

func younger(r *corev1beta1.ControllerRegistration) *corev1beta1.ControllerRegistration {
	r.CreationTimestamp = metav1.NewTime(now.Add(time.Hour))
	return r
}

// installed adds the installation of a registration as Decide creates it. A gardenlet has seen it, and its condition Required
// has the given status, or is missing if that is "".
func installed(name, required string, more ...func(*corev1beta1.ControllerInstallation)) change {
	return func(in *Inputs) {
		registration := in.registration(name)
		if registration == nil {
			registration = &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		i, err := in.installation(registration, nil)
		if err != nil {
			panic(err)
		}
		i.ResourceVersion, i.UID, i.Finalizers = "40", types.UID(i.Name), []string{constants.FinalizerControllerInstallation}
		if required != "" {
			i.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ControllerInstallationRequired, Status: corev1beta1.ConditionStatus(required)}}
		}
		for _, adjust := range more {
			adjust(i)
		}
		in.Installations = append(in.Installations, i)
	}
}

func beingDeleted(i *corev1beta1.ControllerInstallation) { i.DeletionTimestamp = &now }

// untouched changes an installation to one that no gardenlet has seen.
func untouched(i *corev1beta1.ControllerInstallation) { i.Finalizers, i.Status.Conditions = nil, nil }

// shoot adds a Shoot to the Seed with one worker pool, infrastructure local, network bridge and operating system linux.
func shoot(more ...func(*corev1beta1.Shoot)) change {
	return func(in *Inputs) {
		s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "web"}}
		s.Spec.SeedName, s.Spec.Provider.Type = ptr.To("one"), "local"
		s.Spec.Networking = &corev1beta1.Networking{Type: ptr.To("bridge")}
		s.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "pool", Machine: corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{Name: "linux"}}}}
		for _, adjust := range more {
			adjust(s)
		}
		in.Shoots = append(in.Shoots, s)
	}
}

func workerless(s *corev1beta1.Shoot) { s.Spec.Provider.Workers, s.Spec.Networking = nil, nil }

func withExtension(typ string, disabled bool) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		s.Spec.Extensions = append(s.Spec.Extensions, corev1beta1.Extension{Type: typ, Disabled: ptr.To(disabled)})
	}
}

func onSeed(spec, status string) func(*corev1beta1.Shoot) {
	optional := func(name string) *string {
		if name == "" {
			return nil
		}
		return &name
	}
	return func(s *corev1beta1.Shoot) { s.Spec.SeedName, s.Status.SeedName = optional(spec), optional(status) }
}

func withDomain(domain, primary string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		s.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To(domain)}
		if primary != "" {
			s.Spec.DNS.Providers = []corev1beta1.DNSProvider{{Type: ptr.To("second")}, {Type: ptr.To(primary), Primary: ptr.To(true)}}
		}
	}
}

func bucket(name, seed, typ string) change {
	return func(in *Inputs) {
		b := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.SeedName, b.Spec.Provider.Type = ptr.To(seed), typ
		in.Buckets = append(in.Buckets, b)
	}
}

func entry(spec, status, bucket string) change {
	return func(in *Inputs) {
		e := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "web"}}
		e.Spec.SeedName, e.Status.SeedName, e.Spec.BucketName = ptr.To(spec), ptr.To(status), bucket
		in.Entries = append(in.Entries, e)
	}
}

func seed(adjust func(*corev1beta1.Seed)) change { return func(in *Inputs) { adjust(in.Seed) } }

var seedDeleted = seed(func(s *corev1beta1.Seed) { s.DeletionTimestamp = &now })

func backupOf(provider string) change {
	return seed(func(s *corev1beta1.Seed) { s.Spec.Backup = &corev1beta1.Backup{Provider: provider} })
}

// served adds the registration "cluster", which provides everything that Shoots with nodes need.
func served(in *Inputs) {
	has(registration("cluster", "Network/bridge", "OperatingSystemConfig/linux"))(in)
}

// summary returns the steps as "+base", "~base" and "-base", sorted by name, and the kept installations as "=name".
func summary(in Inputs, d Decision) string {
	names := map[string]string{}
	for _, i := range in.Installations {
		names[i.Name] = i.Spec.RegistrationRef.Name
	}
	var words []string
	for _, step := range d.Steps {
		sign := map[Action]string{ActionCreate: "+", ActionUpdate: "~", ActionDelete: "-"}[step.Action]
		words = append(words, sign+step.Installation.Spec.RegistrationRef.Name)
	}
	for name := range d.Kept {
		words = append(words, "="+names[name])
	}
	return strings.Join(sorted(words), " ")
}

func sorted(words []string) []string {
	// Sort by name, regardless of the sign.
	for i := range words {
		for j := i + 1; j < len(words); j++ {
			if words[j][1:]+words[j] < words[i][1:]+words[i] {
				words[i], words[j] = words[j], words[i]
			}
		}
	}
	return words
}

func mustInstall(t *testing.T, in Inputs, name string) *corev1beta1.ControllerInstallation {
	t.Helper()
	i, err := in.installation(in.registration(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	return i
}
