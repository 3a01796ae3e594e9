package operatingsystemconfig

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

// valuesOf returns values for the first pool of a Shoot.
func valuesOf(t *testing.T, change func(*corev1beta1.Shoot)) Values {
	t.Helper()
	shoot, profile := &corev1beta1.Shoot{}, &corev1beta1.CloudProfile{}
	shoot.Spec.Region, shoot.Spec.Kubernetes.Version = "local", "1.37.1"
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{{
		Name: "small", Machine: corev1beta1.Machine{Type: "local", Image: &corev1beta1.ShootMachineImage{Name: "linux", Version: ptr.To("1.0.0")}},
	}}
	profile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "local", Memory: resource.MustParse("8Gi")}, {Name: "large", Memory: resource.MustParse("16Gi")}}
	change(shoot)
	pools, err := workerpool.Of(shoot, profile)
	if err != nil {
		t.Fatal(err)
	}
	return Values{
		Namespace: "shoot--dev--blue", Pool: pools[0],
		CABundle: "-----BEGIN CERTIFICATE-----\ncluster\n-----END CERTIFICATE-----\n", KubeletCA: "-----BEGIN CERTIFICATE-----\nkubelet\n-----END CERTIFICATE-----",
		ClusterDomain: "cluster.local", ClusterDNS: []string{"100.64.0.10"}, NodeAgent: "kind: NodeAgentConfiguration\n", NodeAgentVersion: "v1",
		Images: Images{NodeAgent: "registry.example.org/node-agent:v1", Kubelet: "registry.example.org/kubelet:v1.37.1", Pause: "registry.example.org/pause:3"},
	}
}

func objects(t *testing.T, values Values) []client.Object {
	t.Helper()
	if err := extensionsv1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	provisioned, reconciled, err := Objects(values)
	if err != nil {
		t.Fatal(err)
	}
	return []client.Object{provisioned, reconciled}
}

// TestObjects compares the objects of a pool that sets nothing, and of one that sets everything.
func TestObjects(t *testing.T) {
	golden.Check(t, "minimal", objects(t, valuesOf(t, func(*corev1beta1.Shoot) {})))
	values := valuesOf(t, func(shoot *corev1beta1.Shoot) {
		worker := &shoot.Spec.Provider.Workers[0]
		worker.Machine.Type, worker.Machine.Image.ProviderConfig = "large", &runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}
		worker.Labels, worker.Taints = map[string]string{"team": "blue"}, []corev1.Taint{{Key: "team", Value: "blue", Effect: corev1.TaintEffectNoExecute}}
		worker.Sysctls, worker.KubeletDataVolumeName = map[string]string{"vm.overcommit_memory": "0", "a": "b"}, ptr.To("data")
		worker.UpdateStrategy = ptr.To(corev1beta1.AutoInPlaceUpdate)
		worker.CRI = &corev1beta1.CRI{Name: "containerd", ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}}
		shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{LastInitiationTime: ptr.To(metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
		}}
	})
	values.SSHKeys, values.ExtraCAs, values.PreferIPv6, values.WithoutKubeProxy, values.MonitorGracePeriod = "ssh-rsa AAAA gardener", "extra", true, true, 40
	golden.Check(t, "everything", objects(t, values))
}

// TestUserDataIsSmall checks that a new machine needs far less than the 16 KiB that some infrastructures allow.
func TestUserDataIsSmall(t *testing.T) {
	provisioned, _, err := Objects(valuesOf(t, func(*corev1beta1.Shoot) {}))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(provisioned.Spec)
	if size := len(text); err != nil || size > 8<<10 {
		t.Errorf("%d bytes, %v", size, err)
	}
}

