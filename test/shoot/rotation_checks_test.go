package shoot

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
)

// operate annotates the Shoot with an operation.
func (w *world) operate(operation string) {
	w.Helper()
	shoot := w.get()
	kit.Change(w, w.garden, shoot, func() {
		shoot.Annotations = map[string]string{constants.AnnotationGardenerOperation: operation}
	})
}

// succeeded returns why the last operation of the current generation has not succeeded.
func (w *world) succeeded() string {
	w.Helper()
	shoot := w.get()
	last := shoot.Status.LastOperation
	if last == nil || last.State != corev1beta1.LastOperationStateSucceeded || shoot.Status.ObservedGeneration != shoot.Generation {
		return fmt.Sprintf("last operation %+v\n%s", last, w.bundles())
	}
	return ""
}

// phases returns an error text if rotations are not in these phases: those of the authorities, the account key and the
// encryption key.
func (w *world) phases(authorities, accountKey, encryptionKey corev1beta1.CredentialsRotationPhase) string {
	w.Helper()
	shoot := w.get()
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
		return fmt.Sprintf("no rotation; last operation %+v", shoot.Status.LastOperation)
	}
	rotation := shoot.Status.Credentials.Rotation
	if rotation.CertificateAuthorities.Phase != authorities || rotation.ServiceAccountKey.Phase != accountKey || rotation.ETCDEncryptionKey.Phase != encryptionKey {
		return fmt.Sprintf("%s, %s, %s; last operation %+v\n%s", rotation.CertificateAuthorities.Phase, rotation.ServiceAccountKey.Phase,
			rotation.ETCDEncryptionKey.Phase, shoot.Status.LastOperation, w.bundles())
	}
	return ""
}

// ledgerHas returns an error text if the ledger of the control plane does not contain a task.
func (w *world) ledgerHas(task string) string {
	w.Helper()
	secret := &corev1.Secret{}
	if err := w.seed.Get(w.Context(), client.ObjectKey{Namespace: technical, Name: "shoot-ledger"}, secret); err != nil {
		return err.Error() + fmt.Sprintf("\n%+v\n%s", w.get().Status.LastOperation, w.bundles())
	}
	if text := string(secret.Data["ledger.json"]); !strings.Contains(text, task) {
		return text
	}
	return ""
}

// settle waits until all programs are rolled out and no work is pending.
func (r *rollout) settle() {
	r.Helper()
	r.until("all programs are rolled out", func() string {
		for name := range r.running {
			status, spec := r.deployment(name).Status, r.deployment(name).Spec
			if status.ObservedGeneration != r.deployment(name).Generation || status.UpdatedReplicas != *spec.Replicas || status.ReadyReplicas != *spec.Replicas || status.Replicas != *spec.Replicas {
				return fmt.Sprintf("%s: %+v", name, status)
			}
		}
		return r.succeeded()
	})
}

// material returns the control plane's credentials by the names of their configs, from the newest Secrets.
func (w *world) material() map[string][]byte {
	w.Helper()
	var list corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &list, client.InNamespace(technical), client.HasLabels{constants.LabelSecretsManagerName}))
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	found := map[string][]byte{}
	for _, secret := range list.Items {
		for _, key := range []string{"ca.key", "id_rsa", "secret"} {
			if value := secret.Data[key]; len(value) > 0 {
				found[secret.Labels[constants.LabelSecretsManagerName]] = value
			}
		}
	}
	return found
}

// checkMaterial checks that all credentials are new, and that neither the seed nor the garden contains old ones.
func (w *world) checkMaterial(before, after map[string][]byte) {
	w.Helper()
	for name, old := range before {
		if bytes.Equal(after[name], old) {
			w.Errorf("%s was not rotated", name)
		}
	}
	kit.Eventually(w, "the old Secrets are deleted", func() string {
		var list corev1.SecretList
		kit.Must(w, w.seed.List(w.Context(), &list, client.InNamespace(technical), client.HasLabels{constants.LabelSecretsManagerName}))
		for _, secret := range list.Items {
			for _, value := range secret.Data {
				for name, old := range before {
					if bytes.Contains(value, old) {
						return "Secret " + secret.Name + " has the old " + name
					}
				}
			}
		}
		return ""
	})
	authority := &corev1beta1.InternalSecret{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: shootName + ".ca-client"}, authority))
	if !bytes.Equal(authority.Data["ca.key"], after["ca-client"]) {
		w.Error("the garden has another client authority than the control plane")
	}
	trusted := &corev1.ConfigMap{}
	kit.Must(w, w.garden.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: shootName + ".ca-cluster"}, trusted))
	if count := strings.Count(trusted.Data["ca.crt"], "BEGIN CERTIFICATE"); count != 1 {
		w.Errorf("users trust %d authorities, want 1", count)
	}
}

