package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// recorder records which method was called, and whether there was a stored object.
type recorder struct {
	NoEnsurer
	calls *[]string
}

func note[T any](r recorder, name string, live *T) error {
	if live != nil {
		name += " update"
	}
	*r.calls = append(*r.calls, name)
	return nil
}

func (r recorder) EnsureKubeAPIServerService(_ context.Context, _ Context, _, live *corev1.Service) error {
	return note(r, "service", live)
}

func (r recorder) EnsureKubeAPIServerDeployment(_ context.Context, _ Context, wanted, live *appsv1.Deployment) error {
	if len(wanted.Spec.Template.Spec.Containers) > 0 {
		SetContainerFlag(&wanted.Spec.Template.Spec.Containers[0], "--advertise-address", "1.2.3.4")
	}
	return note(r, "apiserver", live)
}

func (r recorder) EnsureKubeControllerManagerDeployment(_ context.Context, _ Context, _, live *appsv1.Deployment) error {
	return note(r, "controller-manager", live)
}

func (r recorder) EnsureKubeSchedulerDeployment(_ context.Context, _ Context, _, live *appsv1.Deployment) error {
	return note(r, "scheduler", live)
}

func (r recorder) EnsureClusterAutoscalerDeployment(_ context.Context, _ Context, _, live *appsv1.Deployment) error {
	return note(r, "autoscaler", live)
}

func (r recorder) EnsureMachineControllerManagerDeployment(context.Context, Context, *appsv1.Deployment, *appsv1.Deployment) error {
	return errors.New("no sidecar for this version")
}

func (r recorder) EnsureVPNSeedServerStatefulSet(_ context.Context, _ Context, _, live *appsv1.StatefulSet) error {
	return note(r, "vpn", live)
}

func (r recorder) EnsureEtcdStatefulSet(_ context.Context, _ Context, _, live *appsv1.StatefulSet) error {
	return note(r, "etcd-statefulset", live)
}

func (r recorder) EnsureEtcd(_ context.Context, _ Context, _, live *druidv1alpha1.Etcd) error {
	return note(r, "etcd", live)
}

func (r recorder) EnsureMachineControllerManagerVPA(_ context.Context, _ Context, _, live *unstructured.Unstructured) error {
	return note(r, "vpa", live)
}

// handle answers a request for an object.
func handle(t *testing.T, ensurer Ensurer, kind schema.GroupVersionKind, object map[string]any, old bool) admission.Response {
	t.Helper()
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(kind)
	raw, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Namespace: "shoot--dev--blue", Kind: metav1.GroupVersionKind(kind), Object: runtime.RawExtension{Raw: raw},
	}}
	if old {
		request.Operation, request.OldObject = admissionv1.Update, request.Object
	}
	scheme := runtime.NewScheme()
	if err := extensionsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var reader client.Reader = fake.NewClientBuilder().WithScheme(scheme).Build()
	return admit.ByKind(mutator{ensurer: ensurer, reader: reader}.handlers()).Handle(t.Context(), request)
}

func named(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}}
}

func exposedAPIServer() map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "kube-apiserver", "labels": map[string]any{labelExposure: exposedByGardener}}}
}

