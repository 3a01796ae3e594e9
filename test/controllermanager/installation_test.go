package controllermanager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/installation"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestInstallations runs extensions through their life cycle from registration to removal. The steps depend on each other.
func TestInstallations(t *testing.T) {
	f := newFixture(t)
	f.start()
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"registered", f.registers}, {"Shoot", f.servesShoot}, {"label", f.labelsShoot}, {"hibernation", f.hibernatesShoot}, {"retry", f.retriesShoot}, {"condition", f.sumsUpExtensions}, {"references", f.keepsReferences}, {"changes", f.followsChanges}, {"policies", f.keepsPolicies}, {"rest", f.rests},
		{"restart", f.restarts}, {"no longer needed", f.uninstalls}, {"registration deleted", f.deletesRegistration}, {"Seed deleted", f.deletesSeed},
		{"requests", f.sendsWhatItMay},
	} {
		before := f.T
		if !t.Run(step.name, func(t *testing.T) { f.T = t; step.run() }) {
			f.T = before
			t.FailNow()
		}
		f.T = before
	}
}

// register creates a registration with a deployment.
func (f *fixture) register(name string, change func(*corev1beta1.ControllerRegistration), ids ...string) *corev1beta1.ControllerRegistration {
	f.Helper()
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	registration.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{DeploymentRefs: []corev1beta1.DeploymentRef{{Name: name}}}
	for _, id := range ids {
		kind, typ, _ := strings.Cut(id, "/")
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: typ})
	}
	if change != nil {
		change(registration)
	}
	f.create(&gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Helm: &gardencorev1.HelmControllerDeployment{RawChart: []byte(strings.Repeat("chart", 100))},
	})
	f.create(registration)
	return registration
}

// registers checks that the extensions that a Seed itself needs are installed, and that the objects get finalizers.
func (f *fixture) registers() {
	seed := example(f, "seed.yaml", &corev1beta1.Seed{})
	f.create(seed)
	registration := f.register("provider", nil, "DNSRecord/local", "ControlPlane/local", "Infrastructure/local", "Worker/local", "Extension/networking-filter",
		"BackupBucket/local", "BackupEntry/local")
	f.eventuallyInstalled("provider")
	i := f.installations()["provider"]
	if !strings.HasPrefix(i.Name, "provider-") || i.Spec.DeploymentRef == nil || i.Spec.DeploymentRef.Name != "provider" || i.Spec.SeedRef.Name != seedName ||
		i.Labels[installation.LabelSeedSpecHash] == "" || i.Labels[installation.LabelRegistrationSpecHash] == "" || i.Labels[installation.LabelDeploymentHash] == "" {
		f.Errorf("the installation is %+v", i)
	}
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "provider"}}
	for object, finalizer := range map[client.Object]string{
		seed: constants.FinalizerControllerRegistration, registration: constants.FinalizerControllerRegistration, deployment: constants.FinalizerControllerDeployment,
	} {
		kit.EventuallyTrue(f, "the object has the finalizer "+finalizer, func() bool { return f.exists(object) && controllerutil.ContainsFinalizer(object, finalizer) })
	}
}

// servesShoot checks that registered extensions that a Shoot needs are installed, and that an Event names the missing ones.
func (f *fixture) servesShoot() {
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev"}})
	shoot := example(f, "shoot.yaml", &corev1beta1.Shoot{})
	shoot.Spec.SeedName = ptr.To(seedName)
	f.create(shoot)
	f.register("network", nil, "Network/local")
	f.eventuallyInstalled("provider", "network")
	f.register("others", nil, "OperatingSystemConfig/linux", "ContainerRuntime/sandbox", "Extension/shoot-dns-service")
	f.eventuallyInstalled("provider", "network", "others")
	kit.Eventually(f, "an Event names the missing extensions", func() string {
		var events corev1.EventList
		kit.Must(f, f.client.List(f.Context(), &events))
		for _, event := range events.Items {
			if event.Reason == "ExtensionsNotInstalled" && strings.Contains(event.Message, "needs Network/local") && event.InvolvedObject.Name == seedName {
				return ""
			}
		}
		return "no Event found"
	})
}

// labelsShoot checks that the label of the Shoot follows its status, and that manual changes of the label are reverted.
func (f *fixture) labelsShoot() {
	shoot := example(f, "shoot.yaml", &corev1beta1.Shoot{})
	eventually := func(value string) {
		kit.EventuallyTrue(f, "the Shoot is labelled "+value, func() bool { return f.exists(shoot) && shoot.Labels[constants.LabelShootStatus] == value })
	}
	eventually("healthy")
	shoot.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateSucceeded, Description: "done", LastUpdateTime: metav1.Now(),
	}
	shoot.Status.Conditions = []corev1beta1.Condition{{
		Type: corev1beta1.ShootControlPlaneHealthy, Status: corev1beta1.ConditionFalse, Reason: "Test", Message: "it fails", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
	}}
	kit.WriteStatus(f, f.client, shoot)
	eventually("unhealthy")
	kit.Change(f, f.client, shoot, func() { shoot.Labels[constants.LabelShootStatus] = "healthy" })
	eventually("unhealthy")
}

