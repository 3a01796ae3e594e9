package providerlocal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	created    = gardencorev1beta1.LastOperationTypeCreate
	reconciled = gardencorev1beta1.LastOperationTypeReconcile
	problem    = gardencorev1beta1.ErrorConfigurationProblem
)

// TestKinds runs an object of each kind except Worker through its life cycle: created, updated, failed, migrated and
// restored, deleted.
func TestKinds(t *testing.T) {
	w := newWorld(t)
	t.Run("Infrastructure", func(t *testing.T) { w.with(t).infrastructure() })
	t.Run("ControlPlane", func(t *testing.T) { w.with(t).controlPlane() })
	t.Run("Network", func(t *testing.T) { w.with(t).network() })
	t.Run("OperatingSystemConfig", func(t *testing.T) { w.with(t).operatingSystemConfig() })
	t.Run("DNSRecord", func(t *testing.T) { w.with(t).dnsRecord() })
	t.Run("Extension", func(t *testing.T) { w.with(t).extension() })
	t.Run("ContainerRuntime", func(t *testing.T) { w.with(t).containerRuntime() })
	t.Run("Backup", func(t *testing.T) { w.with(t).backup() })
	t.Run("Bastion", func(t *testing.T) { w.with(t).bastion() })
	w.rest()
	w.requests.Forget()
	w.rest()
	if sent := w.requests.All(); len(sent) > 0 {
		t.Errorf("requests at rest: %v", sent)
	}
}

// with returns the world for a subtest.
func (w *world) with(t *testing.T) *world {
	t.Helper()
	part := *w
	part.T = t
	return &part
}

func (w *world) infrastructure() {
	fresh := func() *extensionsv1alpha1.Infrastructure {
		return read(w, &extensionsv1alpha1.Infrastructure{}, "metadata: {name: blue}\nspec: {type: local, region: local, secretRef: {name: cloudprovider, namespace: "+w.shoot+"}}")
	}
	object := fresh()
	w.create(object)
	w.succeeded(object, created)
	if status := object.Status; status.NodesCIDR != nil || !slices.Equal(status.EgressCIDRs, []string{"10.99.0.0/17"}) || !slices.Equal(status.Networking.Pods, []string{"100.96.0.0/16"}) ||
		!strings.Contains(string(status.ProviderStatus.Raw), `"simulated":true`) {
		w.Errorf("the status is %+v, %s", status, status.ProviderStatus.Raw)
	}
	namespace := local.InfrastructureNamespace(w.shoot)
	w.found(&networkingv1.NetworkPolicy{}, namespace, "provider-local-deny-all")
	w.change(object, constants.OperationReconcile, func() {
		object.Spec.ProviderConfig = w.config("InfrastructureConfig\nnetworks: {nodes: 10.250.0.0/16}")
	})
	w.succeeded(object, reconciled)
	if *object.Status.NodesCIDR != "10.250.0.0/16" {
		w.Errorf("the range of nodes is %s", *object.Status.NodesCIDR)
	}
	w.change(object, constants.OperationReconcile, func() {
		object.Spec.ProviderConfig = w.config("InfrastructureConfig\nnetworks: {nodes: 100.96.0.0/24}")
	})
	w.failed(object, problem, "must not overlap with the range of pods")
	w.change(object, constants.OperationReconcile, func() { object.Spec.ProviderConfig = nil })
	w.succeeded(object, reconciled)
	// The namespace with the machines is kept while the Infrastructure is moved.
	before := &corev1.Namespace{}
	w.found(before, "", namespace)
	object = migrated(w, object, fresh)
	after := &corev1.Namespace{}
	w.found(after, "", namespace)
	if before.UID != after.UID || after.DeletionTimestamp != nil {
		w.Errorf("the namespace was replaced: %+v, %+v", before.ObjectMeta, after.ObjectMeta)
	}
	w.gone(object)
	w.missing(after)
}

