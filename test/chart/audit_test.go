package chart

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// audited has the required fields of a line in the audit log.
type audited struct {
	Stage      string
	Verb       string
	RequestURI string
	User       struct{ Username string }
	// ImpersonatedUser is set if the request impersonates another user.
	ImpersonatedUser *struct{ Username string }
	ObjectRef        *struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct {
		Code    int
		Message string
	}
}

// requestsOf returns the requests of users so far.
func requestsOf(tb testing.TB, users ...string) []audited {
	tb.Helper()
	file, err := os.Open(shared.Options.AuditLog)
	kit.Must(tb, err)
	defer file.Close()
	var requests []audited
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one audited
		if json.Unmarshal(lines.Bytes(), &one) == nil && slices.Contains(users, one.User.Username) {
			requests = append(requests, one)
		}
	}
	kit.Must(tb, lines.Err())
	return requests
}

// right names a verb for a resource, for example "get secrets" or "update
// certificatesigningrequests.certificates.k8s.io/approval".
func right(verb, group, resource string) string {
	resource, subresource, has := strings.Cut(resource, "/")
	if group != "" {
		resource += "." + group
	}
	if has {
		resource += "/" + subresource
	}
	return verb + " " + resource
}

// checkRights checks that no request of the users was forbidden, and that they used all rights from labelled
// roles, except those with a reason.
func (h *helm) checkRights(unused map[string]string, users ...string) {
	h.Helper()
	used := map[string]bool{}
	for _, request := range requestsOf(h, users...) {
		if kit.LacksRights(request.ResponseStatus.Code, request.ResponseStatus.Message) && request.ImpersonatedUser == nil {
			h.Errorf("forbidden: %s %s: %s", request.Verb, request.RequestURI, request.ResponseStatus.Message)
		}
		if ref := request.ObjectRef; ref != nil {
			resource := ref.Resource
			if ref.Subresource != "" {
				resource += "/" + ref.Subresource
			}
			used[right(request.Verb, ref.APIGroup, resource)] = true
		}
	}
	if len(used) == 0 {
		h.Fatalf("the audit log has no request of %v", users)
	}
	granted := h.granted(users...)
	for one := range granted {
		switch verb, what, _ := strings.Cut(one, " "); verb {
		case "create": // the API server requires it when an apply creates an object
			used[one] = used[one] || used["patch "+what]
		case "list": // streamed watches need no list. Older API servers do not support them.
			used[one] = used[one] || used["watch "+what]
		}
	}
	for _, one := range slices.Sorted(maps.Keys(granted)) {
		switch reason := reasonFor(unused, one); {
		case used[one] && reason != "":
			h.Logf("used unexpectedly: %s (%s)", one, reason)
		case !used[one] && reason == "":
			h.Errorf("never used: %s", one)
		case !used[one]:
			h.Logf("not used here: %s: %s", one, reason)
		}
	}
	for one := range unused {
		if !granted[one] && !strings.Contains(one, anyResource) {
			h.Errorf("this right is not granted: %s", one)
		}
	}
}

// anyResource matches all resources of a group.
const anyResource = " *."

// reasonFor returns why a right is not used, or an empty string.
func reasonFor(unused map[string]string, right string) string {
	if reason := unused[right]; reason != "" {
		return reason
	}
	verb, what, _ := strings.Cut(right, " ")
	_, group, _ := strings.Cut(what, ".")
	return unused[verb+anyResource+group]
}

// granted returns the rights that users have from roles of releases in the namespace.
func (h *helm) granted(users ...string) map[string]bool {
	h.Helper()
	rights := map[string]bool{}
	add := func(subjects []rbacv1.Subject, rules []rbacv1.PolicyRule) {
		bound := slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return slices.Contains(users, fmt.Sprintf("system:serviceaccount:%s:%s", s.Namespace, s.Name))
		})
		if !bound {
			return
		}
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						rights[right(verb, group, resource)] = true
					}
				}
			}
		}
	}
	ours := client.MatchingLabels{"app.kubernetes.io/name": "resource-manager"}
	var everywhere rbacv1.ClusterRoleBindingList
	kit.Must(h, h.client.List(h.Context(), &everywhere, ours))
	for _, binding := range everywhere.Items {
		role := &rbacv1.ClusterRole{}
		if h.client.Get(h.Context(), client.ObjectKey{Name: binding.RoleRef.Name}, role) == nil {
			add(binding.Subjects, role.Rules)
		}
	}
	var bindings rbacv1.RoleBindingList
	kit.Must(h, h.client.List(h.Context(), &bindings, ours))
	for _, binding := range bindings.Items {
		role := &rbacv1.Role{}
		if h.client.Get(h.Context(), client.ObjectKey{Namespace: binding.Namespace, Name: binding.RoleRef.Name}, role) == nil {
			add(binding.Subjects, role.Rules)
		}
	}
	return rights
}