// keepsReferences checks that an object that a deployment references cannot be deleted. An object without the required role
// is not protected.
func (f *fixture) keepsReferences() {
	meta := func(name, role string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: map[string]string{constants.LabelGardenRole: role}}
	}
	pull, bundle := &corev1.Secret{ObjectMeta: meta("pull", constants.RoleHelmPullSecret)}, &corev1.Secret{ObjectMeta: meta("bundle", constants.RoleOCICABundle)}
	values, wrong := &corev1.ConfigMap{ObjectMeta: meta("values", constants.RoleResourceReference)}, &corev1.Secret{ObjectMeta: meta("wrong", constants.RoleHelmPullSecret)}
	for _, object := range []client.Object{pull, bundle, values, wrong} {
		f.create(object)
	}
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "referring"}}
	deployment.Helm = &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{
		Ref: ptr.To("registry.example.org/chart:1"), PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}, CABundleSecretRef: &corev1.LocalObjectReference{Name: "bundle"},
	}}
	deployment.Resources = []gardencorev1.NamedResourceReference{
		{Name: "values", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "values"}},
		{Name: "wrong", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "wrong"}},
	}
	f.create(deployment)
	kept := func(object client.Object) bool {
		return f.exists(object) && controllerutil.ContainsFinalizer(object, constants.FinalizerReferenceProtection)
	}
	for _, object := range []client.Object{pull, bundle, values} {
		kit.EventuallyTrue(f, object.GetName()+" is protected", func() bool { return kept(object) })
	}
	if kept(wrong) {
		f.Error("a Secret that the deployment cannot use is protected")
	}
	f.delete(pull)
	kit.Eventually(f, "an Event names the deployment that references the Secret", func() string {
		var events corev1.EventList
		kit.Must(f, f.client.List(f.Context(), &events, client.InNamespace("garden")))
		for _, event := range events.Items {
			if event.Reason == "ResourceReferenced" && event.InvolvedObject.Name == "pull" && strings.Contains(event.Message, "ControllerDeployment referring") {
				return ""
			}
		}
		return "no Event found"
	})
	if !kept(pull) {
		f.Error("the pull secret is released although a deployment references it")
	}
	kit.Change(f, f.client, deployment, func() { deployment.Helm.OCIRepository.PullSecretRef = nil })
	kit.EventuallyTrue(f, "the pull secret is deleted", func() bool { return !f.exists(pull) })
	kit.Change(f, f.client, bundle, func() { bundle.Labels = nil })
	kit.EventuallyTrue(f, "the Secret without its role is released", func() bool { return f.exists(bundle) && !kept(bundle) })
	f.delete(deployment)
	f.delete(values)
	kit.EventuallyTrue(f, "the unreferenced ConfigMap is deleted", func() bool { return !f.exists(values) })
}

// sumsUpExtensions checks that the Seed's condition follows the conditions of its installations, and that other conditions
// do not affect it.
func (f *fixture) sumsUpExtensions() {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}
	eventually := func(want, text string) {
		f.Helper()
		kit.Eventually(f, "ExtensionsReady is "+want, func() string {
			f.exists(seed)
			for _, condition := range seed.Status.Conditions {
				if condition.Type == corev1beta1.SeedExtensionsReady && strings.HasSuffix(string(condition.Status)+" "+condition.Reason, want) && strings.Contains(condition.Message, text) {
					return ""
				}
			}
			return fmt.Sprintf("the conditions are %+v", seed.Status.Conditions)
		})
	}
	eventually("NotAllExtensionsInstalled", "network (gardenlet has not observed it yet)")
	gardenlet := client.StrategicMergeFrom(seed.DeepCopy())
	seed.Status.Conditions = append(seed.Status.Conditions, corev1beta1.Condition{
		Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "GardenletReady", Message: "it works", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
	})
	kit.Must(f, f.client.Status().Patch(f.Context(), seed, gardenlet))
	for _, installation := range f.installations() {
		f.reports(installation, corev1beta1.ConditionTrue)
	}
	eventually("True AllExtensionsReady", "")
	f.reports(f.installations()["network"], corev1beta1.ConditionFalse)
	eventually("Progressing NotAllExtensionsHealthy", "network (it is a test)")
	f.reports(f.installations()["network"], corev1beta1.ConditionTrue)
	eventually("True AllExtensionsReady", "")

	after := client.StrategicMergeFrom(seed.DeepCopy())
	for i := range seed.Status.Conditions {
		seed.Status.Conditions[i].Status = corev1beta1.ConditionProgressing // as gardenlet does after an operation
	}
	kit.Must(f, f.client.Status().Patch(f.Context(), seed, after))
	eventually("True AllExtensionsReady", "")
	if len(seed.Status.Conditions) != 3 { // and that of its backups
		f.Errorf("the conditions are %+v", seed.Status.Conditions)
	}
}

