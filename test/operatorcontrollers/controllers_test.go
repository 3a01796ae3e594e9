package operatorcontrollers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extension"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extensioncare"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extensionrequired"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/gardencare"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/reference"
	"github.com/trellis-k8s/trellis/test/kit"
)

// runControllers runs the controllers as the operator does, with the garden also as the virtual garden. installs is the one that installs Extensions.
func (f *fixture) runControllers(installs controller.Controller) {
	f.Helper()
	set := controller.Set{
		reference.Controller(), gardencare.Controller(), installs, extensionrequired.Runtime(), extensionrequired.Virtual(),
		extensioncare.Controller(),
	}
	kinds, err := set.Cache()
	kit.Must(f, err)
	options := kit.ManagerOptions(f.scheme)
	options.Cache = cache.Options{ByObject: kinds}
	mgr, err := manager.New(f.garden.Config(), options)
	kit.Must(f, err)
	virtual, err := cluster.New(f.garden.Config(), func(o *cluster.Options) { o.Scheme = f.scheme })
	kit.Must(f, err)
	kit.Must(f, mgr.Add(virtual))
	config := &v1alpha1.OperatorConfiguration{}
	v1alpha1.SetDefaults(config)
	deps := controller.Deps{
		Manager: mgr, Virtual: virtual, Recorder: events.NewFakeRecorder(100), Clock: clock.RealClock{}, Config: config, Version: "v1", Namespace: "garden",
	}
	for _, when := range []controller.When{controller.Always, controller.WithGarden, controller.WithVirtual} {
		kit.Must(f, set.Add(f.Context(), deps, when))
	}
	kit.Run(f, mgr)
}

// condition returns the status and the reason of a condition of an Extension.
func (f *fixture) condition(name string, kind corev1beta1.ConditionType) string {
	found := &operatorv1alpha1.Extension{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Name: name}, found); err != nil {
		return err.Error()
	}
	condition := corev1beta1.FindCondition(found.Status.Conditions, kind)
	if condition == nil {
		return "none"
	}
	return string(condition.Status) + "/" + condition.Reason
}

func (f *fixture) eventually(what, want string, get func() string) {
	f.Helper()
	kit.Eventually(f, what+" is "+want, func() string {
		if got := get(); got != want {
			return got
		}
		return ""
	})
}

// TestControllers runs the life of an Extension whose chart cannot be pulled, with a Garden that needs it.
func TestControllers(t *testing.T) {
	f := newFixture(t)
	f.runControllers(extension.Controller())
	const required, installed = operatorv1alpha1.ExtensionRequiredRuntime, operatorv1alpha1.ExtensionInstalled
	one := example[operatorv1alpha1.Extension](t, "extension")
	one.Name = "controllers"
	one.Spec.Deployment.AdmissionDeployment = nil
	one.Spec.Deployment.Resources[0].ResourceRef.Name = "controllers-settings"
	kit.Must(t, f.client.Create(t.Context(), one))
	defer f.remove(one)
	f.eventually("without a Garden, Installed", "False/NoGardenFound", func() string { return f.condition(one.Name, installed) })
	f.eventually("without a Garden, RequiredRuntime", "False/ExtensionNotRequired", func() string { return f.condition(one.Name, required) })
	f.eventually("RequiredVirtual", "False/NoRequiredControllerInstallation", func() string {
		return f.condition(one.Name, operatorv1alpha1.ExtensionRequiredVirtual)
	})

	garden := example[operatorv1alpha1.Garden](t, "garden")
	garden.Name, garden.Spec.DNS.Providers[0].SecretRef.Name = "controllers", "controllers-dns"
	kit.Must(t, f.client.Create(t.Context(), garden))
	defer f.remove(garden)
	f.eventually("RequiredRuntime", "True/ExtensionRequired", func() string { return f.condition(one.Name, required) })
	f.eventually("without its ConfigMap, Installed", "False/ReconcileFailed", func() string { return f.condition(one.Name, installed) })
	kit.Eventually(t, "the Garden has conditions", func() string {
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
			return err.Error()
		}
		for _, kind := range []corev1beta1.ConditionType{
			operatorv1alpha1.VirtualGardenAPIServerAvailable, operatorv1alpha1.RuntimeComponentsHealthy,
			operatorv1alpha1.VirtualComponentsHealthy, operatorv1alpha1.ObservabilityComponentsHealthy,
		} {
			if corev1beta1.FindCondition(garden.Status.Conditions, kind) == nil {
				return string(kind) + " is missing"
			}
		}
		return ""
	})

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "controllers-dns"}}
	kit.Must(t, f.client.Create(t.Context(), secret))
	defer f.remove(secret)
	protected := func() string {
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err.Error()
		}
		if controllerutil.ContainsFinalizer(secret, "gardener.cloud/reference-protection") {
			return "protected"
		}
		return "free"
	}
	f.eventually("the Secret for DNS", "protected", protected)
	kit.Must(t, f.client.Delete(t.Context(), secret))
	kit.Change(t, f.client, garden, func() { garden.Spec.DNS.Providers[0].SecretRef.Name = "another" })
	kit.Eventually(t, "the Secret that nothing refers to is gone", func() string {
		if got := protected(); !strings.Contains(got, "not found") {
			return got
		}
		return ""
	})
}

// TestRegistration checks that a reconciled Garden gets the registration of an extension.
func TestRegistration(t *testing.T) {
	f := newFixture(t)
	f.runControllers(extension.Controller())
	one := example[operatorv1alpha1.Extension](t, "extension")
	one.Name = "registration"
	one.Spec.Resources = one.Spec.Resources[:1]
	one.Spec.Deployment.AdmissionDeployment, one.Spec.Deployment.Resources = nil, nil
	kit.Must(t, f.client.Create(t.Context(), one))
	defer f.remove(one)
	garden := example[operatorv1alpha1.Garden](t, "garden")
	garden.Name = "registration"
	kit.Must(t, f.client.Create(t.Context(), garden))
	defer f.remove(garden)
	before := client.MergeFrom(garden.DeepCopy()) // the controllers write the Garden at the same time
	garden.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Now(), Description: "done",
	}
	kit.Must(t, f.client.Status().Patch(t.Context(), garden, before))
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "extension-registration-registration"}}
	kit.Eventually(t, "the registration is a ManagedResource of the virtual garden", func() string {
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); err != nil {
			return err.Error()
		}
		if mr.Spec.Class != nil || mr.Labels["origin"] != "gardener-operator" {
			return "it is that of another resource-manager"
		}
		return ""
	})
	f.eventually("Installed", "Progressing/Reconciling", func() string { return f.condition(one.Name, operatorv1alpha1.ExtensionInstalled) })

	kit.Must(t, f.client.Get(t.Context(), client.ObjectKeyFromObject(one), one))
	kit.Must(t, f.client.Delete(t.Context(), one))
	kit.Eventually(t, "the Extension is gone with its ManagedResource", func() string {
		for _, object := range []client.Object{one, mr} {
			if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil || err == nil {
				return object.GetName() + " exists: " + kit.TextOf(err)
			}
		}
		return ""
	})
}