// TestScripts checks the syntax of all scripts.
func TestScripts(t *testing.T) {
	values := valuesOf(t, func(*corev1beta1.Shoot) {})
	for _, keys := range []string{"", "ssh-rsa AAAA gardener"} {
		values.SSHKeys = keys
		for _, object := range objects(t, values) {
			config, _ := object.(*extensionsv1alpha1.OperatingSystemConfig)
			for _, file := range config.Spec.Files {
				if file.Content.Inline == nil || !strings.HasPrefix(file.Content.Inline.Data, "#!/bin/bash") {
					continue
				}
				check := exec.CommandContext(t.Context(), "bash", "-n")
				check.Stdin = strings.NewReader(file.Content.Inline.Data)
				if output, err := check.CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", file.Path, err, output)
				}
			}
		}
	}
}

// TestKubeletSettings sets each setting of kubelet that the API has, and checks that it is in the configuration.
func TestKubeletSettings(t *testing.T) {
	base, err := kubeletConfiguration(valuesOf(t, func(*corev1beta1.Shoot) {}))
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{
		"": `"featureGates":{"A":true}`, "evictionHard": `"evictionHard":{"nodeFSInodesFree":"7%"}`, "evictionSoft": `"evictionSoft":{"imageFSAvailable":"7%"}`,
		"evictionMinimumReclaim":  `"evictionMinimumReclaim":{"nodeFSAvailable":"7Gi"}`,
		"evictionSoftGracePeriod": `"evictionSoftGracePeriod":{"memoryAvailable":"7s"}`,
		"kubeReserved":            `"kubeReserved":{"cpu":"7","memory":"7Gi","ephemeralStorage":"7Gi","pid":"7"}`,
		"cpuManagerPolicy":        `"cpuManagerPolicy":"static"`, "memorySwap": `"memorySwap":{"swapBehavior":"LimitedSwap"}`,
		"imagePullCredentialsVerificationPolicy": `"imagePullCredentialsVerificationPolicy":"AlwaysVerify"`,
		"preloadedImagesVerificationAllowlist":   `"preloadedImagesVerificationAllowlist":["a"]`, "containerLogMaxSize": `"containerLogMaxSize":"7Mi"`,
	}
	for field := range reflect.TypeFor[corev1beta1.KubeletConfig]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		text, found := given[name]
		if !found {
			value := map[string]string{"bool": "false", "int32": "7", "int64": "7", "Duration": `"7s"`}[field.Type.Elem().Name()]
			if name == "seccompDefault" || name == "singleProcessOOMKill" {
				value = "true"
			}
			text = `"` + name + `":` + value
		}
		kubelet := &corev1beta1.KubeletConfig{}
		if err := json.Unmarshal([]byte("{"+text+"}"), kubelet); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := kubeletConfiguration(valuesOf(t, func(shoot *corev1beta1.Shoot) { shoot.Spec.Kubernetes.Kubelet = kubelet }))
		if err != nil || got == base {
			t.Errorf("%s has no effect, %v", text, err)
		}
	}
}

// TestMemoryThresholds checks that the eviction of Pods depends on the machine type.
func TestMemoryThresholds(t *testing.T) {
	for memory, want := range map[string]string{"": "100Mi 200Mi", "0": "100Mi 200Mi", "4Gi": "5% 10%", "8Gi": "5% 10%", "9Gi": "1Gi 1.5Gi"} {
		var machine *corev1beta1.MachineType
		if memory != "" {
			machine = &corev1beta1.MachineType{Memory: resource.MustParse(memory)}
		}
		if hard, soft := memoryThresholds(machine); hard+" "+soft != want {
			t.Errorf("%q: %s %s, want %s", memory, hard, soft, want)
		}
	}
}

// TestTimeouts checks that kubelet notices a broken connection before its node counts as not ready.
func TestTimeouts(t *testing.T) {
	for grace, want := range map[int][2]int{0: {30, 15}, 40: {25, 12}, 46: {30, 15}, 2: {1, 1}} {
		if idle, ping := http2Timeouts(grace); [2]int{idle, ping} != want {
			t.Errorf("%d s: %d, %d, want %v", grace, idle, ping, want)
		}
	}
}
