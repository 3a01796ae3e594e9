package integration

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/manifest"
)

func compressed(tb testing.TB, content []byte) string {
	tb.Helper()
	var buffer bytes.Buffer
	writer := brotli.NewWriter(&buffer)
	_, err := writer.Write(content)
	must(tb, err)
	must(tb, writer.Close())
	return buffer.String()
}

// TestBadInput applies a good set and then a bad one that lacks one of its objects. The condition must name the
// problem and its place, and the good objects must be applied. If the set cannot be read, no object may be pruned.
func TestBadInput(t *testing.T) {
	plain := func(content string) func(*fixture) []string {
		return func(*fixture) []string { return []string{"bad.yaml", content} }
	}
	for name, test := range map[string]struct {
		bad    func(f *fixture) []string // keys and values in addition to the good ones
		reason string
		says   []string
		prunes bool // the set is readable
		retry  bool // a retry can help
	}{
		"a key that is not YAML": {
			bad:    plain("{[unclosed\n\tand a tab"),
			reason: resourcesv1alpha1.ReasonDecodingFailed,
			says:   []string{"index 0 in 'bad.yaml' in secret", "/set'", "yaml"},
		},
		"a document that is no object": {
			bad:    plain("just some text"),
			reason: resourcesv1alpha1.ReasonDecodingFailed,
			says:   []string{"index 0 in 'bad.yaml'", "not an object"},
		},
		"the second document is not YAML": {
			bad: func(f *fixture) []string {
				return []string{"bad.yaml", f.configMap("beside", "1") + "---\na: b: c\n"}
			},
			reason: resourcesv1alpha1.ReasonDecodingFailed,
			says:   []string{"index 1 in 'bad.yaml'"},
		},
		"a truncated .br": {
			bad: func(f *fixture) []string {
				value := compressed(f, []byte(f.configMap("never", "1")))
				return []string{"bad.yaml.br", value[:len(value)/2]}
			},
			reason: resourcesv1alpha1.ReasonDecodingFailed,
			says:   []string{"'bad.yaml.br' in secret", "brotli", "truncated"},
		},
		"a .br that inflates past the cap": {
			bad: func(f *fixture) []string {
				return []string{"bad.yaml.br", compressed(f, bytes.Repeat([]byte("# nothing\n"), 20<<20/10))}
			},
			reason: resourcesv1alpha1.ReasonDecodingFailed,
			says:   []string{"'bad.yaml.br' in secret", "exceed 10485760 bytes", "maxSecretSize"},
		},
		"an object without a kind": {
			bad:    plain("apiVersion: v1\nmetadata:\n  name: x\n"),
			reason: resourcesv1alpha1.ReasonDecodingFailed,
			says:   []string{"index 0 in 'bad.yaml'", "no kind"},
		},
		"an object without a name": {
			bad:    plain("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {a: b}\n"),
			reason: resourcesv1alpha1.ReasonDecodingFailed,
			says:   []string{"index 0 in 'bad.yaml'", "ConfigMap", "no metadata.name"},
		},
		"two different copies of one object": {
			bad: func(f *fixture) []string {
				return []string{"bad.yaml", f.configMap("twice", "1") + "---\n" + f.configMap("twice", "2")}
			},
			reason: resourcesv1alpha1.ReasonDecodingFailed,
			says:   []string{"twice", "index 0 in 'bad.yaml'", "index 1 in 'bad.yaml'", "occurs twice"},
		},
		"an unknown kind": {
			bad:    plain("apiVersion: shop.example.org/v1\nkind: Discount\nmetadata:\n  name: x\n"),
			reason: resourcesv1alpha1.ReasonApplyFailed,
			says:   []string{"shop.example.org/v1", "Discount", "CustomResourceDefinition"},
			prunes: true, retry: true,
		},
		"an unknown field": {
			bad:    plain("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: wrong\n  namespace: default\nspec: {}\n"),
			reason: resourcesv1alpha1.ReasonApplyFailed,
			says:   []string{"v1/ConfigMap/default/wrong", `unknown field "spec"`},
			prunes: true,
		},
		"an invalid field": {
			bad:    plain("apiVersion: v1\nkind: Service\nmetadata:\n  name: wrong\n  namespace: default\nspec:\n  ports: [{port: 99999}]\n"),
			reason: resourcesv1alpha1.ReasonApplyFailed,
			says:   []string{"v1/Service/default/wrong", "spec.ports[0].port", "99999"},
			prunes: true,
		},
		"an object in a namespace that does not exist": {
			bad:    plain("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: nowhere\n"),
			reason: resourcesv1alpha1.ReasonApplyFailed,
			says:   []string{"v1/ConfigMap/nowhere/x", `"nowhere" not found`},
			prunes: true, retry: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.strict = true
			f.reconciler = f.newReconciler(shared.Get(t).Config(), f.client, managedresource.Options{
				Limits: manifest.Limits{Bytes: 10 << 20, Documents: 100, Depth: 100, Values: 1_000_000},
			})
			f.manage("set", f.configMap("good", "1"), f.configMap("protected", "1"))
			f.reconcileOK("set")

			f.secret("set", append(test.bad(f), "good.yaml", f.configMap("good", "2"))...)
			mr, result, err := f.reconcile("set")

			condition := applied(mr)
			if condition.Status != resourcesv1alpha1.ConditionFalse || condition.Reason != test.reason {
				t.Errorf("ResourcesApplied is %s %s, want False %s", condition.Status, condition.Reason, test.reason)
			}
			wantContains(t, condition.Message, test.says...)
			f.wantConfigMap("good", "2")
			if test.prunes {
				f.wantNoConfigMap("protected")
			} else {
				f.wantConfigMap("protected", "1")
			}
			wantRetry(t, test.retry, result, err)

			f.secret("set", "good.yaml", f.configMap("good", "3"))
			f.reconcileUntil("set", "the input is repaired", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Status == resourcesv1alpha1.ConditionTrue
			})
			f.wantConfigMap("good", "3")
			f.wantNoConfigMap("protected")
		})
	}
}