func (w *world) controlPlane() {
	fresh := func() *extensionsv1alpha1.ControlPlane {
		return read(w, &extensionsv1alpha1.ControlPlane{}, "metadata: {name: blue}\nspec: {type: local, region: local, secretRef: {name: cloudprovider, namespace: "+w.shoot+"}}")
	}
	object := fresh()
	w.create(object)
	w.succeeded(object, created)
	class := &storagev1.StorageClass{}
	w.found(class, "", "default")
	w.found(&corev1.ConfigMap{}, w.shoot, "cloud-provider-config")
	w.change(object, constants.OperationReconcile, func() {
		object.Spec.ProviderConfig = w.config("ControlPlaneConfig\nstorage: {managedDefaultStorageClass: false}")
	})
	w.succeeded(object, reconciled)
	w.found(class, "", "default")
	if class.Annotations["storageclass.kubernetes.io/is-default-class"] != "false" {
		w.Errorf("the StorageClass has the annotations %v", class.Annotations)
	}
	w.change(object, constants.OperationReconcile, func() { object.Spec.ProviderConfig = w.config("ControlPlaneConfig\nstore: {}") })
	w.failed(object, problem, `unknown field "store"`)
	w.change(object, constants.OperationReconcile, func() { object.Spec.ProviderConfig = nil })
	w.succeeded(object, reconciled)
	w.found(class, "", "default")
	object = migrated(w, object, fresh)
	again := &storagev1.StorageClass{}
	w.found(again, "", "default")
	if class.UID != again.UID {
		w.Error("the StorageClass of the Shoot was replaced")
	}
	w.gone(object)
	w.missing(class)
}

func (w *world) network() {
	fresh := func() *extensionsv1alpha1.Network {
		return read(w, &extensionsv1alpha1.Network{}, "metadata: {name: blue}\nspec: {type: local, podCIDR: 100.96.0.0/16, serviceCIDR: 100.64.0.0/16, ipFamilies: [IPv4]}")
	}
	object := fresh()
	w.create(object)
	w.succeeded(object, created)
	set := &appsv1.DaemonSet{}
	w.found(set, metav1.NamespaceSystem, "provider-local-network")
	if args := set.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--cluster-pods=100.96.0.0/16") || !slices.Equal(object.Status.IPFamilies, []extensionsv1alpha1.IPFamily{"IPv4"}) {
		w.Errorf("the agents have the arguments %v, the status is %+v", args, object.Status)
	}
	w.change(object, constants.OperationReconcile, func() { object.Spec.ProviderConfig = w.config("NetworkConfig\nnetworkPolicies: false") })
	w.succeeded(object, reconciled)
	w.found(set, metav1.NamespaceSystem, "provider-local-network")
	if args := set.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--network-policies=false") {
		w.Errorf("the agents have the arguments %v", args)
	}
	w.change(object, constants.OperationReconcile, func() { object.Spec.ProviderConfig = w.config("WorkerConfig") })
	w.failed(object, problem, "of the kind WorkerConfig")
	w.change(object, constants.OperationReconcile, func() { object.Spec.ProviderConfig = nil })
	w.succeeded(object, reconciled)
	object = migrated(w, object, fresh)
	w.gone(object)
	w.missing(set)
}

func (w *world) operatingSystemConfig() {
	fresh := func() *extensionsv1alpha1.OperatingSystemConfig {
		return read(w, &extensionsv1alpha1.OperatingSystemConfig{}, "metadata: {name: pool-init}\nspec: {type: local, purpose: provision, files: [{path: /etc/a, content: {inline: {encoding: '', data: one}}}]}")
	}
	object := fresh()
	w.create(object)
	w.succeeded(object, created)
	userData := func() string {
		secret := &corev1.Secret{}
		w.found(secret, object.Status.CloudConfig.SecretRef.Namespace, object.Status.CloudConfig.SecretRef.Name)
		return string(secret.Data["cloud_config"])
	}
	if text := userData(); !strings.Contains(text, "b25l") {
		w.Errorf("the user data is %s", text)
	}
	w.change(object, constants.OperationReconcile, func() { object.Spec.Files[0].Content.Inline.Data = "two" })
	w.succeeded(object, reconciled)
	if text := userData(); !strings.Contains(text, "dHdv") {
		w.Errorf("the user data is %s", text)
	}
	w.change(object, constants.OperationReconcile, func() {
		object.Spec.Files[0].Content.Inline.Encoding, object.Spec.Files[0].Content.Inline.Data = "b64", "#"
	})
	w.failed(object, problem, "decode content.inline.data")
	w.change(object, constants.OperationReconcile, func() { object.Spec.Files = nil })
	w.succeeded(object, reconciled)
	object = migrated(w, object, fresh)
	secret := &corev1.Secret{}
	w.found(secret, w.shoot, "osc-result-pool-init")
	w.gone(object)
	w.missing(secret)

	running := read(w, &extensionsv1alpha1.OperatingSystemConfig{}, "metadata: {name: pool-original}\nspec: {type: local, purpose: reconcile}")
	w.create(running)
	w.succeeded(running, created)
	if len(running.Status.ExtensionUnits) != 1 {
		w.Errorf("the units are %+v", running.Status.ExtensionUnits)
	}
	w.gone(running)
}