// reports simulates gardenlet for an installed extension: it reports the conditions of the installation, and whether it is
// healthy.
func (f *fixture) reports(installation *corev1beta1.ControllerInstallation, healthy corev1beta1.ConditionStatus) {
	f.Helper()
	installation.Status.Conditions = nil
	for kind, status := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
		corev1beta1.ControllerInstallationValid: corev1beta1.ConditionTrue, corev1beta1.ControllerInstallationInstalled: corev1beta1.ConditionTrue,
		corev1beta1.ControllerInstallationHealthy: healthy, corev1beta1.ControllerInstallationProgressing: corev1beta1.ConditionFalse,
	} {
		installation.Status.Conditions = append(installation.Status.Conditions, corev1beta1.Condition{
			Type: kind, Status: status, Reason: "Test", Message: "it is a test", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
	}
	kit.WriteStatus(f, f.client, installation)
}

// followsChanges checks that an installation follows changes of its deployment, but not of the status of its Seed.
func (f *fixture) followsChanges() {
	before := f.installations()["network"]
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}
	f.exists(seed)
	change := client.MergeFrom(seed.DeepCopy())
	seed.Status.KubernetesVersion = ptr.To("1.37.1")
	kit.Must(f, f.client.Status().Patch(f.Context(), seed, change))
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "network"}}
	f.exists(deployment)
	kit.Change(f, f.client, deployment, func() { deployment.Helm.RawChart = []byte(strings.Repeat("other", 100)) })
	kit.EventuallyTrue(f, "the hash of the deployment changes", func() bool {
		return f.installations()["network"].Labels[installation.LabelDeploymentHash] != before.Labels[installation.LabelDeploymentHash]
	})
	after := f.installations()["network"]
	if after.Name != before.Name || after.Spec.DeploymentRef.ResourceVersion == before.Spec.DeploymentRef.ResourceVersion {
		f.Errorf("the installation is %+v", after)
	}
	if other := f.installations()["others"]; other.Generation != 1 {
		f.Errorf("the installation of another registration has changed: %+v", other)
	}
}

// keepsPolicies checks the policies Always and AlwaysExceptNoShoots, and a seed selector.
func (f *fixture) keepsPolicies() {
	with := func(policy corev1beta1.ControllerDeploymentPolicy, key string) func(*corev1beta1.ControllerRegistration) {
		return func(r *corev1beta1.ControllerRegistration) {
			r.Spec.Deployment.Policy = &policy
			if key != "" {
				r.Spec.Deployment.SeedSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: "private"}}
			}
		}
	}
	f.register("always", with(corev1beta1.ControllerDeploymentPolicyAlways, ""))
	f.register("with-shoots", with(corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots, ""))
	f.register("selected", with(corev1beta1.ControllerDeploymentPolicyAlways, "seed.gardener.cloud/network"))
	f.register("not-selected", with(corev1beta1.ControllerDeploymentPolicyAlways, "other"))
	f.eventuallyInstalled("provider", "network", "others", "always", "with-shoots", "selected")
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}
	f.exists(seed)
	kit.Change(f, f.client, seed, func() { seed.Labels["seed.gardener.cloud/network"] = "public" })
	f.eventuallyInstalled("provider", "network", "others", "always", "with-shoots")
}

func (f *fixture) rests() {
	lines := f.quiet()
	f.quiet()
	if sent, _ := f.requests(lines); len(withoutEvents(sent)) > 0 {
		f.Errorf("requests at rest: %q", described(sent))
	}
}

// restarts checks that the program writes nothing after a restart if nothing has changed.
func (f *fixture) restarts() {
	kit.Must(f, f.process.Stop(kit.WaitTimeout))
	_, lines := f.requests(0)
	before := f.renewed()
	f.start()
	kit.EventuallyTrue(f, "the controller-manager leads", func() bool { return f.renewed().After(before) })
	f.quiet()
	sent, _ := f.requests(lines)
	for _, request := range described(withoutEvents(sent)) {
		if verb, _, _ := strings.Cut(request, " "); verb != "get" && verb != "list" {
			f.Errorf("a restart wrote: %s", request)
		}
	}
}

