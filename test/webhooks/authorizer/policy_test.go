package authorizer

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestLeasePolicyOfTheDocumentation checks that with the policy, node agents can create only their own Leases. Other users are not
// restricted.
func TestLeasePolicyOfTheDocumentation(t *testing.T) {
	f := newFixture(t)
	page, err := os.ReadFile("../../../docs/node-agent-authorizer.md")
	kit.Must(t, err)
	_, policy, found := strings.Cut(string(page), "```yaml\napiVersion: admissionregistration.k8s.io/v1\n")
	policy, _, ends := strings.Cut(policy, "```")
	if !found || !ends {
		t.Fatal("the documentation contains no policy")
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader("apiVersion: admissionregistration.k8s.io/v1\n"+policy), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		kit.Must(t, f.client.Create(t.Context(), object))
		t.Cleanup(func() { kit.Must(t, f.client.Delete(background, object)) })
	}
	config := rest.CopyConfig(f.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: prefix + "m-own", Groups: []string{group, "mode:" + byMachine}}
	agent, err := client.New(config, client.Options{Mapper: f.client.RESTMapper()})
	kit.Must(t, err)
	create := func(c client.Client, name string) error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: kubeSystem, Name: name}}
		return c.Create(t.Context(), lease, client.DryRunAll)
	}
	kit.Eventually(t, "the policy is in force", func() string {
		if err := create(agent, "stolen"); err == nil {
			return "the Lease could be created"
		} else if !strings.Contains(err.Error(), "node agents only create Leases with names that begin with gardener-node-agent-") {
			return err.Error()
		}
		return ""
	})
	kit.Must(t, create(agent, "gardener-node-agent-a"))
	kit.Must(t, create(f.client, "stolen"))
}
