package garden

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// TestNames checks names and addresses that programs of users and the migration of a garden rely on.
func TestNames(t *testing.T) {
	in := known(example(t))
	plan := planOf(t, in)
	for bundle, wanted := range map[string][]string{
		bundleEtcdMain:          {`"volumeClaimTemplate":"main-virtual-garden-etcd"`, `"name":"virtual-garden-etcd-main"`},
		bundleEtcdEvents:        {`"volumeClaimTemplate":"virtual-garden-etcd-events"`},
		bundleServer:            {"--external-hostname=api.garden.example.org", "--etcd-servers=https://virtual-garden-etcd-main-client:2379", "gardener-garden-system-500"},
		bundleControllerManager: {"-serviceaccount-token-controller", "--cluster-name=garden", "-node-lifecycle-controller"},
		bundleAPI:               {"--etcd-servers=https://virtual-garden-etcd-main-client:2379", `"mountPath":"/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"`},
		bundleAPIInVirtual:      {`"addresses":["10.2.0.7"]`, `"namespace":"kube-system"`},
		bundleVirtualManager:    {"gardener-system-public", "virtual-garden-gardener-resource-manager"},
		bundleInfo:              {"https://discovery.example.org/garden/workload-identity/issuer"},
	} {
		got := bundleOf(t, plan, bundle)
		for _, text := range wanted {
			if !strings.Contains(got, text) {
				t.Errorf("%s does not contain %s: %s", bundle, text, got)
			}
		}
	}
}

// TestKubeconfigs checks the addresses of the virtual garden inside and outside of the runtime cluster.
func TestKubeconfigs(t *testing.T) {
	in := known(small())
	objects, err := in.accessSecrets()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{
		"gardener": "server: https://api.garden.example.org\n", "gardener-internal": "server: https://virtual-garden-kube-apiserver.garden.svc\n",
	}
	for _, object := range objects {
		secret, isSecret := object.(*corev1.Secret)
		text := wanted[object.GetName()]
		if !isSecret || text == "" {
			continue
		}
		if !strings.Contains(string(secret.Data["kubeconfig"]), text) {
			t.Errorf("%s: %s", secret.Name, secret.Data["kubeconfig"])
		}
		delete(wanted, secret.Name)
	}
	if len(wanted) > 0 {
		t.Errorf("these Secrets are missing: %v", wanted)
	}
}

// TestAuthorities checks that the authority of the runtime cluster is renewed by itself, and that the others and the keys are only restored once etcd
// exists, and can be adopted by their names.
func TestAuthorities(t *testing.T) {
	in := known(small())
	in.Emitted = emittedOf(t, in)
	found := map[string]secrets.Config{}
	for _, config := range in.secretConfigs() {
		found[config.Name] = config
	}
	if own := found["ca-garden-runtime"]; !own.RenewAuthority || own.Validity != 30*24*time.Hour || own.IgnoreOldAfter != 24*time.Hour || own.RenewAfter != 0 || own.RestoreOnly {
		t.Errorf("the authority of the runtime cluster is %+v", own)
	}
	for _, name := range []string{
		"ca", "ca-client", "ca-front-proxy", "ca-etcd", "ca-gardener", "service-account-key", "kube-apiserver-etcd-encryption-key",
		"gardener-apiserver-etcd-encryption-key", "gardener-apiserver-workload-identity-signing-key",
	} {
		if config, exists := found[name]; !exists || !config.RestoreOnly || !config.KeepOld {
			t.Errorf("%s: %+v", name, config)
		}
	}
}
