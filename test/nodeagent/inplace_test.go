package nodeagent

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/inplace"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/test/kit"
)

// inPlace returns a configuration of a pool whose machines are not replaced.
func inPlace(system, kubelet string) *extensionsv1alpha1.OperatingSystemConfig {
	c := basic()
	c.Spec.Files[0] = textFile("/etc/a", system+" "+kubelet)
	c.Spec.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdates{OperatingSystemVersion: system, KubeletVersion: kubelet}
	c.Status.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdatesStatus{OSUpdate: &extensionsv1alpha1.OSUpdate{Command: "update-system", Args: []string{system}}}
	return c
}

// runSystem sets which operating system runs.
func (m *machine) runSystem(version, boot string) {
	m.Helper()
	m.write(paths.Release, "NAME=\"Test\"\nPRETTY_NAME=\"Test Linux "+version+" (stable)\"\n")
	m.write(paths.BootID, boot+"\n")
}

// drained says, as machine-controller-manager does, whether the Pods of the node are gone. It removes the result of the last update.
func (m *machine) drained(ready bool) {
	m.Helper()
	node := m.node()
	kit.Change(m, m.admin, node, func() { delete(node.Labels, inplace.LabelResult) })
	before := node.DeepCopy()
	node.Status.Conditions = nil
	if ready {
		node.Status.Conditions = []corev1.NodeCondition{{Type: inplace.Condition, Status: corev1.ConditionTrue, Reason: inplace.ReasonReady}}
	}
	kit.Must(m, m.admin.Status().Patch(m.Context(), node, client.MergeFrom(before)))
}

// updated waits until the Node has the result of an update.
func (m *machine) updated(result, reason string) {
	m.Helper()
	kit.Eventually(m, "the update is "+result, func() string {
		m.tick()
		node := m.node()
		if node.Labels[inplace.LabelResult] != result || !strings.Contains(node.Annotations[inplace.AnnotationReason], reason) {
			return fmt.Sprint(node.Labels, node.Annotations)
		}
		return ""
	})
}

func newMachineInPlace(t *testing.T, prefix string) *machine {
	t.Helper()
	m := newMachine(t, prefix)
	m.fakeClock()
	healthy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(healthy.Close)
	m.kubelet, m.commands = healthy.URL, map[string]func() error{}
	m.runSystem("1.0.0", "boot-1")
	return m
}

// TestInPlace updates a machine: its operating system with a command that fails at first, and kubelet. It waits until the Pods are gone, and
// deletes those that are left.
func TestInPlace(t *testing.T) {
	t.Parallel()
	m := newMachineInPlace(t, "inplace")
	m.joined(inPlace("1.0.0", "1.37.1"))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: m.name},
		Spec:       corev1.PodSpec{NodeName: m.name, Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
	kit.Must(t, m.admin.Create(t.Context(), pod))

	patch := m.offer(inPlace("1.0.0", "1.37.2"))
	m.applied(patch) // another patch of kubelet needs no empty node

	tries := 0
	m.commands["update-system"] = func() error {
		if tries++; tries == 1 {
			return errors.New("Network problems")
		}
		m.runSystem("2.0.0", "boot-1")
		return nil
	}
	checksum := m.offer(inPlace("2.0.0", "1.38.0"))
	for range 20 {
		m.tick()
	}
	if m.read("/etc/a") != "1.0.0 1.37.2" || tries > 0 {
		t.Fatalf("the machine is updated while its Pods run: %q", m.read("/etc/a"))
	}
	m.drained(true)
	m.updated(inplace.Successful, "")
	m.applied(checksum)
	if m.read("/etc/a") != "2.0.0 1.38.0" || tries != 2 || m.exists(paths.InPlaceUpdate) {
		t.Errorf("after the update: a is %q, the command was run %d times", m.read("/etc/a"), tries)
	}
	if node := m.node(); node.Annotations[inplace.AnnotationVersion] != "" {
		t.Errorf("the Node says that it is being updated to %s", node.Annotations[inplace.AnnotationVersion])
	}
	if err := m.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp == nil {
		t.Errorf("the Pod was not deleted: %v", err)
	}

	// The condition is still there, but the result is that of the last update.
	checksum = m.offer(inPlace("3.0.0", "1.38.0"))
	for range 20 {
		m.tick()
	}
	if m.read("/etc/a") != "2.0.0 1.38.0" {
		t.Error("the machine is updated again before its last update has ended")
	}
	m.commands["update-system"] = func() error { m.runSystem("3.0.0", "boot-1"); return nil }
	m.drained(true)
	m.updated(inplace.Successful, "")
	m.applied(checksum)
}

