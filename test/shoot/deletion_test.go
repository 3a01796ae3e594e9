package shoot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// later is a clock that runs ahead.
type later struct {
	clock.RealClock
	by time.Duration
}

func (l later) Now() time.Time                   { return l.RealClock.Now().Add(l.by) }
func (l later) Since(at time.Time) time.Duration { return l.Now().Sub(at) }

const example = "example.org"

// TestDeletion deletes a hibernated Shoot with users' objects in its cluster, such as webhooks that deny all requests and
// custom resources that a controller elsewhere deletes.
func TestDeletion(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	_, _, stop := w.gardenlet()
	w.declare()
	server, manager := w.startServer(), w.startManager()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	admin := w.as(mastersGroup) // does not depend on RBAC objects
	custom := w.use(admin)
	shoot := w.get()
	kit.Change(t, w.garden, shoot, func() { shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)} })
	manager.Stop()
	w.awaitReplicas("kube-apiserver", 0)
	kit.Must(t, server.Stop(0))
	w.eventually(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded, "finished")

	bastion := w.bastion()
	w.delete(constants.AnnotationShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds)
	w.eventually(corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateProcessing, "the Bastions host of the Shoot")
	w.awaitReplicas("kube-apiserver", 0)
	w.releaseBastion(bastion, false)
	w.startServer()
	w.startManager()
	w.startControllers()
	w.eventually(corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateProcessing, "CustomResourceDefinition things."+example)
	w.gone(admin, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", "deny-all")
	kit.Must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "mine"}, &corev1.Service{})) // deleted in a later stage
	stop()

	w.clock = later{by: 11 * time.Minute}
	_, _, stop = w.gardenlet()
	w.failsWith(corev1beta1.ErrorCleanupClusterResources)
	stop()

	w.clock = clock.RealClock{}
	_, _, stop = w.gardenlet()
	kit.Change(t, admin, custom, func() { custom.SetFinalizers(nil) })
	w.awaitGone()
	stop()
	// The API server is still running because it is a process of the test.
	w.gone(admin, &apiextensionsv1.CustomResourceDefinition{}, "", "things."+example)
	w.gone(admin, &corev1.Service{}, "default", "mine")
	w.gone(admin, &corev1.PersistentVolumeClaim{}, "default", "guarded")
	for _, kept := range []struct {
		object          client.Object
		namespace, name string
	}{{&corev1.Service{}, "default", "kubernetes"}, {&corev1.Service{}, "default", "kept"}, {&corev1.ConfigMap{}, "default", "mine"}} {
		kit.Must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: kept.namespace, Name: kept.name}, kept.object))
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("these objects still exist: %v", left)
	}
}

// use creates a user's objects, and returns a custom resource whose deletion requires a controller.
func (w *world) use(admin client.Client) *unstructured.Unstructured {
	w.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "things." + example
	definition.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: example, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}},
	}
	kit.Must(w, admin.Create(w.Context(), definition))
	thing := &unstructured.Unstructured{}
	thing.SetAPIVersion(example + "/v1")
	thing.SetKind("Thing")
	thing.SetNamespace("default")
	thing.SetName("guarded")
	thing.SetFinalizers([]string{example + "/controller"})
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, "the custom resource can be created", func() string { return kit.TextOf(admin.Create(w.Context(), thing)) })
	service := func(name string, labels map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guarded", Finalizers: []string{example + "/controller"}}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	deny := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "deny-all"}}
	all := admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}}
	deny.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "deny.example.org", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/deny")}, TimeoutSeconds: ptr.To[int32](1),
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, Rule: all}},
	}}
	for _, object := range []client.Object{
		service("mine", nil), service("kept", map[string]string{constants.LabelShootNoCleanup: "true"}), claim,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}}, deny,
	} {
		kit.Must(w, admin.Create(w.Context(), object))
	}
	return thing
}

// delete deletes the Shoot as a user. The clean-up periods are 1 second.
func (w *world) delete(times ...string) {
	w.Helper()
	shoot := w.get()
	kit.Change(w, w.garden, shoot, func() {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
		for _, key := range times {
			metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, key, "1")
		}
	})
	kit.Must(w, w.garden.Delete(w.Context(), shoot))
}

// failsWith waits until the Shoot reports an error with a code.
func (w *world) failsWith(code corev1beta1.ErrorCode) {
	w.Helper()
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "the Shoot reports "+string(code), func() string {
		errs := w.get().Status.LastErrors
		if slices.ContainsFunc(errs, func(err corev1beta1.LastError) bool { return slices.Contains(err.Codes, code) }) {
			return ""
		}
		return fmt.Sprintf("%+v", errs)
	})
}

