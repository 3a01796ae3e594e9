package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// answers checks the statuses of the kinds that need no machine, and the objects that they create.
func (k *extensionKinds) answers() {
	k.t.Helper()
	status := &providerlocalv1alpha1.InfrastructureStatus{}
	k.decode(k.infrastructure.Status.ProviderStatus, status)
	if nodes := *k.infrastructure.Status.NodesCIDR; status.Namespace != k.infra || status.Simulated || nodes != base.Network.Pods().String() {
		k.t.Errorf("the Infrastructure reports %+v, and the nodes %s", status, nodes)
	}
	if reported := k.osc.Status.CloudConfig; reported == nil || reported.SecretRef.Name != "osc-result-e2e" {
		k.t.Errorf("the OperatingSystemConfig reports %+v", reported)
	}
	if families := k.network.Status.IPFamilies; !slices.Equal(families, []extensionsv1alpha1.IPFamily{extensionsv1alpha1.IPFamilyIPv4}) {
		k.t.Errorf("the Network reports the families %v", families)
	}
	if zone := k.record.Status.Zone; zone == nil || *zone != "local.gardener.cloud" {
		k.t.Errorf("the DNSRecord reports the zone %v", zone)
	}
	for _, object := range k.objectsInShoot() {
		if output, err := k.inShoot("get", object); err != nil {
			k.t.Errorf("the Shoot: %v\n%s", err, output)
		}
	}
	generated, access := k.bucket.Status.GeneratedSecretRef, &corev1.Secret{}
	must(k.t, k.Get(k.ctx, client.ObjectKey{Namespace: generated.Namespace, Name: generated.Name}, &corev1.Secret{}))
	must(k.t, k.Get(k.ctx, k.cluster.key("etcd-backup"), access))
	if string(access.Data["bucketName"]) != k.bucket.Name || len(access.Data["hostPath"]) == 0 {
		k.t.Errorf("the access to backups has the data %q", access.Data)
	}
	must(k.t, os.MkdirAll(filepath.Join(k.bucketDirectory(), k.entry.Name, "etcd-main"), 0o750)) // simulates a backup
}

// unserved waits for the status of the Network. It has the address families and an error, because a Shoot without nodes
// does not serve DaemonSets.
func (k *extensionKinds) unserved() {
	k.t.Helper()
	k.await("No DaemonSets", []extensionsv1alpha1.Object{k.network}, func(extensionsv1alpha1.Object) error {
		if failure := k.network.Status.LastError; failure == nil || !strings.Contains(failure.Description, "DaemonSet: the target cluster does not serve this kind") {
			return fmt.Errorf("the last error is %+v, the last operation %+v", failure, k.network.Status.LastOperation)
		}
		return nil
	})
}

// objectsInShoot are the objects that the ControlPlane and the ContainerRuntime create in the Shoot.
func (k *extensionKinds) objectsInShoot() []string {
	return []string{"storageclass/default", "runtimeclass/local-" + k.runtimes.Spec.WorkerPool.Name}
}

// inShoot runs kubectl in the namespace kube-system of the Shoot.
func (k *extensionKinds) inShoot(arguments ...string) (string, error) {
	arguments = append([]string{"--kubeconfig", k.fleet.ShootKubeconfig(), "--namespace=kube-system"}, arguments...)
	output, err := exec.CommandContext(k.ctx, filepath.Join(base.Root, "bin", "kubectl"), arguments...).CombinedOutput()
	return string(output), err
}

func (k *extensionKinds) bucketDirectory() string {
	return filepath.Join(k.fleet.Buckets(), k.bucket.Name)
}

func (k *extensionKinds) decode(raw *runtime.RawExtension, into any) {
	k.t.Helper()
	if raw == nil {
		k.t.Fatalf("a %T is missing in the status", into)
	}
	must(k.t, json.Unmarshal(raw.Raw, into))
}

// refusal is a change that provider-local rejects, and the text of the error.
type refusal struct {
	object extensionsv1alpha1.Object
	change func()
	text   string
	// then is a change that it accepts.
	then func()
}

func (k *extensionKinds) refusals() []refusal {
	config := func(kind, rest string) *runtime.RawExtension {
		return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":%q%s}`, kind, rest)}
	}
	file := *k.osc.Spec.Files[0].Content.Inline
	pool := func() *extensionsv1alpha1.WorkerPool { return &k.worker.Spec.Pools[0] }
	return []refusal{
		{
			k.infrastructure, func() {
				k.infrastructure.Spec.ProviderConfig = config("InfrastructureConfig", `,"networks":{"nodes":"nowhere"}`)
			},
			"networks.nodes", func() { k.infrastructure.Spec.ProviderConfig = nil },
		},
		{
			k.controlPlane, func() { k.controlPlane.Spec.ProviderConfig = config("ControlPlaneConfig", `,"store":{}`) },
			`unknown field "store"`, func() { k.controlPlane.Spec.ProviderConfig = nil },
		},
		{
			k.network, func() { k.network.Spec.ProviderConfig = config("WorkerConfig", "") },
			"of the kind WorkerConfig", func() { k.network.Spec.ProviderConfig = nil },
		},
		{
			k.osc, func() {
				*k.osc.Spec.Files[0].Content.Inline = extensionsv1alpha1.FileContentInline{Encoding: "b64", Data: "#"}
			},
			"decode content.inline.data", func() { *k.osc.Spec.Files[0].Content.Inline = file },
		},
		{
			k.record, func() { k.record.Spec.Values = []string{"2001:db8::1"} },
			"needs an address of its family", func() { k.record.Spec.Values = []string{"192.0.2.8"} },
		},
		{
			k.worker, func() { pool().MachineImage.Version = "9.9.9" },
			"uses version 9.9.9 of the machine image local", func() { pool().MachineImage.Version, pool().Minimum, pool().Maximum = "1.0.0", 2, 2 },
		},
	}
}

