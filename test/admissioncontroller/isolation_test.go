package admissioncontroller

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
)

const isolated = "garden-isolated"

// TestIsolation checks gardenlets that have no rights by RBAC: kube-apiserver and the garden's API server ask the authorizer of the running
// program. Each Seed has a Shoot that names a Secret. The policies of gardenlet's chart are left out, because they would refuse first what the
// webhooks of the program refuse.
func TestIsolation(t *testing.T) {
	f := newFixture(t)
	charts.Apply(f, f.client, "gardenlet", map[string]any{
		"mode": "garden", "seedAuthorizer": map[string]any{"enabled": true}, "seeds": []any{map[string]any{"name": "one"}, map[string]any{"name": "two"}},
	}, func(object *unstructured.Unstructured) bool {
		return strings.HasPrefix(object.GetAPIVersion(), "rbac.")
	})
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: isolated, Labels: project("isolated")}})
	for _, seed := range []string{"one", "two"} {
		for _, name := range []string{"named", "unknown"} {
			f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: isolated, Name: name + "-" + seed}})
		}
		f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-" + seed}})
		f.create(f.shootNaming(seed))
	}
	for _, seeds := range [][2]string{{"one", "two"}, {"two", "one"}} {
		f.isolates(seeds[0], seeds[1])
	}
	f.explains()
	f.followsChanges()
	f.survivesOutage()
}

// shootNaming returns the Shoot on a Seed that names a Secret.
func (f *fixture) shootNaming(seed string) *corev1beta1.Shoot {
	shoot := f.shoot("on-"+seed, "{}")
	shoot.Namespace, shoot.Spec.SeedName = isolated, ptr.To(seed)
	shoot.Labels = map[string]string{"name.seed.gardener.cloud/" + seed: "true"}
	shoot.Spec.Resources = []corev1beta1.NamedResourceReference{{
		Name: "named", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "named-" + seed},
	}}
	return shoot
}

// only returns a client with the rights of a user and its groups, and no others.
func (f *fixture) only(user string, groups ...string) client.Client {
	f.Helper()
	config := f.garden.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: f.client.Scheme(), Mapper: f.client.RESTMapper()})
	kit.Must(f, err)
	return c
}

func (f *fixture) gardenlet(seed string) client.Client {
	return f.only("gardener.cloud:system:seed:"+seed, "gardener.cloud:system:seeds")
}