// wantRetry checks that a failure is retried with backoff, by means of a returned error, if a retry can help.
// Otherwise it must wait for the next event or resync.
func wantRetry(tb testing.TB, retry bool, result reconcile.Result, err error) {
	tb.Helper()
	if retry != (err != nil) {
		tb.Errorf("the reconcile returns the error %v, want one: %t", err, retry)
	}
	if err == nil && result.RequeueAfter != syncPeriod {
		tb.Errorf("the requeue interval is %s, want %s", result.RequeueAfter, syncPeriod)
	}
}

func TestMissingSecret(t *testing.T) {
	f := newFixture(t)
	f.secret("first", "objects.yaml", f.configMap("one", "1"))
	f.secret("second", "objects.yaml", f.configMap("two", "1"))
	mr := f.managedResource("set", "first", "second")
	f.reconcileOK("set")

	secret := secretOf(f, "second")
	must(t, f.client.Delete(f.ctx, secret))
	f.secret("first", "objects.yaml", f.configMap("one", "2"))
	mr, result, err := f.reconcile(mr.Name)

	condition := applied(mr)
	if condition.Status != resourcesv1alpha1.ConditionFalse || condition.Reason != resourcesv1alpha1.ReasonCannotReadSecret {
		t.Errorf("ResourcesApplied is %s %s", condition.Status, condition.Reason)
	}
	wantContains(t, condition.Message, f.namespace+"/second", "not found")
	f.wantConfigMap("one", "2")
	f.wantConfigMap("two", "1")
	wantRetry(t, false, result, err)

	f.secret("second", "objects.yaml", f.configMap("two", "2"))
	f.reconcileOK("set")
	f.wantConfigMap("two", "2")
}

