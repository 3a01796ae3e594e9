package apiserver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

const encryptionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [internalsecrets.core.gardener.cloud, shootstates.core.gardener.cloud]
  providers:
  - secretbox: {keys: [{name: first, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}
  - identity: {}
`

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// TestEncryptionAndAudit starts the API server with an encryption configuration and an audit policy, and checks the
// contents of etcd and of the audit log.
func TestEncryptionAndAudit(t *testing.T) {
	const namespace, plain = "garden-encrypted", "plain-text-of-the-secret"
	directory := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(directory, name)
		kit.Must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	log := filepath.Join(directory, "audit.log")
	g := startGardenWith(t, garden.Options{APIServerArgs: []string{
		"--encryption-provider-config=" + write("encryption.yaml", encryptionConfiguration),
		"--audit-policy-file=" + write("audit.yaml", auditPolicy), "--audit-log-path=" + log,
	}})
	c := newClientFor(t, g)
	newShoot(t, c, namespace, "open")
	secret := &gardencorev1beta1.InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hidden"}, Data: map[string][]byte{"key": []byte(plain)},
	}
	kit.Must(t, c.Create(t.Context(), secret))
	kit.Must(t, c.Create(t.Context(), &gardencorev1beta1.ShootState{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "open"}, Spec: gardencorev1beta1.ShootStateSpec{Gardener: []gardencorev1beta1.GardenerResourceData{
			{Name: "ca", Type: "secret", Data: runtime.RawExtension{Raw: []byte(`{"data":{"ca.key":"` + plain + `"}}`)}},
		}},
	}))
	read := &gardencorev1beta1.InternalSecret{}
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(secret), read))
	if string(read.Data["key"]) != plain {
		t.Errorf("read %q, want %q", read.Data["key"], plain)
	}

	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{g.EtcdURL().String()}, DialTimeout: time.Minute})
	kit.Must(t, err)
	defer etcd.Close()
	for resource, prefix := range map[string]string{
		"internalsecrets/" + namespace + "/hidden": "k8s:enc:secretbox:v1:first:", "shootstates/" + namespace + "/open": "k8s:enc:secretbox:v1:first:", "shoots/" + namespace + "/open": "{",
	} {
		key := "/registry-gardener/core.gardener.cloud/" + resource
		answer, err := etcd.Get(t.Context(), key)
		kit.Must(t, err)
		if len(answer.Kvs) != 1 {
			t.Errorf("etcd has %d values of %s, want 1", len(answer.Kvs), key)
			continue
		}
		if value := answer.Kvs[0].Value; !bytes.HasPrefix(value, []byte(prefix)) {
			t.Errorf("%s starts with %q, want %q", key, value[:min(len(value), 40)], prefix)
		}
	}

	kit.EventuallyTrue(t, "the audit log contains the creation", func() bool {
		content, err := os.ReadFile(log)
		kit.Must(t, err)
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, `"verb":"create"`) && strings.Contains(line, fmt.Sprintf(`"resource":"internalsecrets","namespace":%q,"name":"hidden"`, namespace)) {
				return !strings.Contains(line, plain)
			}
		}
		return false
	})
}