// checkTimes checks that the status contains the times of a completed rotation.
func (w *world) checkTimes() {
	w.Helper()
	rotation := w.get().Status.Credentials.Rotation
	for name, times := range map[string][]*metav1.Time{
		"authorities":    {rotation.CertificateAuthorities.LastInitiationTime, rotation.CertificateAuthorities.LastCompletionTime},
		"account key":    {rotation.ServiceAccountKey.LastInitiationTime, rotation.ServiceAccountKey.LastCompletionTime},
		"encryption key": {rotation.ETCDEncryptionKey.LastInitiationTime, rotation.ETCDEncryptionKey.LastCompletionTime},
		"observability":  {rotation.Observability.LastInitiationTime, rotation.Observability.LastCompletionTime},
	} {
		if times[0] == nil || times[1] == nil || times[1].Before(times[0]) {
			w.Errorf("%s: initiated %v, completed %v", name, times[0], times[1])
		}
	}
	if rotation.CertificateAuthorities.LastInitiationFinishedTime != nil || rotation.CertificateAuthorities.LastCompletionTriggeredTime != nil {
		w.Errorf("%+v", rotation.CertificateAuthorities)
	}
	if operation, found := w.get().Annotations[constants.AnnotationGardenerOperation]; found {
		w.Errorf("the operation annotation %q was not removed", operation)
	}
}

// encryptionKey returns the name of the active key.
func (w *world) encryptionKey() string {
	w.Helper()
	var list corev1.SecretList
	kit.Must(w, w.seed.List(w.Context(), &list, client.InNamespace(technical), client.MatchingLabels{constants.LabelSecretsManagerName: constants.SecretNameETCDEncryptionKey}))
	newest := slices.MaxFunc(list.Items, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return string(newest.Data["key"])
}

// checkEncryption checks that etcd stores all objects of a resource encrypted with a key, or unencrypted if the name of the
// key is empty.
func (w *world) checkEncryption(resource, key string) {
	w.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{w.seeds.EtcdURL().String()}})
	kit.Must(w, err)
	defer etcd.Close()
	answer, err := etcd.Get(w.Context(), w.etcdPrefix()+"/"+resource+"/", clientv3.WithPrefix())
	kit.Must(w, err)
	wrong := 0
	for _, entry := range answer.Kvs {
		encrypted := bytes.HasPrefix(entry.Value, []byte("k8s:enc:"))
		if encrypted != (key != "") || encrypted && !bytes.HasPrefix(entry.Value, []byte("k8s:enc:aescbc:v1:"+key+":")) {
			wrong++
		}
	}
	w.Logf("etcd contains %d %s, want them encrypted with the key %q", len(answer.Kvs), resource, key)
	if wrong > 0 || len(answer.Kvs) == 0 {
		w.Errorf("%d of %d %s are not stored as expected with the key %q", wrong, len(answer.Kvs), resource, key)
	}
}

// changeEncryption enables and disables the encryption of another resource. Its objects are rewritten each time.
func (r *rollout) changeEncryption(admin client.Client) {
	r.Helper()
	r.checkEncryption("configmaps", "")
	for _, resources := range [][]string{{"configmaps"}, nil} {
		shoot := r.get()
		kit.Change(r, r.garden, shoot, func() { shoot.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources = resources })
		r.until("the objects are rewritten", func() string { return r.succeeded() })
		if got := r.get().Status.Credentials.EncryptionAtRest.Resources; !slices.Equal(got, resources) {
			r.Errorf("the status contains %v, want %v as declared", got, resources)
		}
		key := ""
		if len(resources) > 0 {
			key = r.encryptionKey()
		}
		r.checkEncryption("configmaps", key)
		r.checkEncryption("secrets", r.encryptionKey())
		kit.Must(r, admin.Get(r.Context(), client.ObjectKey{Namespace: "default", Name: "mine"}, &corev1.ConfigMap{}))
	}
}

// controllersWork checks that kube-controller-manager uses its new credentials.
func (w *world) controllersWork(admin client.Client) {
	w.Helper()
	kit.Must(w, admin.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "after"}}))
	kit.EventuallyWithin(w, 4*kit.WaitTimeout, "the controllers of the shoot are running", func() string {
		return kit.TextOf(admin.Get(w.Context(), client.ObjectKey{Namespace: "after", Name: "default"}, &corev1.ServiceAccount{}))
	})
}