// isolates makes requests of the gardenlet of one Seed for its own objects, for those of the other Seed, and for those of no Seed.
func (f *fixture) isolates(own, other string) {
	f.Helper()
	c, ctx := f.gardenlet(own), f.Context()
	get := func(object client.Object, name string) func() error {
		return func() error { return c.Get(ctx, client.ObjectKey{Namespace: isolated, Name: name}, object) }
	}
	list := func(list client.ObjectList, options ...client.ListOption) func() error {
		return func() error { return c.List(ctx, list, options...) }
	}
	label := func(selector string) client.ListOption {
		return &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: selector}}
	}
	status := func(name string) func() error {
		return func() error {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: isolated, Name: name}}
			return c.Status().Patch(ctx, shoot, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"technicalID":"x"}}`)), client.DryRunAll)
		}
	}
	remove := func(name string) func() error {
		return func() error {
			return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: isolated, Name: name}}, client.DryRunAll)
		}
	}
	for name, test := range map[string]struct {
		request func() error
		want    string
	}{
		"get the own Shoot":                          {get(&corev1beta1.Shoot{}, "on-"+own), ""},
		"get a foreign Shoot":                        {get(&corev1beta1.Shoot{}, "on-"+other), "Forbidden"},
		"get a Shoot that does not exist":            {get(&corev1beta1.Shoot{}, "none"), "Forbidden"},
		"get the named Secret":                       {get(&corev1.Secret{}, "named-"+own), ""},
		"get a foreign named Secret":                 {get(&corev1.Secret{}, "named-"+other), "Forbidden"},
		"get a Secret that no one names":             {get(&corev1.Secret{}, "unknown-"+own), "Forbidden"},
		"get the state of the own Shoot":             {get(&corev1beta1.ShootState{}, "on-"+own), "NotFound"},
		"get the state of a foreign Shoot":           {get(&corev1beta1.ShootState{}, "on-"+other), "Forbidden"},
		"list Shoots with the own label":             {list(&corev1beta1.ShootList{}, label("name.seed.gardener.cloud/"+own+"=true")), ""},
		"list Shoots with a foreign label":           {list(&corev1beta1.ShootList{}, label("name.seed.gardener.cloud/"+other+"=true")), "Forbidden"},
		"list Shoots without the foreign label":      {list(&corev1beta1.ShootList{}, label("name.seed.gardener.cloud/"+other+"!=true")), "Forbidden"},
		"list Shoots with the own label not true":    {list(&corev1beta1.ShootList{}, label("name.seed.gardener.cloud/"+own+" notin (false)")), "Forbidden"},
		"list all Shoots":                            {list(&corev1beta1.ShootList{}), "Forbidden"},
		"list the Secrets of the Project":            {list(&corev1.SecretList{}, client.InNamespace(isolated)), "Forbidden"},
		"list one Secret by its name":                {list(&corev1.SecretList{}, client.InNamespace(isolated), client.MatchingFields{"metadata.name": "named-" + own}), ""},
		"list a foreign Secret by its name":          {list(&corev1.SecretList{}, client.InNamespace(isolated), client.MatchingFields{"metadata.name": "named-" + other}), "Forbidden"},
		"list the Secrets of the own Seed":           {list(&corev1.SecretList{}, client.InNamespace("seed-"+own)), ""},
		"list the Secrets of a foreign Seed":         {list(&corev1.SecretList{}, client.InNamespace("seed-"+other)), "Forbidden"},
		"list nodes":                                 {list(&corev1.NodeList{}), "Forbidden"},
		"change the status of the own Shoot":         {status("on-" + own), ""},
		"change the status of a foreign Shoot":       {status("on-" + other), "Forbidden"},
		"delete a Secret that does not exist":        {remove("none"), "NotFound"},
		"delete a Secret that no one names":          {remove("unknown-" + own), "Forbidden"},
		"delete a Secret that the own Shoot names":   {remove("named-" + own), "Forbidden"},
		"delete a Secret that a foreign Shoot names": {remove("named-" + other), "Forbidden"},
	} {
		// The authorizer learns of the Shoots by a watch.
		kit.Eventually(f, "Seed "+own+": "+name, func() string {
			err := test.request()
			if got := string(apierrors.ReasonForError(err)); err == nil && test.want != "" || err != nil && got != test.want {
				return fmt.Sprintf("got %v, want %q", err, test.want)
			}
			return ""
		})
	}
}

// explains asks with the command line why a gardenlet may read a Secret.
func (f *fixture) explains() {
	f.Helper()
	for arguments, want := range map[string]string{
		"get secrets " + isolated + "/named-one": "yes\n  Secret " + isolated + "/named-one is needed by Seed one: Secret " + isolated +
			"/named-one -> Shoot " + isolated + "/on-one -> Seed one\n",
		"get secrets " + isolated + "/named-two":           "no\n  seed-authorizer: Secret " + isolated + "/named-two is not needed by Seed one\n",
		"list shoots":                                      "no\n  seed-authorizer: a list of shoots.core.gardener.cloud by the gardenlet of Seed one needs a name, or the label selector",
		"list shoots -l name.seed.gardener.cloud/one=true": "yes\n  the selector is that of the gardenlet of Seed one\n",
		"list secrets seed-one/ --extension extension-x":   "yes\n",
		"list secrets seed-two/ --extension extension-x":   "no\n",
	} {
		if got := f.canI(append([]string{"seed/one"}, strings.Fields(arguments)...)...); !strings.HasPrefix(got, want) {
			f.Errorf("can-i %s: got %q, want %q", arguments, got, want)
		}
	}
}

// canI returns the output of the command.
func (f *fixture) canI(arguments ...string) string {
	f.Helper()
	var out, problems bytes.Buffer
	c := kubectl.NewConsole(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &problems}, "v0.0.0-test")
	command := cli.NewCommand(c, "kubectl-mr")
	command.SetArgs(slices.Concat([]string{"can-i", "--garden-kubeconfig", filepath.Join(f.garden.Dir(), "kubeconfig")}, arguments))
	if err := command.ExecuteContext(f.Context()); err != nil && console.ExitCode(err) != console.ExitNo {
		f.Errorf("can-i %v: %v %s", arguments, err, problems.String())
	}
	return out.String()
}

// followsChanges checks that a gardenlet loses a right when its Shoot does not name the Secret any more.
func (f *fixture) followsChanges() {
	f.Helper()
	shoot := &corev1beta1.Shoot{}
	kit.Must(f, f.client.Get(f.Context(), client.ObjectKey{Namespace: isolated, Name: "on-one"}, shoot))
	kit.Change(f, f.client, shoot, func() { shoot.Spec.Resources = nil })
	f.may("one", "named-one", "Forbidden")
	kit.Change(f, f.client, shoot, func() { shoot.Spec.Resources = f.shootNaming("one").Spec.Resources })
	f.may("one", "named-one", "")
}

// may waits until the request of a gardenlet for a Secret ends with an error of a reason; empty for none.
func (f *fixture) may(seed, secret, want string) {
	f.Helper()
	c := f.gardenlet(seed)
	kit.Eventually(f, fmt.Sprintf("the gardenlet of Seed %s gets %q for Secret %s", seed, want, secret), func() string {
		err := c.Get(f.Context(), client.ObjectKey{Namespace: isolated, Name: secret}, &corev1.Secret{})
		if got := string(apierrors.ReasonForError(err)); err == nil && want != "" || err != nil && got != want {
			return kit.TextOf(err)
		}
		return ""
	})
}

// survivesOutage checks that without a running authorizer, requests of gardenlets fail with an error that makes clients retry, and not with
// 403, and that others can still create what the program needs to start.
func (f *fixture) survivesOutage() {
	f.Helper()
	kit.Must(f, f.process.Stop(0))
	f.may("one", "named-one", "InternalError")
	f.may("one", "named-two", "InternalError")
	system := f.as("system:serviceaccount:kube-system:resource-manager", "system:serviceaccounts", "system:serviceaccounts:kube-system")
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "for-a-pod"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "for-a-pod"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "for-a-pod"}},
	} {
		if err := system.Create(f.Context(), object, client.DryRunAll); err != nil {
			f.Errorf("without the program, a system account cannot create %T: %v", object, err)
		}
	}
	f.start()
	running.process = f.process
	f.may("one", "named-one", "")
	f.may("one", "named-two", "Forbidden")
}
