package care

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// rules returns rules for the creation of resources.
func rules(group string, resources ...string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
	}}
}

// hook returns a webhook that fails requests, with changes.
func hook(rules []admissionregistrationv1.RuleWithOperations, change ...func(*Webhook)) Webhook {
	w := Webhook{Name: "w", FailurePolicy: ptr.To(admissionregistrationv1.Fail), TimeoutSeconds: ptr.To[int32](10), Rules: rules}
	for _, each := range change {
		each(&w)
	}
	return w
}

func ignores(w *Webhook) { w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore) }

func within(seconds int32) func(*Webhook) {
	return func(w *Webhook) { w.TimeoutSeconds = ptr.To(seconds) }
}

func namespaces(requirement ...metav1.LabelSelectorRequirement) func(*Webhook) {
	return func(w *Webhook) { w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: requirement} }
}

func objects(requirement ...metav1.LabelSelectorRequirement) func(*Webhook) {
	return func(w *Webhook) { w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: requirement} }
}

func notIn(key, value string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}
}

func in(key, value string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}
}

func scoped(scope admissionregistrationv1.ScopeType, operations ...admissionregistrationv1.OperationType) func(*Webhook) {
	return func(w *Webhook) {
		for i := range w.Rules {
			w.Rules[i].Scope = &scope
			if len(operations) > 0 {
				w.Rules[i].Operations = operations
			}
		}
	}
}

// problems are webhooks and the expected problem, which is empty if the webhook is not problematic.
var problems = map[string]struct {
	webhook Webhook
	want    string
}{
	"pods":                                {hook(rules("", "pods")), "pods, with failurePolicy Fail and timeoutSeconds 10"},
	"no policy":                           {hook(rules("", "pods"), func(w *Webhook) { w.FailurePolicy = nil }), "pods, with failurePolicy Fail"},
	"ignored":                             {hook(rules("", "pods"), ignores), ""},
	"ignored, within 15 s":                {hook(rules("", "pods"), ignores, within(15)), ""},
	"ignored, too slow":                   {hook(rules("", "pods"), ignores, within(16)), "failurePolicy Ignore and timeoutSeconds 16"},
	"ignored, without limit":              {hook(rules("", "pods"), ignores, func(w *Webhook) { w.TimeoutSeconds = nil }), "no timeoutSeconds"},
	"other kinds":                         {hook(rules("example.org", "things")), ""},
	"other kinds, too slow":               {hook(rules("example.org", "things"), within(30)), ""},
	"the same name elsewhere":             {hook(rules("example.org", "pods")), ""},
	"jobs":                                {hook(rules("batch", "jobs")), ""},
	"any group":                           {hook(rules("*", "deployments")), "deployments"},
	"any resource":                        {hook(rules("apps", "*")), "controllerrevisions"},
	"any resource, not subresources":      {hook(rules("", "*/exec")), ""},
	"any subresource":                     {hook(rules("apps", "*/scale")), "deployments/scale"},
	"any subresource of pods":             {hook(rules("", "pods/*")), "pods"},
	"everything":                          {hook(rules("*", "*/*")), "leases"},
	"deletions":                           {hook(rules("", "pods"), scoped("*", admissionregistrationv1.Delete)), ""},
	"updates":                             {hook(rules("", "pods"), scoped("*", admissionregistrationv1.Update)), "pods"},
	"all operations":                      {hook(rules("", "pods"), scoped("*", admissionregistrationv1.OperationAll)), "pods"},
	"another scope":                       {hook(rules("", "pods"), scoped(admissionregistrationv1.ClusterScope)), ""},
	"its scope":                           {hook(rules("", "pods"), scoped(admissionregistrationv1.NamespacedScope)), "pods"},
	"nodes in namespaces":                 {hook(rules("", "nodes"), scoped(admissionregistrationv1.NamespacedScope)), ""},
	"without kube-system":                 {hook(rules("", "pods"), namespaces(notIn("kubernetes.io/metadata.name", "kube-system"))), ""},
	"without the purpose":                 {hook(rules("", "pods"), namespaces(notIn("gardener.cloud/purpose", "kube-system"))), ""},
	"with another namespace":              {hook(rules("", "pods"), namespaces(in("kubernetes.io/metadata.name", "mine"))), ""},
	"without another namespace":           {hook(rules("", "pods"), namespaces(notIn("kubernetes.io/metadata.name", "mine"))), "pods"},
	"objects with a label":                {hook(rules("", "pods"), objects(in("app", "mine"))), ""},
	"objects without a label":             {hook(rules("", "pods"), objects(notIn("app", "mine"))), "pods"},
	"nodes":                               {hook(rules("", "nodes")), "nodes"},
	"nodes do not have namespaces":        {hook(rules("", "nodes"), namespaces(in("kubernetes.io/metadata.name", "mine"))), "nodes"},
	"requests for certificates":           {hook(rules("certificates.k8s.io", "certificatesigningrequests/approval")), "certificatesigningrequests/approval"},
	"namespaces":                          {hook(rules("", "namespaces")), "namespaces"},
	"namespaces but kube-system":          {hook(rules("", "namespaces"), namespaces(notIn("kubernetes.io/metadata.name", "kube-system"))), ""},
	"roles of clusters":                   {hook(rules("rbac.authorization.k8s.io", "clusterroles")), "clusterroles"},
	"roles of clusters but gardener's":    {hook(rules("rbac.authorization.k8s.io", "clusterroles"), objects(notIn("resources.gardener.cloud/managed-by", "gardener"))), ""},
	"the API server's Service":            {hook(rules("", "services"), namespaces(in("kubernetes.io/metadata.name", "default"))), "services"},
	"Services of users":                   {hook(rules("", "services"), namespaces(in("kubernetes.io/metadata.name", "default")), objects(notIn("provider", "kubernetes"))), ""},
	"leases of nodes":                     {hook(rules("coordination.k8s.io", "leases"), namespaces(in("kubernetes.io/metadata.name", "kube-node-lease")), ignores), "leases, with timeoutSeconds 10, more than 3 s"},
	"leases of nodes, fast":               {hook(rules("coordination.k8s.io", "leases"), namespaces(in("kubernetes.io/metadata.name", "kube-node-lease")), within(3)), ""},
	"leases of the system, fast":          {hook(rules("coordination.k8s.io", "leases"), within(3)), "leases, with failurePolicy Fail and timeoutSeconds 3"},
	"leases of the system, fast, ignored": {hook(rules("coordination.k8s.io", "leases"), within(3), ignores), ""},
}