// TestInPlaceFails checks what a Node says about updates of its operating system that fail, and that another configuration repairs it.
func TestInPlaceFails(t *testing.T) {
	t.Parallel()
	m := newMachineInPlace(t, "inplace-fails")
	stop := m.joined(inPlace("1.0.0", "1.37.1"))
	tries := 0
	m.commands["update-system"] = func() error { tries++; return errors.New("invalid arguments") }
	m.offer(inPlace("2.0.0", "1.37.1"))
	m.drained(true)
	m.updated(inplace.Failed, "operating system: invalid arguments")
	if tries != 1 || !m.exists(paths.InPlaceUpdate) {
		t.Errorf("the command was run %d times", tries)
	}

	// The next version needs a new start of the machine, which brings back the old one.
	m.commands["update-system"] = func() error { return nil }
	m.offer(inPlace("3.0.0", "1.37.1"))
	kit.Eventually(t, "the node agent waits for the start of the machine", func() string {
		m.tick()
		if got := m.read(paths.InPlaceUpdate); !strings.Contains(got, "returned: true") {
			return got
		}
		return ""
	})
	stop()
	m.runSystem("1.0.0", "boot-2")
	stop = m.start()
	m.updated(inplace.Failed, "started again with version 1.0.0, and not 3.0.0: the update was probably rolled back")

	m.runSystem("3.0.0", "boot-2") // by hand
	node := m.node()
	kit.Change(t, m.admin, node, func() { metav1.SetMetaDataAnnotation(&node.ObjectMeta, "example.org/touched", "true") })
	m.updated(inplace.Successful, "")

	// A start with the new version ends the update.
	m.drained(true)
	checksum := m.offer(inPlace("3.0.1", "1.37.1"))
	kit.EventuallyTrue(t, "the node agent waits for the start of the machine again", func() bool {
		m.tick()
		got := m.read(paths.InPlaceUpdate)
		return strings.Contains(got, "operatingSystem: 3.0.1") && strings.Contains(got, "returned: true")
	})
	stop()
	m.runSystem("3.0.1", "boot-3")
	m.start()
	m.updated(inplace.Successful, "")
	m.applied(checksum)
}

// TestInPlaceRotation rotates the authorities: the node agent gets another certificate, and kubelet requests one with its old certificate.
func TestInPlaceRotation(t *testing.T) {
	t.Parallel()
	m := newMachineInPlace(t, "inplace-ca")
	m.joined(inPlace("1.0.0", "1.37.1"))
	before := m.certificate().SerialNumber
	old := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("old")})) + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")}))
	m.write(paths.KubeletCertificate, old)
	m.write(paths.KubeletKubeconfig, "old")
	var bootstrap string
	m.onStart = map[string]func(){paths.KubeletUnit: func() {
		if m.exists(paths.KubeletCertificate) || m.exists(paths.KubeletKubeconfig) {
			t.Error("kubelet is started with its old certificate")
		}
		bootstrap = m.read(paths.KubeletBootstrap)
		m.write(paths.KubeletCertificate, "new")
	}}

	rotated := inPlace("1.0.0", "1.37.1")
	now := metav1.NewTime(time.Unix(1e9, 0))
	rotated.Spec.InPlaceUpdates.CredentialsRotation = &extensionsv1alpha1.CredentialsRotation{
		CertificateAuthorities: &extensionsv1alpha1.CARotation{LastInitiationTime: &now},
		ServiceAccountKey:      &extensionsv1alpha1.ServiceAccountKeyRotation{LastInitiationTime: &now},
	}
	checksum := m.offer(rotated)
	m.drained(true)
	m.updated(inplace.Successful, "")
	m.applied(checksum)
	if m.certificate().SerialNumber.Cmp(before) == 0 {
		t.Error("the node agent has its old certificate")
	}
	user := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("old")}))
	if !strings.Contains(bootstrap, "client-certificate-data: "+user) || m.read(paths.KubeletCertificate) != "new" || m.count(paths.KubeletUnit) != 1 {
		t.Errorf("kubelet was restarted %d times, with the kubeconfig\n%s", m.count(paths.KubeletUnit), bootstrap)
	}
}

// TestInPlaceKilled kills the node agent before some of the effects of an update in place. The next process goes on, and repeats no step that
// was recorded: kubelet never loses its certificate without the means to get another one.
func TestInPlaceKilled(t *testing.T) {
	t.Parallel()
	m := newMachineInPlace(t, "inplace-killed")
	m.commands["update-system"] = func() error { m.runSystem(m.wantedSystem, "boot-1"); return nil }
	m.onStart = map[string]func(){paths.KubeletUnit: func() {
		if !m.exists(paths.KubeletCertificate) && !strings.Contains(m.read(paths.KubeletBootstrap), "client-certificate-data") {
			t.Error("kubelet is started without a certificate")
		}
		m.write(paths.KubeletCertificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("new")})))
	}}
	stop := m.joined(inPlace("1.0.0", "1.30.0"))
	stop()
	m.write(paths.KubeletCertificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("old")})))
	for i, allowed := range []int{0, 2, 5, 9, 12, 14, 16, 18, 20, 22} {
		m.wantedSystem = fmt.Sprintf("1.0.%d", i+1)
		changed := inPlace(m.wantedSystem, fmt.Sprintf("1.%d.0", 31+i))
		at := metav1.NewTime(time.Unix(1e9+int64(i), 0))
		changed.Spec.InPlaceUpdates.CredentialsRotation = &extensionsv1alpha1.CredentialsRotation{
			CertificateAuthorities: &extensionsv1alpha1.CARotation{LastInitiationTime: &at},
		}
		before := m.certificate().SerialNumber
		checksum := m.offer(changed)
		m.drained(true)
		m.killed(allowed)
		stop := m.start()
		m.updated(inplace.Successful, "")
		m.applied(checksum)
		stop()
		if m.exists(paths.InPlaceUpdate) || m.certificate().SerialNumber.Cmp(before) == 0 {
			t.Errorf("after %d effects: the update has not ended, or the node agent has its old certificate", allowed)
		}
	}
}
