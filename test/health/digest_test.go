package health

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// nasty are objects whose field names JSON encoders sort or escape differently.
var nasty = map[schema.GroupVersionKind]string{
	{Group: "apps", Version: "v1", Kind: "Deployment"}: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nasty
  namespace: $NAMESPACE
  annotations: {"example.org/a": "<&>", "example.org/z": "\"", "example.org/B": "b"}
spec:
  replicas: 1
  selector: {matchLabels: {app: nasty}}
  template:
    metadata: {labels: {app: nasty}}
    spec:
      containers:
      - name: main
        image: example.org/image
        ports: [{containerPort: 8080}, {containerPort: 9}, {containerPort: 80, protocol: UDP}, {containerPort: 80}]
        env: [{name: "A&B", value: "1"}, {name: "<", value: "2"}, {name: ">", value: "3"}, {name: "A'", value: "4"}, {name: "\"quoted\"", value: "5"}]
        volumeMounts: [{name: empty, mountPath: "/a&b<c>\"d\""}]
      volumes: [{name: empty, emptyDir: {}}]
`,
	{Version: "v1", Kind: "Service"}: `
apiVersion: v1
kind: Service
metadata:
  name: nasty
  namespace: $NAMESPACE
spec:
  selector: {app: nasty}
  ports:
  - {name: c, port: 8080}
  - {name: a, port: 9}
  - {name: d, port: 80, protocol: UDP}
  - {name: b, port: 80}
`,
	// Typed in the API server, unstructured to client-go.
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: nasties.digest.example.org
  annotations: {"example.org/9": "<&>", "example.org/80": "\"", "example.org/B": "b"}
spec:
  group: digest.example.org
  scope: Namespaced
  names: {kind: Nasty, plural: nasties, shortNames: [n9, n80]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {"a&b": {type: string}, "9": {type: string}, "80": {type: string}}}}
`,
	{Version: "v1", Kind: "ConfigMap"}: `
apiVersion: v1
kind: ConfigMap
metadata: {name: nasty, namespace: $NAMESPACE}
data: {"10": "x", "9": "y", b: "z", B: "z"}
`,
	{Group: "example.org", Version: "v1", Kind: "Widget"}: `
apiVersion: example.org/v1
kind: Widget
metadata: {name: nasty, namespace: $NAMESPACE, finalizers: [example.org/b, example.org/a]}
spec:
  "a&b": {"<c>": 1, "\"d\"": 2, "é\u2028": 3, "\\": 4}
  "10": ten
  "9": nine
  set: ["z", "&", "<b>", "\"q\"", "a"]
  sizes: [9, 80, 8080, -1]
  list:
  - {port: 8080, name: "&", value: a}
  - {port: 9, name: "<", value: b}
  - {port: 80, name: "\"", value: c}
  - {port: 80, name: "a", value: d}
`,
}

// TestOwnedFieldsHaveOneDigest checks that the digest of an object does not depend on how it is read. If the digest of the owned fields
// of whole objects differed from the digest in the answer to an apply, the objects would be applied repeatedly.
func TestOwnedFieldsHaveOneDigest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	documents := make([]string, 0, len(nasty))
	refs := make([]object.Ref, 0, len(nasty))
	for gvk, document := range nasty {
		documents = append(documents, document)
		refs = append(refs, f.nastyRef(gvk))
	}
	f.manage("nasty", documents...)
	f.eventuallySays("nasty", isHealthy, isRolledOut)

	answered := map[object.Key]string{} // digests of the API server's answers to the apply
	for _, entry := range f.read("nasty").Status.Resources {
		_, owned, _ := strings.Cut(entry.Digest, ".")
		gvk := kindOf(entry.APIVersion, entry.Kind)
		answered[object.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: entry.Namespace, Name: entry.Name}] = owned
	}
	whole, watched := f.manager.Live.Fetch(f.ctx, refs), f.manager.Live.Read(f.ctx, refs)
	metadata := live.NewReader(f.manager.Objects, fieldowner.DefaultPolicy(), nil).Read(f.ctx, refs)
	for _, ref := range refs {
		expected := essence(metadata[ref.Key()])
		if expected.OwnedDigest == "" || expected.OwnedDigest != answered[ref.Key()] {
			t.Errorf("%s: the digest of the owned fields is %q, but %q in the answer to the apply", ref, expected.OwnedDigest, answered[ref.Key()])
		}
		for name, states := range map[string]map[object.Key]live.State{"read as a whole": whole, "watched": watched} {
			if got := essence(states[ref.Key()]); !reflect.DeepEqual(got, expected) {
				t.Errorf("%s %s:\n%+v\nfrom its metadata:\n%+v", ref, name, got, expected)
			}
		}
	}
	f.wantNoPatches()
}

// nastyRef names the nasty object of a kind.
func (f *fixture) nastyRef(gvk schema.GroupVersionKind) object.Ref {
	if gvk.Kind == "CustomResourceDefinition" {
		return object.Ref{GroupVersionKind: gvk, Name: "nasties.digest.example.org"}
	}
	return object.Ref{GroupVersionKind: gvk, Namespace: f.namespace, Name: "nasty"}
}

// essence returns the part of a state that must not depend on how the object is read.
func essence(state live.State) live.Observation {
	observation := state.Observation
	observation.Seen, observation.Examined, observation.Health, observation.ResourceVersion = 0, false, nil, ""
	return live.Observation{
		UID: observation.UID, OwnedDigest: observation.OwnedDigest, Owned: observation.Owned, Origin: observation.Origin,
		Labels: observation.Labels, Annotations: observation.Annotations, Unlabelled: observation.Unlabelled,
		TakeOverCandidates: observation.TakeOverCandidates, Directive: observation.Directive, Finalizers: observation.Finalizers,
		Generation: observation.Generation, ManagedBy: observation.ManagedBy,
	}
}

// wantNoPatches triggers a reconciliation of everything by several means, and checks that nothing is written.
func (f *fixture) wantNoPatches() {
	f.Helper()
	f.manager.target.Forget()
	for round := range 3 {
		// Each object changes in a field that does not matter, which triggers a check of the object.
		for gvk := range nasty {
			f.patch(gvk, f.nastyRef(gvk).Name, fmt.Sprintf(`{"metadata": {"labels": {"example.org/round": "%d"}}}`, round))
		}
		inputs := f.read("nasty").Status.AppliedInputs
		f.patch(corev1.SchemeGroupVersion.WithKind("Secret"), "nasty", fmt.Sprintf(`{"metadata": {"annotations": {"round": "%d"}}}`, round))
		f.eventually("the manifests are read again", func() string {
			if applied := f.read("nasty").Status.AppliedInputs; applied == "" || applied == inputs {
				return "the inputs are " + applied
			}
			return ""
		})
	}
	f.staysTrue(2*time.Second, "nothing is written to the target cluster", func() string {
		for _, sent := range f.manager.target.All() {
			if sent.Method != http.MethodGet {
				return sent.String()
			}
		}
		return ""
	})
}
