package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// machines returns the Pods of the machines that the Worker reports. All must be ready and have a version of the machine
// image.
func (k *extensionKinds) machines(version string, count int) map[types.UID]*corev1.Pod {
	k.t.Helper()
	reported, byName := &providerlocalv1alpha1.WorkerStatus{}, map[string]providerlocalv1alpha1.MachineStatus{}
	k.decode(k.worker.Status.ProviderStatus, reported)
	for _, machine := range reported.Machines {
		byName["machine-"+machine.Name] = machine
	}
	pods, found := &corev1.PodList{}, map[types.UID]*corev1.Pod{}
	must(k.t, k.List(k.ctx, pods, client.InNamespace(k.infra), client.MatchingLabels{"app": "machine"}))
	for i := range pods.Items {
		pod := &pods.Items[i]
		found[pod.UID] = pod
		if one := byName[pod.Name]; one.Phase != "Running" || one.ImageVersion != version || one.Address != pod.Status.PodIP || one.Pool != "pool" {
			k.t.Errorf("the Pod %s with the address %s is reported as %+v", pod.Name, pod.Status.PodIP, one)
		}
	}
	if len(found) != count || len(reported.Machines) != count || reported.Simulated {
		k.t.Errorf("%d machines are running, want %d; the Worker reports %+v", len(found), count, reported)
	}
	return found
}

// machineRuns checks that the only machine has run its user data.
func (k *extensionKinds) machineRuns() *corev1.Pod {
	k.t.Helper()
	if got := k.worker.Status.MachineDeployments; len(got) != 1 || got[0].Name != k.shoot+"-pool-z1" || got[0].Minimum != 1 || k.worker.Status.MachineDeploymentsLastUpdateTime == nil {
		k.t.Errorf("the Worker reports the deployments %+v", got)
	}
	var machine *corev1.Pod
	for _, pod := range k.machines(fleet.MachineVersions[0], 1) {
		machine = pod
	}
	inside := *k.cluster
	inside.namespace = k.infra
	for command, want := range map[string]string{
		"cat /etc/e2e": "written by the user data", "systemctl is-active e2e.service": "active", "cat /proc/1/comm": "systemd", "systemctl is-active containerd": "active",
	} {
		if got, err := inside.tryKubectl("exec", machine.Name, "--", "/bin/sh", "-c", command); err != nil || got != want {
			k.t.Errorf("in the machine, %q prints %q, want %q: %v", command, got, want, err)
		}
	}
	k.eventually("the Worker reports that its machines are ready", func() error {
		must(k.t, k.Get(k.ctx, client.ObjectKeyFromObject(k.worker), k.worker))
		for _, condition := range k.worker.Status.Conditions {
			if condition.Type == "EveryNodeReady" && condition.Status == corev1beta1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", k.worker.Status.Conditions)
	})
	return machine
}

// sshKey is the key of a user of a bastion.
type sshKey struct {
	signer ssh.Signer
	// authorized is its public key in the format of OpenSSH.
	authorized string
}

func newSSHKey(t *testing.T) sshKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	return sshKey{signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))}
}

// connect logs a user in on the bastion.
func (k *extensionKinds) connect(key sshKey) (*ssh.Client, error) {
	return ssh.Dial("tcp", net.JoinHostPort(k.bastion.Status.Ingress.IP, "22"), &ssh.ClientConfig{
		User: "gardener", Auth: []ssh.AuthMethod{ssh.PublicKeys(key.signer)}, Timeout: 3 * time.Second,
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), // a bastion creates its key when it starts
	})
}

// throughBastion checks that the machine responds through the bastion with the user's key, but not with another key. Only
// the addresses in spec.ingress can reach the bastion. The step refused changes these addresses later.
func (k *extensionKinds) throughBastion(machine *corev1.Pod) {
	k.t.Helper()
	var user *ssh.Client
	k.eventually("the bastion responds", func() (err error) {
		user, err = k.connect(k.key)
		return err
	})
	defer user.Close()
	session, err := user.NewSession()
	must(k.t, err)
	output, err := session.CombinedOutput("hostname")
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(output), "This is a bastion") {
		k.t.Errorf("a session on the bastion: %v, %q", err, output)
	}
	connection, err := user.Dial("tcp", net.JoinHostPort(machine.Status.PodIP, "22"))
	must(k.t, err)
	answer, err := io.ReadAll(io.LimitReader(connection, 1<<10))
	if err != nil || strings.TrimSpace(string(answer)) != machine.Name {
		k.t.Errorf("the machine %s responds %q: %v", machine.Name, answer, err)
	}
	if other, err := k.connect(newSSHKey(k.t)); err == nil {
		k.t.Error("the bastion accepts another key")
		_ = other.Close()
	}
}

// scaleAndRoll checks that the requested second machine runs, that the bastion is closed, and that both machines are
// replaced by machines of another version.
func (k *extensionKinds) scaleAndRoll() {
	k.t.Helper()
	before := k.machines(fleet.MachineVersions[0], 2)
	k.change(k.worker, constants.OperationReconcile, func() { k.worker.Spec.Pools[0].MachineImage.Version = fleet.MachineVersions[1] })
	k.eventually("the bastion is closed", func() error {
		if user, err := k.connect(k.key); err == nil {
			_ = user.Close()
			return errors.New("it accepts connections from addresses that spec.ingress does not contain")
		}
		return nil
	})
	k.succeeded(reconciled, k.worker)
	for uid := range k.machines(fleet.MachineVersions[1], 2) {
		if before[uid] != nil {
			k.t.Errorf("the machine %s was not replaced", before[uid].Name)
		}
	}
}

// moveMachines moves the Worker to another seed, which is the same one. The machines continue to run.
func (k *extensionKinds) moveMachines() {
	k.t.Helper()
	before := k.machines(fleet.MachineVersions[1], 2)
	k.change(k.worker, constants.OperationMigrate, func() {})
	k.succeeded(corev1beta1.LastOperationTypeMigrate, k.worker)
	moved := &extensionsv1alpha1.Worker{}
	moved.Namespace, moved.Name, moved.Spec = k.worker.Namespace, k.worker.Name, *k.worker.Spec.DeepCopy()
	state := k.worker.Status.State
	k.gone(k.worker)
	// The Secrets for the garbage collector, which are no longer referenced.
	must(k.t, k.DeleteAllOf(k.ctx, &corev1.Secret{}, client.InNamespace(k.shoot), client.MatchingLabels{flow.LabelOwner: string(k.worker.UID)}))
	k.worker = moved
	k.ask(k.worker, constants.OperationWaitForState)
	must(k.t, k.Create(k.ctx, k.worker))
	k.worker.Status.State = state
	must(k.t, k.Status().Update(k.ctx, k.worker))
	k.change(k.worker, constants.OperationRestore, func() {})
	k.succeeded(corev1beta1.LastOperationTypeRestore, k.worker)
	for uid, pod := range k.machines(fleet.MachineVersions[1], 2) {
		if before[uid] == nil {
			k.t.Errorf("the machine %s was created again", pod.Name)
		}
	}
}
