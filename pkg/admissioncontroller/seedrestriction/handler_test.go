package seedrestriction

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/issuer"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// named returns the metadata of "namespace/name" or "name".
func named(key string) metav1.ObjectMeta {
	if namespace, name, found := strings.Cut(key, "/"); found {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	return metav1.ObjectMeta{Name: key}
}

func seed(name string, expires time.Duration) *corev1beta1.Seed {
	made := &corev1beta1.Seed{ObjectMeta: named(name)}
	made.UID = "uid-of-a"
	if expires != 0 {
		made.Status.ClientCertificateExpirationTimestamp = ptr.To(metav1.NewTime(now.Add(expires)))
	}
	return made
}

func shoot(key, of, former string) *corev1beta1.Shoot {
	made := &corev1beta1.Shoot{ObjectMeta: named(key)}
	made.UID = types.UID("uid-of-" + made.Name)
	made.Spec.SeedName = &of
	if former != "" {
		made.Status.SeedName = &former
	}
	return made
}

func bucket(name, of string) *corev1beta1.BackupBucket {
	made := &corev1beta1.BackupBucket{ObjectMeta: named(name)}
	made.Spec.SeedName = &of
	return made
}

func managed(name, shoot string) *seedmanagementv1alpha1.ManagedSeed {
	made := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: named("garden/" + name)}
	made.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: shoot}
	return made
}

// garden returns a client for a garden with the Seeds a and b. The ManagedSeeds fresh, valid and foreign are on Shoots.
func garden(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, served.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		seed("a", time.Hour), seed("valid", time.Hour), seed("expired", -time.Hour),
		shoot("garden-dev/on-a", "a", ""), shoot("garden-dev/on-b", "b", ""), shoot("garden-dev/leaves-a", "b", "a"),
		shoot("garden/parent-a", "a", ""), shoot("garden/parent-b", "b", ""),
		bucket("bucket-a", "a"), bucket("bucket-b", "b"),
		managed("fresh", "parent-a"), managed("valid", "parent-a"), managed("expired", "parent-a"), managed("foreign", "parent-b"),
	).Build()
}

// token returns a Secret with a bootstrap token for the gardenlet of an object.
func token(kind, namespace, name string, change func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: graph.TokenSecret(namespace, name)}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
			"description": "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1." + kind + " resource " + namespace + "/" + name + ".",
		},
	}
	if change != nil {
		change(secret)
	}
	return secret
}

// request returns the request of a user to write an object.
func request(t *testing.T, user authenticationv1.UserInfo, operation admissionv1.Operation, resource string, object, old client.Object) admission.Request {
	t.Helper()
	encode := func(object client.Object) runtime.RawExtension {
		if object == nil {
			return runtime.RawExtension{}
		}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	of := object
	if of == nil {
		of = old
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UserInfo: user, Operation: operation, Resource: metav1.GroupVersionResource{Resource: resource}, Kind: metav1.GroupVersionKind{Kind: resource},
		Namespace: of.GetNamespace(), Name: of.GetName(), Object: encode(object), OldObject: encode(old),
	}}
}

