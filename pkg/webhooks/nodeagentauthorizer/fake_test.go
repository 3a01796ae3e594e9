package nodeagentauthorizer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader is a fake cache or API server. It has objects by kind and name, and counts the reads.
type reader struct {
	mu      sync.Mutex
	objects map[string]client.Object
	asked   map[string]int
	// before is called before each read. It may fail, block or panic.
	before func(ctx context.Context) error
}

func newReader(objects ...client.Object) *reader {
	r := &reader{objects: map[string]client.Object{}, asked: map[string]int{}}
	for _, object := range objects {
		r.objects[object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName()] = object
	}
	return r
}

func (r *reader) ask(ctx context.Context, what string) error {
	r.mu.Lock()
	r.asked[what]++
	r.mu.Unlock()
	if r.before != nil {
		return r.before(ctx)
	}
	return nil
}

func (r *reader) count(kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for what, count := range r.asked {
		if strings.HasPrefix(what, kind) {
			sum += count
		}
	}
	return sum
}

// Get reads one object.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := into.GetObjectKind().GroupVersionKind().Kind
	switch into.(type) {
	case *certificatesv1.CertificateSigningRequest:
		kind = "CertificateSigningRequest"
	case *corev1.Secret:
		kind = "body of Secret"
	}
	if err := r.ask(ctx, kind+" "+key.Name); err != nil {
		return err
	}
	r.mu.Lock()
	object, found := r.objects[strings.TrimPrefix(kind, "body of ")+" "+key.Name]
	r.mu.Unlock()
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// List returns the Pods on a Node, or Secrets.
func (r *reader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, isMetadata := into.(*metav1.PartialObjectMetadataList)
	if !isMetadata {
		return fmt.Errorf("a %T is read, but only metadata is needed", into)
	}
	applied := (&client.ListOptions{}).ApplyOptions(options)
	if err := r.ask(ctx, list.Kind); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, object := range r.objects {
		switch typed := object.(type) {
		case *corev1.Pod:
			if list.Kind == "PodList" && applied.FieldSelector.Matches(fields.Set{"metadata.name": typed.Name, nodeNameField: typed.Spec.NodeName}) {
				list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: typed.ObjectMeta})
			}
		case *corev1.Secret:
			if list.Kind == "SecretList" && applied.LabelSelector.String() == labelPool && typed.Labels[labelPool] != "" {
				list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: typed.ObjectMeta})
			}
		}
	}
	return nil
}

// everything returns a Machine with its Node, configuration, Pod and CertificateSigningRequest, and a foreign Node.
func everything() []client.Object {
	machine := newMachine()
	machine.SetName("own")
	machine.SetLabels(map[string]string{labelNode: "n-own"})
	_ = unstructured.SetNestedStringMap(machine.Object, map[string]string{labelSecret: "osc-own"}, machineLabels...)
	nodes := []*metav1.PartialObjectMetadata{newNode(), newNode()}
	nodes[0].Name, nodes[0].Labels = "n-own", map[string]string{corev1.LabelHostname: "host-own"}
	nodes[1].Name = "n-foreign"
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "osc-own", Namespace: secretNamespace, ResourceVersion: "7", Labels: map[string]string{labelPool: "a"}},
		Data:       map[string][]byte{configurationKey: []byte(`{"spec":{"files":[{"content":{"secretRef":{"name":"file-own"}}}]}}`)},
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "pod-own", Namespace: "default"},
		Spec: corev1.PodSpec{NodeName: "n-own"},
	}
	request := &certificatesv1.CertificateSigningRequest{
		TypeMeta: metav1.TypeMeta{Kind: "CertificateSigningRequest"}, ObjectMeta: metav1.ObjectMeta{Name: "csr-own"},
		Spec: certificatesv1.CertificateSigningRequestSpec{Username: userPrefix + "own"},
	}
	foreign := request.DeepCopy()
	foreign.Name, foreign.Spec.Username = "csr-foreign", userPrefix+"foreign"
	return []client.Object{machine, nodes[0], nodes[1], secret, pod, request, foreign}
}

// setup is an authorizer with a fake cache and a fake API server for both clusters.
type setup struct {
	*testing.T
	cache, live *reader
	clock       *clocktesting.FakePassiveClock
	registry    *prometheus.Registry
	handler     http.Handler
	mu          sync.Mutex
	lines       []string
}

func newSetup(t *testing.T, cached ...client.Object) *setup {
	t.Helper()
	s := &setup{
		T: t, cache: newReader(cached...), live: newReader(everything()...),
		clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), registry: prometheus.NewRegistry(),
	}
	both := Cluster{Cache: s.cache, Live: s.live}
	s.handler = NewHandler(Options{
		Source: both, Target: both, MachineNamespace: ptr.To("machines"), AuthorizeWithSelectors: true, Clock: s.clock,
		Metrics: NewMetrics(s.registry),
		Log: funcr.New(func(_, line string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lines = append(s.lines, line)
		}, funcr.Options{Verbosity: 1}),
	})
	return s
}

func (s *setup) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// post sends a body and returns the HTTP status and the response.
func (s *setup) post(ctx context.Context, body string) (int, string) {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, Path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	s.handler.ServeHTTP(response, request)
	return response.Code, response.Body.String()
}

func bodyOf(user, group, verb, resource, namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"%s","groups":["%s"],
		"resourceAttributes":{"group":"%s","verb":"%s","resource":"%s","namespace":"%s","name":"%s"}}}`,
		userPrefix+user, userGroup, group, verb, resource, namespace, name)
}

// review sends a review of a request by the node agent of Machine own, and returns the status.
func (s *setup) review(ctx context.Context, verb, resource, namespace, name string) authorizationv1.SubjectAccessReviewStatus {
	s.Helper()
	group := ""
	if resource == "certificatesigningrequests" {
		group = "certificates.k8s.io"
	}
	code, body := s.post(ctx, bodyOf("own", group, verb, resource, namespace, name))
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal([]byte(body), &review); err != nil || code != http.StatusOK {
		s.Errorf("status %d, %v: %s", code, err, body)
	}
	return review.Status
}
