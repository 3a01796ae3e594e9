package faults

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

// gardens provides the garden of all Shoots.
var gardens garden.Shared

// fleet holds the state that all runs of the scenario "shoot" share, next to the seed. The seed is the control
// plane of all scenarios.
type fleet struct {
	gardens *garden.Garden
	garden  client.Client
	scheme  *runtime.Scheme
	// cluster is the API server of all Shoots.
	cluster *rest.Config
}

var theFleet struct {
	once  sync.Once
	fleet *fleet
	err   error
}

// newFleet returns the garden and the API server of Shoots. The first run starts them.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	started, seed := gardens.Get(t), shared.Get(t)
	theFleet.once.Do(func() {
		f := &fleet{gardens: started, scheme: runtime.NewScheme()}
		theFleet.fleet = f
		further, err := seed.StartAPIServer(t.Context(), "shoots", seed.EtcdURL(), map[string][]string{"etcd-prefix": {"/shoots"}})
		if err == nil {
			f.cluster = further.Config()
			f.cluster.QPS = -1
			err = f.prepare(t, seed.Dir())
		}
		theFleet.err = err
	})
	kit.Must(t, theFleet.err)
	return theFleet.fleet
}

// prepare creates a client of the garden and the objects that all Shoots refer to. It writes the image list to the
// directory.
func (f *fleet) prepare(t *testing.T, directory string) error {
	t.Helper()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, served.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
	} {
		if err := add(f.scheme); err != nil {
			return err
		}
	}
	config := f.gardens.Config()
	config.QPS = -1
	var err error
	if f.garden, err = client.New(config, client.Options{Scheme: f.scheme}); err != nil {
		return err
	}
	profile := &corev1beta1.CloudProfile{}
	if err := readExample("cloudprofile", profile); err != nil {
		return err
	}
	profile.Spec.Kubernetes.Versions = []corev1beta1.ExpirableVersion{{Version: shootVersion}}
	if err := f.garden.Create(t.Context(), profile); err != nil {
		return err
	}
	var list strings.Builder
	list.WriteString("images:\n")
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "resource-manager"} {
		fmt.Fprintf(&list, "- {name: %s, repository: registry.example.org/%s, tag: v1}\n", name, name)
	}
	file := filepath.Join(directory, "images.yaml")
	return errors.Join(os.WriteFile(file, []byte(list.String()), 0o600), os.Setenv("IMAGEVECTOR_OVERWRITE", file))
}

// readExample reads the first object of an example.
func readExample(name string, into client.Object) error {
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "fleet", "core", name+".yaml"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	return yaml.UnmarshalStrict([]byte(first), into)
}

// prepareGarden creates the Project of the run and a ready Seed.
func (s *shootLife) prepareGarden() {
	s.Helper()
	kit.Must(s, s.garden.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: s.projectNamespace, Labels: map[string]string{constants.LabelProjectName: s.project, constants.LabelGardenRole: constants.RoleProject},
	}}))
	seed := &corev1beta1.Seed{}
	kit.Must(s, readExample("seed", seed))
	seed.Name, seed.Spec.DNS.Internal.Type = s.project, corev1beta1.DNSUnmanaged // no extension is needed
	seed.Spec.Backup, seed.Spec.Taints, seed.Spec.Extensions, seed.Spec.Resources, seed.Spec.AccessRestrictions = nil, nil, nil, nil, nil
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: s.project}, Spec: corev1beta1.ProjectSpec{Namespace: ptr.To(s.projectNamespace)}}
	for _, object := range []client.Object{project, seed} {
		kit.Must(s, s.garden.Create(s.Context(), object))
	}
	seed.Status.ObservedGeneration, seed.Status.Gardener = seed.Generation, shootIdentity.DeepCopy()
	seed.Status.KubernetesVersion, seed.Status.ClusterIdentity = ptr.To("v"+shootVersion), ptr.To("seed-1")
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		seed.Status.Conditions = append(seed.Status.Conditions, corev1beta1.Condition{
			Type: kind, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(), Reason: "Test", Message: "ready",
		})
	}
	kit.WriteStatus(s, s.garden, seed)
}

// serveCluster serves the API server of the Shoot with the certificate that gardenlet generated for it. Requests
// sent there pass the line, too.
func (s *shootLife) serveCluster() {
	s.Helper()
	next, err := rest.TransportFor(s.cluster)
	kit.Must(s, err)
	target, err := url.Parse("https://" + strings.TrimPrefix(s.cluster.Host, "https://"))
	kit.Must(s, err)
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Authorization") },
		Transport: kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
			present := s.current.Load()
			if present == nil {
				return nil, errCrashed
			}
			return present.of("cluster").wrap(next).RoundTrip(request)
		}),
		// Clients see that the response is cut off.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate}
	server.StartTLS()
	s.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	s.address = server.URL
}

// certificate returns the certificate of the API server of the Shoot.
func (s *shootLife) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	var list corev1.SecretList
	named := client.MatchingLabels{constants.LabelSecretsManagerName: kubeapiserver.SecretServer}
	if err := s.client.List(s.always(), &list, client.InNamespace(s.technical), named); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("found %d certificates of the API server, want one", len(list.Items))
	}
	pair, err := tls.X509KeyPair(list.Items[0].Data[corev1.TLSCertKey], list.Items[0].Data[corev1.TLSPrivateKeyKey])
	return &pair, err
}

// digits match the end of the names of Secrets (hash of the content, and a time) and of Events (a time).
var digits = regexp.MustCompile(`(-[0-9a-f]{8}(-[0-9a-f]{5})?|\.[0-9a-f]{16})$`)

func withoutDigits(name string) string { return digits.ReplaceAllString(name, "-DIGITS") }

// tolerate records an error of a fake, unless the object was changed or deleted concurrently. The next check
// handles that.
func (s *shootLife) tolerate(err error) {
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		s.violate("a fake failed: %v", err)
	}
}
