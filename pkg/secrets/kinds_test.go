package secrets

import (
	"crypto/rsa"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// kinds returns a config of each kind.
func kinds() []Config {
	return []Config{
		{Name: "ca", Kind: KindCA, KeepOld: true, Persist: true},
		{Name: "ca-client", Kind: KindCA, KeepOld: true, Persist: true, AlwaysChecksum: true},
		{Name: "kube-apiserver", Kind: KindServer, DNSNames: []string{"kube-apiserver"}, SignedBy: "ca"},
		{Name: "etcd-server", Kind: KindServerClient, IPAddresses: []string{"127.0.0.1", "::1"}, SignedBy: "ca"},
		{Name: "kube-aggregator", Kind: KindClient, CommonName: "system:kube-aggregator", SignedBy: "ca-client"},
		{Name: "service-account-key", Kind: KindRSAKey, Bits: 1024, KeepOld: true, Persist: true},
		{Name: "ssh-keypair", Kind: KindSSHKeypair, Bits: 1024, KeepOld: true, Persist: true},
		{Name: "kube-apiserver-etcd-encryption-key", Kind: KindEncryptionKey, KeepOld: true, Persist: true},
		{Name: "vpn-seed-server-tlsauth", Kind: KindVPNTLSAuth},
		{Name: "observability-ingress-users", Kind: KindBasicAuth, Username: "admin", Persist: true},
		{Name: "kube-apiserver-static-token", Kind: KindStaticToken, Persist: true, Users: []User{
			{Name: "health-check"}, {Name: "system:cluster-admin", UID: "1", Groups: []string{"system:masters", "others"}},
		}},
		{Name: "generic-token-kubeconfig", Kind: KindKubeconfig, Server: "https://kube-apiserver", Trusts: "ca", TokenFile: "/token"},
		{
			Name: "bootstrap", Kind: KindKubeconfig, Server: "https://kube-apiserver", Trusts: "ca", SignedBy: "ca-client",
			CommonName: "gardener.cloud:system:gardener-resource-manager", Organization: []string{"system:masters"}, Validity: 10 * time.Minute,
		},
		{
			Name: "user-kubeconfig", Kind: KindKubeconfig, Server: "https://kube-apiserver", Trusts: "ca",
			TokensOf: "kube-apiserver-static-token", Username: "system:cluster-admin",
		},
	}
}

// TestDataKeys compares names, types and data keys with those that Gardener's components read.
func TestDataKeys(t *testing.T) {
	p := newPlace(t)
	result := p.ensure(kinds())
	for name, want := range map[string]string{
		"ca":                                 "^ca Opaque ca.crt,ca.key ca-bundle bundle.crt",
		"ca-client":                          "ca-client Opaque ca.crt,ca.key ca-client-bundle bundle.crt",
		"kube-apiserver":                     "kube-apiserver kubernetes.io/tls ca.crt,tls.crt,tls.key",
		"etcd-server":                        "etcd-server kubernetes.io/tls ca.crt,tls.crt,tls.key",
		"kube-aggregator":                    "kube-aggregator kubernetes.io/tls ca.crt,tls.crt,tls.key",
		"service-account-key":                "service-account-key Opaque id_rsa service-account-key-bundle bundle.key",
		"ssh-keypair":                        "ssh-keypair Opaque id_rsa,id_rsa.pub",
		"kube-apiserver-etcd-encryption-key": "kube-apiserver-etcd-encryption-key Opaque encoding,key,provider,secret",
		"vpn-seed-server-tlsauth":            "vpn-seed-server-tlsauth Opaque vpn.tlsauth",
		"observability-ingress-users":        "observability-ingress-users Opaque auth,password,username",
		"kube-apiserver-static-token":        "kube-apiserver-static-token Opaque static_tokens.csv",
		"generic-token-kubeconfig":           "generic-token-kubeconfig Opaque kubeconfig",
		"bootstrap":                          "bootstrap kubernetes.io/tls ca.crt,kubeconfig,tls.crt,tls.key",
		"user-kubeconfig":                    "user-kubeconfig Opaque kubeconfig",
	} {
		item := result.Items[name]
		base := func(secret string) string {
			if i := strings.LastIndex(secret, "-"); i > 0 && len(secret)-i == 9 {
				return secret[:i]
			}
			return "^" + secret
		}
		got := fmt.Sprintf("%s %s %s", base(item.Current.Name), item.Current.object("").Type, strings.Join(slices.Sorted(maps.Keys(item.Current.Data)), ","))
		if item.Bundle != nil {
			got += fmt.Sprintf(" %s %s", base(item.Bundle.Name), strings.Join(slices.Sorted(maps.Keys(item.Bundle.Data)), ","))
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	if len(result.Items) != len(kinds()) {
		t.Errorf("%d items", len(result.Items))
	}
}

func TestContents(t *testing.T) {
	p := newPlace(t)
	result := p.ensure(kinds())
	data := func(name string) Material { return result.Items[name].Current.Data }
	public, _, _, _, err := ssh.ParseAuthorizedKey(data("ssh-keypair")[KeyRSAPublic])
	if err != nil {
		t.Fatal(err)
	}
	private, err := ssh.ParsePrivateKey(data("ssh-keypair")[KeyRSA])
	if err != nil || string(private.PublicKey().Marshal()) != string(public.Marshal()) {
		t.Errorf("the keys are not a pair: %v", err)
	}
	user, hash, _ := strings.Cut(string(data("observability-ingress-users")[KeyAuth]), ":")
	if user != "admin" || bcrypt.CompareHashAndPassword([]byte(hash), data("observability-ingress-users")[KeyPassword]) != nil {
		t.Error("auth does not accept the password")
	}
	lines := strings.Split(string(data("vpn-seed-server-tlsauth")[KeyVPNTLSAuth]), "\n")
	if len(lines) != 19 || len(lines[1]) != 32 || lines[0]+"\n" != tlsAuthBegin || lines[17]+"\n" != tlsAuthEnd {
		t.Errorf("the key for OpenVPN has %d lines", len(lines))
	}
	tokens := strings.Split(strings.TrimSpace(string(data("kube-apiserver-static-token")[KeyStaticTokens])), "\n")
	if len(tokens) != 2 || !strings.HasSuffix(tokens[0], ",health-check,health-check") || !strings.HasSuffix(tokens[1], `,system:cluster-admin,1,"system:masters,others"`) {
		t.Error("the file of tokens has the wrong users")
	}
	for name, check := range map[string]func(token, file string, certificate []byte) bool{
		"generic-token-kubeconfig": func(_, file string, _ []byte) bool { return file == "/token" },
		"bootstrap": func(_, _ string, certificate []byte) bool {
			return verify(certificate, result.bundle("ca-client"), start) == nil
		},
		"user-kubeconfig": func(token, _ string, _ []byte) bool { return strings.HasPrefix(tokens[1], token) && len(token) == 32 },
	} {
		config, err := clientcmd.Load(data(name)[KeyKubeconfig])
		if err != nil {
			t.Fatal(err)
		}
		context := config.Contexts[config.CurrentContext]
		cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
		if cluster.Server != "https://kube-apiserver" || string(cluster.CertificateAuthorityData) != string(result.bundle("ca")) ||
			!check(user.Token, user.TokenFile, user.ClientCertificateData) {
			t.Errorf("%s: wrong server, authority or credential", name)
		}
	}
	if _, err := result.Items["kube-apiserver-static-token"].Token("root"); err == nil {
		t.Error("there is a token for a user that was not requested")
	}
}

func (r Result) bundle(name string) []byte { return r.Items[name].Bundle.Data[KeyBundleCert] }

// TestChangedConfigKeepsWhatOthersTrust changes fields that count for checksums, as a new version of a program or the change
// from Gardener does.
func TestChangedConfigKeepsWhatOthersTrust(t *testing.T) {
	p := newPlace(t)
	before := p.ensure(kinds())
	changed := kinds()
	for i := range changed {
		changed[i].CommonName, changed[i].Organization = "changed", nil
		changed[i].Users = append(changed[i].Users, User{Name: "other"})
		if changed[i].Kind != KindStaticToken {
			changed[i].Users = nil
		}
		if changed[i].Kind == KindEncryptionKey {
			changed[i].Provider = corev1beta1.EncryptionProviderTypeSecretbox
		}
	}
	p.clock.SetTime(start.Add(day))
	after := p.ensure(changed)
	for name, item := range before.Items {
		current := after.Items[name].Current
		if item.Config.retainedOnChange() && current.Name != item.Current.Name {
			t.Errorf("%s was replaced", name)
		} else if !item.Config.retainedOnChange() && current.Name == item.Current.Name {
			t.Errorf("%s was not generated again", name)
		}
	}
	for _, user := range []string{"health-check", "system:cluster-admin"} {
		old, _ := before.Items["kube-apiserver-static-token"].Token(user)
		if token, err := after.Items["kube-apiserver-static-token"].Token(user); err != nil || token != old {
			t.Errorf("the token of %s changed: %v", user, err)
		}
	}
	const users = "observability-ingress-users"
	if string(after.Items[users].Current.Data[KeyPassword]) != string(before.Items[users].Current.Data[KeyPassword]) {
		t.Error("the password was replaced without a rotation")
	}
	p.rotate(corev1beta1.RotationPreparing, slices.Collect(maps.Keys(before.Items))...)
	rotated := p.ensure(changed)
	for _, name := range []string{"ca", "ssh-keypair", users, "kube-apiserver-static-token", "kube-apiserver-etcd-encryption-key"} {
		for key, value := range rotated.Items[name].Current.Data {
			if key != KeyUsername && key != KeyEncryptionEncoding && string(value) == string(after.Items[name].Current.Data[key]) {
				t.Errorf("%s has the same %s after a rotation", name, key)
			}
		}
	}
	if got := rotated.Items["kube-apiserver-etcd-encryption-key"].Current.Data[KeyEncryptionProvider]; string(got) != "secretbox" {
		t.Errorf("the provider after a rotation is %s", got)
	}
}

func TestAdoptedDataAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		data   map[string]string
		want   string
	}{
		"an authority":   {Config{Kind: KindCA}, map[string]string{KeyCACert: "x"}, "key ca.crt: it has no PEM block"},
		"a certificate":  {Config{Kind: KindClient, SignedBy: "b"}, nil, "keys tls.crt and tls.key"},
		"a key":          {Config{Kind: KindRSAKey}, map[string]string{KeyRSA: "x"}, "key id_rsa: it has no PEM block"},
		"a password":     {Config{Kind: KindBasicAuth, Username: "admin"}, map[string]string{KeyUsername: "admin"}, "key password is missing"},
		"tokens":         {Config{Kind: KindStaticToken, Users: []User{{Name: "b"}}}, map[string]string{KeyStaticTokens: "t,a,a"}, `no token of user "b"`},
		"bad tokens":     {Config{Kind: KindStaticToken, Users: []User{{Name: "b"}}}, map[string]string{KeyStaticTokens: `t"oken`}, "not a file of tokens"},
		"an encryption":  {Config{Kind: KindEncryptionKey}, map[string]string{KeyEncryptionName: "key1", KeyEncryptionSecret: "short"}, "not an encryption key of"},
		"a key of a VPN": {Config{Kind: KindVPNTLSAuth}, map[string]string{KeyVPNTLSAuth: "x"}, "not an OpenVPN static key"},
		"a kubeconfig": {
			Config{Kind: KindKubeconfig, Server: "https://a", Trusts: "b", TokenFile: "c"}, map[string]string{KeyKubeconfig: "x"}, "derived from other Secrets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			test.config.Name = "a"
			p.foreign("theirs", "a", test.data)
			if text := p.refused(Wanted{Configs: []Config{{Name: "b", Kind: KindCA}, test.config}}); !strings.Contains(text, test.want) || !strings.Contains(text, "theirs") {
				t.Errorf("error %s", text)
			}
		})
	}
}

