package integration

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// canaries are texts that a resource-manager must never disclose, by description.
type canaries map[string]string

// named returns a canary. The first call creates it.
func (c canaries) named(name string) string {
	if c[name] == "" {
		c[name] = "canary-of-" + strings.ReplaceAll(name, " ", "-") + "-31b7e9"
	}
	return c[name]
}

// in returns the canaries that a text contains: plain, in base64 (from any byte on), in hexadecimal digits or as a
// list of bytes.
func (c canaries) in(text string) []string {
	var found []string
	for name, canary := range c {
		forms := []string{canary, hex.EncodeToString([]byte(canary)), strings.ToUpper(hex.EncodeToString([]byte(canary))),
			strings.Trim(fmt.Sprintf("%d", []byte(canary)), "[]")}
		for shift := range 3 { // the first and last digits depend on the adjacent bytes
			encoded := base64.RawStdEncoding.EncodeToString([]byte("xxx"[:shift] + canary))
			forms = append(forms, encoded[4:len(encoded)-2])
		}
		for _, form := range forms {
			if strings.Contains(text, form) {
				found = append(found, fmt.Sprintf("%s (%q)", name, form))
			}
		}
	}
	slices.Sort(found)
	return found
}

func TestCanariesAreFound(t *testing.T) {
	c := canaries{}
	canary := c.named("the test")
	for _, text := range []string{
		canary, hex.EncodeToString([]byte(canary)), fmt.Sprintf("%d", []byte(canary)), base64.StdEncoding.EncodeToString([]byte(canary)),
		base64.StdEncoding.EncodeToString([]byte("a: " + canary + "\n")), base64.URLEncoding.EncodeToString([]byte("ab" + canary)),
		base64.StdEncoding.EncodeToString([]byte("a" + canary + "b")),
	} {
		if len(c.in("x"+text+"y")) == 0 {
			t.Errorf("the canary is not found in %q", text)
		}
	}
	if found := c.in("nothing"); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// TestSecretsStaySecret gives a resource-manager with all logs and profiles manifests and Secrets that it cannot
// decode, that are invalid, that belong to others, or that a webhook denies with a message that repeats their content
// in all forms. No log, status, Event, metric or profile may contain any of that content.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := canaries{}
	repeated := f.serveRepeatingWebhook()
	f.ownKubeconfig(c)
	p := f.start(noElection + "logLevel: debug\ndebugging: {enableProfiling: true, enableContentionProfiling: true}\n" +
		"controllers: {tokenRequestor: {enabled: true}}\n")
	f.canaryTokens(c)
	f.canaryManifests(c)

	text := p.Written.String()
	list := &resourcesv1alpha1.ManagedResourceList{}
	must(t, f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
	for i := range list.Items {
		list.Items[i].ManagedFields, list.Items[i].Spec = nil, resourcesv1alpha1.ManagedResourceSpec{}
	}
	text += asJSON(t, list)
	f.eventually("Events report a rejected kubeconfig and the manifests", func() bool {
		told := &eventsv1.EventList{}
		must(t, f.client.List(f.ctx, told, client.InNamespace(f.namespace)))
		events := asJSON(t, told)
		if strings.Contains(events, "InvalidKubeconfig") && strings.Contains(events, "DecodingFailed") && strings.Contains(events, "ApplyFailed") {
			text += events
			return true
		}
		return false
	})
	for _, path := range []string{"/metrics", "/debug/pprof/heap?debug=1", "/debug/pprof/heap", "/debug/pprof/allocs?debug=1", "/debug/pprof/goroutine?debug=2",
		"/debug/pprof/block?debug=1", "/debug/pprof/mutex?debug=1", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/trace?seconds=1"} {
		status, body := p.Get(p.Metrics, path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		text += body
	}
	for _, found := range c.in(text) {
		t.Errorf("the resource-manager discloses: %s", found)
	}
	wantContains(t, text, "details are withheld", "exec credentials", "not valid YAML", "rejected by the admission webhook", "brotli")
	for _, operation := range []string{"CREATE Secret", "CREATE ConfigMap", "CREATE Pod", "UPDATE Secret", "DELETE Secret"} {
		if !repeated.has(operation) {
			t.Errorf("the webhook received no request for %s: the test tests nothing", operation)
		}
	}
	if t.Failed() {
		t.Log(asJSON(t, list))
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return string(text)
}

// ownKubeconfig adds the credentials in the resource-manager's own kubeconfig to the canaries.
func (f *fixture) ownKubeconfig(c canaries) {
	f.Helper()
	config, err := clientcmd.Load(shared.Get(f).Kubeconfig())
	must(f, err)
	for name, user := range config.AuthInfos {
		for part, value := range map[string]string{"key": string(user.ClientKeyData), "token": user.Token, "password": user.Password} {
			if len(value) > 120 {
				value = value[60:120] // skip the header of a key
			}
			if value != "" {
				c["the "+part+" of user "+name] = value
			}
		}
	}
	if len(c) == 0 {
		f.Fatal("the kubeconfig has no credentials")
	}
}

// canaryTokens requests tokens: one as a token, one in a kubeconfig, and two for kubeconfigs that are rejected.
func (f *fixture) canaryTokens(c canaries) {
	f.Helper()
	kubeconfig := func(user string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
			"clusters: [{name: a, cluster: {server: https://a}}]\nusers: [{name: a, user: {" + user + "}}]\n"
	}
	for name, data := range map[string]map[string]string{
		"token": {}, "kubeconfig": {"kubeconfig": kubeconfig("token: x, password: " + c.named("a kubeconfig"))},
		"program": {"kubeconfig": kubeconfig("exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [" + c.named("a program") + "]}")},
		"broken":  {"kubeconfig": "a: [" + c.named("a broken kubeconfig") + "\nb: \"" + c.named("a broken kubeconfig")},
	} {
		must(f, f.client.Create(f.ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: tokenLabelMap, Annotations: map[string]string{
				resourcesv1alpha1.AnnotationServiceAccountName: "robot-" + name, resourcesv1alpha1.AnnotationServiceAccountNamespace: f.namespace,
			}},
			StringData: data,
		}))
	}
	for name, key := range map[string]string{"token": "token", "kubeconfig": "kubeconfig"} {
		f.eventually("the "+name+" is issued", func() bool {
			secret := &corev1.Secret{}
			must(f, f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, secret))
			_, token, found := strings.Cut(string(secret.Data[key]), "eyJ")
			if found {
				c["the issued "+name] = strings.Fields(token)[0][100:140]
			}
			return found
		})
	}
}