func (w *world) dnsRecord() {
	zone := func() string {
		zones := &corev1.ConfigMap{}
		w.found(zones, w.settings.DNSConfigMap.Namespace, w.settings.DNSConfigMap.Name)
		return zones.Data["db.local.gardener.cloud"]
	}
	fresh := func() *extensionsv1alpha1.DNSRecord {
		return read(w, &extensionsv1alpha1.DNSRecord{}, "metadata: {name: blue-external}\n"+
			"spec: {type: local, name: api.blue.local.gardener.cloud, recordType: A, values: [192.0.2.1], secretRef: {name: cloudprovider, namespace: "+w.shoot+"}}")
	}
	object := fresh()
	w.create(object)
	w.succeeded(object, created)
	if text := zone(); *object.Status.Zone != "local.gardener.cloud" || !strings.HasSuffix(text, "\napi.blue.local.gardener.cloud. 120 IN A 192.0.2.1\n") {
		w.Errorf("zone %s: %s", *object.Status.Zone, text)
	}
	w.change(object, constants.OperationReconcile, func() { object.Spec.Values = []string{"192.0.2.3", "192.0.2.2"} })
	w.succeeded(object, reconciled)
	if text := zone(); strings.Contains(text, "192.0.2.1\n") || !strings.Contains(text, "192.0.2.2\n") || !strings.Contains(text, "192.0.2.3\n") {
		w.Errorf("the zone is %s", text)
	}
	w.change(object, constants.OperationReconcile, func() { object.Spec.Values = []string{"nowhere"} })
	w.failed(object, problem, "an address of its family is required")
	w.change(object, constants.OperationReconcile, func() { object.Spec.Values = []string{"192.0.2.1"} })
	w.succeeded(object, reconciled)
	object = migrated(w, object, fresh)
	if text := zone(); !strings.Contains(text, "192.0.2.1\n") {
		w.Errorf("after a restoration, the zone is %s", text)
	}
	w.gone(object)
	if text := zone(); strings.Contains(text, "api.blue") {
		w.Errorf("after a deletion, the zone is %s", text)
	}
}

func (w *world) extension() {
	for ofType, namespace := range map[string]string{"local-ext-seed": w.shoot, "local-ext-shoot": metav1.NamespaceSystem} {
		fresh := func() *extensionsv1alpha1.Extension {
			return read(w, &extensionsv1alpha1.Extension{}, "metadata: {name: "+ofType+"}\nspec: {type: "+ofType+"}")
		}
		object := fresh()
		w.create(object)
		w.succeeded(object, created)
		account := &corev1.ServiceAccount{}
		w.found(account, namespace, "extension-"+ofType)
		w.change(object, constants.OperationReconcile, func() {})
		w.succeeded(object, reconciled)
		object = migrated(w, object, fresh)
		again := &corev1.ServiceAccount{}
		w.found(again, namespace, "extension-"+ofType)
		if ofShoot := namespace != w.shoot; (account.UID == again.UID) != ofShoot {
			w.Errorf("%s: the ServiceAccount %s/%s was replaced: %t", ofType, namespace, account.Name, account.UID != again.UID)
		}
		w.gone(object)
		w.missing(again)
	}
}

func (w *world) containerRuntime() {
	fresh := func() *extensionsv1alpha1.ContainerRuntime {
		return read(w, &extensionsv1alpha1.ContainerRuntime{}, "metadata: {name: local-pool}\n"+
			"spec: {type: local, binaryPath: /opt/bin, workerPool: {name: pool, selector: {matchLabels: {worker.gardener.cloud/pool: pool}}}}")
	}
	object := fresh()
	w.create(object)
	w.succeeded(object, created)
	class := &nodev1.RuntimeClass{}
	w.found(class, "", "local-pool")
	w.change(object, constants.OperationReconcile, func() { object.Spec.WorkerPool.Selector.MatchLabels["a"] = "b" })
	w.succeeded(object, reconciled)
	w.found(class, "", "local-pool")
	if class.Scheduling.NodeSelector["a"] != "b" {
		w.Errorf("the class selects %v", class.Scheduling.NodeSelector)
	}
	object = migrated(w, object, fresh)
	w.gone(object)
	w.missing(class)
}

