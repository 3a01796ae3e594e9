package admissioncontroller

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// gardenlets checks what the gardenlet of Seed a may create through the API server, and asks the authorizer of the running program about
// reads, as the API server does.
func (f *fixture) gardenlets() {
	ctx := f.Context()
	for _, seed := range []string{"a", "b"} {
		shoot := f.shoot("on-"+seed, "{}")
		shoot.Spec.SeedName = ptr.To(seed)
		f.create(shoot)
	}
	kit.Must(f, client.IgnoreAlreadyExists(f.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gardener-system-seed-lease"}})))
	a := f.as("gardener.cloud:system:seed:a", "gardener.cloud:system:seeds")
	const foreign = "does not belong to the requester, the gardenlet of Seed a"
	named := func(space, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: space, Name: name} }
	for name, test := range map[string]struct {
		object client.Object
		text   string
	}{
		"the CA of the own Shoot":     {&corev1.ConfigMap{ObjectMeta: named(namespace, "on-a.ca-cluster")}, ""},
		"the CA of a foreign Shoot":   {&corev1.ConfigMap{ObjectMeta: named(namespace, "on-b.ca-cluster")}, foreign},
		"another ConfigMap":           {&corev1.ConfigMap{ObjectMeta: named(namespace, "x")}, foreign},
		"a Secret in garden":          {&corev1.Secret{ObjectMeta: named("garden", "x")}, foreign},
		"a Secret in the own space":   {&corev1.Secret{ObjectMeta: named("seed-a", "x")}, ""},
		"the own Lease":               {&coordinationv1.Lease{ObjectMeta: named("gardener-system-seed-lease", "a")}, ""},
		"a foreign Lease":             {&coordinationv1.Lease{ObjectMeta: named("gardener-system-seed-lease", "b")}, foreign},
		"the state of the own Shoot":  {&corev1beta1.ShootState{ObjectMeta: named(namespace, "on-a")}, ""},
		"the state of a foreign one":  {&corev1beta1.ShootState{ObjectMeta: named(namespace, "on-b")}, foreign},
		"the client CA of own Shoot":  {&corev1beta1.InternalSecret{ObjectMeta: named(namespace, "on-a.ca-client")}, ""},
		"the client CA of a foreign":  {&corev1beta1.InternalSecret{ObjectMeta: named(namespace, "on-b.ca-client")}, foreign},
		"a ServiceAccount in garden":  {&corev1.ServiceAccount{ObjectMeta: named("garden", "x")}, foreign},
		"a bootstrap account of none": {&corev1.ServiceAccount{ObjectMeta: named("garden", "gardenlet-bootstrap-x")}, foreign},
	} {
		f.refused("creation of "+name, test.text, a.Create(ctx, test.object, client.DryRunAll))
	}
	read := func(resource, name string) bool { return f.authorized("get", resource, name) }
	kit.EventuallyTrue(f, "the gardenlet may read its Shoot", func() bool { return read("shoots", "on-a") && read("shootstates", "on-a") })
	if read("shoots", "on-b") || read("internalsecrets", "on-b.ca-client") || f.authorized("list", "shoots", "") {
		f.Error("the gardenlet of Seed a may read objects of Seed b")
	}
	if !f.authorized("delete", "shootstates", "nobody") {
		f.Error("the deletion of an object that does not exist is not permitted")
	}
	if f.authorized("delete", "internalsecrets", "on-b.ca-client") {
		f.Error("the deletion of an object of Seed b is permitted")
	}
	f.create(&corev1beta1.InternalSecret{ObjectMeta: named(namespace, "unknown")})
	if f.authorized("delete", "internalsecrets", "unknown") {
		f.Error("the deletion of an existing object that the graph does not know is permitted")
	}
	gone := f.shoot("on-a", "{}")
	kit.Must(f, f.client.Patch(ctx, gone, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null,"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))))
	kit.Must(f, f.client.Delete(ctx, gone))
	kit.EventuallyTrue(f, "the gardenlet may no longer read the Shoot that is gone", func() bool { return !read("shoots", "on-a") })
	other := f.shoot("on-b", "{}")
	kit.Must(f, f.client.Patch(ctx, other, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null,"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))))
	kit.Must(f, f.client.Delete(ctx, other))
}

// authorized asks the authorizer whether the gardenlet of Seed a may access an object of the Project.
func (f *fixture) authorized(verb, resource, name string) bool {
	f.Helper()
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "core.gardener.cloud", Resource: resource, Verb: verb, Namespace: namespace, Name: name},
		},
	}
	body, err := json.Marshal(review)
	kit.Must(f, err)
	caller := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	request, err := http.NewRequestWithContext(f.Context(), http.MethodPost, fmt.Sprintf("https://localhost:%d/webhooks/auth/seed", f.port), bytes.NewReader(body))
	kit.Must(f, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := caller.Do(request)
	kit.Must(f, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		f.Fatalf("the authorizer answers with status %d", response.StatusCode)
	}
	kit.Must(f, json.NewDecoder(response.Body).Decode(review))
	return review.Status.Allowed
}