func TestObjectThatAnotherManagedResourceOwns(t *testing.T) {
	f := newFixture(t)
	first := f.manage("first", f.configMap("contested", "of first"))
	f.reconcileOK("first")
	second := f.manage("second", f.configMap("contested", "of second"), f.configMap("beside", "1"))
	mr, result, err := f.reconcile("second")
	wantRetry(t, false, result, err)
	wantContains(t, applied(mr).Message, "contested", f.namespace+"/first")
	f.wantConfigMap("contested", "of first")
	f.wantConfigMap("beside", "1")
	f.requests.writes()
	f.reconcileOK("first")
	if writes := f.requests.writes(); len(writes) > 0 {
		t.Errorf("the owner writes %v as if it had lost the object", writes)
	}

	uid := f.liveConfigMap("contested").UID
	f.secret("first", "objects.yaml", "")
	f.reconcileOK("first")
	f.reconcileOK("second")
	if live := f.wantConfigMap("contested", "of second"); live.UID != uid {
		t.Error("the object was deleted during the move between the ManagedResources")
	}
	f.delete(first)
	f.wantConfigMap("contested", "of second")
	f.delete(second)
	f.wantNoConfigMap("contested")
}

func TestLoserOfAConflictDeletesNothing(t *testing.T) {
	f := newFixture(t)
	f.manage("first", f.configMap("contested", "of first"))
	f.reconcileOK("first")
	second := f.manage("second", f.configMap("contested", "of second"))
	mr, _, _ := f.reconcile("second")
	wantContains(t, applied(mr).Message, "belongs to ManagedResource")
	f.restart()
	f.delete(second)
	f.wantConfigMap("contested", "of first")
}

func TestSecretBytesStayOutOfConditionsAndEvents(t *testing.T) {
	f := newFixture(t)
	f.manage("set",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: "+f.namespace+"}\ndata:\n  a: {nested: hunter2hunter2}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s2, namespace: "+f.namespace+"}\ndata:\n  a: 31337313373\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s3, namespace: "+f.namespace+"}\nstringData:\n  password: *hunter2hunter2\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s4, namespace: "+f.namespace+"}\ndata:\n  a: not-base64-hunter2hunter2\n",
	)
	mr, _, _ := f.reconcile("set")
	text := applied(mr).Message
	for len(f.recorder.Events) > 0 {
		text += <-f.recorder.Events
	}
	if applied(mr).Status != resourcesv1alpha1.ConditionFalse {
		t.Errorf("the Secrets were accepted: %s", text)
	}
	wantContains(t, text, "v1/Secret/"+f.namespace+"/s:", "index 2")
	for _, secret := range []string{"hunter2hunter2", "31337313373"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in: %s", secret, text)
		}
	}
}

func TestTwoClaimantsDeletedTogether(t *testing.T) {
	f := newFixture(t)
	first := f.manage("first", f.configMap("contested", "of first"))
	f.reconcileOK("first")
	second := f.manage("second", f.configMap("contested", "of second"))
	mr, _, _ := f.reconcile("second")
	wantContains(t, applied(mr).Message, "belongs to ManagedResource")
	must(t, f.client.Delete(f.ctx, first))
	must(t, f.client.Delete(f.ctx, second))
	for _, name := range []string{"first", "second"} {
		f.reconcileUntil(name, "the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
	}
	f.wantNoConfigMap("contested")
}

func TestSetThatIsTooLargeForItsStatus(t *testing.T) {
	f := newFixture(t)
	var documents []string
	for i := range 8000 {
		documents = append(documents, f.configMap(fmt.Sprintf("object-%d-%s", i, strings.Repeat("x", 100)), "1"))
	}
	var parts []string
	for i := range 8 {
		f.secret(fmt.Sprintf("part-%d", i), "objects.yaml", strings.Join(documents[i*1000:(i+1)*1000], "---\n"))
		parts = append(parts, fmt.Sprintf("part-%d", i))
	}
	f.managedResource("set", parts...)
	mr, result, err := f.reconcile("set")
	wantRetry(t, false, result, err)
	wantContains(t, applied(mr).Message, "Nothing is applied or pruned (1): the inventory of 8000 objects takes", "can hold 1450000")
	if writes := f.requests.writes(); len(writes) > 0 || len(mr.Status.Resources) > 0 {
		t.Errorf("something was applied: %d requests, %d objects recorded", len(writes), len(mr.Status.Resources))
	}
}
