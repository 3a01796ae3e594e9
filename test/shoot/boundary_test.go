package shoot

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/shootnamespace"
	"github.com/trellis-k8s/trellis/test/kit"
)

// intruder is the name of all objects that must not be created.
const intruder = "intruder"

// escapes are manifests that would affect the seed outside the namespace of the control plane, with a text of the error.
var escapes = []struct{ reason, manifest string }{
	{"cannot patch resource \"clusterrolebindings\"", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: intruder}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: shoot--dev--one}]`},
	{"cannot patch resource \"pods\" in API group \"\" in the namespace \"garden\"", `
apiVersion: v1
kind: Pod
metadata: {name: intruder, namespace: garden}
spec: {containers: [{name: intruder, image: intruder}]}`},
	{"cannot patch resource \"configmaps\" in API group \"\" in the namespace \"kube-system\"", `
apiVersion: v1
kind: ConfigMap
metadata: {name: intruder, namespace: kube-system}`},
	{"cannot patch resource \"namespaces\"", `
apiVersion: v1
kind: Namespace
metadata: {name: intruder}`},
	{"attempting to grant RBAC permissions not currently held", `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: intruder, namespace: shoot--dev--one}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`},
	{"attempting to grant RBAC permissions not currently held", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: intruder, namespace: shoot--dev--one}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: shoot--dev--one}]`},
	{"volumes of type hostPath are not permitted", workload("Deployment", "volumes: [{name: host, hostPath: {path: /}}], containers: [{name: a, image: a}]")},
	{"privileged containers are not permitted", workload("StatefulSet", "containers: [{name: a, image: a, securityContext: {privileged: true}}]")},
	{"privileged containers are not permitted", workload("Deployment", "initContainers: [{name: b, image: b, securityContext: {privileged: true}}], containers: [{name: a, image: a}]")},
	{"hostNetwork, hostPID and hostIPC are not permitted", workload("Deployment", "hostPID: true, containers: [{name: a, image: a}]")},
	{"only the capabilities of the Pod Security Standard Baseline", workload("Deployment", "containers: [{name: a, image: a, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]")},
	{"host ports are not permitted", workload("Deployment", "containers: [{name: a, image: a, ports: [{containerPort: 1, hostPort: 1}]}]")},
	{"external IP addresses are not permitted", `
apiVersion: v1
kind: Service
metadata: {name: intruder, namespace: shoot--dev--one}
spec: {externalIPs: [10.0.0.1], ports: [{port: 443}]}`},
}

// workload returns the manifest of a Deployment or StatefulSet in the namespace of the control plane.
func workload(kind, pod string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
metadata: {name: intruder, namespace: %s}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {%s}}`, kind, technical, pod)
}

// TestBoundary checks that programs that may write manifests into the namespace of a control plane cannot use the
// permissions of the seed's resource-manager. Each program has exactly the permissions of its component.
func TestBoundary(t *testing.T) {
	w := newWorld(t)
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	_, _, stop := w.gardenlet()
	w.declare()
	for _, name := range []string{"shoot-access", "kube-apiserver-service", "etcd-main", "etcd-events"} {
		w.applied(name, resourcesv1alpha1.ConditionTrue, "")
	}
	stop() // it would restore the ManagedResources

	manager := w.shootManager()
	// It may not create Secrets, and those with manifests are immutable. It can change Secrets with tokens, such as those of
	// extensions.
	const tokens = "shoot-access-extension"
	w.create(w.seed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: tokens}, Data: map[string][]byte{"token": nil}})
	for i, escape := range escapes {
		t.Logf("the shoot's resource-manager, escape %d: %s", i, escape.reason)
		w.replace(manager, "shoot-access", tokens, escape.manifest, i > 0)
		w.applied("shoot-access", resourcesv1alpha1.ConditionFalse, escape.reason)
	}
	kit.Must(t, manager.Patch(t.Context(), bundle("shoot-access"), client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"serviceAccountName":"garden/gardener-resource-manager"}}`))))
	w.applied("shoot-access", resourcesv1alpha1.ConditionFalse, "spec.serviceAccountName must be "+shootnamespace.Account)
	w.nothingCreated()

	operator := w.operator()
	for i, account := range []string{"", shootnamespace.Account, "default", "garden/default", "kube-system/default"} {
		name := fmt.Sprintf("%s-%d", intruder, i)
		w.deploy(operator, technical, name, account)
		reason := escapes[0].reason
		if i > 1 {
			reason = "permits no other account"
		}
		w.applied(name, resourcesv1alpha1.ConditionFalse, reason)
	}
	for _, other := range []string{constants.GardenNamespace, metav1.NamespaceSystem, metav1.NamespaceDefault} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: intruder}}
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: secret.ObjectMeta, Spec: resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To("seed"), SecretRefs: []resourcesv1alpha1.LocalObjectReference{}}}
		for _, object := range []client.Object{secret, mr} {
			// A policy takes effect some time after its creation.
			kit.EventuallyTrue(t, fmt.Sprintf("the etcd operator may not create %T in namespace %s", object, other), func() bool {
				return apierrors.IsForbidden(operator.Create(t.Context(), object, client.DryRunAll))
			})
		}
	}
	w.nothingCreated()
}