// isRequired simulates gardenlet for an installation: it adds a finalizer, and reports whether extension objects exist.
func (f *fixture) isRequired(name string, status corev1beta1.ConditionStatus) *corev1beta1.ControllerInstallation {
	f.Helper()
	i := f.installations()[name]
	kit.Change(f, f.client, i, func() { controllerutil.AddFinalizer(i, constants.FinalizerControllerInstallation) })
	i.Status.Conditions = []corev1beta1.Condition{{
		Type: corev1beta1.ControllerInstallationRequired, Status: status, Reason: "Test", Message: "for the test",
		LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
	}}
	kit.WriteStatus(f, f.client, i)
	return i
}

// uninstalls checks that installations are deleted when the Shoot and its extension objects no longer exist.
func (f *fixture) uninstalls() {
	network := f.isRequired("network", corev1beta1.ConditionTrue)
	others := f.isRequired("others", corev1beta1.ConditionFalse)
	shoot := example(f, "shoot.yaml", &corev1beta1.Shoot{})
	f.exists(shoot)
	kit.Change(f, f.client, shoot, func() {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	})
	f.delete(shoot)
	kit.EventuallyTrue(f, "the installation of others is being deleted", func() bool { return f.exists(others) && others.DeletionTimestamp != nil })
	kit.Change(f, f.client, others, func() { others.Finalizers = nil })
	f.eventuallyInstalled("provider", "network", "always")
	if f.exists(network); network.DeletionTimestamp != nil {
		f.Error("the installation of the network is being deleted although extension objects exist")
	}
	f.isRequired("network", corev1beta1.ConditionFalse)
	kit.EventuallyTrue(f, "the installation of the network is being deleted", func() bool { return f.exists(network) && network.DeletionTimestamp != nil })
	kit.Change(f, f.client, network, func() { network.Finalizers = nil })
	f.eventuallyInstalled("provider", "always")
}

// deletesRegistration checks that a registration is kept as long as it is installed, and its deployment as long as it is
// referenced.
func (f *fixture) deletesRegistration() {
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "provider"}}
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "always"}}
	f.delete(deployment)
	f.delete(registration)
	f.quiet()
	if !f.exists(registration) || !f.exists(deployment) {
		f.Fatal("an installed registration or a referenced deployment was deleted")
	}
	f.eventuallyInstalled("provider", "always")
	always := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "always"}}
	f.exists(always)
	kit.Change(f, f.client, always, func() { always.Spec.Deployment.Policy = ptr.To(corev1beta1.ControllerDeploymentPolicyOnDemand) })
	f.eventuallyInstalled("provider")
	f.delete(always)
	kit.EventuallyTrue(f, "the registration and its deployment are deleted", func() bool { return !f.exists(always) && !f.exists(deployment) })
}

// deletesSeed checks that the last installation is deleted with the Seed, and that the objects that it refers to are
// released.
func (f *fixture) deletesSeed() {
	provider := f.isRequired("provider", corev1beta1.ConditionFalse)
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}
	f.exists(seed)
	kit.Change(f, f.client, seed, func() {
		metav1.SetMetaDataAnnotation(&seed.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	})
	f.delete(seed)
	kit.EventuallyTrue(f, "the last installation is being deleted", func() bool { return f.exists(provider) && provider.DeletionTimestamp != nil })
	if !f.exists(seed) {
		f.Fatal("the Seed was deleted before its installations")
	}
	kit.Change(f, f.client, provider, func() { provider.Finalizers = nil })
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "provider"}}
	kit.EventuallyTrue(f, "the Seed and the registration are deleted", func() bool { return !f.exists(seed) && !f.exists(registration) })
}

// sendsWhatItMay compares all requests with the writes that the program may send.
func (f *fixture) sendsWhatItMay() {
	allowed := []string{
		"create controllerinstallations", "patch controllerinstallations", "delete controllerinstallations",
		"patch seeds", "patch controllerregistrations", "patch controllerdeployments", "patch shoots", "create events", "patch events",
		"patch secrets", "patch configmaps", "create roles", "update roles", "delete roles", "create rolebindings", "update rolebindings", "delete rolebindings",
		"create namespaces",
	}
	events, _ := f.requests(0)
	for _, request := range described(events) {
		if verb, _, _ := strings.Cut(request, " "); verb != "get" && verb != "list" && !slices.Contains(allowed, request) {
			f.Errorf("%s is not allowed by the rule", request)
		}
	}
	f.Logf("requests: %q", described(events))
	for _, event := range events {
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
			f.Errorf("the program lacks a permission: %s %s", event.Verb, event.RequestURI)
		}
	}
}