// TestDispatch checks that each object of the contract is passed to its method, and that other objects are ignored.
func TestDispatch(t *testing.T) {
	deployment, set := appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	service, etcd := corev1.SchemeGroupVersion.WithKind("Service"), druidv1alpha1.SchemeGroupVersion.WithKind("Etcd")
	vpa := schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}
	exposed, goes := exposedAPIServer(), map[string]any{"metadata": map[string]any{"name": "kube-scheduler", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
	for name, test := range map[string]struct {
		kind   schema.GroupVersionKind
		object map[string]any
		old    bool
		want   string
	}{
		"service": {service, named("kube-apiserver"), false, "service"}, "other service": {service, named("etcd-main-client"), false, ""},
		"service exposed by gardenlet": {service, exposed, false, ""}, "API server": {deployment, named("kube-apiserver"), true, "apiserver update"},
		"API server of the garden": {deployment, named("virtual-garden-kube-apiserver"), false, "apiserver"},
		"controller-manager":       {deployment, named("kube-controller-manager"), false, "controller-manager"},
		"scheduler":                {deployment, named("kube-scheduler"), true, "scheduler update"}, "deleting": {deployment, goes, true, ""},
		"autoscaler": {deployment, named("cluster-autoscaler"), false, "autoscaler"}, "other Deployment": {deployment, named("prometheus"), false, ""},
		"vpn": {set, named("vpn-seed-server"), false, "vpn"}, "etcd StatefulSet": {set, named("etcd-events"), false, "etcd-statefulset"},
		"etcd": {etcd, named("etcd-main"), true, "etcd update"}, "etcd of the garden": {etcd, named("virtual-garden-etcd-main"), false, "etcd"},
		"vpa": {vpa, named("machine-controller-manager-vpa"), false, "vpa"}, "other vpa": {vpa, named("prometheus"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			response := handle(t, recorder{calls: &calls}, test.kind, test.object, test.old)
			if !response.Allowed || strings.Join(calls, ", ") != test.want {
				t.Errorf("%v, %+v, want %s", calls, response, test.want)
			}
		})
	}
}

// TestRefusals checks that an object that the extension cannot change is refused. The same applies to an API server that
// gardenlet exposes with other flags.
func TestRefusals(t *testing.T) {
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment")
	var calls []string
	response := handle(t, recorder{calls: &calls}, deployment, named("machine-controller-manager"), false)
	if response.Allowed || !strings.Contains(response.Result.Message, "no sidecar for this version") || !strings.Contains(response.Result.Message, "Deployment shoot--dev--blue/machine-controller-manager") {
		t.Errorf("%+v", response)
	}
	exposed := exposedAPIServer()
	exposed["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "kube-apiserver", "command": []any{"kube-apiserver"}}}}}}
	if response := handle(t, recorder{calls: &calls}, deployment, exposed, false); response.Allowed || !strings.Contains(response.Result.Message, "--advertise-address=1.2.3.4") {
		t.Errorf("%+v", response)
	}
	config := extensionsv1alpha1.SchemeGroupVersion.WithKind("OperatingSystemConfig")
	if response := handle(t, recorder{calls: &calls}, config, map[string]any{"metadata": map[string]any{"name": "pool"}, "spec": map[string]any{"purpose": "reconcile"}}, false); response.Allowed {
		t.Error("an OperatingSystemConfig is written although the Shoot is not known")
	}
}

func TestFlags(t *testing.T) {
	command := []string{"kube-apiserver", "--v=2", "--enable-admission-plugins=A,B"}
	for name, test := range map[string]struct{ got, want []string }{
		"added":            {SetFlag(command, "--cloud-provider", "external"), append(slices.Clone(command), "--cloud-provider=external")},
		"replaced":         {SetFlag(command, "--v", "3"), []string{"kube-apiserver", "--v=3", "--enable-admission-plugins=A,B"}},
		"removed":          {RemoveFlag(command, "--v"), []string{"kube-apiserver", "--enable-admission-plugins=A,B"}},
		"element":          {AddToFlag(command, "--enable-admission-plugins", "C"), []string{"kube-apiserver", "--v=2", "--enable-admission-plugins=A,B,C"}},
		"element is there": {AddToFlag(command, "--enable-admission-plugins", "B"), command},
		"new list":         {AddToFlag(command, "--feature-gates", "X=true"), append(slices.Clone(command), "--feature-gates=X=true")},
		"without element":  {RemoveFromFlag(command, "--enable-admission-plugins", "A"), []string{"kube-apiserver", "--v=2", "--enable-admission-plugins=B"}},
		"without any":      {RemoveFromFlag(command, "--v", "2"), []string{"kube-apiserver", "--enable-admission-plugins=A,B"}},
	} {
		if !slices.Equal(test.got, test.want) {
			t.Errorf("%s: %v, want %v", name, test.got, test.want)
		}
	}
	if command[1] != "--v=2" || len(command) != 3 {
		t.Errorf("the original command line was changed to %v", command)
	}
}

// TestContainers checks that setting something twice has the same result as once.
func TestContainers(t *testing.T) {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Args: []string{"--b=1"}}}}
	for range 2 {
		container := Container(spec, "a")
		SetContainerFlag(container, "--b", "2")
		SetEnv(container, corev1.EnvVar{Name: "REGION", Value: "here"})
		SetVolume(spec, corev1.Volume{Name: "config"})
		SetVolumeMount(container, corev1.VolumeMount{Name: "config", MountPath: "/etc/config"})
		SetContainer(spec, corev1.Container{Name: "sidecar"})
	}
	container := Container(spec, "a")
	if !slices.Equal(container.Args, []string{"--b=2"}) || len(container.Env) != 1 || len(spec.Volumes) != 1 || len(container.VolumeMounts) != 1 || len(spec.Containers) != 2 {
		t.Errorf("%+v", spec)
	}
	if Container(spec, "b") != nil {
		t.Error("found a container that does not exist")
	}
}

// TestUnits checks that an unchanged unit keeps its exact text.
func TestUnits(t *testing.T) {
	content := "[Unit]\nDescription=kubelet\n\n[Service]\nExecStart=/opt/bin/kubelet \\\n    --v=2\n"
	unit := &extensionsv1alpha1.Unit{Name: unitKubelet, Content: ptr.To(content)}
	options, err := parseUnit(unit.Content)
	if err != nil {
		t.Fatal(err)
	}
	if err := renderUnit(unit, options); err != nil || *unit.Content != content {
		t.Errorf("%v, %s", err, *unit.Content)
	}
	once := SetKubeletFlag(options, "--provider-id", "cloud://1")
	if twice := SetKubeletFlag(once, "--provider-id", "cloud://1"); !slices.Equal(once, twice) {
		t.Errorf("%v, %v", once, twice)
	}
	if err := renderUnit(unit, once); err != nil || !strings.Contains(*unit.Content, "--v=2 \\\n    --provider-id=cloud://1") {
		t.Errorf("%v, %s", err, *unit.Content)
	}
	files := []extensionsv1alpha1.File{}
	for _, text := range []string{"a", "b"} {
		SetFile(&files, TextFile("/etc/a", 0o600, text))
	}
	if len(files) != 1 || files[0].Content.Inline.Data != "Yg==" {
		t.Errorf("%+v", files)
	}
}