// canaryManifests applies manifests that each fail in a different way, and changes and deletes objects.
func (f *fixture) canaryManifests(c canaries) {
	f.Helper()
	object := func(kind, name, labels, fields string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: %s, labels: {%s}, annotations: {kubectl.kubernetes.io/last-applied-configuration: %s}}\n%s\n",
			kind, name, f.namespace, labels, c.named("an annotation"), fields)
	}
	const denied = "canary: denied"
	encoded := func(name string) string { return base64.StdEncoding.EncodeToString([]byte(c.named(name))) }
	pod := func(value string) string {
		return "spec: {containers: [{name: a, image: a, command: [" + value + "], env: [{name: A, value: " + value + "}]}]}"
	}
	f.secret("undecodable", "a.yaml", "password: "+c.named("a broken document")+"\n  x: "+c.named("a broken document")+": y\n",
		"b.json", `{"password":"`+c.named("broken JSON")+`"`, "c.br", c.named("broken brotli"), "d", "- "+c.named("a list"),
		"e", "apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {a: ["+c.named("a nameless object")+"]}}\n",
		"f", object("Secret", "twice", "", "data: {a: "+encoded("the first copy")+"}")+"---\n"+object("Secret", "twice", "", "data: {a: "+encoded("the second copy")+"}"),
		"g", object("Secret", "wrong", "", "stringData: ["+c.named("wrong stringData")+"]"))
	f.managedResource("undecodable", "undecodable")
	f.manage("owner", object("ConfigMap", "owned", "", "data: {a: "+c.named("data of another owner")+"}"), object("Secret", "good", "", "data: {a: "+encoded("a good Secret")+"}"))
	f.eventuallyApplied("owner", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
	f.manage("invalid",
		object("ConfigMap", "owned", "", "data: {a: "+c.named("a conflicting object")+"}"),
		object("Secret", "no-base64", "", "data: {a: "+c.named("invalid base64")+"!}"),
		object("Secret", "nested", "", "data: {a: {b: "+c.named("a nested field")+"}}"),
		object("Secret", "bad-type", "", "type: kubernetes.io/tls\ndata: {tls.crt: "+encoded("a bad certificate")+"}"),
		object("ConfigMap", "list", "", "data: ["+c.named("a list of data")+"]"),
		object("ConfigMap", "nested", "", "data: {a: {b: "+c.named("nested data")+"}}"),
		object("Secret", "denied", denied, "data: {a: "+encoded("a denied Secret")+"}"),
		object("ConfigMap", "denied", denied, "data: {a: "+c.named("a denied ConfigMap")+"}"),
		object("Pod", "denied", denied, pod(c.named("a denied Pod"))),
		object("Secret", "warned", "canary: warned", "data: {a: "+encoded("a Secret with warnings")+"}"),
		object("Pod", "odd", "", "spec: {containers: [{name: a, image: a, env: [{name: A, value: {b: "+c.named("an odd Pod")+"}}]}]}"),
	)
	f.manage("changing", object("Secret", "varying", "", "data: {a: "+encoded("the former Secret")+"}"), object("Secret", "leaving", "", "data: {a: "+encoded("the leaving Secret")+"}"))
	f.eventuallyApplied("undecodable", resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDecodingFailed)
	f.eventuallyApplied("invalid", resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonApplyFailed)
	f.eventuallyApplied("changing", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
	f.secret("changing", "objects.yaml", object("Secret", "varying", "", "data: {a: "+encoded("the former Secret")+"}"))
	f.eventually("the deletion is denied", func() bool { return f.saysApplied("changing", "Could not delete") })
	f.secret("changing", "objects.yaml", object("Secret", "varying", denied, "data: {a: "+encoded("the present Secret")+"}"))
	f.eventually("the update is denied", func() bool { return f.saysApplied("changing", "Could not apply") })
}

// saysApplied reports whether the message of ResourcesApplied contains a text.
func (f *fixture) saysApplied(name, text string) bool {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	must(f, f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, mr))
	return strings.Contains(applied(mr).Message, text)
}