// foreign creates a Secret of another program whose data a config adopts.
func (p *place) foreign(name, config string, data map[string]string) {
	p.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"secrets-manager-use-data-for-name": config}}}
	object.Data = map[string][]byte{}
	for key, value := range data {
		object.Data[key] = []byte(value)
	}
	if err := p.client.Create(p.Context(), object); err != nil {
		p.Fatal(err)
	}
}

// TestAdoptionOfAllThatMayBeAdopted moves a control plane to another namespace by labels, and then rotates everything.
func TestAdoptionOfAllThatMayBeAdopted(t *testing.T) {
	from, p := newPlace(t), newPlace(t)
	p.clock.SetTime(start.Add(day))
	before := from.ensure(kinds())
	var adopted []string
	for name, item := range before.Items {
		if item.Config.Persist {
			data := map[string]string{}
			for key, value := range item.Current.Data {
				if !slices.Contains([]string{KeyAuth, KeyRSAPublic, KeyEncryptionProvider}, key) { // computed keys may differ
					data[key] = string(value)
				}
			}
			p.foreign("old-"+name, name, data)
			adopted = append(adopted, name)
		}
	}
	asked := kinds()
	for i := range asked {
		asked[i].RestoreOnly = asked[i].Persist
	}
	after := p.ensure(asked)
	for _, name := range adopted {
		for key, value := range before.Items[name].Current.Data {
			if key != KeyAuth && string(after.Items[name].Current.Data[key]) != string(value) {
				t.Errorf("%s has another %s", name, key)
			}
		}
	}
	p.rotate(corev1beta1.RotationPreparing, adopted...)
	rotated := p.ensure(asked)
	for _, name := range adopted {
		if sameAs(rotated.Items[name].Current.Data, after.Items[name].Current.Data) {
			t.Errorf("%s was adopted again instead of rotated", name)
		}
	}
}