func (w *world) backup() {
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "credentials-" + w.shoot}, Data: map[string][]byte{"user": []byte("me")}}
	kit.Must(w, w.Create(w.Context(), credentials))
	bucketName, entryName := "bucket-"+w.shoot, w.shoot+"--7a1f"
	bucket := read(w, &extensionsv1alpha1.BackupBucket{}, "metadata: {name: "+bucketName+"}\nspec: {type: local, region: local, secretRef: {namespace: garden, name: "+credentials.Name+"}}")
	bucket.Namespace = ""
	w.create(bucket)
	w.succeeded(bucket, created)
	w.found(&corev1.Secret{}, bucket.Status.GeneratedSecretRef.Namespace, bucket.Status.GeneratedSecretRef.Name)
	directory := filepath.Join(w.settings.BackupDirectory, bucketName)

	fresh := func() *extensionsv1alpha1.BackupEntry {
		entry := read(w, &extensionsv1alpha1.BackupEntry{}, "metadata: {name: "+entryName+"}\nspec: {type: local, region: local, bucketName: "+bucketName+
			", secretRef: {namespace: garden, name: "+credentials.Name+"}}")
		entry.Namespace = ""
		return entry
	}
	entry := fresh()
	w.create(entry)
	w.succeeded(entry, created)
	access := &corev1.Secret{}
	w.found(access, w.shoot, "etcd-backup")
	if string(access.Data["bucketName"]) != bucketName || string(access.Data["hostPath"]) != "/etc/buckets" || string(access.Data["user"]) != "me" {
		w.Errorf("the access has the keys %v", access.Data)
	}
	kit.Must(w, os.MkdirAll(filepath.Join(directory, entryName, "etcd-main"), 0o750))
	entry = migrated(w, entry, fresh)
	if _, err := os.Stat(filepath.Join(directory, entryName, "etcd-main")); err != nil {
		w.Errorf("the backups were lost while the entry was moved: %v", err)
	}
	w.gone(entry)
	w.missing(access)
	if left, err := os.ReadDir(directory); err != nil || len(left) != 0 {
		w.Errorf("the bucket still contains %v, error %v", left, err)
	}
	// The directory of this bucket cannot be created.
	kit.Must(w, os.WriteFile(filepath.Join(w.settings.BackupDirectory, "file"), nil, 0o600))
	w.gone(bucket)
	if _, err := os.Stat(directory); err == nil {
		w.Error("the directory of the bucket still exists")
	}
}

func (w *world) bastion() {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1xJhXYm9ivZDDCSrsSFmtCWX8VOoZhJpuCcs8fhx2Z"
	infrastructure := read(w, &extensionsv1alpha1.Infrastructure{}, "metadata: {name: blue}\nspec: {type: local, region: local, secretRef: {name: cloudprovider, namespace: "+w.shoot+"}}")
	w.create(infrastructure)
	w.succeeded(infrastructure, created)
	fresh := func() *extensionsv1alpha1.Bastion {
		object := read(w, &extensionsv1alpha1.Bastion{}, "metadata: {name: one}\nspec: {type: local, userData: IyEvYmluL3NoCg==, ingress: [{ipBlock: {cidr: 192.0.2.0/24}}]}")
		object.Spec.UserData = []byte("echo '" + key + "' > .ssh/authorized_keys")
		return object
	}
	object := fresh()
	w.create(object)
	w.succeeded(object, created)
	namespace := local.InfrastructureNamespace(w.shoot)
	if object.Status.Ingress == nil || object.Status.Ingress.Hostname != "bastion-one."+namespace+".svc" {
		w.Errorf("the address is %+v", object.Status.Ingress)
	}
	pod := &corev1.Pod{}
	w.found(pod, namespace, "bastion-one")
	w.change(object, constants.OperationReconcile, func() { object.Spec.Ingress[0].IPBlock.CIDR = "198.51.100.0/24" })
	w.succeeded(object, reconciled)
	policy := &networkingv1.NetworkPolicy{}
	w.found(policy, namespace, "bastion-one")
	if policy.Spec.Ingress[0].From[0].IPBlock.CIDR != "198.51.100.0/24" {
		w.Errorf("the policy allows %+v", policy.Spec.Ingress)
	}
	wrong := read(w, &extensionsv1alpha1.Bastion{}, "metadata: {name: two}\nspec: {type: local, userData: IyEvYmluL3NoCg==, ingress: [{ipBlock: {cidr: 192.0.2.0/24}}]}")
	w.create(wrong)
	w.failed(wrong, problem, "no public key")
	w.gone(wrong)
	w.gone(object)
	w.missing(pod)
	w.gone(infrastructure)
}

// config returns a provider configuration.
func (w *world) config(text string) *runtime.RawExtension {
	raw := &runtime.RawExtension{}
	w.raw(raw, head+text)
	return raw
}
