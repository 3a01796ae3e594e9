// Package csrapprover tests the approver of CertificateSigningRequests on a real API server, with the real signer of
// kube-controller-manager.
package csrapprover

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	_ "github.com/trellis-k8s/trellis/test/kit/resourcemanager" // the program that the tests run
)

const (
	// machineNamespace is the namespace of the Machines.
	machineNamespace = "shoot--project--name"
	// approverUser is the user of the approver.
	approverUser = "approver"
)

var (
	shared    controlplane.Shared
	authority *certificateAuthority
	prepared  sync.Once
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	directory, err := os.MkdirTemp("", "csrapprover-")
	if err == nil {
		defer os.RemoveAll(directory) //nolint:errcheck // a temporary directory
		authority, err = newAuthority(directory)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.Options = controlplane.Options{
		ControllerManager: true, ControllerManagerArgs: authority.args(),
		APIServerArgs: map[string][]string{"enable-bootstrap-token-auth": {"true"}},
	}
	return shared.Run(m)
}

// certificateAuthority signs the certificates of the cluster.
type certificateAuthority struct {
	certFile, keyFile string
	pool              *x509.CertPool
}

func newAuthority(directory string) (*certificateAuthority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	a := &certificateAuthority{
		certFile: filepath.Join(directory, "ca.crt"), keyFile: filepath.Join(directory, "ca.key"), pool: x509.NewCertPool(),
	}
	a.pool.AddCert(certificate)
	if err := os.WriteFile(a.certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return nil, err
	}
	return a, os.WriteFile(a.keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600)
}

func (a *certificateAuthority) args() []string {
	return []string{"--cluster-signing-cert-file=" + a.certFile, "--cluster-signing-key-file=" + a.keyFile}
}

// fixture is a test. No client approves requests unless the test runs an approver.
type fixture struct {
	*testing.T
	ctx context.Context
	// client has the rights of an administrator.
	client client.Client
	// id is the prefix of this test's names.
	id string
}

var fixtures atomic.Int64

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, ctx: t.Context(), id: fmt.Sprintf("t%d", fixtures.Add(1))}
	var err error
	f.client, err = client.New(shared.Get(t).Config(), client.Options{Scheme: newScheme(t)})
	kit.Must(t, err)
	prepared.Do(f.prepare)
	return f
}

func newScheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	kit.Must(tb, clientgoscheme.AddToScheme(scheme))
	kit.Must(tb, apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// prepare creates the objects that all tests need: Machines, and the rights of the approver and of the requesting users.
func (f *fixture) prepare() {
	f.Helper()
	f.defineMachines()
	kit.Must(f, f.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machineNamespace}}))
	f.grant("requests-certificates", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"},
		rule("certificates.k8s.io", "certificatesigningrequests", "create", "get"))
	// The rights that docs/csr-approver.md names.
	signers := rule("certificates.k8s.io", "signers", "approve")
	signers.ResourceNames = []string{"kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client"}
	f.grant("approver", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: approverUser},
		rule("certificates.k8s.io", "certificatesigningrequests", "get", "list", "watch"),
		rule("certificates.k8s.io", "certificatesigningrequests/approval", "update"), signers,
		rule("", "nodes", "get"), rule("events.k8s.io", "events", "create", "patch"),
		rule("machine.sapcloud.io", "machines", "get", "list", "watch"))
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func (f *fixture) grant(name string, to rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	f.Helper()
	meta := metav1.ObjectMeta{Name: name}
	kit.Must(f, f.client.Create(f.ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}))
	kit.Must(f, f.client.Create(f.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{to}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}))
}

// name returns a name that only this test uses.
func (f *fixture) name(text string) string { return f.id + "-" + text }

// defineMachines defines the kind Machine.
func (f *fixture) defineMachines() {
	f.Helper()
	kit.Define(f, shared.Get(f).Config(), machineDefinition())
}

func machineDefinition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "machines.machine.sapcloud.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "machine.sapcloud.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "machines", Singular: "machine", Kind: "Machine", ListKind: "MachineList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}