// operations are the operations that a webhook was called for, as <operation> <kind>.
type operations struct {
	mu    sync.Mutex
	asked map[string]bool
}

func (o *operations) has(operation string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[operation]
}

// serveRepeatingWebhook denies writes of objects with the label canary, and deletions of Secrets, in the fixture's
// namespace. It only warns if the value of the label is warned. Its messages repeat the values of the objects in
// every form it knows.
func (f *fixture) serveRepeatingWebhook() *operations {
	f.Helper()
	seen := &operations{asked: map[string]bool{}}
	served := kit.ServeWebhooks(f, map[string]http.Handler{"/repeat": http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(request.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(writer, "no review", http.StatusBadRequest)
			return
		}
		seen.mu.Lock()
		seen.asked[string(review.Request.Operation)+" "+review.Request.Kind.Kind] = true
		seen.mu.Unlock()
		var said strings.Builder
		for _, raw := range [][]byte{review.Request.Object.Raw, review.Request.OldObject.Raw} {
			for _, value := range valuesIn(raw) {
				plain, _ := base64.StdEncoding.DecodeString(value)
				fmt.Fprintf(&said, "%s %q %x %v %s; %s %x; ", value, value, value, []byte(value), base64.StdEncoding.EncodeToString([]byte(value)), plain, plain)
			}
			fmt.Fprintf(&said, "%s %q %x %s; ", raw, raw, raw, base64.StdEncoding.EncodeToString(raw))
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: said.String(), Code: http.StatusForbidden}}
		if strings.Contains(string(review.Request.Object.Raw), `"canary":"warned"`) {
			review.Response.Allowed, review.Response.Warnings = true, strings.Split(said.String(), "; ")
		}
		review.Request = nil
		_ = json.NewEncoder(writer).Encode(review)
	})})
	webhook := admissionregistrationv1.ValidatingWebhook{
		Name: "all.canary.example.org", ClientConfig: served.ClientConfig("/repeat"), AdmissionReviewVersions: []string{"v1"},
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.namespace}},
		ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "canary", Operator: metav1.LabelSelectorOpExists},
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets", "configmaps", "pods"}},
		}},
	}
	deletions := *webhook.DeepCopy()
	deletions.Name, deletions.ObjectSelector = "deletions.canary.example.org", nil
	deletions.Rules[0].Operations, deletions.Rules[0].Resources = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, []string{"secrets"}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Webhooks: []admissionregistrationv1.ValidatingWebhook{webhook, deletions},
	}
	must(f, f.client.Create(f.ctx, configuration))
	f.Cleanup(func() { must(f, f.client.Delete(context.WithoutCancel(f.ctx), configuration)) })
	f.eventually("the API server calls the webhook", func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe", Labels: map[string]string{"canary": "denied"}}}
		return f.client.Create(f.ctx, probe, client.DryRunAll) != nil
	})
	return seen
}

// valuesIn returns all strings in a JSON value.
func valuesIn(raw []byte) []string {
	var decoded any
	if json.Unmarshal(raw, &decoded) != nil {
		return nil
	}
	var values []string
	var search func(any)
	search = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, field := range value {
				search(field)
			}
		case []any:
			for _, item := range value {
				search(item)
			}
		case string:
			values = append(values, value)
		}
	}
	search(decoded)
	slices.Sort(values) // equal denials have equal messages
	return values
}
