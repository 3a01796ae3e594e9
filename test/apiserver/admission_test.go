package apiserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	providerlocal "github.com/trellis-k8s/trellis/cmd/provider-local/app"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
)

const (
	// admissionAccount is the program's ServiceAccount, which Gardener's operator would create.
	admissionAccount = "extension-admission-provider-local"
	// admissionConfiguration is the webhook configuration that the program writes.
	admissionConfiguration = "gardener-extension-admission-local"
)

// TestAdmission runs the admission part of provider-local with the permissions of its chart. Invalid provider
// configurations of CloudProfiles and Shoots are rejected with the path of the field. Other infrastructures are not
// affected. During an outage of the program, only new specs are rejected. It does not run in parallel with other tests, which
// create Shoots of this infrastructure.
func TestAdmission(t *testing.T) {
	const namespace = "garden-admission"
	c := newClient(t)
	ensureNamespace(t, c, namespace)
	stop := startAdmission(t, c)

	profile := localProfile(t)
	kit.EventuallyTrue(t, "the webhooks are registered", func() bool {
		wrong := profile.DeepCopy()
		wrong.Spec.ProviderConfig = nil
		return apierrors.IsInvalid(c.Create(t.Context(), wrong, client.DryRunAll))
	})
	wrong := profile.DeepCopy()
	wrong.Spec.ProviderConfig.Raw = []byte(strings.Replace(string(wrong.Spec.ProviderConfig.Raw), `"image":`, `"picture":`, 1))
	refused(t, c.Create(t.Context(), wrong), "cloudprofiles.admission-local.extensions.gardener.cloud", "spec.providerConfig", `unknown field "machineImages[0].versions[0].picture"`)
	kit.Must(t, c.Create(t.Context(), profile))
	t.Cleanup(func() { kit.Must(t, c.Delete(context.Background(), profile)) })
	wrong = profile.DeepCopy()
	wrong.Spec.ProviderConfig.Raw = []byte(`{"apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig"}`)
	refused(t, c.Update(t.Context(), wrong), "spec.providerConfig.machineImages: Required value")

	shoot := localShoot(t, namespace)
	bad := shoot.DeepCopy()
	bad.Spec.Provider.Workers[0].ProviderConfig = localConfig("WorkerConfig", `"resources": {"limits": {"cpu": "0"}}`)
	refused(t, c.Create(t.Context(), bad), "shoots.admission-local.extensions.gardener.cloud", "spec.provider.workers[0].providerConfig.resources.limits[cpu]")
	shoot.Spec.Provider.Workers[0].ProviderConfig = localConfig("WorkerConfig", `"resources": {"limits": {"cpu": "1"}}`)
	kit.Must(t, c.Create(t.Context(), shoot))
	other := bad.DeepCopy()
	other.Name, other.Spec.Provider.Type = "other", "other"
	kit.Must(t, c.Create(t.Context(), other, client.DryRunAll))

	stop()
	change := client.MergeFrom(shoot.DeepCopy())
	shoot.Labels = map[string]string{"while": "down"}
	kit.Must(t, c.Patch(t.Context(), shoot, change))
	bad.Name = "bad"
	if err := c.Create(t.Context(), bad); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "shoots.admission-local.extensions.gardener.cloud") {
		t.Errorf("a Shoot is created while the program is not running: %v", err)
	}
	kit.Must(t, c.Create(t.Context(), other, client.DryRunAll))

	kit.Must(t, c.Delete(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admissionConfiguration}}))
	kit.EventuallyTrue(t, "the webhooks are not called any more", func() bool { return c.Create(t.Context(), bad, client.DryRunAll) == nil })
}

// refused checks that an object was rejected as invalid, and that the error contains texts.
func refused(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Errorf("error %v, want one about an invalid field", err)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the text %q is missing in the error: %v", text, err)
		}
	}
}

// localProfile returns the CloudProfile of the examples for provider-local.
func localProfile(t *testing.T) *gardencorev1beta1.CloudProfile {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "provider-local", "cloudprofile.yaml"))
	kit.Must(t, err)
	profile := &gardencorev1beta1.CloudProfile{}
	kit.Must(t, yaml.UnmarshalStrict(text, profile))
	profile.Name = "admission-local"
	return profile
}

// localShoot returns a Shoot with this infrastructure.
func localShoot(t *testing.T, namespace string) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := exampleOf(t, "Shoot", namespace, "checked", &gardencorev1beta1.Shoot{})
	shoot.Annotations, shoot.Labels, shoot.Spec.SeedName = nil, nil, nil
	shoot.Spec.Networking.ProviderConfig = nil
	provider := &shoot.Spec.Provider
	provider.Type, provider.InfrastructureConfig, provider.ControlPlaneConfig = "local", nil, nil
	for i := range provider.Workers {
		pool := &provider.Workers[i]
		pool.ProviderConfig, pool.DataVolumes, pool.KubeletDataVolumeName, pool.UpdateStrategy = nil, nil, nil, nil
	}
	return shoot
}

// localConfig returns a provider configuration with fields in JSON.
func localConfig(kind, fields string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": %q, %s}`, kind, fields)}
}

// startAdmission runs the program with the permissions of its chart in the garden, until the returned function is called or
// the test ends.
func startAdmission(t *testing.T, c client.Client) (stop func()) {
	t.Helper()
	ensureNamespace(t, c, constants.GardenNamespace)
	charts.Apply(t, c, "admission-local/application", map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{
		"enabled": true, "serviceAccount": map[string]any{"name": admissionAccount, "namespace": metav1.NamespaceSystem},
	}}}, charts.IsRight)
	program, err := controlplane.BuildProgram[providerlocal.Program]()
	kit.Must(t, err)
	port := kit.FreePort(t)
	command, log := exec.CommandContext(t.Context(), program, "admission", "--namespace", constants.GardenNamespace, "--health-bind-address=0", "--metrics-bind-address=0",
		fmt.Sprintf("--webhook-config-server-port=%d", port), fmt.Sprintf("--webhook-config-url=https://localhost:%d", port), "--log-format=text"), &kit.Output{}
	command.Env = append(os.Environ(), "GARDEN_KUBECONFIG="+admissionKubeconfig(t, c))
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	kit.Must(t, command.Start())
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	}
	t.Cleanup(func() {
		stop()
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admissionConfiguration}}
		kit.Must(t, client.IgnoreNotFound(c.Delete(context.Background(), configuration)))
		if t.Failed() || strings.Contains(log.String(), "forbidden") {
			t.Errorf("log of the program:\n%s", log)
		}
	})
	return stop
}

// admissionKubeconfig returns the path of a kubeconfig with a token of the ServiceAccount that has the permissions of the
// chart.
func admissionKubeconfig(t *testing.T, c client.Client) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: admissionAccount}}
	kit.Must(t, c.Create(t.Context(), account))
	token := &authenticationv1.TokenRequest{}
	kit.Must(t, c.SubResource("token").Create(t.Context(), account, token))
	config, err := clientcmd.Load(shared.Get(t).Kubeconfig())
	kit.Must(t, err)
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token.Status.Token
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, clientcmd.WriteToFile(*config, file))
	return file
}
