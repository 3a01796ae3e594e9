// Package chart tests the Helm chart: its output, and that the resource-manager has exactly the rights it needs
// when Helm has installed it on a real control plane.
package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
	"github.com/trellis-k8s/trellis/test/pages"
)

// shared accepts tokens with the audience of the token requestor, and logs every request.
var shared = controlplane.Shared{Options: controlplane.Options{
	ControllerManager: true, Scheduler: true, Nodes: 2,
	APIServerArgs: map[string][]string{"api-audiences": {"https://kubernetes.default.svc.cluster.local", "gardener"}},
}}

func TestMain(m *testing.M) {
	if pages.Program() == "helm" {
		os.Exit(asHelm())
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	directory, err := os.MkdirTemp("", "trellis-chart-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared.Options.AuditLog = filepath.Join(directory, "audit.log")
	code := shared.Run(m)
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

func root(tb testing.TB) string {
	tb.Helper()
	path, err := controlplane.RepositoryRoot()
	kit.Must(tb, err)
	return path
}

func load(tb testing.TB) *chart.Chart {
	tb.Helper()
	loaded, err := generate.Load(root(tb))
	kit.Must(tb, err)
	return loaded
}

// valuesOf parses values in YAML.
func valuesOf(tb testing.TB, text string) map[string]any {
	tb.Helper()
	values := map[string]any{}
	kit.Must(tb, yaml.Unmarshal([]byte(text), &values))
	return values
}

// helm installs releases in a namespace.
type helm struct {
	testing.TB
	client    client.Client
	namespace string
	config    *action.Configuration
	chart     *chart.Chart
	// pagePort is the port of the page of a started resource-manager. It is 0 if the page is not served.
	pagePort int
}

// newHelm returns a helm for a new namespace with the restricted Pod security standard.
func newHelm(t *testing.T) *helm {
	t.Helper()
	controlPlane := shared.Get(t)
	scheme := runtime.NewScheme()
	kit.Must(t, clientgoscheme.AddToScheme(scheme))
	kit.Must(t, resourcesv1alpha1.AddToScheme(scheme))
	c, err := client.New(controlPlane.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	namespace := kit.NewNamespace(t, c, "chart", map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
	})
	return &helm{TB: t, client: c, namespace: namespace, config: actions(t, namespace), chart: load(t)}
}

// actions returns the common configuration of Helm's commands.
func actions(tb testing.TB, namespace string) *action.Configuration {
	tb.Helper()
	kubeconfig := filepath.Join(shared.Get(tb).Dir(), "kubeconfig")
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := action.NewConfiguration()
	kit.Must(tb, config.Init(flags, namespace, ""))
	return config
}

// install runs helm install.
func (h *helm) install(name, values string, tune ...func(*action.Install)) error {
	h.Helper()
	command := action.NewInstall(h.config)
	command.ReleaseName, command.Namespace, command.WaitStrategy, command.Timeout = name, h.namespace, kube.HookOnlyStrategy, kit.WaitTimeout
	for _, change := range tune {
		change(command)
	}
	_, err := command.Run(h.chart, valuesOf(h, values))
	return err
}

// takeOver adopts objects that another release has installed, for example a definition that an uninstalled release
// left behind.
func takeOver(command *action.Install) { command.TakeOwnership, command.ForceConflicts = true, true }

// upgrade runs helm upgrade.
func (h *helm) upgrade(name, values string) error {
	h.Helper()
	command := action.NewUpgrade(h.config)
	command.Namespace, command.WaitStrategy, command.Timeout = h.namespace, kube.HookOnlyStrategy, kit.WaitTimeout
	_, err := command.Run(name, h.chart, valuesOf(h, values))
	return err
}

// rollback runs helm rollback to a revision.
func (h *helm) rollback(name string, revision int) error {
	command := action.NewRollback(h.config)
	command.Version, command.WaitStrategy, command.Timeout = revision, kube.HookOnlyStrategy, kit.WaitTimeout
	return command.Run(name)
}

// uninstall runs helm uninstall.
func (h *helm) uninstall(name string) error {
	command := action.NewUninstall(h.config)
	command.WaitStrategy, command.Timeout = kube.HookOnlyStrategy, kit.WaitTimeout
	_, err := command.Run(name)
	return err
}

// get reads an object. The namespace defaults to that of the release.
func (h *helm) get(object client.Object, namespace, name string) error {
	if namespace == "" {
		namespace = h.namespace
	}
	return h.client.Get(h.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
}

// configuration returns the configuration file that the chart has rendered.
func (h *helm) configuration() map[string]any {
	h.Helper()
	configMap := &corev1.ConfigMap{}
	kit.Must(h, h.get(configMap, "", "gardener-resource-manager-config"))
	return valuesOf(h, configMap.Data["config.yaml"])
}

// create creates an object in the namespace, unless the object specifies another one.
func (h *helm) create(object client.Object) {
	h.Helper()
	if object.GetNamespace() == "" {
		object.SetNamespace(h.namespace)
	}
	kit.Must(h, h.client.Create(h.Context(), object))
}

// manage creates a ManagedResource with its Secret.
func (h *helm) manage(name, manifests string) *resourcesv1alpha1.ManagedResource {
	h.Helper()
	meta := metav1.ObjectMeta{Namespace: h.namespace, Name: name}
	h.create(&corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"objects.yaml": manifests}})
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: meta, Spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: name}}},
	}
	h.create(mr)
	return mr
}

// eventuallyIs waits until a condition of a ManagedResource is True, or False.
func (h *helm) eventuallyIs(name string, conditionType resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus) {
	h.Helper()
	kit.Eventually(h, fmt.Sprintf("%s of %s is %s", conditionType, name, status), func() string {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := h.get(mr, "", name); err != nil {
			return err.Error()
		}
		condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, conditionType)
		if condition.Status == status && (mr.Status.ObservedGeneration == mr.Generation || status != resourcesv1alpha1.ConditionTrue) {
			return ""
		}
		return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
	})
}

// eventuallyGone waits until an object no longer exists.
func (h *helm) eventuallyGone(object client.Object) {
	h.Helper()
	kit.Eventually(h, object.GetName()+" is deleted", func() string {
		err := h.client.Get(h.Context(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if err == nil {
			return "it still exists"
		}
		return ""
	})
}