var (
	gardenlet = authenticationv1.UserInfo{Username: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"}}
	extension = authenticationv1.UserInfo{Username: "system:serviceaccount:seed-a:extension-x", Groups: []string{"system:serviceaccounts:seed-a"}}
)

// row is a write and the text of its refusal; empty if it is admitted.
type row struct {
	resource string
	object   client.Object
	want     string
}

func checkWrites(t *testing.T, user authenticationv1.UserInfo, operation admissionv1.Operation, rows map[string]row) {
	t.Helper()
	options := Options{
		Reader: garden(t), Clock: testingclock.NewFakePassiveClock(now),
		MayRead: func(object, _ graph.Vertex) bool { return object.Name == "readable" },
	}
	for name, test := range rows {
		object, old := test.object, client.Object(nil)
		if operation == admissionv1.Delete {
			object, old = nil, test.object
		}
		response := New(options).Handle(t.Context(), request(t, user, operation, test.resource, object, old))
		switch {
		case test.want == "" && !response.Allowed:
			t.Errorf("%s is refused: %v", name, response.Result)
		case test.want != "" && (response.Allowed || !strings.Contains(response.Result.Message, test.want)):
			t.Errorf("%s: allowed %v, %v, want %q", name, response.Allowed, response.Result, test.want)
		}
	}
}

const foreign = "does not belong to the requester"

// TestCreations is the table of what the gardenlet of Seed a creates.
func TestCreations(t *testing.T) {
	t.Parallel()
	configMap := func(key string) client.Object { return &corev1.ConfigMap{ObjectMeta: named(key)} }
	secret := func(key string) client.Object { return &corev1.Secret{ObjectMeta: named(key)} }
	state := func(key string) client.Object { return &corev1beta1.ShootState{ObjectMeta: named(key)} }
	account := func(key string) client.Object { return &corev1.ServiceAccount{ObjectMeta: named(key)} }
	bastion := func(of string) client.Object {
		made := &operationsv1alpha1.Bastion{ObjectMeta: named("garden-dev/x")}
		made.Spec.SeedName = &of
		return made
	}
	entry := func(of, bucket string) client.Object {
		made := &corev1beta1.BackupEntry{ObjectMeta: named("garden-dev/x")}
		made.Spec.SeedName, made.Spec.BucketName = &of, bucket
		return made
	}
	credentials := func(name string) client.Object {
		made := bucket("uid-of-a", "a")
		made.Spec.CredentialsRef = &corev1.ObjectReference{Kind: "Secret", Namespace: "garden", Name: name}
		return made
	}
	documents := func(name, namespace, shoot string) client.Object {
		made := &corev1.Secret{ObjectMeta: named("gardener-system-shoot-issuer/" + name)}
		made.Labels = issuer.Labels("dev", namespace, shoot)
		return made
	}
	checkWrites(t, gardenlet, admissionv1.Create, map[string]row{
		"the own bucket":                        {"backupbuckets", bucket("uid-of-a", "a"), ""},
		"a bucket of the own Seed, other name":  {"backupbuckets", bucket("x", "a"), "its name must be the UID"},
		"the own bucket for another Seed":       {"backupbuckets", bucket("uid-of-a", "b"), "spec.seedName must be a"},
		"a bucket with readable credentials":    {"backupbuckets", credentials("readable"), ""},
		"a bucket with foreign credentials":     {"backupbuckets", credentials("foreign"), "may only name credentials"},
		"an entry":                              {"backupentries", entry("a", "bucket-a"), ""},
		"an entry of another Seed":              {"backupentries", entry("b", "bucket-a"), foreign},
		"an entry in a foreign bucket":          {"backupentries", entry("a", "bucket-b"), foreign},
		"a bastion":                             {"bastions", bastion("a"), ""},
		"a bastion of another Seed":             {"bastions", bastion("b"), foreign},
		"the CA of a Shoot":                     {"configmaps", configMap("garden-dev/on-a.ca-cluster"), ""},
		"the CA of a foreign Shoot":             {"configmaps", configMap("garden-dev/on-b.ca-cluster"), foreign},
		"the CA of a Shoot that has left":       {"configmaps", configMap("garden-dev/leaves-a.ca-cluster"), foreign},
		"another ConfigMap":                     {"configmaps", configMap("garden-dev/x"), foreign},
		"a Secret of the Seed":                  {"secrets", secret("seed-a/x"), ""},
		"a Secret of another Seed":              {"secrets", secret("seed-b/x"), foreign},
		"a Secret in garden":                    {"secrets", secret("garden/x"), foreign},
		"the generated Secret of a bucket":      {"secrets", secret("garden/generated-bucket-bucket-a"), ""},
		"that of a foreign bucket":              {"secrets", secret("garden/generated-bucket-bucket-b"), foreign},
		"that of no bucket":                     {"secrets", secret("garden/generated-bucket-x"), foreign},
		"keys of a Shoot":                       {"secrets", secret("garden-dev/on-a.ssh-keypair"), ""},
		"keys of a foreign Shoot":               {"secrets", secret("garden-dev/on-b.ssh-keypair"), foreign},
		"keys of a Shoot that does not exist":   {"secrets", secret("garden-dev/none.ssh-keypair"), foreign},
		"an issuer without labels":              {"secrets", secret("gardener-system-shoot-issuer/x"), "needs the labels"},
		"the issuer of a Shoot":                 {"secrets", documents("dev--uid-of-on-a", "garden-dev", "on-a"), ""},
		"the issuer of a foreign Shoot":         {"secrets", documents("dev--uid-of-on-b", "garden-dev", "on-b"), foreign},
		"the issuer of a Shoot for another":     {"secrets", documents("dev--uid-of-on-b", "garden-dev", "on-a"), "its name must end with"},
		"an issuer with a name of its own":      {"secrets", documents("on-a", "garden-dev", "on-a"), "its name must end with"},
		"the client CA of a Shoot":              {"internalsecrets", &corev1beta1.InternalSecret{ObjectMeta: named("garden-dev/on-a.ca-client")}, ""},
		"the client CA of a foreign Shoot":      {"internalsecrets", &corev1beta1.InternalSecret{ObjectMeta: named("garden-dev/on-b.ca-client")}, foreign},
		"the state of a Shoot":                  {"shootstates", state("garden-dev/on-a"), ""},
		"the state of a Shoot that leaves":      {"shootstates", state("garden-dev/leaves-a"), ""},
		"the state of a foreign Shoot":          {"shootstates", state("garden-dev/on-b"), foreign},
		"the own Seed":                          {"seeds", seed("a", 0), ""},
		"another Seed":                          {"seeds", seed("b", 0), foreign},
		"an account of an extension":            {"serviceaccounts", account("seed-a/extension-x"), ""},
		"an account in garden":                  {"serviceaccounts", account("garden/x"), foreign},
		"the bootstrap account of an own Seed":  {"serviceaccounts", account("garden/gardenlet-bootstrap-fresh"), ""},
		"the bootstrap account of a foreign":    {"serviceaccounts", account("garden/gardenlet-bootstrap-foreign"), foreign},
		"the bootstrap account of a running":    {"serviceaccounts", account("garden/gardenlet-bootstrap-valid"), "is already bootstrapped"},
		"an object without a rule for its kind": {"quotas", &corev1beta1.Quota{ObjectMeta: named("garden-dev/x")}, "this webhook has no rule"},
	})
	checkWrites(t, extension, admissionv1.Create, map[string]row{
		"a Secret of the Seed":      {"secrets", secret("seed-a/x"), "extensions do not write"},
		"an account of the Seed":    {"serviceaccounts", account("seed-a/x"), "extensions do not write"},
		"the state of an own Shoot": {"shootstates", state("garden-dev/on-a"), ""},
	})
	checkWrites(t, authenticationv1.UserInfo{Username: "alice"}, admissionv1.Create, map[string]row{"a Secret of anybody": {"secrets", secret("garden/x"), ""}})
}

// TestBootstrapTokens checks that a token is for the one Seed that its description and its name follow from.
func TestBootstrapTokens(t *testing.T) {
	t.Parallel()
	checkWrites(t, gardenlet, admissionv1.Create, map[string]row{
		"for a new ManagedSeed":                 {"secrets", token("ManagedSeed", "garden", "fresh", nil), ""},
		"for one with an expired certificate":   {"secrets", token("ManagedSeed", "garden", "expired", nil), ""},
		"for one with a valid certificate":      {"secrets", token("ManagedSeed", "garden", "valid", nil), "is already bootstrapped"},
		"for a ManagedSeed on another Seed":     {"secrets", token("ManagedSeed", "garden", "foreign", nil), foreign},
		"for a ManagedSeed that does not exist": {"secrets", token("ManagedSeed", "garden", "none", nil), foreign},
		"for the Gardenlet of another Seed":     {"secrets", token("Gardenlet", "garden", "b", nil), foreign},
		"with the name of another token": {"secrets", token("ManagedSeed", "garden", "fresh", func(s *corev1.Secret) {
			s.Name = graph.TokenSecret("garden", "foreign")
		}), "its ID must follow from it"},
		"with the description of another": {"secrets", token("ManagedSeed", "garden", "foreign", func(s *corev1.Secret) {
			s.Name = graph.TokenSecret("garden", "fresh")
		}), "its ID must follow from it"},
		"without a description": {"secrets", token("ManagedSeed", "garden", "fresh", func(s *corev1.Secret) {
			delete(s.StringData, "description")
		}), "must name the ManagedSeed"},
		"with two descriptions": {"secrets", token("ManagedSeed", "garden", "fresh", func(s *corev1.Secret) {
			s.StringData["description"] += " And for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/foreign."
		}), "its ID must follow from it"},
		"with further groups": {"secrets", token("ManagedSeed", "garden", "fresh", func(s *corev1.Secret) {
			s.StringData["auth-extra-groups"] = "system:bootstrappers:admins"
		}), "without auth-extra-groups"},
		"with groups in data": {"secrets", token("ManagedSeed", "garden", "fresh", func(s *corev1.Secret) {
			s.Data = map[string][]byte{"auth-extra-groups": []byte("system:bootstrappers:admins")}
		}), "without auth-extra-groups"},
		"with another type": {"secrets", token("ManagedSeed", "garden", "fresh", func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }), "must be a bootstrap token"},
	})
}