// shootManager returns a client with the permissions of the shoot's resource-manager.
func (w *world) shootManager() client.Client {
	w.Helper()
	objects, err := resourcemanager.ShootObjects(resourcemanager.ShootValues{Namespace: technical, Image: "image", ClusterID: "seed-1", Kubeconfig: "kubeconfig"})
	kit.Must(w, err)
	w.createRights(objects)
	return w.seedAs("system:serviceaccount:" + technical + ":" + resourcemanager.Name)
}

// operator returns a client with the permissions of the etcd operator.
func (w *world) operator() client.Client {
	w.Helper()
	objects, err := etcdoperator.Objects(etcdoperator.Values{Namespace: constants.GardenNamespace, Image: "image", MemberImage: "image"})
	kit.Must(w, err)
	w.createRights(objects)
	return w.seedAs("system:serviceaccount:" + constants.GardenNamespace + ":etcd-druid")
}

// createRights creates the permissions of a component, and the policies that restrict it.
func (w *world) createRights(objects []client.Object) {
	w.Helper()
	for _, object := range objects {
		switch object.(type) {
		case *rbacv1.Role, *rbacv1.RoleBinding, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding,
			*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			w.create(w.seed, object)
		}
	}
}

// seedAs returns a client of the seed for a user.
func (w *world) seedAs(user string) client.Client {
	w.Helper()
	config := w.seeds.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: w.scheme})
	kit.Must(w, err)
	return c
}

func bundle(name string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: name}}
}

// replace replaces the manifests of a ManagedResource by one in a Secret that exists. RBAC caches may be outdated at first.
func (w *world) replace(as client.Client, name, secret, manifest string, again bool) {
	w.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: secret}}
	patch := client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"data":null,"stringData":{"objects.yaml":%q}}`, manifest)))
	kit.Eventually(w, "the Secret is changed", func() string { return kit.TextOf(as.Patch(w.Context(), object, patch)) })
	if !again {
		kit.Must(w, as.Patch(w.Context(), bundle(name), client.RawPatch("application/merge-patch+json",
			[]byte(fmt.Sprintf(`{"spec":{"serviceAccountName":null,"secretRefs":[{"name":%q}]}}`, secret)))))
	}
}

// deploy creates a ManagedResource with the first of the escapes.
func (w *world) deploy(as client.Client, namespace, name, account string) {
	w.Helper()
	// Other ManagedResources in the test want objects of other names.
	manifest := strings.ReplaceAll(escapes[0].manifest, "{name: "+intruder+"}", "{name: "+name+"}")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"objects.yaml": []byte(manifest)}}
	kit.Eventually(w, "the Secret is created", func() string { return kit.TextOf(as.Create(w.Context(), secret)) })
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: resourcesv1alpha1.ManagedResourceSpec{
		Class: ptr.To("seed"), ServiceAccountName: account, SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: name}},
	}}
	kit.Must(w, as.Create(w.Context(), mr))
}

// applied waits until the condition ResourcesApplied of a ManagedResource has a status, and its message contains a text.
func (w *world) applied(name string, status resourcesv1alpha1.ConditionStatus, text string) {
	w.Helper()
	kit.Eventually(w, fmt.Sprintf("ResourcesApplied of %s is %s and contains %q", name, status, text), func() string {
		mr := bundle(name)
		if err := w.seed.Get(w.Context(), client.ObjectKeyFromObject(mr), mr); err != nil {
			return err.Error() + "\n" + w.bundles()
		}
		condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
		if condition.Status != status || !strings.Contains(condition.Message, text) || mr.Status.ObservedGeneration != mr.Generation {
			return fmt.Sprintf("%+v", condition)
		}
		return ""
	})
}

// nothingCreated checks that none of the escapes exists.
func (w *world) nothingCreated() {
	w.Helper()
	var bindings rbacv1.ClusterRoleBindingList
	kit.Must(w, w.seed.List(w.Context(), &bindings))
	for _, binding := range bindings.Items {
		if strings.HasPrefix(binding.Name, intruder) {
			w.Errorf("ClusterRoleBinding %s exists", binding.Name)
		}
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: intruder}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: intruder}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: intruder}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: intruder}}, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: intruder}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: intruder}}, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: intruder}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: intruder}},
	} {
		if err := w.seed.Get(w.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			w.Errorf("%T %s exists: %v", object, client.ObjectKeyFromObject(object), err)
		}
	}
}
