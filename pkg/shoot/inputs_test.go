package shoot

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// TestSecretsCanBeGenerated checks that the configs name only authorities that are requested, too.
func TestSecretsCanBeGenerated(t *testing.T) {
	for _, in := range []Inputs{known(t), known(t, available(corev1beta1.FailureToleranceTypeZone))} {
		if _, err := secrets.Resolve(in.secretConfigs(), secrets.State{Identity: identity, Now: now}); err != nil {
			t.Error(err)
		}
	}
}

// TestLostKeys checks that a lost key is not generated again once etcd exists.
func TestLostKeys(t *testing.T) {
	_, err := secrets.Resolve(up(t).secretConfigs(), secrets.State{Identity: identity, Now: now})
	for _, name := range []string{constants.SecretNameETCDEncryptionKey, constants.SecretNameCAETCD, constants.SecretNameServiceAccountKey} {
		if err == nil || !strings.Contains(err.Error(), name+" is lost") {
			t.Errorf("%s is generated again: %v", name, err)
		}
	}
}

// TestAddresses tests Shoots with and without domains.
func TestAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Inputs)
		want   []string
	}{
		"internal": {func(*Inputs) {}, []string{"internal=https://api.one.dev.internal.example.org", "service-account-issuer=https://api.one.dev.internal.example.org"}},
		"both": {func(in *Inputs) { in.Shoot.Spec.DNS = &corev1beta1.DNS{Domain: ptr.To("one.example.com")} }, []string{
			"external=https://api.one.example.com", "internal=https://api.one.dev.internal.example.org", "service-account-issuer=https://api.one.dev.internal.example.org",
		}},
		"an internal domain": {func(in *Inputs) { in.Seed.Spec.DNS.Internal.Domain = "internal.example.org" }, []string{
			"internal=https://api.one.dev.internal.example.org", "service-account-issuer=https://api.one.dev.internal.example.org",
		}},
		"none": {func(in *Inputs) { in.Seed.Spec.DNS.Internal = nil }, []string{
			"unmanaged=https://kube-apiserver.shoot--dev--one.svc", "service-account-issuer=https://kube-apiserver.shoot--dev--one.svc",
		}},
	} {
		var got []string
		for _, address := range known(t, test.change).advertised() {
			got = append(got, address.Name+"="+address.URL)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
