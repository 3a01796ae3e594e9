// Package manualdeletion tests the protection from deletions by hand on a real control plane. Its kube-controller-manager deletes as
// its own ServiceAccounts. The resource-manager runs as a process with its own user.
package manualdeletion

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/webhooks"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

// The users of the test. All have the rights of administrators.
const (
	jane      = "jane"
	gardenlet = "system:serviceaccount:garden:gardenlet"
)

var shared = controlplane.Shared{Options: controlplane.Options{
	ControllerManager: true, ControllerManagerArgs: []string{"--use-service-account-credentials=true"},
}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// fixture is a control plane that calls the webhooks of a resource-manager.
type fixture struct {
	*testing.T
	scheme  *runtime.Scheme
	process *kit.Process
	// jane is a person, flow is the client of gardenlet.
	jane, flow client.Client
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	cp := shared.Get(t)
	kit.DefineManagedResources(t, cp.Config())
	f := &fixture{T: t, scheme: runtime.NewScheme()}
	kit.Must(t, clientgoscheme.AddToScheme(f.scheme))
	kit.Must(t, resourcesv1alpha1.AddToScheme(f.scheme))
	f.jane, f.flow = f.as(cp.Config(), jane), f.as(cp.Config(), gardenlet)

	kubeconfig, err := clientcmd.Load(cp.Kubeconfig())
	kit.Must(t, err)
	kubeconfig.AuthInfos[kubeconfig.Contexts[kubeconfig.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: f.token()}
	encoded, err := clientcmd.Write(*kubeconfig)
	kit.Must(t, err)
	f.process = kit.StartManager(t, encoded, nil, "webhooks: {manualDeletionProtection: {enabled: true}}\n")
	f.register()
	return f
}

// token creates the ServiceAccount of the resource-manager and returns a token of it.
func (f *fixture) token() string {
	f.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardener-resource-manager"}}
	request := &authenticationv1.TokenRequest{}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: account.Namespace}}, account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		},
	} {
		kit.Must(f, f.jane.Create(f.Context(), object))
	}
	kit.Must(f, f.jane.SubResource("token").Create(f.Context(), account, request))
	return request.Status.Token
}

func (f *fixture) as(config *rest.Config, user string) client.Client {
	f.Helper()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(config, client.Options{Scheme: f.scheme})
	kit.Must(f, err)
	return c
}

// register registers the webhooks with the API server, and waits until they are called.
func (f *fixture) register() {
	f.Helper()
	config := &configv1alpha1.WebhooksConfiguration{}
	config.ManualDeletionProtection.Enabled = true
	reach := webhookserver.AtURL(fmt.Sprintf("https://127.0.0.1:%d", f.process.WebhookPort), f.process.Authority.Bundle())
	configuration := webhooks.ValidatingConfiguration(webhooks.Enabled(webhooks.Table(), config), webhooks.Placement{}, reach)
	kit.Must(f, f.jane.Create(f.Context(), configuration))
	f.Cleanup(func() { kit.Must(f, f.jane.Delete(context.WithoutCancel(f.Context()), configuration)) })
	probe := f.secret(kit.NewNamespace(f, f.jane, "probe", nil), "probe")
	kit.Eventually(f, "the API server calls the webhook", func() string {
		if err := f.jane.Delete(f.Context(), probe, client.DryRunAll); !apierrors.IsForbidden(err) {
			return "the answer to a deletion is " + kit.TextOf(err)
		}
		return ""
	})
}

// namespace creates the namespace of a control plane.
func (f *fixture) namespace() string {
	f.Helper()
	return kit.NewNamespace(f, f.jane, "shoot", map[string]string{"gardener.cloud/role": "shoot"})
}

// secret creates a Secret that is persisted.
func (f *fixture) secret(namespace, name string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"managed-by": "secrets-manager", "persist": "true"},
	}}
	kit.Must(f, f.jane.Create(f.Context(), secret))
	return secret
}

// managedResource creates a ManagedResource like those of flows, without objects.
func (f *fixture) managedResource(namespace, name string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{flow.LabelFlow: "shoot", flow.LabelOwner: "uid"},
	}, Spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []resourcesv1alpha1.LocalObjectReference{}}}
	kit.Must(f, f.jane.Create(f.Context(), mr))
	return mr
}

// eventuallyGone waits until an object no longer exists, finalizers included.
func (f *fixture) eventuallyGone(object client.Object) {
	f.Helper()
	kit.Eventually(f, fmt.Sprintf("%T %s no longer exists", object, object.GetName()), func() string {
		err := f.jane.Get(f.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return ""
		}
		if namespace, is := object.(*corev1.Namespace); is && err == nil {
			return fmt.Sprintf("its conditions are %+v", namespace.Status.Conditions)
		}
		return "it still exists; " + kit.TextOf(err)
	})
}