func TestTokenFor(t *testing.T) {
	t.Parallel()
	const prefix = "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1."
	for description, want := range map[string]string{
		prefix + "ManagedSeed resource garden/one.":       "ManagedSeed garden/one",
		prefix + "Gardenlet resource garden/one":          "Gardenlet garden/one",
		prefix + "ManagedSeed resource garden/one. ":      "ManagedSeed garden/one",
		prefix + "Shoot resource garden/one.":             "",
		prefix + "ManagedSeed resource garden/one or two": "",
		prefix + "ManagedSeed resource one":               "",
		"Bootstrap token for the gardenlet of Seed one":   "",
		"": "",
	} {
		got := ""
		if kind, namespace, name, found := TokenFor(description); found {
			got = string(kind) + " " + namespace + "/" + name
		}
		if got != want {
			t.Errorf("%q is for %q, want %q", description, got, want)
		}
	}
}

// TestDeletionsAndUpdates checks writes of existing objects.
func TestDeletionsAndUpdates(t *testing.T) {
	t.Parallel()
	checkWrites(t, gardenlet, admissionv1.Delete, map[string]row{
		"the own bucket":   {"backupbuckets", bucket("uid-of-a", "a"), ""},
		"another bucket":   {"backupbuckets", bucket("bucket-b", "b"), foreign},
		"the own Seed":     {"seeds", seed("a", 0), ""},
		"another Seed":     {"seeds", seed("b", 0), foreign},
		"a running Seed":   {"seeds", seed("valid", 0), foreign},
		"a resource alone": {"quotas", &corev1beta1.Quota{ObjectMeta: named("garden-dev/x")}, "has no rule"},
	})
	before, after := managed("fresh", "parent-a"), managed("fresh", "parent-b")
	handler := New(Options{Reader: garden(t), Clock: testingclock.NewFakePassiveClock(now)})
	if response := handler.Handle(t.Context(), request(t, gardenlet, admissionv1.Update, "managedseeds", after, before)); response.Allowed {
		t.Error("a gardenlet changes the specification of a ManagedSeed")
	}
	after.Spec, after.Finalizers = before.Spec, []string{"gardener"}
	if response := handler.Handle(t.Context(), request(t, gardenlet, admissionv1.Update, "managedseeds", after, before)); !response.Allowed {
		t.Errorf("a finalizer is refused: %v", response.Result)
	}
}
