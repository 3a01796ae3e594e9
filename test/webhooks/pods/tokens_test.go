package pods

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/test/kit"
)

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// serviceAccount creates a ServiceAccount. automount is whether Kubernetes mounts its tokens.
func (f *fixture) serviceAccount(name string, automount *bool) {
	f.Helper()
	kit.Must(f, f.client.Create(f.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, AutomountServiceAccountToken: automount,
	}))
}

// mountsAt returns, for each container and init container, the name of the volume that it mounts at the path of tokens.
func mountsAt(pod *corev1.Pod) string {
	var names []string
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, container := range containers {
			name := "-"
			for _, mount := range container.VolumeMounts {
				if mount.MountPath == tokenPath {
					name = mount.Name
				}
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func tokenFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.serviceAccount("robot", new(bool))
	f.serviceAccount("mounted", ptr.To(true))
	f.serviceAccount("unset", nil)
	f.register(tokenMount(f.reader(), f.client))
	return f
}

// TestProjectedToken checks that the volume matches the specification, and that all containers mount it.
func TestProjectedToken(t *testing.T) {
	t.Parallel()
	f := tokenFixture(t)
	pod := f.would(`spec: {serviceAccountName: robot, initContainers: [{name: a}], containers: [{name: b}, {name: c}], volumes: [{name: v, emptyDir: {}}]}`)
	const specified = `
name: kube-api-access-gardener
projected:
  defaultMode: 420
  sources:
  - serviceAccountToken:
      expirationSeconds: 43200
      path: token
  - configMap:
      items:
      - key: ca.crt
        path: ca.crt
      name: kube-root-ca.crt
  - downwardAPI:
      items:
      - fieldRef:
          apiVersion: v1
          fieldPath: metadata.namespace
        path: namespace
`
	var want corev1.Volume
	kit.Must(t, yaml.UnmarshalStrict([]byte(specified), &want))
	if volumes := pod.Spec.Volumes; len(volumes) != 2 || !equality.Semantic.DeepEqual(volumes[1], want) {
		t.Errorf("the volumes are %+v", volumes)
	}
	mount := corev1.VolumeMount{Name: "kube-api-access-gardener", MountPath: tokenPath, ReadOnly: true}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if !equality.Semantic.DeepEqual(container.VolumeMounts, []corev1.VolumeMount{mount}) {
			t.Errorf("container %s mounts %+v", container.Name, container.VolumeMounts)
		}
	}
}

// TestProjectedTokenRecipients checks which Pods meet all preconditions.
func TestProjectedTokenRecipients(t *testing.T) {
	t.Parallel()
	f := tokenFixture(t)
	const ours = "kube-api-access-gardener"
	for text, want := range map[string]bool{
		`spec: {serviceAccountName: robot}`:   true,
		`spec: {serviceAccountName: mounted}`: false,
		`spec: {serviceAccountName: unset}`:   false,
		`spec: {serviceAccountName: default}`: false,
		`spec: {}`:                            false,
		`spec: {serviceAccountName: robot, automountServiceAccountToken: false}`:                                                       false,
		`spec: {serviceAccountName: robot, automountServiceAccountToken: true}`:                                                        false, // Kubernetes mounts one
		`spec: {serviceAccountName: robot, volumes: [{name: kube-api-access-mine, emptyDir: {}}]}`:                                     false,
		`{metadata: {labels: {projected-token-mount.resources.gardener.cloud/skip: "true"}}, spec: {serviceAccountName: robot}}`:       false,
		`{metadata: {labels: {projected-token-mount.resources.gardener.cloud/skip: ""}}, spec: {serviceAccountName: robot}}`:           false,
		`{metadata: {annotations: {projected-token-mount.resources.gardener.cloud/skip: "true"}}, spec: {serviceAccountName: robot}}`:  true,
		`{metadata: {labels: {app: gardener-resource-manager}}, spec: {serviceAccountName: robot}}`:                                    false,
		`{metadata: {labels: {static-pod: "true"}}, spec: {serviceAccountName: robot}}`:                                                false,
		`{metadata: {labels: {app: other}}, spec: {serviceAccountName: robot, volumes: [{name: my-kube-api-access-a, emptyDir: {}}]}}`: true,
	} {
		if got := mountsAt(f.would(text)); (got == ours) != want {
			t.Errorf("%s: the mounts are %s", text, got)
		}
	}
}

// TestMountOfOnesOwn checks that a container with a mount at the path keeps it, and that the Pod is valid.
func TestMountOfOnesOwn(t *testing.T) {
	t.Parallel()
	f := tokenFixture(t)
	const own = `volumeMounts: [{name: own, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]`
	pod := f.would(`spec: {serviceAccountName: robot, initContainers: [{name: a, ` + own + `}], containers: [{name: b}, {name: c, ` + own +
		`}], volumes: [{name: own, emptyDir: {}}]}`)
	if got := mountsAt(pod); got != "own kube-api-access-gardener own" {
		t.Errorf("the mounts are %s", got)
	}
	pod = f.would(`spec: {serviceAccountName: robot, containers: [{name: b, ` + own + `}], volumes: [{name: own, emptyDir: {}}]}`)
	if got := mountsAt(pod); got != "own" || len(pod.Spec.Volumes) != 1 {
		t.Errorf("the mounts are %s, the volumes %+v", got, pod.Spec.Volumes)
	}
}

// TestExpirationOfTokens checks that the annotation overrides the configuration, and that a bad annotation refuses the Pod with a
// helpful message.
func TestExpirationOfTokens(t *testing.T) {
	t.Parallel()
	f := tokenFixture(t)
	with := func(seconds string) string {
		return fmt.Sprintf(`{metadata: {annotations: {projected-token-mount.resources.gardener.cloud/expiration-seconds: %q}}, spec: {serviceAccountName: robot}}`, seconds)
	}
	for text, want := range map[string]int64{with("600"): 600, with("86400"): 86400, with("4294967296"): 1 << 32, `spec: {serviceAccountName: robot}`: 43200} {
		volumes := f.would(text).Spec.Volumes
		if got := volumes[0].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds; *got != want {
			t.Errorf("%s: tokens expire after %d seconds", text, *got)
		}
	}
	for _, bad := range []string{"", "599", "4294967297", "12h", "-600"} {
		f.wantRefusal(with(bad), fmt.Sprintf("the annotation projected-token-mount.resources.gardener.cloud/expiration-seconds has the value %q: "+
			"it must be a whole number of seconds from 600 to 4294967296, as in \"43200\" for 12 hours", bad))
	}
}

// TestServiceAccountThatHasJustBeenCreated checks that a Pod is not refused because the cache does not contain its ServiceAccount yet.
func TestServiceAccountThatHasJustBeenCreated(t *testing.T) {
	t.Parallel()
	f := tokenFixture(t)
	for i := range 20 {
		name := fmt.Sprintf("new-%d", i)
		f.serviceAccount(name, new(bool))
		if got := mountsAt(f.would("spec: {serviceAccountName: " + name + "}")); got != "kube-api-access-gardener" {
			t.Errorf("the mounts are %s", got)
		}
	}
}