func TestRSAKeyOfAnotherFormIsRead(t *testing.T) {
	p := newPlace(t)
	item := p.ensure([]Config{{Name: "a", Kind: KindRSAKey, Bits: 1024}}).Items["a"]
	var key *rsa.PrivateKey
	key, err := rsaKey(item.Current.Data[KeyRSA])
	if err != nil || key.N.BitLen() != 1024 {
		t.Errorf("%v", err)
	}
	ca := p.ensure([]Config{{Name: "ca", Kind: KindCA}}).Items["ca"]
	if _, err := rsaKey(ca.Current.Data[KeyCAKey]); err == nil || !strings.Contains(err.Error(), "not an RSA key") {
		t.Errorf("error %v", err)
	}
	if _, _, err := authority(Material{KeyCACert: ca.Current.Data[KeyCACert], KeyCAKey: item.Current.Data[KeyRSA]}); err == nil ||
		!strings.Contains(err.Error(), "does not belong to") {
		t.Errorf("error %v", err)
	}
}

func TestReferred(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: "mounts"},
		Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}}}},
	}
	elsewhere := pod.DeepCopy()
	elsewhere.Namespace, elsewhere.Spec.Volumes[0].Secret.SecretName = "shoot--a--c", "other"
	annotated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"reference.resources.gardener.cloud/secret-12345678": "named"}}}
	uncached := fake.NewClientBuilder().WithObjects(pod, elsewhere).Build()
	referred, err := ReferredIn(t.Context(), uncached, pod.Namespace, []client.Object{annotated})
	if err != nil || !referred("mounted") || !referred("named") || referred("other") || len(annotated.Annotations) != 1 {
		t.Errorf("error %v", err)
	}
}