// refused requests changes that provider-local rejects, and then valid changes: a second machine of the Worker, and
// another ingress of the Bastion.
func (k *extensionKinds) refused() {
	k.t.Helper()
	keyless := &extensionsv1alpha1.Bastion{Spec: *k.bastion.Spec.DeepCopy()} // user data are immutable
	keyless.Namespace, keyless.Name, keyless.Spec.UserData = k.shoot, "keyless", []byte("#!/bin/sh\n")
	k.add(keyless)
	texts := map[extensionsv1alpha1.Object]string{keyless: "no public key"}
	objects := []extensionsv1alpha1.Object{keyless}
	all := k.refusals()
	for _, one := range all {
		k.change(one.object, constants.OperationReconcile, one.change)
		texts[one.object] = one.text
		objects = append(objects, one.object)
	}
	k.await("Refused", objects, func(object extensionsv1alpha1.Object) error {
		status := object.GetExtensionStatus()
		last, failure := status.LastOperation, status.LastError
		if last == nil || failure == nil || last.State != corev1beta1.LastOperationStateError || !strings.Contains(failure.Description, texts[object]) ||
			!slices.Equal(failure.Codes, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) {
			return fmt.Errorf("the last operation is %+v, the last error %+v; want %q", last, failure, texts[object])
		}
		return nil
	})
	k.gone(keyless)
	for _, one := range all {
		k.change(one.object, constants.OperationReconcile, one.then)
	}
	k.change(k.bastion, constants.OperationReconcile, func() { k.bastion.Spec.Ingress[0].IPBlock.CIDR = "192.0.2.0/24" })
	k.unserved()
	k.succeeded(reconciled, k.infrastructure, k.controlPlane, k.osc, k.record, k.bastion, k.worker)
}

// removeAll deletes all objects, the Infrastructure last, and checks that nothing is left.
func (k *extensionKinds) removeAll() {
	k.t.Helper()
	k.gone(slices.DeleteFunc(k.all(), func(object extensionsv1alpha1.Object) bool { return object == k.infrastructure })...)
	k.gone(k.infrastructure)
	if entries, err := os.ReadDir(k.fleet.Buckets()); err != nil || len(entries) > 0 {
		k.t.Errorf("buckets still exist: %v, %v", entries, err)
	}
	for _, object := range k.objectsInShoot() {
		if output, err := k.inShoot("get", object); err == nil || !strings.Contains(output, "NotFound") {
			k.t.Errorf("the Shoot still has %s: %v", output, err)
		}
	}
	zones, credentials := &corev1.ConfigMap{}, &corev1.Secret{}
	must(k.t, k.Get(k.ctx, client.ObjectKey{Namespace: "kube-system", Name: "provider-local-zones"}, zones))
	must(k.t, k.Get(k.ctx, k.cluster.key("credentials"), credentials))
	if strings.Contains(zones.Data["db.local.gardener.cloud"], k.record.Spec.Name) || len(credentials.Finalizers) > 0 {
		k.t.Errorf("the zone is %s, and the credentials have the finalizers %v", zones.Data, credentials.Finalizers)
	}
	pods, bundles, namespaces := &corev1.PodList{}, &resourcesv1alpha1.ManagedResourceList{}, &corev1.NamespaceList{}
	must(k.t, k.List(k.ctx, pods, client.InNamespace(k.infra)))
	must(k.t, k.List(k.ctx, bundles, client.HasLabels{flow.LabelOwner}))
	must(k.t, k.List(k.ctx, namespaces, client.MatchingLabels{"gardener.cloud/role": "infra"}))
	for _, object := range k.all() {
		for _, mr := range bundles.Items {
			if mr.Labels[flow.LabelOwner] == string(object.GetUID()) {
				k.t.Errorf("%T: ManagedResource %s/%s still exists", object, mr.Namespace, mr.Name)
			}
		}
	}
	if len(pods.Items) > 0 || len(namespaces.Items) > 0 {
		k.t.Errorf("%d Pods and %d namespaces of machines still exist", len(pods.Items), len(namespaces.Items))
	}
}

// explainKinds logs the statuses of the objects, and the machines.
func (k *extensionKinds) explainKinds() {
	for _, object := range k.all() {
		status := object.GetExtensionStatus()
		k.t.Logf("%T: %+v, %+v", object, status.LastOperation, status.LastError)
	}
	machines := *k.cluster
	machines.namespace = k.infra
	machines.show("get", "pods", "--output=wide")
	machines.show("get", "events", "--sort-by=.lastTimestamp")
	pods := &corev1.PodList{}
	if err := k.List(k.ctx, pods, client.InNamespace(k.infra), client.MatchingLabels{"app": "machine"}); err != nil {
		k.t.Log(err)
	}
	for _, pod := range pods.Items {
		machines.explainMachine(pod.Name, "node")
	}
}