// awaitGone waits until the Shoot and its ShootState no longer exist.
func (w *world) awaitGone() {
	w.Helper()
	kit.EventuallyWithin(w, 6*kit.WaitTimeout, "the Shoot is deleted", func() string {
		if shoot := w.get(); shoot != nil {
			return shoot.Status.LastOperation.Description + "\n" + w.bundles()
		}
		return ""
	})
	w.gone(w.garden, &corev1beta1.ShootState{}, namespace, shootName)
}

// gone checks that an object does not exist.
func (w *world) gone(c client.Client, object client.Object, namespace, name string) {
	w.Helper()
	if err := c.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); !apierrors.IsNotFound(err) {
		w.Errorf("%T %s still exists: %v", object, name, err)
	}
}

// TestForcedDeletion deletes a Shoot while its API server and resource-manager are not running. All its objects are
// deleted, and no others.
func TestForcedDeletion(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	_, _, stop := w.gardenlet()
	w.declare()
	server := w.startServer()
	manager := w.startManager()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	kit.Must(t, server.Stop(0))
	kit.Must(t, manager.Command.Process.Kill())
	others := w.others()
	w.managedResource(technical, "of-an-extension")

	w.delete()
	w.eventually(corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationStateProcessing, "cannot be deleted")
	force := func() error {
		shoot := w.get()
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.AnnotationConfirmationForceDeletion, "true")
		return w.garden.Update(t.Context(), shoot)
	}
	if err := force(); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "force-deletion") {
		t.Errorf("forcing a deletion that has not failed is accepted: %v", err)
	}
	stop()
	w.clock = later{by: 11 * time.Minute}
	_, _, stop = w.gardenlet()
	w.failsWith(corev1beta1.ErrorCleanupClusterResources)
	stop()
	bastion := w.bastion()
	kit.Eventually(t, "the deletion is forced", func() string { return kit.TextOf(force()) })
	_, _, stop = w.gardenlet()
	w.releaseBastion(bastion, true)
	w.awaitGone()
	stop()
	if left := w.left(); !slices.Equal(left, []string{"ManagedResource other", "Namespace shoot--dev--two"}) {
		t.Errorf("the remaining objects are %v", left)
	}
	for _, other := range others {
		before := other.GetResourceVersion()
		kit.Must(t, w.seed.Get(t.Context(), client.ObjectKeyFromObject(other), other))
		if other.GetResourceVersion() != before {
			t.Errorf("%T %s was changed", other, other.GetName())
		}
	}
}

// bastion creates a Bastion with the finalizer of its extension.
func (w *world) bastion() *extensionsv1alpha1.Bastion {
	w.Helper()
	bastion := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: "host", Finalizers: []string{example + "/bastion"}}}
	bastion.Spec.Type, bastion.Spec.UserData = "local", []byte("start")
	bastion.Spec.Ingress = []extensionsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}
	w.create(w.seed, bastion)
	return bastion
}

// releaseBastion does what the extension does when a Bastion is deleted. If forced is set, the annotation for a forced
// deletion is required.
func (w *world) releaseBastion(bastion *extensionsv1alpha1.Bastion, forced bool) {
	w.Helper()
	kit.EventuallyTrue(w, "the Bastion is deleted", func() bool {
		kit.Must(w, w.seed.Get(w.Context(), client.ObjectKeyFromObject(bastion), bastion))
		return bastion.DeletionTimestamp != nil && forced == (bastion.Annotations[constants.AnnotationConfirmationForceDeletion] == "true")
	})
	kit.Change(w, w.seed, bastion, func() { bastion.Finalizers = nil })
}

// others creates objects of another Shoot, including some that wait for another resource-manager.
func (w *world) others() []client.Object {
	w.Helper()
	w.create(w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--two"}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--two", Name: "ca", Labels: map[string]string{"persist": "true", "manager-identity": "gardenlet"}}}
	w.create(w.seed, secret)
	mr := w.managedResource("shoot--dev--two", "other")
	kit.Must(w, w.seed.Delete(w.Context(), mr))
	kit.Must(w, w.seed.Get(w.Context(), client.ObjectKeyFromObject(mr), mr))
	return []client.Object{secret, mr}
}

// managedResource creates a ManagedResource with the finalizer of a shoot's resource-manager.
func (w *world) managedResource(namespace, name string) *resourcesv1alpha1.ManagedResource {
	w.Helper()
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{constants.FinalizerResourceManager}}}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{}
	w.create(w.seed, mr)
	return mr
}