func TestProblems(t *testing.T) {
	for name, test := range problems {
		got := test.webhook.problem()
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestRemediated checks that no webhook is problematic after it was changed, that a second call changes nothing, and that all
// changes are named.
func TestRemediated(t *testing.T) {
	webhooks := map[string]Webhook{}
	for name, test := range problems {
		webhooks[name] = test.webhook
		slow := test.webhook
		slow.TimeoutSeconds, slow.FailurePolicy = nil, nil
		webhooks[name+", slow and failing"] = slow
	}
	for name, webhook := range webhooks {
		before := fmt.Sprintf("%+v", webhook)
		remediated, changes := webhook.remediated()
		if why := remediated.problem(); why != "" {
			t.Errorf("%s: after %q, %s", name, changes, why)
		}
		if webhook.problem() != "" && len(changes) == 0 {
			t.Errorf("%s: nothing was changed", name)
		}
		if _, again := remediated.remediated(); len(again) > 0 {
			t.Errorf("%s: after %q, %q", name, changes, again)
		}
		if after := fmt.Sprintf("%+v", webhook); after != before {
			t.Errorf("%s: the webhook itself was changed", name)
		}
	}
}

func TestRemediation(t *testing.T) {
	for name, test := range map[string]struct {
		webhook Webhook
		want    []string
	}{
		"harmless":         {hook(rules("", "pods"), ignores), nil},
		"slow":             {hook(rules("example.org", "things"), within(30)), []string{"set timeoutSeconds to 15 (previously: timeoutSeconds 30)"}},
		"slow, for leases": {hook(rules("coordination.k8s.io", "leases"), ignores), []string{"set timeoutSeconds to 3 (previously: timeoutSeconds 10)"}},
		"no limit":         {hook(rules("", "pods"), ignores, func(w *Webhook) { w.TimeoutSeconds = nil }), []string{"set timeoutSeconds to 15 (previously: no timeoutSeconds)"}},
		"in kube-system":   {hook(rules("", "pods")), []string{"added to namespaceSelector: gardener.cloud/purpose notin (kube-system), kubernetes.io/metadata.name notin (kube-system)"}},
		"by labels":        {hook(rules("scheduling.k8s.io", "priorityclasses")), []string{"added to objectSelector: resources.gardener.cloud/managed-by notin (gardener)"}},
		"without labels":   {hook(rules("", "nodes")), []string{"set failurePolicy to Ignore"}},
		"everything": {hook(rules("*", "*/*")), []string{
			"set timeoutSeconds to 3 (previously: timeoutSeconds 10)", "added to namespaceSelector: gardener.cloud/purpose notin (kube-system), kubernetes.io/metadata.name notin (kube-system)",
			"added to objectSelector: component notin (apiserver), provider notin (kubernetes)", "added to objectSelector: endpointslice.kubernetes.io/skip-mirror notin (true)",
			"added to objectSelector: resources.gardener.cloud/managed-by notin (gardener)", "set failurePolicy to Ignore",
		}},
	} {
		if _, changes := test.webhook.remediated(); !slices.Equal(changes, test.want) {
			t.Errorf("%s: %q, want %q", name, changes, test.want)
		}
	}
}

// TestRemediatedConfigurations checks that the changes are recorded in the configuration, and that some configurations are not
// changed.
func TestRemediatedConfigurations(t *testing.T) {
	bad := Configuration{Kind: kindMutating, Name: "c", Webhooks: []Webhook{hook(rules("", "nodes")), hook(rules("example.org", "things"))}}
	after, changes := bad.remediated()
	if len(changes) != 1 || after.Annotations[constants.AnnotationGardenerWarning] == "" || len(bad.Annotations) > 0 || len(after.problems()) > 0 || len(bad.problems()) != 1 {
		t.Errorf("%q, %+v", changes, after)
	}
	for label, value := range map[string]string{
		constants.LabelWebhookRemediationExclude: "true", "resources.gardener.cloud/managed-by": "gardener", "app": "gardener-resource-manager",
	} {
		excluded := bad
		excluded.Labels = map[string]string{label: value}
		if after, changes := excluded.remediated(); len(changes) > 0 || len(after.Annotations) > 0 {
			t.Errorf("labelled %s: %q", label, changes)
		}
	}
}
