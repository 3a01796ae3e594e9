package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/test/kit"
)

// answer is what an API server answers to a request. The code is 0 if there is no answer.
type answer struct {
	code    int
	message string
	// later is set if the answer asks clients to try again.
	later bool
}

// isRefusal reports whether the API server refused the request for what it says.
func (a answer) isRefusal() bool {
	return a.code == http.StatusForbidden || a.code == http.StatusUnprocessableEntity || a.code == http.StatusBadRequest
}

// isLater reports whether there was no decision: the connection broke, the API server is not able to decide now, or the time of the request
// ended in a call to etcd.
func (a answer) isLater() bool {
	return a.code == 0 || a.code == http.StatusInternalServerError && strings.Contains(a.message, "DeadlineExceeded") ||
		a.code == http.StatusTooManyRequests || a.code == http.StatusServiceUnavailable || a.code == http.StatusGatewayTimeout
}

// serverTimeout ends requests that the API server lists objects for. It is longer than plugins wait for facts.
const serverTimeout = 12 * time.Second

// send sends a request of the corpus once, without the retries of clients.
func send(t *testing.T, server *rest.Config, refusal admissiontest.Refusal, dryRun bool) answer {
	t.Helper()
	config := rest.CopyConfig(server)
	config.Impersonate = rest.ImpersonationConfig{UserName: refusal.User, Groups: refusal.Groups}
	config.QPS, config.WarningHandler, config.NegotiatedSerializer = -1, rest.NoWarnings{}, scheme.Codecs.WithoutConversion()
	version := refusal.Resource.GroupVersion()
	config.GroupVersion, config.APIPath = &version, "/apis"
	c, err := rest.RESTClientFor(config)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	verb, kind := http.MethodPost, types.PatchType("application/json")
	switch refusal.Verb {
	case "patch":
		verb, kind = http.MethodPatch, types.MergePatchType
	case "delete", "deletecollection":
		verb = http.MethodDelete
	}
	request := c.Verb(verb).NamespaceIfScoped(refusal.Namespace, refusal.Namespace != "").Resource(refusal.Resource.Resource).MaxRetries(0).
		Param("timeout", serverTimeout.String()).SetHeader("Content-Type", string(kind))
	if refusal.Object != "" {
		request.Name(refusal.Object)
	}
	if refusal.Subresource != "" {
		request.SubResource(refusal.Subresource)
	}
	if dryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	if len(refusal.Body) > 0 {
		request.Body(refusal.Body)
	}
	code := 0
	err = request.Do(t.Context()).StatusCode(&code).Error()
	if failure := apierrors.APIStatus(nil); code == 0 && errors.As(err, &failure) { // the answer of the aggregator without an API server
		code = int(failure.Status().Code)
	}
	seconds, suggested := apierrors.SuggestsClientDelay(err)
	return answer{code: code, message: kit.TextOf(err), later: suggested && seconds > 0}
}

// storeWorld stores the objects of the corpus. Those of the garden's API go directly into etcd, because the rules would refuse some.
func storeWorld(t *testing.T, c client.Client, etcd string, objects []client.Object) {
	t.Helper()
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd}, DialTimeout: time.Minute})
	kit.Must(t, err)
	defer store.Close()
	for _, object := range objects {
		kind := object.GetObjectKind().GroupVersionKind()
		resource := served.Of(kind)
		if resource.Name == "" {
			kit.Must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), object)))
			continue
		}
		object.SetUID(types.UID(kind.Kind + "-" + object.GetNamespace() + "-" + object.GetName()))
		object.SetCreationTimestamp(metav1.Now())
		text, err := json.Marshal(object)
		kit.Must(t, err)
		key := storagePrefix + filepath.Join(kind.Group, resource.Name, object.GetNamespace(), object.GetName())
		_, err = store.Put(t.Context(), key, string(text))
		kit.Must(t, err)
	}
}

// pluginsConfiguration makes ShootResourceReservation read CloudProfiles, as in the case that it refuses.
const pluginsConfiguration = `{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [{"name": "ShootResourceReservation",
	"configuration": {"apiVersion": "shootresourcereservation.admission.gardener.cloud/v1alpha1", "kind": "Configuration", "useGKEFormula": true}}]}`

// pluginOf returns the plugin that a message names.
func pluginOf(message string) string {
	_, after, _ := strings.Cut(message, "admission plugin ")
	name, _, _ := strings.Cut(after, ":")
	return name
}
